"""Examples of types: a value with what is required, as a Python expression and as the JSON that it encodes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acpgen.emit.format import black_at
from acpgen.emit.source import value
from acpgen.ir import names
from acpgen.ir.conditions import holds
from acpgen.ir.least import Least, TooLargeError
from acpgen.ir.model import (
    AnyJson,
    Const,
    Construct,
    Definition,
    Field,
    ListOf,
    ListValue,
    Literal,
    MapValue,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TypeExpr,
    Value,
)

_DEEPEST = 6
"""Deeper than this, arrays are empty, and what may be null is null."""
_ENDLESS = 50
"""Deeper values are taken for endless."""
_WIDTH = 48
"""The columns of a line: two examples beside each other, or a phone, have no more."""
_ANNOTATED = {
    ("format", "uri"): "https://example.com/",
    ("format", "date-time"): "2026-01-31T12:00:00Z",
    ("contentEncoding", "base64"): "aGVsbG8=",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A Python expression, with the public names of the package, and its JSON."""

    python: str
    json: Any


def example_of(definition: Definition, model: Model) -> Example | None:
    """An example of a type; None if its smallest value is infinite, too large, or refused by a condition."""
    try:
        made = _Example(model, names.snake(definition.name)).of(Ref(definition.name))
    except TooLargeError:
        return None
    code = value(made)
    return Example(black_at(_WIDTH)(code).rstrip("\n") if len(code) > _WIDTH else code, _plain(made, model))


class _Example(Least):
    """Builds one value. Texts in it are made of `word`, the name of the property."""

    def __init__(self, model: Model, word: str) -> None:
        super().__init__(model.by_name)
        self._model, self._word, self._depth = model, word, 0

    def of(self, expression: TypeExpr) -> Value:
        """A value of `expression`."""
        self._depth += 1
        if self._depth > _ENDLESS:
            raise TooLargeError
        made = self._of(expression, is_deep=self._depth > _DEEPEST)
        self._depth -= 1
        return made

    def _of(self, expression: TypeExpr, *, is_deep: bool) -> Value:
        match expression:
            case Scalar(primitive=Primitive.STRING, min_length=least, annotations=annotations):
                self._spend(least or 0)
                known = next((_ANNOTATED[each] for each in annotations if each in _ANNOTATED), None)
                return Literal((known or self._word.strip("_").replace("_", "-")).ljust(least or 0, "-"))
            case ListOf(item=item, min_items=0) if not is_deep:
                return ListValue((self.of(item),))
            case Nullable(inner) if not is_deep:
                return self.of(inner)
            case AnyJson():
                return MapValue(())
            case _:
                return super().of(expression)

    def struct(self, struct: Struct) -> Value:
        """A value with the required attributes, but for constants, which have defaults."""
        needed = [each for each in struct.fields if each.required and not isinstance(each.type, Const)]
        made = Construct(struct.name, tuple((each.name, self._field(each)) for each in needed))
        if struct.rejects is not None and holds(struct.rejects, _plain(made, self._model)):
            raise TooLargeError
        return made

    def _field(self, field: Field) -> Value:
        if self._model.negotiation is not None and field.wire == self._model.negotiation.version:
            return Literal(self._model.protocol)
        outer, self._word = self._word, field.name
        made = self.of(field.type)
        self._word = outer
        return made


def _plain(made: Value, model: Model) -> Any:
    """The JSON of a value, with declared defaults, as the generated code encodes it."""
    match made:
        case Literal(scalar):
            return scalar
        case ListValue(items):
            return [_plain(each, model) for each in items]
        case MapValue(items):
            return {key: _plain(each, model) for key, each in items}
        case Construct(name, arguments):
            given = dict(arguments)
            pairs = [(each.wire, given.get(each.name, _absent(each))) for each in model.struct(name).fields]
            return {wire: _plain(each, model) for wire, each in pairs if each is not None}


def _absent(field: Field) -> Value | None:
    """The value of an attribute that is not given; None if the key is absent."""
    return Literal(field.type.value) if field.required and isinstance(field.type, Const) else field.default
