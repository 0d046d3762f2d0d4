"""An agent that editors can use; `python -m new_project` runs it on stdin and stdout."""
