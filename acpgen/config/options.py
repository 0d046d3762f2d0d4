"""What a build is asked to do, independent of where the wishes come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from acpgen.ir.options import Options
from acpgen.ir.role import Role

DEFAULT_PROTOCOL = 1


def is_open_by_default(roles: tuple[Role, ...]) -> bool:
    """Whether a package takes values that are not known yet: agents of tomorrow talk to the clients of today."""
    return Role.CLIENT in roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Which schema to read: a bundled one by `protocol` and `release`, or the file `schema`, and the extensions."""

    protocol: int = DEFAULT_PROTOCOL
    release: str | None = None
    schema: Path | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Everything that decides the bytes of the output, and where it goes.

    `runtime` adds the modules that talk JSON-RPC. `renames` has pairs of a name that the package had, and the name that
    it has now. `strict` turns warnings into errors; it decides whether there is an
    output, not what is in it.
    """

    sources: Sources
    roles: tuple[Role, ...]
    out: Path
    types: Options = field(default_factory=Options)
    runtime: bool = True
    renames: tuple[tuple[str, str], ...] = ()
    strict: bool = False
