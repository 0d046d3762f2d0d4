"""Put together the draft of a fragment from the text of an RFD, and report everything that a person has to check."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Diagnostic, InputError, Location, Report
from acpgen.ir.names import pascal
from acpgen.pipeline import check_composed
from acpgen.rfd.base import Base, capability_slots, styled
from acpgen.rfd.blocks import Block, Language, Source, find_blocks, line_range, parse_markdown, read_metadata
from acpgen.rfd.entries import ENDINGS, DraftEntry, DraftMethod, check_names, find_definitions, find_methods, unite
from acpgen.rfd.examples import infer_errors, infer_variants
from acpgen.rfd.pieces import Piece, is_message, read_calls, read_pieces, report_value
from acpgen.rfd.typescript import Declaration, convert_declarations, read_declarations
from acpgen.roles import Side
from acpgen.schema.compose import compose
from acpgen.schema.document import Document, join, parse_document
from acpgen.schema.facts import Facts
from acpgen.schema.fragment import find_marks, load_fragment, mark

if TYPE_CHECKING:
    from markdown_it.token import Token

_SIDES = " or ".join(side.value for side in Side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The draft of a fragment, and the diagnostics about it."""

    draft: dict[str, Any]
    diagnostics: tuple[Diagnostic, ...]


def extract(source: Source, base: Base) -> Extraction:
    """Draft the fragment that the text describes, as an extension of `base`; raise `InputError` if it adds nothing."""
    report, tokens = Report(), parse_markdown(source)
    pieces, declarations = _read(source, tokens, report)
    messages = [piece for piece in pieces if is_message(piece.root)]
    calls = read_calls(messages, report)
    entries = _entries(pieces, declarations, base=base, report=report)
    for entry in _inferred(source, pieces, messages, base=base, report=report):
        entries.setdefault(entry.name, entry)
    check_names(entries.values(), base, report)
    methods = find_methods(entries, calls, base)
    if not entries and not methods:
        message = f"{source.label} adds nothing to {base.origin}: no definitions, no changes, no new methods"
        hint = "definitions are read from JSON Schema and TypeScript, methods from examples of messages"
        report.error("rfd-nothing-found", message, at=source.location(1), hint=hint)
        raise InputError(report.found)
    draft = _DraftBuilder(source=source, base=base, entries=entries, methods=methods, report=report, places={})
    root = draft.build(read_metadata(source, tokens))
    return Extraction(draft=root, diagnostics=tuple(report.found))


def _read(source: Source, tokens: Sequence[Token], report: Report) -> tuple[list[Piece], list[Declaration]]:
    pieces: list[Piece] = []
    declarations: list[Declaration] = []
    for block in find_blocks(source, tokens, report):
        match block.kind:
            case Language.JSON:
                pieces += read_pieces(block, report)
            case Language.TYPESCRIPT:
                declarations += read_declarations(block, report)
            case Language.OTHER:
                _report_other(block, report)
    return pieces, declarations


def _report_other(block: Block, report: Report) -> None:
    language = f" of {block.language}" if block.language else ""
    message = f"the block{language} in {line_range(block.first, block.last)} is not read"
    if block.may_define:
        hint = "if it defines something, add that to the draft"
        report.warning("rfd-block", message, at=block.location(0), hint=hint)
    else:
        report.note("rfd-block", message, at=block.location(0))


def _has_definitions(piece: Piece) -> bool:
    return isinstance(piece.root.get("$defs"), dict) and not is_message(piece.root)


def _entries(
    pieces: Iterable[Piece], declarations: list[Declaration], *, base: Base, report: Report
) -> dict[str, DraftEntry]:
    """The entries for the definitions of the text, by name in its order."""
    found = [each for piece in pieces if _has_definitions(piece) for each in find_definitions(piece, report)]
    schemas = {entry.name: entry.node for entry in reversed(found)}
    found += convert_declarations(declarations, schemas, base=base, report=report)
    return unite(found, base, report)


