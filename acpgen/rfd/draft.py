"""Put together the draft of a fragment from the text of an RFD, and report everything that a person has to check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Diagnostic, InputError, Location, Severity, input_error
from acpgen.ir.model import Role
from acpgen.ir.names import pascal
from acpgen.pipeline import check_composed
from acpgen.rfd.base import Base, Slot, capability_slots, lower_words, names_of, styled
from acpgen.rfd.blocks import Block, Findings, Kind, Source, find_blocks, line_range, parse_markdown
from acpgen.rfd.entries import Entry, check_names, find_definitions, to_entry, unite
from acpgen.rfd.examples import (
    Method,
    find_methods,
    infer_errors,
    infer_variants,
    report_messages,
)
from acpgen.rfd.syntax import Declaration, read_declarations
from acpgen.rfd.typescript import convert_declarations
from acpgen.rfd.values import Piece, is_message, read_messages, read_pieces, report_unused
from acpgen.schema.compose import compose
from acpgen.schema.document import Document, join, parse_document
from acpgen.schema.facts import Facts
from acpgen.schema.fragment import find_marks, load_fragment, mark
from acpgen.schema.walk import layers, schema_map

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_DEFINITIONS = 500
"""The limit for definitions; a text with more is a schema, not an RFD."""

# a path that begins with a slash or a dot and a URL are not names of methods
_MESSAGE_LIKE = re.compile(r"[{}]|(?<![\w./:$-])(?:\$|\w[\w-]*)/\w")
_SIDES = " or ".join(role.value for role in Role)
_ROLES = {"Request": "params", "Response": "result", "Notification": "params"}

_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_FIELD = re.compile(
    r"[>*\s-]{0,10}(title|status|revision|date|updated|rfd)(?:\*\*)?\s*:\s*(?:\*\*)?\s*(\S.{0,300})", re.IGNORECASE
)
_URL = re.compile(r"https?://[!-~]{1,300}")
_HISTORY = re.compile(r"#{0,6}\s*revision history\s*$", re.IGNORECASE)
_HEAD_LINES = 60
"""The number of lines at the start of a text in which fields are searched."""
_STATUSES = {"draft": "draft", "landed": "landed", "completed": "landed", "vendor": "vendor"}


# --- Metadata --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The fields that the text states, None for missing ones. `lines` has the line of each."""

    id: str | None
    title: str | None
    revision: str | None
    status: str | None
    rfd: str | None
    lines: Mapping[str, int]


def read_metadata(source: Source, tokens: Sequence[Token]) -> Metadata:
    """Read the fields at the start of a text, its heading, its revision history and the name of its file."""
    fields: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(source.lines[:_HEAD_LINES], 1):
        if match := _FIELD.match(line):
            fields.setdefault(match[1].lower(), (_clean(match[2].strip().strip("\"'*`")), number))
    title, title_line = fields.get("title") or _heading(tokens)
    revision, revision_line = _revision(source, fields)
    status, status_line = fields.get("status", ("draft", 1))
    url, url_line = fields.get("rfd", ("", 1))
    address = _URL.search(url)
    return Metadata(
        id=_slug(source.name) or _slug(title),
        title=title or None,
        revision=revision,
        status=_STATUSES.get(status.lower()),
        rfd=address[0].rstrip(".,;)>]\"'") if address else None,
        lines={"title": title_line, "revision": revision_line, "status": status_line, "rfd": url_line},
    )


def _heading(tokens: Sequence[Token]) -> tuple[str, int]:
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h1" and token.map:
            return _clean(inline.content), token.map[0] + 1
    return "", 1


def _clean(text: str) -> str:
    """`text` without "RFD:" before it, as one printable line."""
    text = re.sub(r"(?i)^rfd\s{0,3}[:-]\s{0,3}", "", text.strip())
    return "".join(char for char in text if char.isprintable())


