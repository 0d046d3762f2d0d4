"""Logging in: by the agent, in a terminal, or with environment variables."""
