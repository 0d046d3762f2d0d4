"""Serve an agent over Streamable HTTP and WebSocket, as an ASGI application."""
