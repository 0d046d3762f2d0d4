"""What is shown of a name, before it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Location
from acpgen.emit.signatures import Signature
from acpgen.ir.usage import Uses


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What brought something: the base or an extension (`extension` is how users name it), and where it is written.

    `place` and `pointer` lead into the file; `place` is None for what has no place of its own there.
    """

    name: str
    extension: str | None
    place: Location | None
    pointer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEntry:
    """A capability that a method waits for; `origin` is None where the base has it."""

    text: str
    origin: Origin | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEntry:
    """An attribute. `default` is source; None for one that must be given. `opens` are the methods that it gates."""

    name: str
    wire: str
    hint: str
    default: str | None
    inherited_from: str | None
    doc: str
    origin: Origin
    opens: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEntry:
    """A member of a union: the value of the tag that selects it, where one does."""

    hint: str
    tag: str | None
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEntry:
    """A constant of an enum."""

    value: str | int
    title: str | None
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEntry:
    """A part of the composed schema: where it stands, and what it is."""

    pointer: str
    node: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeEntry:
    """A type. `gates` are those of all methods that carry it, where each has one.

    `extended_by` are extensions that change it; `note` is what else has to be said.
    """

    name: str
    kind: str
    signature: Signature | None
    doc: str
    fields: tuple[FieldEntry, ...]
    members: tuple[MemberEntry, ...]
    tag: str | None
    values: tuple[ValueEntry, ...]
    schema: SchemaEntry
    origin: Origin
    extended_by: tuple[Origin, ...]
    gates: tuple[str, ...]
    uses: Uses
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEntry:
    """A method: `handlers` are the roles that handle it, `params` and `result` annotations."""

    wire: str
    name: str
    kind: str
    handlers: tuple[str, ...]
    callers: tuple[str, ...]
    params: str
    result: str | None
    signatures: tuple[Signature, ...]
    doc: str
    schema: tuple[SchemaEntry, ...]
    origin: Origin
    gate: GateEntry | None


Entry = TypeEntry | MethodEntry
