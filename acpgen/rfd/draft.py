"""From the text of an RFD to the draft of a fragment, and the list of everything that somebody has to look at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Diagnostic, InputError, Location, Severity, input_error
from acpgen.ir.model import Role
from acpgen.ir.names import pascal
from acpgen.rfd.base import Base, Slot, capability_slots
from acpgen.rfd.blocks import Block, Kind, find_blocks
from acpgen.rfd.declarations import Declared, convert_declarations, read_declarations
from acpgen.rfd.entries import Entry, Sorted, check_names, sort_pieces, unite
from acpgen.rfd.examples import Inferred, infer
from acpgen.rfd.jsonblocks import Piece, read_pieces
from acpgen.rfd.looks import note_value
from acpgen.rfd.messages import Message, MessageKind, drawn_handlers, read_messages
from acpgen.rfd.metadata import Metadata, read_metadata
from acpgen.rfd.methods import Method, find_gate, find_leaves, find_methods, new_slots, side_of
from acpgen.rfd.source import Findings, Source
from acpgen.rfd.style import styled
from acpgen.schema.document import join
from acpgen.schema.fragment import find_marks, mark
from acpgen.schema.walk import schema_map

MAX_DEFINITIONS = 500
"""More than this is a schema, not an RFD."""

# a path that begins with a slash or a dot, or an address, is no name of a method
_MESSAGE_LIKE = re.compile(r"[{}]|(?<![\w./:$-])(?:\$|\w[\w-]*)/\w")
_SIDES = " or ".join(role.value for role in Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The draft of a fragment, and what there is to say about it."""

    draft: dict[str, Any]
    diagnostics: tuple[Diagnostic, ...]


def extract(source: Source, base: Base, *, rfd: str | None = None) -> Extraction:
    """The draft of the fragment that `source` describes, as an extension of `base`; `rfd` is the address of the text.

    Raises `InputError` where the text has nothing that a fragment could add.
    """
    findings = Findings()
    sorted_, declared = _read(source, base, findings)
    entries = _entries(sorted_, declared, base, findings)
    messages = read_messages(sorted_.messages)
    inferred = infer(sorted_.values, messages, base=base, source=source, findings=findings)
    entries = {**{entry.name: entry for entry in inferred.entries if entry.name not in entries}, **entries}
    check_names(entries, base, findings)
    methods, orphans = find_methods(entries, messages, drawn_handlers(source), base=base)
    _note_messages(messages, methods, findings)
    _note_values(sorted_.values, inferred, findings)
    if not entries and not methods:
        raise InputError([*findings.found, _nothing_found(source, base)])
    draft = _Draft(source=source, base=base, entries=entries, methods=methods, findings=findings)
    root = draft.build(read_metadata(source), rfd=rfd, orphans=orphans)
    return Extraction(draft=root, diagnostics=tuple(findings.found))


def _nothing_found(source: Source, base: Base) -> Diagnostic:
    return Diagnostic(
        code="rfd-nothing-found",
        severity=Severity.ERROR,
        message=f"{source.label} adds nothing to {base.origin}: no definitions, no changes, no new methods",
        location=source.location(1),
        hint="definitions are read from JSON Schema and TypeScript, methods from examples of messages",
    )


def _read(source: Source, base: Base, findings: Findings) -> tuple[Sorted, list[Declared]]:
    pieces: list[Piece] = []
    declared: list[Declared] = []
    for block in find_blocks(source, findings):
        match block.kind:
            case Kind.JSON:
                pieces += read_pieces(block, findings)
            case Kind.TYPESCRIPT:
                declared += read_declarations(block, findings)
            case Kind.OTHER:
                _report_other(block, findings)
    sorted_ = sort_pieces(pieces, base, findings)
    if len(sorted_.entries) + len(declared) > MAX_DEFINITIONS:
        raise input_error("rfd-too-large", f"{source.label} has more than {MAX_DEFINITIONS} definitions")
    return sorted_, declared


def _report_other(block: Block, findings: Findings) -> None:
    what = f"the block of {block.language} in" if block.language else "the block in"
    message = f"{what} {block.lines} is not read"
    if block.language in ("diff", "patch"):
        findings.warn("rfd-block", f"{message}: neither JSON nor TypeScript", block.location(0))
    elif block.language in ("", "text") and _MESSAGE_LIKE.search(block.text):
        hint = "read it, and add what it says to the draft where it matters"
        message += ", and has names of methods or braces in it"
        findings.warn("rfd-block", message, block.location(0), hint=hint)
    else:
        findings.note("rfd-block", message, block.location(0))


