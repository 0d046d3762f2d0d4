"""What messages and logs carry in place of names: tags of unions, values of enums, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from acpgen.ir import model as ir
from acpgen.ir.usage import Carrier, TypeUsage
from acpgen.show.capabilities import value_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A place that gives a value its meaning.

    `kind` is "tag", "value" or "error", and `owner` the union, enum or exception. A tag is the value of the property
    `key`, and stands for the class `selects`; an error has a `code`. `messages` carry the type. `origin` is that of the
    member of the union or enum: the base schema, or an extension. `needs` are the capabilities that it needs.
    """

    kind: str
    owner: str
    key: str | None = None
    selects: str | None = None
    code: int | None = None
    doc: str
    origin: str = ""
    needs: tuple[str, ...] = ()
    messages: tuple[Carrier, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEntry:
    """A value, with all places that give it a meaning. `origin` is theirs, or the base schema if they differ."""

    value: str
    origin: str
    occurrences: tuple[Occurrence, ...]


def find_value(
    text: str, model: ir.Model, usage: TypeUsage, origin_of: Callable[[Occurrence], str]
) -> ValueEntry | None:
    """The value that a message or a log has as `text`; None if the model has none."""
    found = [place for value, place in _places(model) if value == text]
    if not found:
        return None
    carried = (
        (
            each
            if each.kind == "error"
            else replace(each, messages=usage.of(each.owner).messages, needs=tuple(_needs(text, each.owner, model)))
        )
        for each in found
    )
    places = tuple(replace(each, origin=origin_of(each)) for each in carried)
    origins = {each.origin for each in places}
    return ValueEntry(value=text, origin=origins.pop() if len(origins) == 1 else model.origin, occurrences=places)


def _needs(value: str, owner: str, model: ir.Model) -> Iterator[str]:
    """The capabilities that a value of a union or enum needs; with the place if it does not need one everywhere."""
    for each in model.gated_values:
        if each.value == value and value_type(each, model) == owner:
            yield str(each.gate) + (f", in {each.place}" if each.properties else "")


def known_values(model: ir.Model) -> set[str]:
    """All that `find_value` finds."""
    return {value for value, _ in _places(model)}


def _places(model: ir.Model) -> Iterator[tuple[str, Occurrence]]:
    for definition in model.definitions:
        owner = definition.name
        if isinstance(definition, ir.TaggedUnion):
            for each in definition.variants:
                tag = Occurrence(kind="tag", owner=owner, key=definition.tag, selects=each.target, doc=each.doc)
                yield each.tag, tag
        elif isinstance(definition, ir.Enum):
            for member in definition.members:
                yield str(member.value), Occurrence(kind="value", owner=owner, doc=member.doc)
    for error in model.errors.codes:
        place = Occurrence(kind="error", owner=error.name, code=error.code, doc=error.doc or error.title)
        yield from ((name, place) for name in (str(error.code), error.title, error.name))
