"""Comparison of defaults: an object also has the defaults of its class, for properties that it omits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acpgen.ir.model import Construct, ListValue, Literal, MapValue, Model, Value


@dataclass(slots=True)
class DefaultValues:
    """Compares defaults of two models; `pairs` maps the definitions of `sender` to those of `reader`."""

    sender: Model
    reader: Model
    pairs: Mapping[str, str]
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def same(self, one: Value, other: Value) -> bool:
        """Whether a default of the sender means the same as one of the reader."""
        match one, other:
            case Literal(mine), Literal(theirs):
                return type(mine) is type(theirs) and mine == theirs
            case ListValue(mine), ListValue(theirs):
                return len(mine) == len(theirs) and all(map(self.same, mine, theirs))
            case MapValue(), MapValue():
                before, after = dict(one.items), dict(other.items)
                return before.keys() == after.keys() and all(self.same(before[key], after[key]) for key in before)
            case Construct(), Construct():
                return self._same_objects(one, other)
            case _:
                return False

    def _same_objects(self, one: Construct, other: Construct) -> bool:
        if self.pairs.get(one.name, one.name) != other.name:
            return False
        key = (id(one), id(other))  # ids stay valid: the models outlive this object
        if key not in self._known:
            self._known[key] = True  # the answer inside of a default that contains itself
            self._known[key] = not any(self._differences(one, other))
        return self._known[key]

    def _differences(self, one: Construct, other: Construct) -> Iterator[tuple[str, Value | None, Value | None]]:
        """The properties in which two objects differ, with both values; None for a missing value.

        A property that both objects omit, and that has a default in one class only, is a finding about the class.
        """
        given, given_by_other = dict(one.arguments), dict(other.arguments)
        own, others = (_defaults(model, each.name) for model, each in ((self.sender, one), (self.reader, other)))
        for name in dict.fromkeys((*own, *others)):
            mine, theirs = given.get(name, own.get(name)), given_by_other.get(name, others.get(name))
            if mine is None or theirs is None:
                if name in given or name in given_by_other:
                    yield name, mine, theirs
            elif not self.same(mine, theirs):
                yield name, mine, theirs

    def apart(self, one: Value, other: Value) -> tuple[Value, Value]:
        """Both defaults for a message: only the properties in which they differ."""
        if not (isinstance(one, Construct) and isinstance(other, Construct)):
            return one, other
        shown = list(self._differences(one, other))
        return (
            Construct(one.name, tuple((name, mine) for name, mine, _ in shown if mine is not None)),
            Construct(other.name, tuple((name, theirs) for name, _, theirs in shown if theirs is not None)),
        )


def _defaults(model: Model, name: str) -> dict[str, Value | None]:
    return {each.name: each.default for each in model.struct(name).fields}