def _revision(source: Source, fields: Mapping[str, tuple[str, int]]) -> tuple[str | None, int]:
    """The newest date in the revision history, else the field, else the date in the name of the file."""
    history = [number for number, line in enumerate(source.lines, 1) if _HISTORY.match(line)]
    if history:
        following = enumerate(source.lines[history[-1] :], history[-1] + 1)
        found = [(each, -number) for number, line in following for each in _dates(line[:40])]
        if found:
            newest, line = max(found)
            return newest, -line
    for name in ("revision", "updated", "date"):
        text, line = fields.get(name, ("", 1))
        if each := next(_dates(text), None):
            return each, line
        if name == "revision" and re.fullmatch(r"[A-Za-z0-9.-]{1,40}", text):
            return text, line
    return next(_dates(source.name), None), 1


def _dates(text: str) -> Iterator[str]:
    for match in _DATE.finditer(text):
        try:
            date.fromisoformat(match[1])
        except ValueError:
            continue
        yield match[1]


def _slug(text: str) -> str | None:
    """The words of a title, or of a file name without suffix and date, joined by hyphens."""
    stem = re.sub(r"\.[A-Za-z0-9]{1,10}$", "", text)
    found = "-".join(re.findall(r"[a-z0-9]+", _DATE.sub("", stem).lower()))
    return found[:80].strip("-") or None


# --- Extraction ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The draft of a fragment, and the diagnostics about it."""

    draft: dict[str, Any]
    diagnostics: tuple[Diagnostic, ...]


def extract(source: Source, base: Base, *, rfd: str | None = None) -> Extraction:
    """Draft the fragment that the text describes, as an extension of `base`; `rfd` is the address of the text.

    Raise `InputError` if the text adds nothing.
    """
    findings, tokens = Findings(), parse_markdown(source)
    pieces, declarations = _read(source, tokens, findings)
    messages = list(read_messages(piece for piece in pieces if is_message(piece.root)))
    entries, values = _entries(source, pieces, declarations, base=base, findings=findings)
    variants, used = infer_variants(values, base=base, source=source, findings=findings)
    for entry in [*variants, *infer_errors(messages, base=base, findings=findings)]:
        entries.setdefault(entry.name, entry)
    check_names(entries, base, findings)
    methods, orphans = find_methods(entries, messages, base)
    report_messages(messages, methods, findings)
    for piece in values:
        if piece not in used:
            report_unused(piece, findings)
    if not entries and not methods:
        raise InputError([*findings.found, _nothing_found(source, base)])
    draft = _Draft(source=source, base=base, entries=entries, methods=methods, findings=findings, places={})
    root = draft.build(read_metadata(source, tokens), rfd=rfd, orphans=orphans)
    return Extraction(draft=root, diagnostics=tuple(findings.found))


def _nothing_found(source: Source, base: Base) -> Diagnostic:
    return Diagnostic(
        code="rfd-nothing-found",
        severity=Severity.ERROR,
        message=f"{source.label} adds nothing to {base.origin}: no definitions, no changes, no new methods",
        location=source.location(1),
        hint="definitions are read from JSON Schema and TypeScript, methods from examples of messages",
    )


def _read(source: Source, tokens: Sequence[Token], findings: Findings) -> tuple[list[Piece], list[Declaration]]:
    pieces: list[Piece] = []
    declarations: list[Declaration] = []
    for block in find_blocks(source, tokens, findings):
        match block.kind:
            case Kind.JSON:
                pieces += read_pieces(block, findings)
            case Kind.TYPESCRIPT:
                declarations += read_declarations(block, findings)
            case Kind.OTHER:
                _report_other(block, findings)
    return pieces, declarations


def _report_other(block: Block, findings: Findings) -> None:
    language = f" of {block.language}" if block.language else ""
    message = f"the block{language} in {line_range(block.first, block.last)} is not read"
    if block.language in ("diff", "patch"):
        findings.warn("rfd-block", f"{message}: it is neither JSON nor TypeScript", block.location(0))
    elif block.language in ("", "text") and _MESSAGE_LIKE.search(block.text):
        hint = "read it, and add the relevant parts to the draft"
        message += ", but contains names of methods or braces"
        findings.warn("rfd-block", message, block.location(0), hint=hint)
    else:
        findings.note("rfd-block", message, block.location(0))


