"""The types of values, and the values that are known at build time: the leaves of the model in `model`, which has them.

A type refers to a definition by its name alone, so nothing here knows definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum as PythonEnum
from typing import TypeAlias

# --- Types of values ------------------------------------------------------------------------------------------------


class Primitive(PythonEnum):
    """The JSON Schema type names of scalars (2020-12 core, section 4.2.1)."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"

    @staticmethod
    def of(value: object) -> Primitive | None:
        """The primitive of a JSON value in Python; None for an array or an object."""
        return _PRIMITIVES.get(type(value))

    def admits(self, other: Primitive | None) -> bool:
        """True if every value of `other` is one of this primitive: an integer is a number, too."""
        return other is self or (other, self) == (Primitive.INTEGER, Primitive.NUMBER)


_PRIMITIVES: Mapping[type, Primitive] = {
    str: Primitive.STRING,
    int: Primitive.INTEGER,
    float: Primitive.NUMBER,
    bool: Primitive.BOOLEAN,
    type(None): Primitive.NULL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A string, number, boolean or null.

    The bounds are enforced on decode. `annotations` (`format`, `pattern`, `contentEncoding`, …) are kept for readers.
    """

    primitive: Primitive
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def bounds(self) -> Mapping[str, float]:
        """The bounds that there are, by attribute. Without any, no value of the primitive is refused."""
        given = {"minimum": self.minimum, "maximum": self.maximum, "min_length": self.min_length}
        return {name: bound for name, bound in given.items() if bound is not None}


@dataclass(frozen=True, slots=True)
class Const:
    """Exactly one string, integer or boolean."""

    value: str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineEnum:
    """An enum without a name: one of the `values`; an open one accepts all other values of the primitive, too."""

    primitive: Primitive
    values: tuple[str | int, ...]
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A JSON array; `min_items` is enforced on decode."""

    item: TypeExpr
    min_items: int = 0


@dataclass(frozen=True, slots=True)
class MapOf:
    """A JSON object as a map from any name to `value`."""

    value: TypeExpr


@dataclass(frozen=True, slots=True)
class Nullable:
    """`inner`, or JSON null."""

    inner: TypeExpr


@dataclass(frozen=True, slots=True)
class AnyJson:
    """Any JSON value, null included."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The definition of this Python name."""

    name: str


TypeExpr: TypeAlias = Scalar | Const | InlineEnum | ListOf | MapOf | Nullable | AnyJson | Ref


# --- Values known at build time -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar default."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ListValue:
    """A default that is an array."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class MapValue:
    """A default that is an object kept as a map."""

    items: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Construct:
    """A default that is an instance of the class `name`; `arguments` are those that differ from its own defaults."""

    name: str
    arguments: tuple[tuple[str, Value], ...]


Value: TypeAlias = Literal | ListValue | MapValue | Construct
