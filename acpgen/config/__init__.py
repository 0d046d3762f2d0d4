"""The options of a build: from the command line, from `[tool.acpgen]` in a `pyproject.toml`, or the defaults."""

from acpgen.config.keys import DEFAULT_PROTOCOL, BuildOptions, SchemaChoice

__all__ = ["DEFAULT_PROTOCOL", "BuildOptions", "SchemaChoice"]
