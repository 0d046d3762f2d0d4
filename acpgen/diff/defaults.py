"""Whether two defaults mean the same: an object has the defaults of its class where it says nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acpgen.ir.model import Construct, ListValue, Literal, MapValue, Model, Struct, Value

_MOST_DEEP = 3
"""Objects that are deeper in one another than this are shown as they are."""


@dataclass(slots=True)
class Defaults:
    """Compares the defaults of two models; `pairs` maps the definitions of `sender` to those of `reader`."""

    sender: Model
    reader: Model
    pairs: Mapping[str, str]
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def same(self, one: Value, other: Value) -> bool:
        """Whether a default of the sender means what one of the reader means."""
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
        key = (id(one), id(other))  # both are parts of the models, which outlive this
        if key not in self._known:
            self._known[key] = True  # what a default that contains itself comes back to is judged where it began
            self._known[key] = not any(self._differences(one, other))
        return self._known[key]

    def _differences(self, one: Construct, other: Construct) -> Iterator[tuple[str, Value | None, Value | None]]:
        """The properties in which two objects differ, with the value of each; None where it has none.

        Where neither object says anything, and only one class has a default, or the property at all, that is a
        finding about the class.
        """
        said, said_by_other = dict(one.arguments), dict(other.arguments)
        own, others = (_defaults(model, each.name) for model, each in ((self.sender, one), (self.reader, other)))
        for name in dict.fromkeys((*own, *others)):
            mine, theirs = said.get(name, own.get(name)), said_by_other.get(name, others.get(name))
            if mine is None or theirs is None:
                if name in said or name in said_by_other:
                    yield name, mine, theirs
            elif not self.same(mine, theirs):
                yield name, mine, theirs

    def apart(self, one: Value, other: Value, *, depth: int = _MOST_DEEP) -> tuple[Value, Value]:
        """Both defaults for people to see: of objects, the properties in which they differ, and these in full."""
        if not (depth and isinstance(one, Construct) and isinstance(other, Construct)):
            return one, other
        shown = [
            (name, *((mine, theirs) if mine is None or theirs is None else self.apart(mine, theirs, depth=depth - 1)))
            for name, mine, theirs in self._differences(one, other)
        ]
        return (
            Construct(one.name, tuple((name, mine) for name, mine, _ in shown if mine is not None)),
            Construct(other.name, tuple((name, theirs) for name, _, theirs in shown if theirs is not None)),
        )


def _defaults(model: Model, name: str) -> dict[str, Value | None]:
    struct = model.by_name[name]
    assert isinstance(struct, Struct)
    return {each.name: each.default for each in struct.fields}