def _entries(
    source: Source, pieces: Iterable[Piece], declarations: list[Declaration], *, base: Base, findings: Findings
) -> tuple[dict[str, Entry], list[Piece]]:
    """The entries by name in the order of the text, and the JSON values that are neither schemas nor messages."""
    definitions, values = [], []
    for piece in pieces:
        if is_message(piece.root):
            continue
        before = len(findings.found)
        found = list(find_definitions(piece, findings))
        definitions += found
        if not found and len(findings.found) == before:
            values.append(piece)
    if len(definitions) + len(declarations) > MAX_DEFINITIONS:
        raise input_error("rfd-too-large", f"{source.label} has more than {MAX_DEFINITIONS} definitions")
    from_json = [to_entry(definition, base, findings) for definition in definitions]
    schemas = {entry.name: entry.node for entry in reversed(from_json) if not entry.is_change}
    converted = convert_declarations(declarations, schemas, base=base, findings=findings)
    united = unite([*from_json, *(to_entry(each, base, findings) for each in converted)], findings)
    kept = {name: entry for name, entry in united.items() if not entry.is_change or entry.node}
    for name in united.keys() - kept.keys():
        findings.note("rfd-value", f"{name} is the same in {base.origin}", united[name].location)
    return dict(sorted(kept.items(), key=lambda item: (item[1].location, item[0]))), values


