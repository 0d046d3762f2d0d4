"""The options that several commands share, each with one help text."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from acpgen.config import DEFAULT_PROTOCOL, Sources
from acpgen.ir.model import Role


class RoleChoice(str, Enum):
    """What to generate for."""

    AGENT = "agent"
    CLIENT = "client"
    BOTH = "both"

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that the choice stands for."""
        return tuple(Role) if self is RoleChoice.BOTH else (Role(self.value),)


class DataFormat(str, Enum):
    """How data is printed on stdout."""

    TEXT = "text"
    JSON = "json"


Protocol = Annotated[int, typer.Option("--protocol", help="The version of the protocol, 1 or 2.", metavar="N")]
Release = Annotated[
    str | None,
    typer.Option("--release", help="A bundled schema by release; the newest by default.", metavar="NAME"),
]
Schema = Annotated[
    Path | None, typer.Option("--schema", help="A schema file to use instead of a bundled one.", metavar="PATH")
]
Extension = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        "-e",
        help="An extension to compose with the schema: a bundled one by name, or a file. Repeatable.",
        metavar="NAME[@REVISION]|PATH",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")]


def sources(
    protocol: int = DEFAULT_PROTOCOL,
    *,
    release: str | None = None,
    schema: Path | None = None,
    extension: list[str] | None = None,
) -> Sources:
    """The sources that the options name."""
    return Sources(protocol=protocol, release=release, schema=schema, extensions=tuple(extension or ()))