def _inferred(
    source: Source, pieces: Iterable[Piece], messages: Iterable[Piece], *, base: Base, report: Report
) -> list[DraftEntry]:
    """The entries that follow from examples; values that add nothing are reported."""
    values = [piece for piece in pieces if not is_message(piece.root) and not _has_definitions(piece)]
    variants, used = infer_variants(values, base=base, source=source, report=report)
    for piece in values:
        if piece not in used:
            report_value(json.dumps(piece.root), piece.location(""), report)
    return [*variants, *infer_errors(messages, base=base, report=report)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DraftBuilder:
    """Builds the draft of its contents; `places` maps a pointer in the draft to the location in the text."""

    source: Source
    base: Base
    entries: Mapping[str, DraftEntry]
    methods: Sequence[DraftMethod]
    report: Report
    places: dict[str, Location]

    def build(self, metadata: Mapping[str, str | None]) -> dict[str, Any]:
        """Build the draft, and report each mark in it."""
        lines = {}
        for name, entry in self.entries.items():
            pointer = join("", "changes" if entry.is_change else "$defs", name)
            lines[pointer] = "-".join(map(str, dict.fromkeys((entry.lines.start, entry.lines[-1]))))
            self.places[pointer] = entry.location
        parts = {
            "$defs": self._definitions(),
            "changes": {name: dict(entry.node) for name, entry in self.entries.items() if entry.is_change},
            "gates": self._gates(),
        }
        extracted = {"file": self.source.name, "sha256": self.source.digest, "lines": lines}
        head = self._head(metadata)
        root = {**head, "extracted": extracted, **{key: part for key, part in parts.items() if part}}
        for pointer, wanted in find_marks(root):
            self.report.warning("rfd-fill-in", f"to fill in at {pointer}: {wanted}", at=self._place(pointer))
        return root

    def _place(self, pointer: str) -> Location:
        """The location of the nearest part around `pointer` that has one, else the start of the text."""
        while pointer and pointer not in self.places:
            pointer = pointer.rpartition("/")[0]
        return self.places.get(pointer) or self.source.location(1)

    def _head(self, metadata: Mapping[str, str | None]) -> dict[str, Any]:
        if metadata["rfd"] is None:
            hint = "if it has one, write it to the draft"
            message = "the text does not state its address: `rfd` is null"
            self.report.note("rfd-no-address", message, at=self.source.location(1), hint=hint)
        are_vendors = bool(self.methods) and all(method.name.startswith("_") for method in self.methods)
        status = "vendor" if are_vendors else "draft"
        return {"fragment": 1, **metadata, "status": status, "protocols": [self.base.protocol]}

    def _gates(self) -> dict[str, Any]:
        """The gates of the new methods; none if the schema has no capabilities."""
        roots = list(dict.fromkeys(slot.root for slot in capability_slots(self.base.definitions)))
        gates: dict[str, dict[str, str]] = {}
        for method in self.methods:
            if method.name in self.base.gates or not roots:
                continue
            if method.gate is not None:
                gates.setdefault(method.gate.root, {})[method.name] = ".".join(method.gate.path)
                continue
            root = mark(f"{' or '.join(roots)}, whichever has the capability")
            wanted = f"the capability that enables {method.name}, names joined by dots; no entry if there is none"
            gates.setdefault(root, {})[method.name] = mark(wanted)
            self.places[join("", "gates", root)] = self.places[join("", "gates", root, method.name)] = method.location
        return gates

    def _definitions(self) -> dict[str, Any]:
        """The new definitions, those of methods with `x-side` and `x-method`."""
        found = {name: entry.node for name, entry in self.entries.items() if not entry.is_change}
        for method in self.methods:
            side = method.side or mark(f"the side that handles {method.name}, {_SIDES}")
            for ending in method.endings:
                name = method.definitions.get(ending)
                if name is not None:
                    found[name] = _with_markers(found[name], side, method.name)
                    continue
                name = pascal(method.name) + ending
                name = f"{name}2" if name in found else name
                wanted = f"the schema of the {ENDINGS[ending]} of {method.name}, with x-side and x-method"
                found[name] = mark(wanted)
                self.places[join("", "$defs", name)] = method.location
        for name, node in found.items():
            if name.endswith(tuple(ENDINGS)):
                found[name] = _with_markers(node, mark(_SIDES), mark("the wire name of the method"))
        return found


def _with_markers(node: Any, side: str, method: str) -> Any:
    return styled({"x-side": side, "x-method": method, **node}) if isinstance(node, dict) else node


def check_draft(text: str, *, label: str, base: Document, known: Base) -> tuple[Diagnostic, ...]:
    """The diagnostics of a build with the draft `text`; `label` is the path of the draft in them."""
    try:
        fragment = load_fragment(parse_document(text.encode(), label=label, origin=label))
        report = check_composed(compose(base, [fragment], protocol=known.protocol, facts=Facts(gates=known.gates)))
    except InputError as error:
        return error.diagnostics
    return tuple(report.found)
