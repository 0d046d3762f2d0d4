"""Traces: recorded conversations, read and checked against the schema."""
