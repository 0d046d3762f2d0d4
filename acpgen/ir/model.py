"""The intermediate representation: what the schema means, free of JSON Schema and not yet Python source.

Everything here is frozen. A name in the schema (`wire`) and the name in Python (`name`) are two fields throughout.
`pointer` leads into the composed schema; `origin` names the source of the node: "ACP v1, 2026-11-02", or the fragment
"logout, 2026-02-02".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum as PythonEnum
from functools import cached_property
from typing import Any, TypeAlias

from acpgen.ir.conditions import Condition
from acpgen.ir.options import Options as Options
from acpgen.ir.value_types import (
    AnyJson as AnyJson,
    Const as Const,
    Construct as Construct,
    InlineEnum as InlineEnum,
    ListOf as ListOf,
    ListValue as ListValue,
    Literal as Literal,
    MapOf as MapOf,
    MapValue as MapValue,
    Nullable as Nullable,
    Primitive as Primitive,
    Ref as Ref,
    Scalar as Scalar,
    TypeExpr as TypeExpr,
    Value as Value,
)
from acpgen.roles import Role as Role
from acpgen.roles import Side
from acpgen.schema.facts import NegotiationFacts
from acpgen.schema.gates import Gate
from acpgen.schema.keywords import Leniency as Leniency
from acpgen.schema.session_facts import SessionFacts
from acpgen.schema.value_gates import GatedPart

# --- Definitions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The Python name of a part of the schema, its description, and its places: see the docstring of the module."""

    name: str
    doc: str
    pointer: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Named):
    """A property of an object.

    If the key is absent, that is an error (`required`), or the value is `default` or UNSET. `inherited` fields are
    declared in the base class. If null says no more than leaving the key out, the property `omits_null` on the wire.
    """

    wire: str
    type: TypeExpr
    required: bool
    default: Value | None
    leniency: Leniency
    inherited: bool = False
    omits_null: bool = False

    @property
    def may_be_unset(self) -> bool:
        """True if the key may be absent and there is no default for it."""
        return not self.required and self.default is None


