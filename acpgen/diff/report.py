"""The content of a report: findings grouped by method and sorted, with a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acpgen.diff.findings import (
    Comparison,
    DiffFinding,
    Direction,
    SourceVerdict,
    Wire,
    worst_source,
    worst_wire,
)
from acpgen.diff.rules import DOCUMENTATION, QUIET, TYPE_ADDED, Rule
from acpgen.ir.methods import ERRORS
from acpgen.ir.model import Role
from acpgen.text import cut

NAME = 80
"""The most characters of a name in a report; schemas are untrusted, and names may be long."""
NAMES = 12
"""The most names of a list in a report; the rest are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSummary:
    """The numbers of a comparison; findings about documentation alone are counted separately.

    `breaking` findings break messages or code, `notable` ones lose something or are a risk. `directions` has the worst
    verdicts by sender. `wire_breaks` and `source_breaks` are the places of the breaking findings.
    """

    findings: int
    breaking: int
    notable: int
    documentation: int
    wire: Counter[Wire]
    source: Counter[SourceVerdict]
    directions: tuple[Direction, ...]
    rules: Counter[str]
    wire_breaks: tuple[str, ...]
    source_breaks: tuple[str, ...]

    @property
    def worst_wire(self) -> Wire:
        """The gravest wire verdict of all."""
        return worst_wire(verdict for verdict, count in self.wire.items() if count)

    @property
    def worst_source(self) -> SourceVerdict:
        """The gravest source verdict of all."""
        return worst_source(verdict for verdict, count in self.source.items() if count)


def summary(comparison: Comparison) -> DiffSummary:
    """The numbers of `comparison`."""
    real = [finding for finding in comparison.findings if finding.rule is not DOCUMENTATION]
    return DiffSummary(
        findings=len(real),
        breaking=sum(breaks(finding) for finding in real),
        notable=sum(not breaks(finding) and is_notable(finding) for finding in real),
        documentation=len(comparison.findings) - len(real),
        wire=Counter(finding.worst_wire for finding in real),
        source=Counter(finding.source for finding in real),
        directions=tuple(_direction(role, real) for role in Role),
        rules=Counter(finding.rule.id for finding in comparison.findings),
        wire_breaks=_places(each for each in real if each.worst_wire is Wire.BREAKS),
        source_breaks=_places(each for each in real if each.source is SourceVerdict.BREAKS),
    )


def breaks(finding: DiffFinding) -> bool:
    """Whether messages or ordinary code break."""
    return finding.worst_wire is Wire.BREAKS or finding.source is SourceVerdict.BREAKS


def is_notable(finding: DiffFinding) -> bool:
    """Whether the finding has an effect on messages or code."""
    return finding.worst_wire is not Wire.OK or finding.source is not SourceVerdict.OK


def headline(numbers: DiffSummary) -> str:
    """The numbers in words, the breaking findings first."""
    if numbers.findings:
        more = f" (and {numbers.documentation} about documentation only)" if numbers.documentation else ""
        others = numbers.findings - numbers.breaking - numbers.notable
        first = f"{numbers.breaking} breaking" if numbers.breaking else "nothing breaks"
        return f"{first}, {numbers.notable} to look at, {others} {'other' if others == 1 else 'others'}{more}"
    return "no differences" + (f", except in documentation ({numbers.documentation})" if numbers.documentation else "")


def _places(findings: Iterable[DiffFinding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(finding.place) for finding in findings))


def _direction(sender: Role, findings: Sequence[DiffFinding]) -> Direction:
    found = [each for finding in findings for each in finding.wire if each.sender is sender]
    return Direction(
        sender=sender,
        old_to_new=worst_wire(each.old_to_new for each in found),
        new_to_old=worst_wire(each.new_to_old for each in found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The findings under one heading: a method, or `title`. `added` are new types."""

    title: str
    method: str | None
    findings: tuple[DiffFinding, ...]
    added: tuple[str, ...]


PROTOCOL = "The protocol as a whole"
SHARED = "Types of several methods"
UNREACHED = "Types that no method carries"


def is_quiet(finding: DiffFinding) -> bool:
    """Whether the finding needs no action, and there may be many of its kind."""
    return finding.rule in QUIET and finding.worst_wire is Wire.OK and finding.source is SourceVerdict.OK


def shown_and_counted(
    comparison: Comparison, *, everything: bool
) -> tuple[list[Section], list[tuple[Rule, list[DiffFinding]]]]:
    """The sections to print, and the quiet findings by rule, which are only counted; none if `everything` is shown."""
    counted: dict[Rule, list[DiffFinding]] = {}
    shown = []
    for finding in comparison.findings:
        if everything or not is_quiet(finding) or finding.rule is TYPE_ADDED:
            shown.append(finding)
        else:
            counted.setdefault(finding.rule, []).append(finding)
    return list(sections(shown)), sorted(counted.items(), key=lambda each: each[0].id)


def sections(findings: Iterable[DiffFinding]) -> Iterator[Section]:
    """The findings by method; those of several methods and of none come last."""
    groups: dict[tuple[int, str], list[DiffFinding]] = {}
    for finding in findings:
        groups.setdefault(_group(finding), []).append(finding)
    for (rank, title), found in sorted(groups.items(), key=lambda each: each[0]):
        yield Section(
            title=title,
            method=title if rank == _METHOD else None,
            findings=tuple(sorted((each for each in found if each.rule is not TYPE_ADDED), key=_by_gravity)),
            added=tuple(each.place.type or "" for each in found if each.rule is TYPE_ADDED),
        )


_METHOD = 1


def _group(finding: DiffFinding) -> tuple[int, str]:
    if finding.place.method is not None:
        return (_METHOD, finding.place.method)
    if finding.place.type is None or finding.methods == (ERRORS,):
        return (0, PROTOCOL)
    match finding.methods:
        case ():
            return (3, UNREACHED)
        case (only,):
            return (_METHOD, only)
        case _:
            return (2, SHARED)


def _by_gravity(finding: DiffFinding) -> tuple[bool, str, str, str]:
    """Findings about the method itself first, then by place."""
    return (finding.place.type is not None, *finding.place.sort_key)


def wire_words(finding: DiffFinding) -> str:
    """The wire verdicts in words: "ok" if all are; empty if no messages are concerned."""
    found: dict[tuple[str, Wire], list[Role]] = {}
    for direction in finding.wire:
        for ages, verdict in (("old new", direction.old_to_new), ("new old", direction.new_to_old)):
            if verdict is not Wire.OK:
                found.setdefault((ages, verdict), []).append(direction.sender)
    if not found:
        return "ok" if finding.wire else ""
    return ", ".join(f"{_between(ages, senders)} {verdict.value}" for (ages, verdict), senders in found.items())


def _between(ages: str, senders: Sequence[Role]) -> str:
    sending, reading = ages.split()
    if len(senders) > 1:
        return f"{sending} to {reading}"
    return f"{sending} {senders[0].value} to {reading} {senders[0].peer.value}"


def source_words(finding: DiffFinding) -> str:
    """The source verdict in words, with the kinds of code."""
    uses = ", ".join(use.value for use in finding.uses)
    return f"{finding.source.value} ({uses})" if uses else finding.source.value


def listed(names: Sequence[str], limit: int | None = NAMES) -> str:
    """The names, or the first ones and the number of the others."""
    shown = [cut(name, NAME) for name in names[:limit]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def place_words(finding: DiffFinding) -> str:
    """The place of the finding, without the method: that is the heading."""
    parts = [part for part in (finding.place.type, finding.place.member) if part is not None]
    return ".".join(cut(part, NAME) for part in parts)
