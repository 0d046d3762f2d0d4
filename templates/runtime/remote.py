"""Connect to an agent over Streamable HTTP or WebSocket."""
