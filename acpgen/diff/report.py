"""The sections of a report: findings grouped and sorted, with a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acpgen.diff.findings import Comparison, Direction, Finding, Source, Wire, worst_source, worst_wire
from acpgen.diff.rules import DOCUMENTATION, QUIET, TYPE_ADDED
from acpgen.ir.methods import ERRORS
from acpgen.ir.model import Role
from acpgen.text import cut

NAME = 80
"""How much of a name is shown; schemas are untrusted, and a name may be a book."""
NAMES = 12
"""How many names a list shows before it counts the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of a comparison. `directions` has the worst verdicts by sender, documentation is counted apart.

    `breaking` are findings with a verdict that something breaks, `notable` those where something is lost or at risk.
    `wire_breaks` and `source_breaks` are the places of what breaks.
    """

    findings: int
    breaking: int
    notable: int
    documentation: int
    wire: Counter[Wire]
    source: Counter[Source]
    directions: tuple[Direction, ...]
    rules: Counter[str]
    wire_breaks: tuple[str, ...]
    source_breaks: tuple[str, ...]

    @property
    def worst_wire(self) -> Wire:
        """The gravest wire verdict of all."""
        return worst_wire(verdict for verdict, count in self.wire.items() if count)

    @property
    def worst_source(self) -> Source:
        """The gravest source verdict of all."""
        return worst_source(verdict for verdict, count in self.source.items() if count)


def summary(comparison: Comparison) -> Summary:
    """The numbers of `comparison`."""
    real = [finding for finding in comparison.findings if finding.rule != DOCUMENTATION]
    return Summary(
        findings=len(real),
        breaking=sum(breaks(finding) for finding in real),
        notable=sum(not breaks(finding) and is_notable(finding) for finding in real),
        documentation=len(comparison.findings) - len(real),
        wire=Counter(finding.worst_wire for finding in real),
        source=Counter(finding.source for finding in real),
        directions=tuple(_direction(role, real) for role in Role),
        rules=Counter(finding.rule for finding in comparison.findings),
        wire_breaks=_places(each for each in real if each.worst_wire is Wire.BREAKS),
        source_breaks=_places(each for each in real if each.source is Source.BREAKS),
    )


def breaks(finding: Finding) -> bool:
    """Whether messages are refused, or code fails."""
    return finding.worst_wire is Wire.BREAKS or finding.source is Source.BREAKS


def is_notable(finding: Finding) -> bool:
    """Whether it has any effect on messages or code."""
    return finding.worst_wire is not Wire.OK or finding.source is not Source.OK


def headline(numbers: Summary) -> str:
    """How much differs, in words: first what somebody has to act on."""
    if numbers.findings:
        more = f" ({numbers.documentation} more about documentation alone)" if numbers.documentation else ""
        others = numbers.findings - numbers.breaking - numbers.notable
        first = f"{numbers.breaking} breaking" if numbers.breaking else "nothing breaks"
        return f"{first}, {numbers.notable} to look at, {others} {'other' if others == 1 else 'others'}{more}"
    return "no differences" + (f" but in documentation ({numbers.documentation})" if numbers.documentation else "")


def _places(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(finding.place) for finding in findings))


def _direction(sender: Role, findings: Sequence[Finding]) -> Direction:
    found = [each for finding in findings for each in finding.wire if each.sender is sender]
    return Direction(
        sender=sender,
        old_to_new=worst_wire(each.old_to_new for each in found),
        new_to_old=worst_wire(each.new_to_old for each in found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Findings that belong under one heading: a method, or `title`. `added` are types that are merely new."""

    title: str
    method: str | None
    findings: tuple[Finding, ...]
    added: tuple[str, ...]


PROTOCOL = "The protocol as a whole"
SHARED = "Types of several methods"
UNREACHED = "Types that no method carries"


def is_quiet(finding: Finding) -> bool:
    """Whether nobody has to act on the finding, and there may be many of its kind."""
    return finding.rule in QUIET and finding.worst_wire is Wire.OK and finding.source is Source.OK


def shown_and_counted(
    comparison: Comparison, *, everything: bool
) -> tuple[list[Section], list[tuple[str, list[Finding]]]]:
    """The sections to print, and what is merely counted, by rule: nothing, where `everything` is to be shown."""
    counted: dict[str, list[Finding]] = {}
    shown = []
    for finding in comparison.findings:
        if everything or not is_quiet(finding) or finding.rule == TYPE_ADDED:
            shown.append(finding)
        else:
            counted.setdefault(finding.rule, []).append(finding)
    return list(sections(shown)), sorted(counted.items())


def sections(findings: Iterable[Finding]) -> Iterator[Section]:
    """The findings by method, in order; then what several methods share, and what none of them reaches."""
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_group(finding), []).append(finding)
    for (rank, title), found in sorted(groups.items(), key=lambda each: each[0]):
        yield Section(
            title=title,
            method=title if rank == _METHOD else None,
            findings=tuple(sorted((each for each in found if each.rule != TYPE_ADDED), key=_by_gravity)),
            added=tuple(each.place.type or "" for each in found if each.rule == TYPE_ADDED),
        )


_METHOD = 1


def _group(finding: Finding) -> tuple[int, str]:
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


def _by_gravity(finding: Finding) -> tuple[bool, str, str, str]:
    """Findings about the method itself first, then by place."""
    return (finding.place.type is not None, *finding.place.sort_key)


def wire_words(finding: Finding) -> str:
    """The wire verdicts in words, "ok" where all of them are, nothing where messages do not come into it."""
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


def source_words(finding: Finding) -> str:
    """The source verdict in words, with the kinds of code that it is about."""
    uses = ", ".join(use.value for use in finding.uses)
    return f"{finding.source.value} ({uses})" if uses else finding.source.value


def listed(names: Sequence[str], limit: int | None = NAMES) -> str:
    """The names, or the first of them and how many more there are."""
    shown = [cut(name, NAME) for name in names[:limit]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def place_words(finding: Finding) -> str:
    """Where the finding is, without the method of its heading."""
    parts = [part for part in (finding.place.type, finding.place.member) if part is not None]
    return ".".join(cut(part, NAME) for part in parts)
