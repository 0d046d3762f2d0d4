"""Remote connections with real servers: load, faults, ends, and what surrounds an application."""
