"""Compose a base schema with fragments. The inputs are not changed; the order of the fragments has no effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Diagnostic, Location, Severity
from acpgen.schema.bundled import BUNDLED, Catalogue
from acpgen.schema.document import Document, join
from acpgen.schema.facts import Negotiation
from acpgen.schema.fragment import Fragment
from acpgen.schema.gates import Gate
from acpgen.schema.merge import Merger
from acpgen.schema.origins import Source, find_source
from acpgen.schema.walk import definition_pointer, referenced_definition, schema_map, walk


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """A schema with its extensions. If `diagnostics` has an error, `root` must not be compiled.

    `gates` has the gate of each method, from the base or a fragment. `negotiation` is from the base. `fragments` are
    sorted and contain only those that were composed.
    """

    root: dict[str, Any]
    gates: Mapping[str, Gate]
    negotiation: Negotiation | None
    base: Document
    fragments: tuple[Fragment, ...]
    protocol: int
    release: str | None
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, Source]

    def locate(self, pointer: str) -> tuple[Location, str]:
        """The place in a file of the value at `pointer` into `root`, and its pointer in that file."""
        document, original = find_source(self.sources, self.base, pointer)
        return document.location(original), original

    def origin(self, pointer: str) -> str:
        """The origin of the value at `pointer` into `root`: that of the base or of a fragment."""
        return find_source(self.sources, self.base, pointer)[0].origin

    def is_added(self, pointer: str) -> bool:
        """True if the value at `pointer` into `root` comes from a fragment."""
        return find_source(self.sources, self.base, pointer)[0] is not self.base

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors."""
        return tuple(found for found in self.diagnostics if found.severity is Severity.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The effect of a fragment on a base. `reasons` are messages: conflicts, superseded parts, parts left out."""

    fragment: Fragment
    methods: tuple[str, ...]
    definitions: tuple[str, ...]
    changed: tuple[str, ...]
    verdict: str
    reasons: tuple[str, ...]


def compose(
    base: Document,
    fragments: Sequence[Fragment],
    *,
    protocol: int,
    release: str | None = None,
    gates: Mapping[str, Gate] | None = None,
    negotiation: Negotiation | None = None,
    catalogue: Catalogue = BUNDLED,
) -> Composed:
    """Compose `base` with `fragments`. `gates` and `negotiation` are facts about the base; `catalogue` is for hints.

    All problems are diagnostics of the result; nothing is raised.
    """
    merger = _merge(base, fragments, protocol=protocol, gates=gates, catalogue=catalogue)
    return _composed(merger, protocol=protocol, release=release, negotiation=negotiation)


def _merge(
    base: Document,
    fragments: Sequence[Fragment],
    *,
    protocol: int,
    gates: Mapping[str, Gate] | None,
    catalogue: Catalogue,
) -> Merger:
    merger = Merger.start(base, protocol=protocol, gates=gates or {}, catalogue=catalogue)
    _admit(merger, fragments)
    for step in (
        Merger.add_definitions,
        Merger.check_targets,
        Merger.replace_definitions,
        Merger.add_properties,
        Merger.add_required,
        Merger.add_members,
        Merger.add_gates,
    ):
        for fragment in merger.fragments:
            step(merger, fragment)
    merger.grow_defaults()
    return merger


def _composed(merger: Merger, *, protocol: int, release: str | None, negotiation: Negotiation | None) -> Composed:
    found = {found for log in merger.logs.values() for found in [*log.errors, *_notes(merger, log.fragment)]}
    return Composed(
        root=merger.root,
        gates=merger.gates,
        negotiation=negotiation,
        base=merger.base,
        fragments=tuple(merger.fragments),
        protocol=protocol,
        release=release,
        diagnostics=tuple(sorted(found, key=lambda found: found.sort_key)),
        sources=merger.origins.sources,
    )


def _admit(merger: Merger, fragments: Sequence[Fragment]) -> None:
    """Sort the fragments, and refuse those that cannot be part of this composition."""
    ordered = sorted(fragments, key=lambda each: (each.id, each.revision, each.document.digest, each.document.label))
    present = {name for each in ordered for name in (each.id, each.spec)}
    taken: dict[str, Fragment] = {}
    for fragment in ordered:
        if fragment.id in taken:
            first = taken[fragment.id]
            merger.log_error(fragment, _twice(first, fragment))
            continue
        taken[fragment.id] = fragment
        if merger.protocol not in fragment.protocols:
            _refuse_protocol(merger, fragment)
            continue
        merger.admit(fragment)
        for index, name in enumerate(fragment.requires):
            if name not in present:
                merger.error(
                    fragment,
                    "fragment-requires",
                    f"{fragment.origin} needs the extension {name}",
                    at=join("/requires", index),
                    hint=f"add {name}, or remove {fragment.id}",
                )


def _twice(first: Fragment, second: Fragment) -> Diagnostic:
    """The error for an extension that is given twice. The mistake is in no file, so it has no location."""
    same = first.spec == second.spec
    both = "twice" if same else f"as {first.revision} and as {second.revision}"
    return Diagnostic(
        code="fragment-twice",
        severity=Severity.ERROR,
        message=f"the extension {first.id} is given {both}",
        hint=f"give {first.spec} once" if same else f"choose one: {first.spec} or {second.spec}",
    )


def _refuse_protocol(merger: Merger, fragment: Fragment) -> None:
    revisions = merger.catalogue.revisions_of(fragment.id, merger.protocol)
    others = ", ".join(f"{fragment.id}@{revision}" for revision in revisions)
    known = ", ".join(str(protocol) for protocol in fragment.protocols)
    merger.error(
        fragment,
        "fragment-protocol",
        f"{fragment.origin} extends protocol {known}, not {merger.protocol}",
        at="/protocols",
        hint=f"for protocol {merger.protocol} there is {others}" if others else f"leave out {fragment.id}",
    )


def _notes(merger: Merger, fragment: Fragment) -> list[Diagnostic]:
    """The notes on the parts that are superseded or left out; a single note if the whole fragment is superseded."""
    log = merger.logs[fragment.spec]
    left_out = [_note(fragment, "left-out", _omission(fragment, name), join("/changes", name)) for name in log.left_out]
    if not log.superseded or log.added or log.errors:
        present = [(at, f"{what} is already part of {origin}") for at, what, origin in log.superseded]
    else:
        origins = " and of ".join(sorted({origin for _, _, origin in log.superseded}))
        present = [("", f"{fragment.origin} is superseded: all of it is part of {origins}")]
    return [*(_note(fragment, "superseded", message, at) for at, message in present), *left_out]


def _omission(fragment: Fragment, name: str) -> str:
    return f"{fragment.origin} leaves out its change to {definition_pointer(name)}, which is not defined"


def _note(fragment: Fragment, code: str, message: str, at: str) -> Diagnostic:
    return Diagnostic(
        code=code,
        severity=Severity.NOTE,
        message=message,
        location=fragment.document.location(at),
        pointer=at,
    )


def summarise(
    base: Document,
    fragment: Fragment,
    *,
    protocol: int,
    gates: Mapping[str, Gate] | None = None,
    others: Sequence[Fragment] = (),
    catalogue: Catalogue = BUNDLED,
) -> Summary:
    """The effect of `fragment` on `base`, together with the fragments among `others` that it requires."""
    needed = _required(fragment, others)
    merger = _merge(base, [fragment, *needed], protocol=protocol, gates=gates, catalogue=catalogue)
    log = merger.logs[fragment.spec]
    missing = [found for found in log.errors if found.code == "fragment-missing"]
    lost = _lost_references(merger, fragment)
    serious = [found for found in log.errors if found.code not in ("fragment-missing", "fragment-requires")]
    if serious:
        verdict = "conflicts"
    elif missing or lost:
        verdict = "lacks a definition"
    else:
        verdict = "superseded" if log.superseded and not log.added else "applies"
    reasons = sorted(log.errors or _notes(merger, fragment), key=lambda found: found.sort_key)
    return Summary(
        fragment=fragment,
        methods=tuple(sorted(log.methods)),
        definitions=tuple(sorted(log.definitions)),
        changed=tuple(sorted(log.changed)),
        verdict=verdict,
        reasons=(*(found.message for found in reasons), *lost),
    )


def _lost_references(merger: Merger, fragment: Fragment) -> list[str]:
    """A message for each missing definition that the additions of `fragment` refer to."""
    changes = [change for name, change in fragment.changes.items() if name not in merger.logs[fragment.spec].missing]
    added = [*fragment.definitions.values(), *(node for change in changes for node in change.added)]
    names = {name for schema in added for _, node in walk(schema) if (name := referenced_definition(node)) is not None}
    return [
        f"{fragment.origin} refers to {definition_pointer(name)}, which {merger.base.origin} does not have"
        for name in sorted(names - schema_map(merger.root, "$defs").keys())
    ]


def _required(fragment: Fragment, others: Sequence[Fragment]) -> list[Fragment]:
    """The fragments among `others` that `fragment` requires, directly or not, one revision each."""
    found: dict[str, Fragment] = {}
    names = list(fragment.requires)
    while names:
        name = names.pop()
        match = next((each for each in others if name in (each.id, each.spec)), None)
        if match is not None and match.id not in found and match.id != fragment.id:
            found[match.id] = match
            names += match.requires
    return list(found.values())
