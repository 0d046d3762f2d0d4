"""Prompts as turns that can be cancelled, and tool calls that report how they go on."""
