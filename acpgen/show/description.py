"""The data of `acpgen show`: the description of a type or method, before it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from acpgen.diagnostics import Location
from acpgen.emit.signatures import Signature
from acpgen.ir.model import EnumMember
from acpgen.ir.usage import NO_USES, Uses


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The base or extension that brought something, and the place in its file.

    `extension` is the user's name for an extension. `place` is None for something without a place of its own.
    """

    name: str
    extension: str | None
    place: Location | None
    pointer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEntry:
    """The capability that a method needs; `origin` is None if the base has it."""

    text: str
    origin: Origin | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEntry:
    """An attribute. `default` is source code, or None if required. `opens` are the methods that need it."""

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
    """A member of a union, with its tag if it has one."""

    hint: str
    tag: str | None
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaEntry:
    """A part of the composed schema."""

    pointer: str
    node: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeEntry:
    """A type, or a definition without one (`signature` is None).

    `extended_by` are the extensions that change it. `gates` are the capabilities of the methods that carry it, if all
    of these need one.
    """

    name: str
    kind: str
    signature: Signature | None = None
    doc: str
    fields: tuple[FieldEntry, ...] = ()
    members: tuple[MemberEntry, ...] = ()
    tag: str | None = None
    values: tuple[EnumMember, ...] = ()
    schema: SchemaEntry
    origin: Origin
    extended_by: tuple[Origin, ...]
    gates: tuple[str, ...] = ()
    uses: Uses = NO_USES
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEntry:
    """A method. `handlers` and `callers` are roles, `params` and `result` type hints."""

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


Description: TypeAlias = TypeEntry | MethodEntry
