"""The content of a report: findings grouped by method and sorted, with a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acpgen.diff.findings import Comparison, DiffFinding, Effect, Rule, Shown, SourceVerdict, WireVerdict
from acpgen.ir.methods import ERRORS
from acpgen.roles import Side
from acpgen.text import cut, some_of

NAME = 80
"""The most characters of a name in a report; schemas are untrusted, and names may be long."""
NAMES = 12
"""The most names of a list in a report; the rest are counted."""
PROTOCOL = "The protocol as a whole"
SHARED = "Types of several methods"
UNREACHED = "Types that no method carries"


@dataclass(frozen=True, slots=True)
class DiffSummary:
    """The numbers of a comparison. `findings` are all but the `documentation` findings, which are only counted."""

    findings: tuple[DiffFinding, ...]
    documentation: int

    @property
    def wire(self) -> Counter[WireVerdict]:
        """The number of findings by wire verdict."""
        return Counter(each.worst_wire for each in self.findings)

    @property
    def source(self) -> Counter[SourceVerdict]:
        """The number of findings by source verdict."""
        return Counter(each.source.verdict for each in self.findings)

    @property
    def directions(self) -> Mapping[Side, Effect]:
        """The worst verdicts by sender."""
        found = {side: [each.wire[side] for each in self.findings if side in each.wire] for side in Side}
        return {
            side: Effect(
                WireVerdict.worst(each.old_to_new for each in all_), WireVerdict.worst(each.new_to_old for each in all_)
            )
            for side, all_ in found.items()
        }

    def verdicts(self) -> Iterator[tuple[str, str, str, list[str]]]:
        """For each kind of verdict: its name, the worst one, the numbers, and the places where something breaks."""
        wire, source = self.wire, self.source
        counts = f"{wire[WireVerdict.BREAKS]} break, {wire[WireVerdict.LOSES]} lose"
        places = [str(each.place) for each in self.findings if each.worst_wire is WireVerdict.BREAKS]
        yield "wire", WireVerdict.worst(wire).value, counts, list(dict.fromkeys(places))
        counts = f"{source[SourceVerdict.BREAKS]} break, {source[SourceVerdict.RISK]} are a risk"
        places = [str(each.place) for each in self.findings if each.source.verdict is SourceVerdict.BREAKS]
        yield "source", SourceVerdict.worst(source).value, counts, list(dict.fromkeys(places))


def summary(comparison: Comparison) -> DiffSummary:
    """The numbers of `comparison`."""
    real = tuple(finding for finding in comparison.findings if finding.rule.shown is not Shown.PROSE)
    return DiffSummary(real, len(comparison.findings) - len(real))


def headline(numbers: DiffSummary) -> str:
    """The numbers in words, the breaking findings first."""
    if not numbers.findings:
        hidden = f", except in documentation ({numbers.documentation})" if numbers.documentation else ""
        return f"no differences{hidden}"
    breaking = sum(each.breaks for each in numbers.findings)
    others = sum(each.is_harmless for each in numbers.findings)
    notable = len(numbers.findings) - breaking - others
    more = f" (and {numbers.documentation} about documentation only)" if numbers.documentation else ""
    first = f"{breaking} breaking" if breaking else "nothing breaks"
    return f"{first}, {notable} to look at, {others} {'other' if others == 1 else 'others'}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The findings under one heading: a method, or a group of types. `added` are new types."""

    title: str
    is_method: bool
    findings: tuple[DiffFinding, ...]
    added: tuple[str, ...]


def shown_and_counted(comparison: Comparison, *, everything: bool) -> tuple[list[Section], list[tuple[Rule, int]]]:
    """The sections to print, and the number of quiet findings by rule, which are not; none if all are shown."""
    counted: Counter[Rule] = Counter()
    shown = []
    for finding in comparison.findings:
        if not everything and finding.rule.shown in (Shown.COUNTED, Shown.PROSE) and finding.is_harmless:
            counted[finding.rule] += 1
        else:
            shown.append(finding)
    return list(_sections(shown)), sorted(counted.items(), key=lambda each: each[0].id)


def _sections(findings: Iterable[DiffFinding]) -> Iterator[Section]:
    """The findings by method; those of several methods and of none come last."""
    groups: dict[tuple[int, str], list[DiffFinding]] = {}
    for finding in findings:
        groups.setdefault(_group(finding), []).append(finding)
    for (rank, title), found in sorted(groups.items(), key=lambda each: each[0]):
        yield Section(
            title=title,
            is_method=rank == _METHOD,
            findings=tuple(sorted((each for each in found if each.rule.shown is not Shown.NAMED), key=_by_gravity)),
            added=tuple(each.place.type or "" for each in found if each.rule.shown is Shown.NAMED),
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
    found: dict[tuple[str, str, WireVerdict], list[Side]] = {}
    for sender, effect in finding.wire.items():
        for sending, reading, verdict in (("old", "new", effect.old_to_new), ("new", "old", effect.new_to_old)):
            if verdict is not WireVerdict.OK:
                found.setdefault((sending, reading, verdict), []).append(sender)
    parts = []
    for (sending, reading, verdict), senders in found.items():
        start, end = ("", "") if len(senders) > 1 else (f" {senders[0].value}", f" {senders[0].peer.value}")
        parts.append(f"{sending}{start} to {reading}{end} {verdict.value}")
    return ", ".join(parts) or ("ok" if finding.wire else "")


def source_words(finding: DiffFinding) -> str:
    """The source verdict in words, with the kinds of code."""
    uses = ", ".join(use.value for use in finding.source.uses)
    return f"{finding.source.verdict.value} ({uses})" if uses else finding.source.verdict.value


def listed(names: Sequence[str], limit: int | None = NAMES, *, shown: Callable[[str], str]) -> str:
    """The names, each as `shown`, or the first ones and the number of the others."""
    return some_of([*map(shown, names)], limit)


def place_words(finding: DiffFinding) -> str:
    """The place of the finding, without the method: that is the heading."""
    parts = [part for part in (finding.place.type, finding.place.member) if part is not None]
    return ".".join(cut(part, NAME) for part in parts)
