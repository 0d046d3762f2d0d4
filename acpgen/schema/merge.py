"""The steps of composing: each adds one kind of change, or finds it present, or reports a conflict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acpgen.diagnostics import Diagnostic, Severity
from acpgen.schema.alternatives import Union, find_union
from acpgen.schema.bundled import Catalogue
from acpgen.schema.document import Document, join, split
from acpgen.schema.equality import difference, same_shape
from acpgen.schema.fragment import Change, Fragment
from acpgen.schema.gates import Gate, gate_pointer
from acpgen.schema.growth import Addition, grown_defaults
from acpgen.schema.origins import Origins, Source
from acpgen.schema.walk import definition_pointer, find_property, layers, schema_list, schema_map
from acpgen.text import MOST_HINTS, did_you_mean

_KINDS = ("Request", "Response", "Notification")


@dataclass(slots=True, kw_only=True)
class Log:
    """The result for one fragment. `superseded`: a pointer into it, a name for the part, the origin that has the part.

    `missing` are definitions to change that do not exist; the optional ones among them are `left_out`.
    """

    fragment: Fragment
    errors: list[Diagnostic] = field(default_factory=list)
    superseded: list[tuple[str, str, str]] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    definitions: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Merger:
    """The state of a composition. `root` is replaced, never changed: the inputs stay as they are."""

    base: Document
    root: dict[str, Any]
    protocol: int
    gates: dict[str, Gate]
    catalogue: Catalogue
    origins: Origins
    fragments: list[Fragment] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    defaults: dict[Addition, tuple[Any, Source]] = field(default_factory=dict)

    @classmethod
    def start(cls, base: Document, *, protocol: int, gates: Mapping[str, Gate], catalogue: Catalogue) -> Merger:
        """The state that holds only the base."""
        return cls(
            base=base,
            root=base.root,
            protocol=protocol,
            gates=dict(gates),
            catalogue=catalogue,
            origins=Origins(base),
        )

    def admit(self, fragment: Fragment) -> None:
        """Let `fragment` take part in the steps that follow."""
        self.fragments.append(fragment)
        self._log(fragment)

    def error(self, fragment: Fragment, code: str, message: str, *, at: str, hint: str | None = None) -> None:
        """Record an error; `at` is a pointer into `fragment`."""
        found = Diagnostic(
            code=code,
            severity=Severity.ERROR,
            message=message,
            location=fragment.document.location(at),
            pointer=at,
            hint=hint,
        )
        self.log_error(fragment, found)

    def log_error(self, fragment: Fragment, found: Diagnostic) -> None:
        """Record an error that `fragment` is the cause of."""
        self._log(fragment).errors.append(found)

    def add_definitions(self, fragment: Fragment) -> None:
        """Add the new definitions of the fragments."""
        for name, node in fragment.definitions.items():
            at, pointer = join("/$defs", name), definition_pointer(name)
            what = f"the definition {name}"
            rival = self._same_message(name, node)
            if name in self._definitions:
                self._compare(fragment, at, what, pointer=pointer, present=self._definitions[name], wanted=node)
            elif rival is not None:
                what = f"the definition {name} of the method {node['x-method']} (called {rival} there)"
                self._conflict(
                    fragment, at, what, pointer=definition_pointer(rival), present=self._definitions[rival], wanted=node
                )
            else:
                self._put(pointer, node, (fragment.document, at))
                log = self._log(fragment)
                log.added.append(what)
                log.definitions.add(name)
                if isinstance(node, dict) and isinstance(node.get("x-method"), str):
                    log.methods.add(node["x-method"])

    def check_targets(self, fragment: Fragment) -> None:
        """Report changes to definitions that do not exist; later steps skip them."""
        for name, change in fragment.changes.items():
            if name in self._definitions:
                continue
            self._log(fragment).missing.add(name)
            if change.optional:
                self._log(fragment).left_out.append(name)
                continue
            releases = ", ".join(self.catalogue.releases_defining(name, self.protocol))
            of_protocol = f"of protocol {self.protocol}"
            self.error(
                fragment,
                "fragment-missing",
                f"{fragment.origin} changes {definition_pointer(name)}, which {self.base.origin} does not have",
                at=join("/changes", name),
                hint=(
                    f"releases {of_protocol} that have it: {releases}"
                    if releases
                    else self._meant(fragment, name) or f"no bundled release {of_protocol} has it"
                ),
            )

    def _meant(self, fragment: Fragment, name: str) -> str | None:
        """A hint for a missing definition; None after the first `MOST_HINTS` of them."""
        return did_you_mean(name, self._definitions) if len(self._log(fragment).missing) <= MOST_HINTS else None

    def replace_definitions(self, fragment: Fragment) -> None:
        """Replace definitions that have the shape which the fragment expects."""
        for name, change in self._targets(fragment):
            if change.replacement is None:
                continue
            at, pointer = join("/changes", name, "replace"), definition_pointer(name)
            present, replacement, what = self._definitions[name], change.replacement, f"the definition {name}"
            if same_shape(present, replacement.result):
                self._supersede(fragment, join(at, "with"), what, pointer=pointer)
            elif same_shape(present, replacement.expect):
                self._put(pointer, replacement.result, (fragment.document, join(at, "with")))
                self._changed(fragment, name, what)
            else:
                # report the difference from the expected shape: the result differs on purpose
                at, what = join(at, "expect"), f"{what} as expected"
                self._conflict(fragment, at, what, pointer=pointer, present=present, wanted=replacement.expect)

    def add_properties(self, fragment: Fragment) -> None:
        """Add properties to definitions that exist."""
        for name, change in self._targets(fragment):
            for wire, node in change.properties.items():
                at = join("/changes", name, "properties", wire)
                self._add_property(fragment, name, wire, node=node, at=at)

    def _add_property(self, fragment: Fragment, name: str, wire: str, *, node: Any, at: str) -> None:
        target, what = definition_pointer(name), f"the property {wire} of {name}"
        definition = self._definitions[name]
        found = find_property(definition, target, wire, self._definitions)
        if found is not None:
            self._compare(fragment, at, what, pointer=found[0], present=found[1], wanted=node)
        elif not _takes_properties(definition):
            self._conflict(fragment, at, what, pointer=target, present=definition, wanted=node)
        else:
            self._put(join(target, "properties", wire), node, (fragment.document, at))
            self._changed(fragment, name, what)
            if isinstance(node, dict) and "default" in node:
                source = (fragment.document, join(at, "default"))
                self.defaults[target, wire] = (node["default"], source)

    def add_required(self, fragment: Fragment) -> None:
        """Require properties of definitions that exist."""
        for name, change in self._targets(fragment):
            pointer = definition_pointer(name)
            for index, wire in enumerate(change.required):
                at = join("/changes", name, "required", index)
                definition, what = self._definitions[name], f"the requirement of {wire} in {name}"
                parts = layers(definition, pointer, self._definitions)
                present = [place for place, part in parts if wire in schema_list(part, "required")]
                if present:
                    self._supersede(fragment, at, what, pointer=join(present[0], "required"))
                elif find_property(definition, pointer, wire, self._definitions) is None:
                    message = f"{fragment.origin} requires {wire!r}, which is no property of {name}"
                    self.error(fragment, "fragment-required", message, at=at, hint="add it under `properties`")
                else:
                    self._append(join(pointer, "required"), wire, (fragment.document, at))
                    self._changed(fragment, name, what)

    def add_members(self, fragment: Fragment) -> None:
        """Add members to the unions and enumerations that exist."""
        for name, change in self._targets(fragment):
            for index, member in enumerate(change.members):
                self._add_member(fragment, name, member, at=join("/changes", name, "members", index))

    def _add_member(self, fragment: Fragment, name: str, member: Any, *, at: str) -> None:
        definition, pointer = self._definitions[name], definition_pointer(name)
        union = find_union(definition, member, self._definitions)
        if union is None:
            self._add_enum_value(fragment, name, member, at=at)
            return
        what, index = f"the member {union.identity(member)[1]} of {name}", union.find(member)
        array = join(pointer, union.key)
        if index is not None:
            place, present = join(array, index), union.members[index]
            self._compare(fragment, at, what, pointer=place, present=present, wanted=member)
            return
        self._insert_member(union, member, array=array, source=(fragment.document, at))
        self._changed(fragment, name, what)

    def _insert_member(self, union: Union, member: Any, *, array: str, source: Source) -> None:
        index, length = union.index_for(member), len(union.members)
        self._set(array, [*union.members[:index], member, *union.members[index:]])
        self.origins.insert(array, length=length, index=index, source=source)
        exclusion, open_index = union.exclusion(member), union.open_index()
        if exclusion is not None and open_index is not None:
            moved = open_index + (open_index >= index)
            self._append(join(array, moved, "not", "anyOf"), exclusion, source)

    def _add_enum_value(self, fragment: Fragment, name: str, member: Any, *, at: str) -> None:
        """Add the constant of `member` to an enumeration that is written with the keyword `enum`."""
        definition, pointer = self._definitions[name], definition_pointer(name)
        values = schema_list(definition, "enum")
        if not values or not isinstance(member, dict) or "const" not in member:
            what = f"a member of {name} (which is not a union there)"
            self._conflict(fragment, at, what, pointer=pointer, present=definition, wanted=member)
            return
        what = f"the value {member['const']!r} of {name}"
        if member["const"] in values:
            self._supersede(fragment, at, what, pointer=join(pointer, "enum", values.index(member["const"])))
        else:
            self._append(join(pointer, "enum"), member["const"], (fragment.document, join(at, "const")))
            self._changed(fragment, name, what)

    def add_gates(self, fragment: Fragment) -> None:
        """Add the gates of methods."""
        for method, gate in fragment.gates.items():
            at, known = gate_pointer(gate.root, method), self.gates.get(method)
            what = f"the gate of {method}"
            if known is None:
                self.gates[method] = gate
                self.origins.put(gate.pointer, (fragment.document, at))
                self._log(fragment).added.append(what)
            elif known == gate:
                self._supersede(fragment, at, what, pointer=known.pointer)
            else:
                document = self.origins.find(known.pointer)[0]
                message = f"{fragment.spec} and {document.origin} disagree on {what}: {gate} against {known}"
                self.error(fragment, "fragment-conflict", message, at=at, hint=self._way_out(fragment, document))

    def grow_defaults(self) -> None:
        """Add new properties with defaults to the default literals."""
        added = {addition: value for addition, (value, _) in self.defaults.items()}
        for growth in list(grown_defaults(self.root, added)):
            self._set(growth.pointer, growth.value)
            for pointer, addition in growth.entries:
                self.origins.put(pointer, self.defaults[addition][1])

    @property
    def _definitions(self) -> Mapping[str, Any]:
        return schema_map(self.root, "$defs")

    def _targets(self, fragment: Fragment) -> Iterator[tuple[str, Change]]:
        missing = self._log(fragment).missing
        return ((name, change) for name, change in fragment.changes.items() if name not in missing)

    def _same_message(self, name: str, node: Any) -> str | None:
        """The existing definition that describes the same message as the new definition `name`, if there is one."""
        message = _message(name, node)
        known = self._definitions.items() if message else ()
        return next((other for other, present in known if _message(other, present) == message), None)

    def _log(self, fragment: Fragment) -> Log:
        return self.logs.setdefault(fragment.spec, Log(fragment=fragment))

    def _changed(self, fragment: Fragment, name: str, what: str) -> None:
        log = self._log(fragment)
        log.added.append(what)
        log.changed.add(name)

    def _supersede(self, fragment: Fragment, at: str, what: str, *, pointer: str) -> None:
        self._log(fragment).superseded.append((at, what, self.origins.find(pointer)[0].origin))

    def _compare(self, fragment: Fragment, at: str, what: str, *, pointer: str, present: Any, wanted: Any) -> None:
        if same_shape(present, wanted):
            self._supersede(fragment, at, what, pointer=pointer)
        else:
            self._conflict(fragment, at, what, pointer=pointer, present=present, wanted=wanted)

    def _conflict(self, fragment: Fragment, at: str, what: str, *, pointer: str, present: Any, wanted: Any) -> None:
        document, place = self.origins.find(pointer)
        message = f"{fragment.spec} and {document.origin} ({place}) disagree on {what}: {difference(wanted, present)}"
        self.error(fragment, "fragment-conflict", message, at=at, hint=self._way_out(fragment, document))

    def _way_out(self, fragment: Fragment, document: Document) -> str:
        rivals = [fragment, *(each for each in self.fragments if each.document is document and each is not fragment)]
        others = [
            f"{each.id}@{revision}"
            for each in rivals
            for revision in self.catalogue.revisions_of(each.id, self.protocol)
            if revision != each.revision
        ]
        leave = f"leave out the extension {' or '.join(each.id for each in rivals)}"
        return f"{leave}, or try another revision: {', '.join(others)}" if others else leave

    def _put(self, pointer: str, value: Any, source: Source) -> None:
        self._set(pointer, value)
        self.origins.put(pointer, source)

    def _append(self, array: str, value: Any, source: Source) -> None:
        *parents, last = split(array)
        node: Any = self.root
        for token in parents:
            node = node[int(token)] if isinstance(node, list) else node[token]
        present = node.get(last, [])
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


def _message(name: str, node: Any) -> tuple[Any, Any, str] | None:
    """The method, side and kind of the message that the definition `name` describes; None if it describes none."""
    kind = next((kind for kind in _KINDS if name.endswith(kind)), None)
    if kind is None or not isinstance(node, dict) or "x-method" not in node:
        return None
    return (node["x-method"], node.get("x-side"), kind)
