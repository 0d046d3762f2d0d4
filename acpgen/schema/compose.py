"""Compose a base schema with fragments. The inputs are not changed; the order of the fragments has no effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Diagnostic, Location, Report
from acpgen.schema import bundled
from acpgen.schema.document import Document, join
from acpgen.schema.facts import NO_FACTS, Facts
from acpgen.schema.fragment import Fragment
from acpgen.schema.merge import Merged, Merger
from acpgen.schema.origins import Origins
from acpgen.schema.walk import definition_pointer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """A schema with its extensions. If `diagnostics` has an error, `root` must not be compiled.

    `facts` are those about the base, with the gates that fragments add. `fragments` are sorted and contain only those
    that were composed; `merged` has all that were given, by their specs.
    """

    root: dict[str, Any]
    facts: Facts
    base: Document
    fragments: tuple[Fragment, ...]
    merged: Mapping[str, Merged]
    protocol: int
    release: str | None
    diagnostics: tuple[Diagnostic, ...]
    origins: Origins

    def locate(self, pointer: str) -> tuple[Location, str]:
        """The place in a file of the value at `pointer` into `root`, and its pointer in that file."""
        document, original = self.origins.find(pointer)
        return document.location(original), original

    def origin(self, pointer: str) -> str:
        """The origin of the value at `pointer` into `root`: that of the base or of a fragment."""
        return self.origins.find(pointer)[0].origin

    def is_added(self, pointer: str) -> bool:
        """True if the value at `pointer` into `root` comes from a fragment."""
        return self.origins.find(pointer)[0] is not self.base


def compose(
    base: Document,
    fragments: Sequence[Fragment],
    *,
    protocol: int,
    release: str | None = None,
    facts: Facts = NO_FACTS,
) -> Composed:
    """Compose `base` with `fragments`. `facts` are those about the base.

    All problems are diagnostics of the result; nothing is raised.
    """
    merger = Merger(base=base, protocol=protocol, gates=dict(facts.gates), values=dict(facts.values))
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
        for merged in merger.admitted:
            step(merger, merged)
    merger.grow_defaults()
    report = Report()
    for merged in merger.merged.values():
        _note_ineffective(merged)
        report.add(*merged.report.found)
    return Composed(
        root=merger.root,
        facts=replace(facts, gates=merger.gates, values=merger.values),
        base=base,
        fragments=tuple(merged.fragment for merged in merger.admitted),
        merged=merger.merged,
        protocol=protocol,
        release=release,
        diagnostics=report.in_order,
        origins=merger.origins,
    )


def _admit(merger: Merger, fragments: Sequence[Fragment]) -> None:
    """Sort the fragments, and refuse those that cannot be part of this composition."""
    ordered = sorted(fragments, key=lambda each: (each.id, each.revision, each.document.digest, each.document.label))
    present = {name for each in ordered for name in (each.id, each.spec)}
    taken: dict[str, Fragment] = {}
    for fragment in ordered:
        merged = merger.of(fragment)
        if (first := taken.get(fragment.id)) is not None:
            merged.report.add(_twice(first, fragment))
            continue
        taken[fragment.id] = fragment
        if merger.protocol not in fragment.protocols:
            _refuse_protocol(merger, merged)
        else:
            merger.admitted.append(merged)
            _check_requirements(merged, present)


def _twice(first: Fragment, second: Fragment) -> Diagnostic:
    """The error for an extension that is given twice. The mistake is in no file, so it has no location."""
    same = first.spec == second.spec
    both = "twice" if same else f"as {first.revision} and as {second.revision}"
    return Diagnostic(
        code="fragment-twice",
        message=f"the extension {first.id} is given {both}",
        hint=f"give {first.spec} once" if same else f"choose one: {first.spec} or {second.spec}",
    )


def _refuse_protocol(merger: Merger, merged: Merged) -> None:
    fragment = merged.fragment
    revisions = bundled.revisions_of(fragment.id, merger.protocol)
    others = ", ".join(f"{fragment.id}@{revision}" for revision in revisions)
    known = ", ".join(str(protocol) for protocol in fragment.protocols)
    merged.report.error(
        "fragment-protocol",
        f"{fragment.origin} extends protocol {known}, not {merger.protocol}",
        at="/protocols",
        hint=f"for protocol {merger.protocol} there is {others}" if others else f"leave out {fragment.id}",
    )


def _check_requirements(merged: Merged, present: set[str]) -> None:
    fragment = merged.fragment
    for index, name in enumerate(fragment.requires):
        if name not in present:
            merged.report.error(
                "fragment-requires",
                f"{fragment.origin} needs the extension {name}",
                at=join("/requires", index),
                hint=f"add {name}, or remove {fragment.id}",
            )


def _note_ineffective(merged: Merged) -> None:
    """Note the parts that are superseded or left out; a single note if the whole fragment is superseded."""
    origin = merged.fragment.origin
    if merged.is_superseded and not merged.report.errors:
        origins = " and of ".join(sorted({known for _, known in merged.superseded}))
        merged.report.note("superseded", f"{origin} is superseded: all of it is part of {origins}", at="")
    else:
        for part, known in merged.superseded:
            merged.report.note("superseded", f"{part.name} is already part of {known}", at=part.at)
    for name, change in merged.fragment.changes.items():
        if name in merged.missing and change.optional:
            message = f"{origin} leaves out its change to {definition_pointer(name)}, which is not defined"
            merged.report.note("left-out", message, at=join("/changes", name))
