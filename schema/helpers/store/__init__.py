"""Sessions that survive the process: in SQLite, or in a store of your own."""
