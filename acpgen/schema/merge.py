"""The steps of composing: each adds one kind of change, or finds it present, or reports a conflict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from acpgen.diagnostics import Report
from acpgen.schema import bundled
from acpgen.schema.alternatives import Union, find_union
from acpgen.schema.document import Document, join, resolve, split
from acpgen.schema.equality import difference, same_shape
from acpgen.schema.fragment import DefinitionChange, Fragment
from acpgen.schema.gates import Gate, fitting_gates, gate_pointer
from acpgen.schema.growth import Addition, grown_defaults
from acpgen.schema.origins import Origins, Source
from acpgen.schema.value_gates import check_value_gates
from acpgen.schema.walk import definition_pointer, find_property, layers, schema_list, schema_map
from acpgen.text import MOST_HINTS, did_you_mean

_KINDS = ("Request", "Response", "Notification")


@dataclass(slots=True, kw_only=True)
class Merged:
    """One fragment as it was merged into a schema; `report` takes pointers into the fragment.

    `definitions` and `gates` were added, the definitions in `changed` were changed, those in `missing` do not exist.
    A changed definition has the new names in messages: properties, and values of members. `superseded` are the parts
    that the schema has already, each with its origin there.
    """

    fragment: Fragment
    report: Report
    definitions: set[str] = field(default_factory=set)
    changed: dict[str, list[str]] = field(default_factory=dict)
    gates: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    superseded: list[tuple[FragmentPart, str]] = field(default_factory=list)

    @property
    def is_superseded(self) -> bool:
        """True if the schema has all of the fragment already."""
        return bool(self.superseded) and not (self.definitions or self.changed or self.gates)

    def change(self, definition: str, *added: str) -> None:
        """Record a change of a definition, and the new names in messages that it brings."""
        self.changed.setdefault(definition, []).extend(added)

    def targets(self) -> Iterator[tuple[str, DefinitionChange]]:
        """The changes to definitions that exist."""
        return ((name, change) for name, change in self.fragment.changes.items() if name not in self.missing)


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """A part of a fragment: its pointer there, and its name in messages."""

    merged: Merged
    at: str
    name: str

    @property
    def source(self) -> Source:
        """The place of the part in its file."""
        return self.merged.fragment.document, self.at


_Message: TypeAlias = tuple[str, str | None, str]
"""A method, a side and a kind."""


@dataclass(slots=True, kw_only=True)
class Merger:
    """The state of a composition. `root` is replaced, never changed: the inputs stay as they are.

    `merged` has an entry for each fragment by its spec; only those in `admitted` take part in the steps.
    """

    base: Document
    protocol: int
    gates: dict[str, Gate]
    values: dict[str, Gate]
    root: dict[str, Any] = field(init=False)
    origins: Origins = field(init=False)
    merged: dict[str, Merged] = field(default_factory=dict, init=False)
    admitted: list[Merged] = field(default_factory=list, init=False)
    _defaults: dict[Addition, tuple[Any, Source]] = field(default_factory=dict, init=False)
    _messages: dict[_Message, str] = field(default_factory=dict, init=False)
    """The definitions that describe messages."""

    def __post_init__(self) -> None:
        """Start with the base alone."""
        self.root = self.base.root
        for name, node in self._definitions.items():
            self._note_message(name, node)
        self.origins = Origins(self.base)

    def of(self, fragment: Fragment) -> Merged:
        """The state of `fragment`."""
        return self.merged.setdefault(fragment.spec, Merged(fragment=fragment, report=fragment.document.report()))

    def add_definitions(self, merged: Merged) -> None:
        """Add the new definitions of the fragment."""
        for name, node in merged.fragment.definitions.items():
            part, pointer = FragmentPart(merged, join("/$defs", name), f"the definition {name}"), definition_pointer(
                name
            )
            message = _message(name, node)
            rival = self._messages.get(message) if message is not None else None
            if name in self._definitions:
                self._compare(part, pointer, node)
            elif rival is not None:
                text = f"{part.name} of the method {node['x-method']} (called {rival} there)"
                self._conflict(FragmentPart(merged, part.at, text), definition_pointer(rival), node)
            else:
                self._put(pointer, node, part.source)
                self._note_message(name, node)
                merged.definitions.add(name)

    def check_targets(self, merged: Merged) -> None:
        """Find the changes to definitions that do not exist: an error, unless the change is optional."""
        fragment = merged.fragment
        merged.missing |= fragment.changes.keys() - self._definitions.keys()
        errors = [name for name, change in fragment.changes.items() if name in merged.missing and not change.optional]
        for index, name in enumerate(errors):
            merged.report.error(
                "fragment-missing",
                f"{fragment.origin} changes {definition_pointer(name)}, which {self.base.origin} does not have",
                at=join("/changes", name),
                hint=self._whereabouts(name, suggests=index < MOST_HINTS),
            )

    def _whereabouts(self, name: str, *, suggests: bool) -> str:
        """A hint for a missing definition: the releases that have it, or with `suggests` a similar name."""
        releases = ", ".join(bundled.releases_defining(name, self.protocol))
        if releases:
            return f"releases of protocol {self.protocol} that have it: {releases}"
        meant = did_you_mean(name, self._definitions) if suggests else None
        return meant or f"no bundled release of protocol {self.protocol} has it"

    def replace_definitions(self, merged: Merged) -> None:
        """Replace definitions that have the shape which the fragment expects."""
        for name, change in merged.targets():
            if change.replacement is None:
                continue
            at, pointer, what = join("/changes", name, "replace"), definition_pointer(name), f"the definition {name}"
            part, present = FragmentPart(merged, join(at, "with"), what), self._definitions[name]
            if same_shape(present, change.replacement.result):
                self._supersede(part, pointer)
            elif same_shape(present, change.replacement.expect):
                self._put(pointer, change.replacement.result, part.source)
                merged.change(name)
            else:
                # report the difference from the expected shape: the result differs on purpose
                expected = FragmentPart(merged, join(at, "expect"), f"{what} as expected")
                self._conflict(expected, pointer, change.replacement.expect)

    def add_properties(self, merged: Merged) -> None:
        """Add properties to definitions that exist."""
        for name, change in merged.targets():
            for wire, node in change.properties.items():
                at = join("/changes", name, "properties", wire)
                self._add_property(FragmentPart(merged, at, f"the property {wire} of {name}"), name, wire, node)

    def _add_property(self, part: FragmentPart, name: str, wire: str, node: Any) -> None:
        definition, target = self._definitions[name], definition_pointer(name)
        found = find_property(definition, target, wire, self._definitions)
        if found is not None:
            self._compare(part, found[0], node)
        elif not _takes_properties(definition):
            self._conflict(part, target, node)
        else:
            self._put(join(target, "properties", wire), node, part.source)
            part.merged.change(name, wire)
            if isinstance(node, dict) and "default" in node:
                document, at = part.source
                self._defaults[target, wire] = (node["default"], (document, join(at, "default")))

    def add_required(self, merged: Merged) -> None:
        """Require properties of definitions that exist."""
        for name, change in merged.targets():
            pointer = definition_pointer(name)
            for index, wire in enumerate(change.required):
                part = FragmentPart(
                    merged, join("/changes", name, "required", index), f"the requirement of {wire} in {name}"
                )
                parts = layers(self._definitions[name], pointer, self._definitions)
                present = [place for place, layer in parts if wire in schema_list(layer, "required")]
                if present:
                    self._supersede(part, join(present[0], "required"))
                elif find_property(self._definitions[name], pointer, wire, self._definitions) is None:
                    message = f"{merged.fragment.origin} requires {wire!r}, which is no property of {name}"
                    merged.report.error("fragment-required", message, at=part.at, hint="add it under `properties`")
                else:
                    self._append(join(pointer, "required"), wire, part.source)
                    merged.change(name)

    def add_members(self, merged: Merged) -> None:
        """Add members to the unions and enumerations that exist."""
        for name, change in merged.targets():
            for index, member in enumerate(change.members):
                at = join("/changes", name, "members", index)
                union = find_union(self._definitions[name], member, self._definitions)
                if union is None:
                    self._add_enum_value(merged, at, name, member)
                else:
                    what = f"the member {union.identity(member)[1]} of {name}"
                    self._add_member(FragmentPart(merged, at, what), name, union, member)

    def _add_member(self, part: FragmentPart, name: str, union: Union, member: Any) -> None:
        if union.lacks_tag(member):
            self._refuse_untagged(part, union.tag)
            return
        array, known = join(definition_pointer(name), union.key), union.find(member)
        if known is not None:
            self._compare(part, join(array, known), member)
            return
        index, length = union.index_for(member), len(union.members)
        self._set(array, [*union.members[:index], member, *union.members[index:]])
        self.origins.insert(array, length=length, index=index, source=part.source)
        exclusion, open_index = union.exclusion(member), union.open_index()
        if exclusion is not None and open_index is not None:
            moved = open_index + (open_index >= index)
            self._append(join(array, moved, "not", "anyOf"), exclusion, part.source)
        kind, text = union.identity(member)
        part.merged.change(name, *([str(json.loads(text))] if kind == "value" else []))

    def _refuse_untagged(self, part: FragmentPart, tag: str | None) -> None:
        own = f'"{tag}": {{"type": "string", "const": "…"}}'
        part.merged.report.error(
            "fragment-untagged",
            f"{part.name} has no tag of its own: all other members require the property {tag!r}, each with a constant",
            at=part.at,
            hint=f"add {own} to its `properties`, and {tag!r} to its `required`",
        )

    def _add_enum_value(self, merged: Merged, at: str, name: str, member: Any) -> None:
        """Add the constant of `member` to an enumeration that is written with the keyword `enum`."""
        pointer = definition_pointer(name)
        values = schema_list(self._definitions[name], "enum")
        if not values or not isinstance(member, dict) or "const" not in member:
            self._conflict(
                FragmentPart(merged, at, f"a member of {name} (which is not a union there)"), pointer, member
            )
            return
        value = member["const"]
        if value in values:
            part = FragmentPart(merged, at, f"the value {value!r} of {name}")
            self._supersede(part, join(pointer, "enum", values.index(value)))
        else:
            self._append(join(pointer, "enum"), value, (merged.fragment.document, join(at, "const")))
            merged.change(name, str(value))

    def add_gates(self, merged: Merged) -> None:
        """Add the gates of methods and values."""
        fragment = merged.fragment
        for method, gate in fragment.gates.items():
            part = FragmentPart(merged, gate_pointer(gate.root, method), f"the gate of {method}")
            self._add_gate(part, self.gates, method, gate)
        for text, gate in fragment.values.items():
            if not gate.optional or fitting_gates(self.root, {text: gate}, check_value_gates):
                at = gate_pointer(gate.root, text, section="values")
                self._add_gate(FragmentPart(merged, at, f"the gate of the value {text}"), self.values, text, gate)

    def _add_gate(self, part: FragmentPart, gates: dict[str, Gate], gated: str, gate: Gate) -> None:
        known = gates.get(gated)
        if known is None:
            gates[gated] = gate
            self.origins.put(gate.pointer, part.source)
            part.merged.gates.add(gated)
        elif known == gate:
            self._supersede(part, known.pointer)
        else:
            self._disagree(part, known.pointer, shown="", difference=f"{gate} against {known}")

    def grow_defaults(self) -> None:
        """Add new properties with defaults to the default literals."""
        added = {addition: value for addition, (value, _) in self._defaults.items()}
        for at, value, entries in list(grown_defaults(self.root, added)):
            self._set(at, value)
            for pointer, addition in entries:
                self.origins.put(pointer, self._defaults[addition][1])

    @property
    def _definitions(self) -> Mapping[str, Any]:
        return schema_map(self.root, "$defs")

    def _note_message(self, name: str, node: Any) -> None:
        if (message := _message(name, node)) is not None:
            self._messages.setdefault(message, name)

    def _supersede(self, part: FragmentPart, pointer: str) -> None:
        part.merged.superseded.append((part, self.origins.find(pointer)[0].origin))

    def _compare(self, part: FragmentPart, pointer: str, wanted: Any) -> None:
        """Compare `wanted` with the schema at `pointer`: the part is superseded, or in conflict."""
        if same_shape(resolve(self.root, pointer), wanted):
            self._supersede(part, pointer)
        else:
            self._conflict(part, pointer, wanted)

    def _conflict(self, part: FragmentPart, pointer: str, wanted: Any) -> None:
        found = difference(wanted, resolve(self.root, pointer))
        self._disagree(part, pointer, shown=f" ({self.origins.find(pointer)[1]})", difference=found)

    def _disagree(self, part: FragmentPart, pointer: str, *, shown: str, difference: str) -> None:
        fragment = part.merged.fragment
        document, place = self.origins.find(pointer)
        known = [merged.fragment for merged in self.admitted]
        rivals = [fragment, *(each for each in known if each.document is document and each is not fragment)]
        sides = f"{fragment.document.location(part.at)} and {document.location(place)}"
        own = [each.document.label for each in rivals if not self._is_bundled(each)]
        part.merged.report.error(
            "fragment-conflict",
            f"{fragment.spec} and {document.origin}{shown} disagree on {part.name}: {difference}",
            at=part.at,
            hint=f"edit {' or '.join(own)}: the two sides are at {sides}" if own else self._way_out(rivals),
        )

    def _is_bundled(self, fragment: Fragment) -> bool:
        return fragment.revision in bundled.revisions_of(fragment.id, self.protocol)

    def _way_out(self, rivals: Sequence[Fragment]) -> str:
        others = [
            f"{each.id}@{revision}"
            for each in rivals
            for revision in bundled.revisions_of(each.id, self.protocol)
            if revision != each.revision
        ]
        leave = f"leave out the extension {' or '.join(each.id for each in rivals)}"
        return f"{leave}, or try another revision: {', '.join(others)}" if others else leave

    def _put(self, pointer: str, value: Any, source: Source) -> None:
        self._set(pointer, value)
        self.origins.put(pointer, source)

    def _append(self, array: str, value: Any, source: Source) -> None:
        parent, _, key = array.rpartition("/")
        present = resolve(self.root, parent).get(key, [])
        if isinstance(present, list):
            self._set(array, [*present, value])
            self.origins.put(join(array, len(present)), source)

    def _set(self, pointer: str, value: Any) -> None:
        self.root = _updated(self.root, split(pointer), value)


def _updated(node: Any, tokens: list[str], value: Any) -> Any:
    """Set `value` at the end of `tokens` in a copy of `node`; missing containers are created.

    A scalar in the place of a container is kept: the dialect check reports it.
    """
    if not tokens:
        return value
    first, *rest = tokens
    match node:
        case dict() | None:
            members = node or {}
            return {**members, first: _updated(members.get(first), rest, value)}
        case list() if first.isdecimal():
            index = int(first)
            return [*node[:index], _updated(node[index], rest, value), *node[index + 1 :]]
    return node


def _takes_properties(definition: Any) -> bool:
    return isinstance(definition, dict) and definition.get("type", "object") == "object" and "enum" not in definition


def _message(name: str, node: Any) -> _Message | None:
    """The method, side and kind of the message that the definition `name` describes; None if it describes none."""
    kind = next((kind for kind in _KINDS if name.endswith(kind)), None)
    if kind is None or not isinstance(node, dict):
        return None
    match node.get("x-method"), node.get("x-side"):
        case str(method), (str() | None) as side:
            return method, side, kind
    return None
