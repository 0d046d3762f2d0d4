"""A chat with an agent in the terminal; `python -m new_project COMMAND ...` starts the agent, and talks to it."""