EXTRA_FIELD = "extra"
"""The attribute for unnamed properties; no property of such a class may map to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct(Named):
    """An object with known properties: one class. `fields` starts with the inherited ones."""

    fields: tuple[Field, ...]
    base: str | None
    keeps_extra: bool
    rejects: Condition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Targeting:
    """A member of a tagged union that has a class or union of its own, the `target`."""

    target: str
    doc: str

    @property
    def type(self) -> TypeExpr:
        """The reference to the target."""
        return Ref(self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Targeting):
    """The member that a tag value selects."""

    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVariant(Targeting):
    """The member for all tags but the `excluded` ones, or for no tag.

    The schema has no such member if it is `opened`: it follows from the option `open`.
    """

    excluded: tuple[str, ...]
    opened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A member without a tag: tried if the value is an object with all `required` keys, or no object."""

    type: TypeExpr
    required: tuple[str, ...]
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedUnion(Named):
    """A union of objects told apart by the value of the property `tag`.

    Tried first: the variant of the tag. Then the `fallbacks` in schema order: members without a tag, and the member
    for other tags.
    """

    tag: str
    variants: tuple[Variant, ...]
    fallbacks: tuple[Candidate | OtherVariant, ...]

    @property
    def untagged(self) -> tuple[Candidate, ...]:
        """The members without a tag."""
        return tuple(member for member in self.fallbacks if isinstance(member, Candidate))

    @property
    def other(self) -> OtherVariant | None:
        """The member for other tags, if there is one."""
        return next((member for member in self.fallbacks if isinstance(member, OtherVariant)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UntaggedUnion(Named):
    """A union whose members are tried in schema order."""

    members: tuple[Candidate, ...]

    @property
    def untagged(self) -> tuple[Candidate, ...]:
        """The members: none has a tag."""
        return self.members


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumMember:
    """One constant of an enum with its short title, if the schema has one."""

    value: str | int
    title: str | None
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum(Named):
    """Named constants; an open enum accepts all other values of the primitive, too.

    The schema is closed there if it is `opened`: that follows from the option `open`.
    """

    primitive: Primitive
    members: tuple[EnumMember, ...]
    open: bool
    opened: bool = False

    @property
    def inline(self) -> InlineEnum:
        """The enum without its name."""
        return InlineEnum(primitive=self.primitive, values=tuple(each.value for each in self.members), open=self.open)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias(Named):
    """A second name of a type."""

    type: TypeExpr


Definition: TypeAlias = Struct | TaggedUnion | UntaggedUnion | Enum | Alias


# --- Methods and the whole ------------------------------------------------------------------------------------------


class MethodKind(PythonEnum):
    """The kinds of methods (JSON-RPC 2.0, sections 4 and 4.1)."""

    REQUEST = "request"
    NOTIFICATION = "notification"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Named):
    """A method that `handlers` handle. `side` is the value of `x-side`.

    `gate` is the capability that the handling side must have advertised.
    """

    wire: str
    kind: MethodKind
    side: str
    handlers: tuple[Side, ...]
    params: TypeExpr
    result: TypeExpr | None
    gate: Gate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedValue(GatedPart):
    """A part of messages that may be sent only if `gate`, a capability, was advertised.

    `definition` is a name in Python. `key` is the tag whose value is `value`; None for a constant, or without a value.
    """

    key: str | None
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCode:
    """An error code that has a name: its exception class is `name`."""

    code: int
    name: str
    title: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """JSON-RPC errors; `object` is the struct of the error object, if the schema defines one."""

    object: str | None
    codes: tuple[ErrorCode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """The notification that cancels a request: its wire name, and the property of its params that holds the id."""

    method: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The JSON-RPC rules of the schema: cancellation, and whether the id of a request or an error may be null."""

    cancel: Cancel | None
    null_ids: bool
    null_error_ids: bool


@dataclass(frozen=True, kw_only=True)
class Model:
    """A whole protocol, input of the emitter. Definitions are in an order in which each base precedes its use.

    Those that are `recursive` are unions and aliases whose arrays or maps contain themselves again.
    """

    protocol: int
    release: str | None
    origin: str
    extensions: tuple[str, ...]
    definitions: tuple[Definition, ...]
    recursive: frozenset[str]
    methods: tuple[Method, ...]
    gated_values: tuple[GatedValue, ...]
    errors: Errors
    envelope: Envelope
    negotiation: NegotiationFacts | None
    sessions: SessionFacts | None

    @cached_property
    def by_name(self) -> Mapping[str, Definition]:
        """The definitions by Python name."""
        return {definition.name: definition for definition in self.definitions}

    @cached_property
    def negotiating(self) -> Method | None:
        """The request that negotiates the version, if there is one."""
        how = self.negotiation
        requests = (method for method in self.methods if method.kind is MethodKind.REQUEST)
        return next((method for method in requests if how is not None and method.wire == how.method), None)

    def introduction(self, side: Side) -> tuple[Field | None, Field | None]:
        """The properties in which a side says what it can do, and which program it is: each is of a class of its own.

        The side that handles the request which negotiates the version does so in the result.
        """
        how, method = self.negotiation, self.negotiating
        if how is None or method is None:
            return None, None
        stated, message = (how.result, method.result) if side in method.handlers else (how.params, method.params)
        owner = self.definition(message) if message is not None else None
        fields = {field.wire: field for field in owner.fields} if isinstance(owner, Struct) else {}
        capabilities, info = (fields.get(wire or "") for wire in (stated.capabilities, stated.info))
        return self._of_a_class(capabilities), self._of_a_class(info)

    def _of_a_class(self, field: Field | None) -> Field | None:
        found = field.type.inner if field is not None and isinstance(field.type, Nullable) else field and field.type
        return field if found and isinstance(self.definition(found), Struct) else None

    def definition(self, expression: TypeExpr) -> Definition | None:
        """The definition that `expression` refers to; None if it is no reference."""
        return self.by_name[expression.name] if isinstance(expression, Ref) else None

    def struct(self, name: str) -> Struct:
        """The struct `name`; raises `KeyError` or `TypeError` if there is none."""
        found: Any = self.by_name[name]
        if not isinstance(found, Struct):
            raise TypeError(f"{name} is no struct")
        return found
