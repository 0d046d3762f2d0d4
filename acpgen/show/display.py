"""Print the descriptions of `acpgen show` as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from acpgen.emit.source import wrapped
from acpgen.ir import model as ir
from acpgen.ir.usage import Carrier, Step
from acpgen.show.describe import Description, FieldEntry, MemberEntry, MethodEntry, Origin, SchemaEntry, TypeEntry
from acpgen.show.occurrences import Occurrence, ValueEntry
from acpgen.text import WIDTH, folded, printable

_VALUES = frozenset({"const", "default", "enum", "examples"})
"""The keywords of JSON Schema whose values are data."""


def render_text(entries: Sequence[Description]) -> str:
    """The entries, one after the other."""
    return "\n\n\n".join("\n".join(map(printable, _lines(each))) for each in entries)


def _lines(entry: Description) -> Iterator[str]:
    match entry:
        case TypeEntry():
            return _type(entry)
        case MethodEntry():
            return _method(entry)
        case ValueEntry():
            return _value_of(entry)


def _type(entry: TypeEntry) -> Iterator[str]:
    tagged = f" by {entry.tag!r}" if entry.tag is not None else ""
    yield f"{entry.name}: {entry.kind}{tagged}"
    yield from folded(f"  from: {_source(entry.origin)}")
    yield from _fitted(f"  extended by: {_source(origin)}" for origin in entry.extended_by)
    if entry.gates:
        yield from folded(f"  needs: {'; '.join(entry.gates)}")
    for gated in entry.gated_values:
        yield from folded(f"  {gated.value} needs: {gated.needs.text}")
        if gated.needs.origin is not None:
            yield from folded(f"    from: {_source(gated.needs.origin)}")
    if entry.note is not None:
        yield from folded(f"  note: {entry.note}")
    yield from _prose(entry.doc)
    if entry.signature is not None:
        yield from _section(f"Python, {entry.signature.module}", entry.signature.code.split("\n"))
    yield from _section("Attributes", (line for each in entry.fields for line in _field(each, entry)))
    yield from _section("Members", (line for each in entry.members for line in _member(each, entry)))
    yield from _section("Values", (line for each in entry.values for line in _value(each)))
    yield from _schema(entry.schema)
    yield from _section("Used by", _uses(entry))


def _method(entry: MethodEntry) -> Iterator[str]:
    peers = f"handled by {_peers(entry.handlers)}, called by {_peers(entry.callers)}"
    yield from folded(f"{entry.wire}: {entry.kind}, {peers}")
    yield from folded(f"  from: {_source(entry.origin)}")
    if entry.gate is not None:
        yield from folded(f"  needs: {entry.gate.text}")
        if entry.gate.origin is not None:
            yield from folded(f"    from: {_source(entry.gate.origin)}")
    yield from _prose(entry.doc)
    for signature in entry.signatures:
        yield from _section(f"Python, {signature.module}", signature.code.split("\n"))
    for schema in entry.schema:
        yield from _schema(schema)


def _value_of(entry: ValueEntry) -> Iterator[str]:
    for number, each in enumerate(entry.occurrences):
        if number:
            yield ""
        yield from folded(f"{json.dumps(entry.value, ensure_ascii=False)}: {_meaning(each)}")
        yield from folded(f"  from: {each.origin}")
        yield from (line for needs in each.needs for line in folded(f"  needs: {needs}"))
        yield from _prose(each.doc)
        yield from _section("Used by", map(_carrier, each.messages))


def _meaning(place: Occurrence) -> str:
    match place.kind:
        case "tag":
            return f"a tag of {place.owner}, the {place.key!r} of {place.selects}"
        case "error":
            return f"the error {place.code}, {place.owner} in Python"
        case _:
            return f"a value of {place.owner}"


def _peers(sides: Sequence[str]) -> str:
    return " and ".join(f"the {side}" for side in sides)


def _source(origin: Origin) -> str:
    name = f"extension {origin.extension}" if origin.extension is not None else origin.name
    return f"{name} ({origin.place}, {origin.pointer})" if origin.place is not None else name


def _prose(doc: str) -> Iterator[str]:
    if lines := wrapped(doc, WIDTH - 2):
        yield ""
        yield from _fitted(f"  {line}" for line in lines)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """The lines under their title; nothing if there are none."""
    shown = list(_fitted(f"  {line}" for line in lines))
    if shown:
        yield from ("", title, *shown)


def _fitted(lines: Iterable[str]) -> Iterator[str]:
    return (part for line in lines for part in folded(line))


def _field(field: FieldEntry, entry: TypeEntry) -> Iterator[str]:
    wire = f" ({field.wire!r} on the wire)" if field.wire != field.name else ""
    default = "required" if field.default is None else f"default {field.default}"
    inherited = f", inherited from {field.inherited_from}" if field.inherited_from is not None else ""
    yield f"{field.name}{wire}: {field.hint}, {default}{inherited}"
    yield from (f"    {line}" for line in wrapped(field.doc, WIDTH - 6))
    if field.origin.name != entry.origin.name:
        yield f"    from: {_source(field.origin)}"
    if field.opens:
        yield f"    opens: {', '.join(field.opens)}"
    if field.allows:
        yield f"    allows: {', '.join(field.allows)}"


def _member(member: MemberEntry, entry: TypeEntry) -> Iterator[str]:
    if member.tag is not None:
        yield f"{json.dumps(member.tag, ensure_ascii=False)}: {member.hint}"
    else:
        yield f"{'any other: ' if entry.tag is not None else ''}{member.hint}"
    yield from (f"    {line}" for line in wrapped(member.doc, WIDTH - 6))


def _value(value: ir.EnumMember) -> Iterator[str]:
    title = f" ({value.title})" if value.title else ""
    yield f"{json.dumps(value.value, ensure_ascii=False)}{title}"
    yield from (f"    {line}" for line in wrapped(value.doc, WIDTH - 6))


def _schema(schema: SchemaEntry) -> Iterator[str]:
    text = json.dumps(_without_descriptions(schema.schema), indent=2, ensure_ascii=False)
    yield from _section(f"Schema without descriptions, {schema.pointer}", text.split("\n"))


def _without_descriptions(node: Any) -> Any:
    """The schema without the texts that the other sections show."""
    match node:
        case dict():
            kept = {key: each for key, each in node.items() if key != "description" or not isinstance(each, str)}
            return {key: each if key in _VALUES else _without_descriptions(each) for key, each in kept.items()}
        case list():
            return list(map(_without_descriptions, node))
        case _:
            return node


def _uses(entry: TypeEntry) -> Iterator[str]:
    uses = entry.uses
    for kind, names in (
        ("attributes", uses.fields),
        ("unions", uses.unions),
        ("aliases", uses.aliases),
        ("subclasses", uses.subclasses),
    ):
        if names:
            yield f"{kind}: {', '.join(names)}"
    yield from map(_carrier, uses.messages)
    if entry.signature is not None and not uses.messages:
        yield "no message carries it"


def _carrier(carrier: Carrier) -> str:
    gate = f", needs {carrier.gate}" if carrier.gate is not None else ""
    way = " → ".join(map(_step, carrier.way))
    return f"{carrier.method}, {carrier.part} from the {carrier.sender}{gate}: {way}"


def _step(step: Step) -> str:
    return step.type if step.field is None else f"{step.type}.{step.field}"


FORMAT = 1
"""The version of the JSON form; it grows when a key is renamed or removed."""


def render_json(name: str, entries: Sequence[Description]) -> str:
    """The entries in full, under the name that the user gave."""
    shown = [asdict(each, dict_factory=_without_excerpt) for each in entries]
    return json.dumps({"format": FORMAT, "name": name, "entries": shown}, indent=2)


def _without_excerpt(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object. A place has no excerpt of its line: the schema is there in full."""
    return {key: value for key, value in items if key != "excerpt"}