# --- Draft -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """The contents of the draft; `places` maps a pointer in the draft to the location in the text."""

    source: Source
    base: Base
    entries: Mapping[str, Entry]
    methods: Sequence[Method]
    findings: Findings
    places: dict[str, Location]

    def build(self, metadata: Metadata, *, rfd: str | None, orphans: list[str]) -> dict[str, Any]:
        """Build the draft, and report each mark in it."""
        gates, sides = self._gates()
        definitions = self._definitions(sides, orphans)
        changes = {name: dict(entry.node) for name, entry in self.entries.items() if entry.is_change}
        lines = {}
        for name, entry in self.entries.items():
            pointer = join("", "changes" if entry.is_change else "$defs", name)
            lines[pointer] = "-".join(map(str, dict.fromkeys((entry.lines.start, entry.lines[-1]))))
            self.places.setdefault(pointer, entry.location)
        extracted = {"file": self.source.name, "sha256": self.source.digest, "lines": lines}
        parts = {"$defs": definitions, "changes": changes, "gates": gates}
        head = self._head(metadata, rfd)
        root = {**head, "extracted": extracted, **{key: part for key, part in parts.items() if part}}
        for pointer, wanted in find_marks(root):
            self.findings.warn("rfd-fill-in", f"to fill in at {pointer}: {wanted}", self._place(pointer))
        return root

    def _place(self, pointer: str) -> Location:
        """The location of the nearest part around `pointer` that has one, else the start of the text."""
        while pointer and pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places.get(pointer) or self.source.location(1)

    def _head(self, metadata: Metadata, rfd: str | None) -> dict[str, Any]:
        wanted = {
            "id": "lower-case words joined by hyphens",
            "revision": "the date of the text, YYYY-MM-DD",
            "title": "what the extension is about, on one line",
            "rfd": "",
            "status": "draft, landed or vendor",
        }
        self.places.update({join("", name): self.source.location(line) for name, line in metadata.lines.items()})
        are_vendors = bool(self.methods) and all(method.name.startswith("_") for method in self.methods)
        status = "vendor" if metadata.status == "draft" and are_vendors else metadata.status
        address = rfd or metadata.rfd
        if address is None:
            hint = "if it has one, pass it as --rfd, or write it to the draft"
            message = "the text does not state its address: `rfd` is null"
            self.findings.note("rfd-no-address", message, self.places["/rfd"], hint=hint)
        stated = {"status": status, "rfd": address}
        found = {name: stated.get(name, getattr(metadata, name)) for name in wanted}
        head = {name: mark(wanted[name]) if value is None and wanted[name] else value for name, value in found.items()}
        return {"fragment": 1, **head, "protocols": [self.base.protocol]}

    def _gates(self) -> tuple[dict[str, Any], dict[str, str | None]]:
        """The gates of the new methods, and the side that handles each method."""
        definitions = self._composed()
        slots = list(capability_slots(definitions))
        new = [(slot, names_of(slot.path)) for slot in slots if self._is_new(slot) and _is_switch(slot, definitions)]
        senders = {slot.root: slot.sender for slot in slots}
        gates: dict[str, dict[str, str]] = {}
        sides: dict[str, str | None] = {}
        for method in self.methods:
            words = lower_words(method.name)
            named = [slot for slot, names in new if words in names]
            gate = named[0] if len(named) == 1 else None
            # the side that advertises a capability handles its requests; a notification may go either way
            sides[method.name] = method.side or (gate.sender if gate and not method.is_notification else None)
            if method.name in self.base.gates or not senders:
                continue
            if gate is not None:
                gates.setdefault(gate.root, {})[method.name] = ".".join(gate.path)
                continue
            roots = [
                root for root, sender in senders.items() if sender == sides[method.name] and not method.is_notification
            ]
            root = roots[0] if roots else mark(f"{' or '.join(senders)}, whichever has the capability")
            wanted = f"the capability that enables {method.name}, names joined by dots; no entry if there is none"
            gates.setdefault(root, {})[method.name] = mark(wanted)
            self.places[join("", "gates", root)] = self.places[join("", "gates", root, method.name)] = method.location
        return gates, sides

    def _is_new(self, slot: Slot) -> bool:
        entry = self.entries.get(slot.owner)
        return entry is not None and (not entry.is_change or slot.path[-1] in schema_map(entry.node, "properties"))

    def _composed(self) -> dict[str, Any]:
        """The definitions of the base and of the text. A change adds only its properties."""
        found = dict(self.base.definitions)
        for name, entry in self.entries.items():
            if not entry.is_change:
                found[name] = entry.node
            elif isinstance(found.get(name), dict):
                properties = {**schema_map(found[name], "properties"), **schema_map(entry.node, "properties")}
                found[name] = {**found[name], "properties": properties}
        return found

    def _definitions(self, sides: Mapping[str, str | None], orphans: list[str]) -> dict[str, Any]:
        found = {name: entry.node for name, entry in self.entries.items() if not entry.is_change}
        for method in self.methods:
            side = sides[method.name] or mark(f"the side that handles {method.name}, {_SIDES}")
            for ending in method.endings:
                name = method.definitions.get(ending)
                if name is None:
                    name = pascal(method.name) + ending
                    name = f"{name}2" if name in found else name
                    wanted = f"the schema of the {_ROLES[ending]} of {method.name}, with x-side and x-method"
                    found[name] = mark(wanted)
                    self.places[join("", "$defs", name)] = method.location
                elif isinstance(found[name], dict):
                    found[name] = styled({"x-side": side, "x-method": method.name, **found[name]})
        markers = {"x-side": mark(_SIDES), "x-method": mark("the wire name of the method")}
        for name in orphans:
            if isinstance(found[name], dict):
                found[name] = styled({**markers, **found[name]})
        return found


def _is_switch(slot: Slot, definitions: Mapping[str, Any]) -> bool:
    """Whether the capability is a boolean or an object."""
    kinds = [layer.get("type") for _, layer in layers(slot.node, "", definitions)]
    return any(kind in ("boolean", "object") for each in kinds for kind in (each if isinstance(each, list) else [each]))


def check_draft(text: str, *, label: str, base: Document, known: Base) -> tuple[Diagnostic, ...]:
    """The diagnostics of a build with the draft `text`; `label` is the path of the draft in them."""
    try:
        fragment = load_fragment(parse_document(text.encode(), label=label, origin=label))
        report = check_composed(compose(base, [fragment], protocol=known.protocol, facts=Facts(gates=known.gates)))
    except InputError as error:
        return error.diagnostics
    return tuple(report.found)