def _entries(sorted_: Sorted, declared: list[Declared], base: Base, findings: Findings) -> dict[str, Entry]:
    schemas = {entry.name: entry.node for entry in reversed(sorted_.entries) if not entry.is_change}
    converted = convert_declarations(declared, schemas, base=base, findings=findings)
    found = unite([*sorted_.entries, *converted], findings)
    kept = {name: entry for name, entry in found.items() if not entry.is_change or entry.node}
    for name in found.keys() - kept.keys():
        findings.note("rfd-value", f"{name} is as {base.origin} has it", found[name].location)
    return dict(sorted(kept.items(), key=lambda item: (item[1].location, item[0])))


def _note_messages(messages: tuple[Message, ...], methods: list[Method], findings: Findings) -> None:
    """Say of every message what it was taken for, so that nobody has to wonder."""
    new = {method.name: method for method in methods}
    requests = {each.method: each for each in reversed(messages) if each.kind is MessageKind.REQUEST}
    for message in messages:
        if message.kind not in (MessageKind.REQUEST, MessageKind.NOTIFICATION):
            text = f"an answer to {message.method or 'a request that is not shown'}"
            findings.note("rfd-example", f"an example: {text}", message.location)
            continue
        text = f"an example: a {message.kind.value} of {message.method}"
        method = new.get(message.method or "")
        if method is None:
            findings.note("rfd-example", f"{text}, which the schema has", message.location)
        elif against := _contradiction(message, method, requests.get(message.method)):
            hint = "a request has an `id`, a notification has none: mend whichever is wrong"
            findings.warn("rfd-example", f"{text}, which is a {against}", message.location, hint=hint)
        else:
            findings.note("rfd-example", text, message.location)


def _contradiction(message: Message, method: Method, request: Message | None) -> str:
    """What else in the text says that `message` is of the other kind; empty where nothing does."""
    if message.kind is MessageKind.REQUEST:
        name = method.definitions.get("Notification")
        return f"notification elsewhere: {name}" if name else ""
    name = method.definitions.get("Response") or method.definitions.get("Request")
    if name is None and request is not None:
        name = f"line {request.location.line}"
    return f"request elsewhere: {name}" if name else ""


