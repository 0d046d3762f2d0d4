"""MCP servers: those of a session as plain records; those that a peer offers through the connection, with `mcp`."""
