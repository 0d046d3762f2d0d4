"""A proxy between a client and an agent; `python -m new_project AGENT` runs it on stdin and stdout."""
