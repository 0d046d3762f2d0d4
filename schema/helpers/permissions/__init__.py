"""Answers to permission requests: by rules that are remembered, or by asking the user."""
