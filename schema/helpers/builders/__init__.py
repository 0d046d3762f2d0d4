"""Functions that build common messages: content blocks, updates of a session, permission options and their answers."""
