"""What a build is asked to do: by the command line, by `[tool.acpgen]` in a `pyproject.toml`, or by default."""

from acpgen.config.keys import DEFAULT_PROTOCOL, BuildOptions, Sources

__all__ = ["DEFAULT_PROTOCOL", "BuildOptions", "Sources"]
