"""The one table of options: what each may hold, its default, its help text, and its names in a file and a command.

From `KEYS` come the options of the command line, the checks of `[tool.acpgen]`, the options in the manifest, and the
tables in `docs/cli.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from acpgen.config.kinds import ValueKind, is_valid
from acpgen.flavours import Flavour
from acpgen.ir.options import Options
from acpgen.parts import NO_PART
from acpgen.roles import Role, RoleChoice, RoleRecord
from acpgen.text import cut

DEFAULT_PROTOCOL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChoice:
    """The schema of one protocol and its extensions: a bundled schema by `protocol` and `release`, or a file."""

    protocol: int = DEFAULT_PROTOCOL
    release: str | None = None
    schema: Path | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Everything that decides the bytes of the output, and its folder.

    `sources` has the schema of each protocol; a package of several has a subpackage for each. `runtime` adds the
    modules that speak JSON-RPC, and `parts` those that a project has named. `renames` has pairs of a former name and
    the present one. `strict` turns warnings into errors; it does not change the output. With a `flavour`, the
    package has types alone, for that library.
    """

    sources: tuple[SchemaChoice, ...]
    roles: tuple[Role, ...]
    out: Path
    types: Options = field(default_factory=Options)
    runtime: bool = True
    parts: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    strict: bool = False
    flavour: Flavour | None = None


FORMER_KEYS = {
    "open-unions": "the key is now called `open`",
    "remote": "it is a part now: add it to the array `with`, as in {parts}",
}
"""What has become of former keys. `{parts}` stands for the parts of a package with the former one."""

OUTPUTS = "outputs"
"""The table of named outputs below `[tool.acpgen]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One option. `enum` has the values of a `CHOICE`; `excludes` names a key that cannot be used at the same time.

    `field` is the name in Python, where that is another one. `by_role` is the default of a flag for a package with a
    role; it is on if it is for one of several. `is_recorded`: the value decides the output, so the manifest has it.
    `short` and `metavar` are for the command line alone.
    """

    name: str
    kind: ValueKind
    help: str
    default: Any = None
    enum: type[Enum] | None = None
    excludes: str | None = None
    field: str | None = None
    by_role: Callable[[RoleRecord], bool] | None = None
    is_recorded: bool = True
    short: str | None = None
    metavar: str | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a `CHOICE`."""
        return tuple(each.value for each in self.enum) if self.enum else ()

    @property
    def parameter(self) -> str:
        """The name in Python: of the parameter of a command, and of the field of `BuildOptions` if it has one."""
        return self.field or self.name.replace("-", "_")

    @property
    def option(self) -> str | None:
        """The option of the command line, as typer declares it; None for a key that only a file can have."""
        return self.kind.option(self.name)

    @property
    def default_text(self) -> str | None:
        """The default in words; None if the help text says it, or if there is none."""
        match self.default:
            case None | () | {}:
                return None
            case bool():
                return "on" if self.default else "off"
            case _:
                return str(self.default)


def _on_for(is_on: Callable[[RoleRecord], bool]) -> str:
    """The default of a flag that depends on the role, in words."""
    return f"The default is on if you write {' or '.join(each.record.noun for each in Role if is_on(each.record))}."


def _parts_by_role() -> str:
    """The default of the key `with`, in words."""
    found = [f"`{' '.join(role.record.parts) or NO_PART}` for {role.record.noun}" for role in Role]
    return ", ".join(found)


_KEYS = (
    Key(
        name="out",
        kind=ValueKind.PATH,
        help="The folder of the package. A missing folder is created.",
        short="-o",
        metavar="FOLDER",
    ),
    Key(
        name="role",
        kind=ValueKind.CHOICE,
        help=f"What you write: {', '.join(role.record.noun for role in Role)}, or both an agent and a client.",
        default=RoleChoice.AGENT.value,
        enum=RoleChoice,
    ),
    Key(
        name="flavour",
        kind=ValueKind.CHOICE,
        help="Write types alone, for this library: see docs/models.md. The default is a whole package.",
        enum=Flavour,
    ),
    Key(
        name="protocol",
        kind=ValueKind.PROTOCOLS,
        help="The version of the protocol, such as 2. Repeat it for a package with several.",
        default=DEFAULT_PROTOCOL,
        metavar="N",
    ),
    Key(
        name="release",
        kind=ValueKind.NAME_BY_PROTOCOL,
        help="The release of a bundled schema, of one protocol or of all. The default is the newest.",
        excludes="schema",
        metavar="[N=]NAME",
    ),
    Key(
        name="schema",
        kind=ValueKind.PATH_BY_PROTOCOL,
        help="A schema file, instead of a bundled schema.",
        excludes="release",
        metavar="[N=]PATH",
    ),
    Key(
        name="extensions",
        kind=ValueKind.SPECS,
        help="An extension to compose with the schema: a bundled one by name, or a file. Repeatable.",
        default=(),
        short="-e",
        metavar="NAME[@REVISION]|PATH",
    ),
    Key(
        name="open",
        kind=ValueKind.FLAG,
        help=f"Accept unknown tags and enumeration values. {_on_for(lambda role: role.is_open)}",
        by_role=lambda role: role.is_open,
    ),
    Key(
        name="keep-unknown",
        kind=ValueKind.FLAG,
        help=f"Keep unknown properties in the attribute `extra`. {_on_for(lambda role: role.keeps_unknown)}",
        by_role=lambda role: role.keeps_unknown,
    ),
    Key(
        name="runtime",
        kind=ValueKind.FLAG,
        help="Add the runtime: JSON-RPC over stdio and other transports.",
        default=True,
    ),
    Key(
        name="with",
        kind=ValueKind.PARTS,
        help="A part that the package shall have, or `none`: see `acpgen parts`. Repeatable. The default is "
        f"{_parts_by_role()}.",
        field="parts",
        metavar="PART",
    ),
    Key(
        name="strict",
        kind=ValueKind.FLAG,
        help="Treat warnings about the schema as errors.",
        default=False,
        is_recorded=False,
    ),
    Key(
        name="renames",
        kind=ValueKind.NAMES,
        help="Former names of the package, each with its present name. A former name still works, with a warning.",
        default={},
    ),
)

KEYS: Mapping[str, Key] = {key.name: key for key in _KEYS}


def role_defaults(roles: tuple[Role, ...]) -> dict[str, bool]:
    """The options whose default depends on the roles of a package, each with that default."""
    return {
        key.name: any(key.by_role(each.record) for each in roles) for key in KEYS.values() if key.by_role is not None
    }


def flaw(key: Key, value: object) -> str | None:
    """The reason why a value from a file is not valid for `key`; None for a valid one."""
    if key.enum is not None:
        expected, is_fine = f"one of {', '.join(map(repr, key.choices))}", value in key.choices
    else:
        expected, is_fine = key.kind.value, is_valid(key.kind, value)
    return None if is_fine else f"expected {expected}, found {cut(repr(value), 61)}"
