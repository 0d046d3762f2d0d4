"""Sessions to talk in: turns with their changes, and the state that a client shows."""
