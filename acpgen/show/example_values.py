"""Examples of types: a value with what is required, as a Python expression and as the JSON that it encodes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acpgen.emit.format import black_at
from acpgen.emit.source import value
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.conditions import holds
from acpgen.ir.least import Least, TooLargeError

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


def example_of(definition: ir.Definition, model: ir.Model) -> Example | None:
    """An example of a type; None if its smallest value is infinite, too large, or refused by a condition."""
    try:
        made = _Example(model, names.snake(definition.name)).of(ir.Ref(definition.name))
    except TooLargeError:
        return None
    code = value(made)
    return Example(black_at(_WIDTH)(code).rstrip("\n") if len(code) > _WIDTH else code, _plain(made, model))


class _Example(Least):
    """Builds one value. Texts in it are made of `word`, the name of the property."""

    def __init__(self, model: ir.Model, word: str) -> None:
        super().__init__(model.by_name)
        self._model, self._word, self._depth = model, word, 0

    def of(self, expression: ir.TypeExpr) -> ir.Value:
        """A value of `expression`."""
        self._depth += 1
        if self._depth > _ENDLESS:
            raise TooLargeError
        made = self._of(expression, is_deep=self._depth > _DEEPEST)
        self._depth -= 1
        return made

    def _of(self, expression: ir.TypeExpr, *, is_deep: bool) -> ir.Value:
        match expression:
            case ir.Scalar(primitive=ir.Primitive.STRING, min_length=least, annotations=annotations):
                self._spend(least or 0)
                known = next((_ANNOTATED[each] for each in annotations if each in _ANNOTATED), None)
                return ir.Literal((known or self._word.strip("_").replace("_", "-")).ljust(least or 0, "-"))
            case ir.ListOf(item=item, min_items=0) if not is_deep:
                return ir.ListValue((self.of(item),))
            case ir.Nullable(inner) if not is_deep:
                return self.of(inner)
            case ir.AnyJson():
                return ir.MapValue(())
            case _:
                return super().of(expression)

    def struct(self, struct: ir.Struct) -> ir.Value:
        """A value with the required attributes, but for constants, which have defaults."""
        needed = [each for each in struct.fields if each.required and not isinstance(each.type, ir.Const)]
        made = ir.Construct(struct.name, tuple((each.name, self._field(each)) for each in needed))
        if struct.rejects is not None and holds(struct.rejects, _plain(made, self._model)):
            raise TooLargeError
        return made

    def _field(self, field: ir.Field) -> ir.Value:
        if self._model.negotiation is not None and field.wire == self._model.negotiation.version:
            return ir.Literal(self._model.protocol)
        outer, self._word = self._word, field.name
        made = self.of(field.type)
        self._word = outer
        return made


def _plain(made: ir.Value, model: ir.Model) -> Any:
    """The JSON of a value, with declared defaults, as the generated code encodes it."""
    match made:
        case ir.Literal(scalar):
            return scalar
        case ir.ListValue(items):
            return [_plain(each, model) for each in items]
        case ir.MapValue(items):
            return {key: _plain(each, model) for key, each in items}
        case ir.Construct(name, arguments):
            given = dict(arguments)
            pairs = [(each.wire, given.get(each.name, _absent(each))) for each in model.struct(name).fields]
            return {wire: _plain(each, model) for wire, each in pairs if each is not None}


def _absent(field: ir.Field) -> ir.Value | None:
    """The value of an attribute that is not given; None if the key is absent."""
    return ir.Literal(field.type.value) if field.required and isinstance(field.type, ir.Const) else field.default