def _note_values(values: tuple[Piece, ...], inferred: Inferred, findings: Findings) -> None:
    for piece in values:
        if piece not in inferred.used:
            note_value(piece.root, what=", and no definition", place=piece.location, findings=findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What the draft is made of."""

    source: Source
    base: Base
    entries: Mapping[str, Entry]
    methods: list[Method]
    findings: Findings

    def build(self, metadata: Metadata, *, rfd: str | None, orphans: list[str]) -> dict[str, Any]:
        """The draft, with a finding for each mark in it."""
        places: dict[str, Location] = {}
        gates, sides = self._gates(places)
        definitions = self._definitions(sides, orphans, places)
        changes = {name: dict(entry.node) for name, entry in self.entries.items() if entry.is_change}
        head = self._head(metadata, rfd, places)
        parts = {"$defs": definitions, "changes": changes, "gates": gates}
        lines = {
            join("", "changes" if entry.is_change else "$defs", name): "-".join(map(str, dict.fromkeys(entry.lines)))
            for name, entry in self.entries.items()
        }
        extracted = {"file": self.source.name, "sha256": self.source.digest, "lines": lines}
        root = {**head, "extracted": extracted, **{key: part for key, part in parts.items() if part}}
        for pointer, wanted in find_marks(root):
            place = places.get(pointer) or self._place(pointer)
            self.findings.warn("rfd-fill-in", f"to fill in at {pointer}: {wanted}", place)
        return root

    def _place(self, pointer: str) -> Location:
        """The place of the entry that `pointer` leads into; the start of the text for all else."""
        for name, entry in self.entries.items():
            start = join("", "changes" if entry.is_change else "$defs", name)
            if pointer == start or pointer.startswith(start + "/"):
                return entry.location
        return self.source.location(1)

    def _head(self, metadata: Metadata, rfd: str | None, places: dict[str, Location]) -> dict[str, Any]:
        wanted = {
            "id": "lower-case words joined by hyphens",
            "revision": "the date of the text, YYYY-MM-DD",
            "title": "what the extension is about, on one line",
            "status": "draft, landed or vendor",
        }
        found = {
            "id": metadata.id,
            "revision": metadata.revision,
            "title": metadata.title,
            "rfd": rfd or metadata.rfd,
            "status": self._status(metadata),
        }
        for name, line in metadata.lines.items():
            places[join("", name)] = self.source.location(line)
        if found["rfd"] is None:
            hint = "if the text has one, name it with --rfd, or write it to the draft"
            message = "the text does not say its address: `rfd` is null"
            self.findings.note("rfd-no-address", message, places["/rfd"], hint=hint)
        head = {name: mark(wanted[name]) if found[name] is None and name in wanted else found[name] for name in found}
        return {"fragment": 1, **head, "protocols": [self.base.protocol]}

    def _status(self, metadata: Metadata) -> str | None:
        are_vendors = bool(self.methods) and all(method.name.startswith("_") for method in self.methods)
        return "vendor" if metadata.status == "draft" and are_vendors else metadata.status

    def _gates(self, places: dict[str, Location]) -> tuple[dict[str, Any], dict[str, str | None]]:
        """The gates of the new methods, and who handles each."""
        definitions = self._composed()
        leaves, roots = find_leaves(new_slots(self.entries, definitions), definitions), _roots(definitions)
        gates: dict[str, dict[str, str]] = {}
        sides: dict[str, str | None] = {}
        for method in self.methods:
            gate = find_gate(method, leaves)
            side = sides[method.name] = side_of(method, gate)
            known = self.base.gates.get(method.name)
            if known is not None or not roots:
                continue
            if gate is not None:
                gates.setdefault(gate.root, {})[method.name] = ".".join(gate.path)
                continue
            # a request waits for a capability of whoever handles it, a notification for one of either side
            senders = [name for name, sender in roots.items() if sender == side and not method.is_notification]
            root = senders[0] if senders else mark(f"{' or '.join(roots)}, whichever has the capability")
            wanted = f"the capability that {method.name} waits for, names joined by dots; no entry if it waits for none"
            gates.setdefault(root, {})[method.name] = mark(wanted)
            places[join("", "gates", root)] = places[join("", "gates", root, method.name)] = method.location
        return gates, sides

    def _composed(self) -> dict[str, Any]:
        """The definitions of the base with those of the text: enough of it to follow properties."""
        found = dict(self.base.definitions)
        for name, entry in self.entries.items():
            if not entry.is_change:
                found[name] = entry.node
            elif isinstance(found.get(name), dict):
                properties = {**schema_map(found[name], "properties"), **schema_map(entry.node, "properties")}
                found[name] = {**found[name], "properties": properties}
        return found

    def _definitions(
        self, sides: Mapping[str, str | None], orphans: list[str], places: dict[str, Location]
    ) -> dict[str, Any]:
        found = {name: entry.node for name, entry in self.entries.items() if not entry.is_change}
        for method in self.methods:
            side = sides[method.name] or mark(f"who handles {method.name}, {_SIDES}")
            for ending in method.endings:
                name = method.definitions.get(ending)
                if name is None:
                    name = _free_name(pascal(method.name) + ending, found)
                    found[name] = mark(f"the schema of the {_role(ending)} of {method.name}, with x-side and x-method")
                    places[join("", "$defs", name)] = method.location
                elif isinstance(found[name], dict):
                    found[name] = styled({"x-side": side, "x-method": method.name, **found[name]})
        for name in orphans:
            if isinstance(found[name], dict):
                markers = {"x-side": mark(_SIDES), "x-method": mark("the name of the method on the wire")}
                found[name] = styled({**markers, **found[name]})
        return found


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    return name if name not in taken else f"{name}2"


def _role(ending: str) -> str:
    return "result" if ending == "Response" else "params"


def _roots(definitions: Mapping[str, Any]) -> dict[str, str | None]:
    """The messages of the handshake, each with its sender."""
    slots: list[Slot] = list(capability_slots(definitions))
    return {slot.root: slot.sender for slot in slots}
