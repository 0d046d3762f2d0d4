"""Carries messages over HTTP and WebSocket."""
