"""The Jinja environment of all templates: nothing undefined, and nothing printed that is not `Code`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acpgen.diagnostics import internal_error
from acpgen.emit.literals import Code


def only_code(value: Any) -> str:
    """`value`, which must be `Code`: text that did not go through `literals` never reaches a generated file."""
    if not isinstance(value, Code):
        raise internal_error(f"a template prints {value!r}, which is not Code")
    return value


def make_environment(templates: Path) -> Environment:
    """The environment for the templates in the folder `templates`."""
    return Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        finalize=only_code,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
