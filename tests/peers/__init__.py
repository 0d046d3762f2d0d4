"""Published agents, run here against a model of our own: `nox -s peers`."""
