"""Print a comparison as text, Markdown or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from acpgen.diff.findings import Comparison, DiffFinding, Direction, SourceVerdict, Wire
from acpgen.diff.report import (
    NAME,
    NAMES,
    DiffSummary,
    Section,
    breaks,
    headline,
    listed,
    place_words,
    shown_and_counted,
    source_words,
    summary,
    wire_words,
)
from acpgen.diff.rules import DOCUMENTATION
from acpgen.text import cut, printable


def render_text(comparison: Comparison, *, everything: bool = False) -> str:
    """The summary, then the findings by method; quiet findings are only counted, unless `everything` is set."""
    return "\n".join(map(printable, _text_lines(comparison, everything=everything)))


def _text_lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"old: {comparison.old}"
    yield f"new: {comparison.new}"
    yield ""
    yield from _text_summary(summary(comparison))
    yield from (f"note: {note}" for note in comparison.notes)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", *_text_section(section, everything=everything))
    if counted:
        yield from ("", "No action needed (--all shows each in its place)")
        for rule, findings in counted:
            yield f"  {len(findings)} × {rule.id}: {rule.meaning}"


def _text_summary(numbers: DiffSummary) -> Iterator[str]:
    yield headline(numbers)
    if not numbers.findings:
        return
    yield f"  wire: worst is {numbers.worst_wire.value}; {_wire_counts(numbers)}"
    for direction in numbers.directions:
        yield (
            f"    {direction.sender.value} sends, {direction.reader.value} reads: "
            f"old to new {direction.old_to_new.value}, new to old {direction.new_to_old.value}"
        )
    if numbers.wire_breaks:
        yield f"    breaks: {listed(numbers.wire_breaks)}"
    yield f"  source: worst is {numbers.worst_source.value}; {_source_counts(numbers)}"
    if numbers.source_breaks:
        yield f"    breaks: {listed(numbers.source_breaks)}"


def _wire_counts(numbers: DiffSummary) -> str:
    return f"{numbers.wire[Wire.BREAKS]} break, {numbers.wire[Wire.LOSES]} lose"


def _source_counts(numbers: DiffSummary) -> str:
    return f"{numbers.source[SourceVerdict.BREAKS]} break, {numbers.source[SourceVerdict.RISK]} are a risk"


def _text_section(section: Section, *, everything: bool) -> Iterator[str]:
    yield listed([section.title])
    for finding in section.findings:
        yield from _text_finding(finding, shared=section.method is None)
    if section.added:
        yield f"  new types: {listed(section.added, None if everything else 12)}"


def _text_finding(finding: DiffFinding, *, shared: bool) -> Iterator[str]:
    place = place_words(finding)
    yield f"  {place}{': ' if place else ''}{finding.message} [{finding.rule.id}]"
    verdicts = [f"wire: {words}"] if (words := wire_words(finding)) else []
    verdicts.append(f"source: {source_words(finding)}")
    yield f"      {'; '.join(verdicts)}" + (f"; in {listed(finding.methods, 5)}" if shared and finding.methods else "")


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~!#&$])")
_MENTION = re.compile(r"([@#])(?=\w)")
_APART = "\u2060"
"""A word joiner: invisible, and it keeps hosts from linking a mention or a reference."""


def render_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """The same as Markdown."""
    return "\n".join(_markdown_lines(comparison, everything=everything))


def _markdown_lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"## {escaped(comparison.old)} → {escaped(comparison.new)}"
    yield ""
    yield from _markdown_summary(comparison)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", *_markdown_section(section, everything=everything))
    if counted:
        yield from ("", "### No action needed", "")
        for rule, findings in counted:
            yield f"- {len(findings)} × {code(rule.id)}: {escaped(rule.meaning)}"


def _markdown_summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    text = headline(numbers)
    yield f"{text[0].upper()}{text[1:]}."
    if not numbers.findings:
        return
    yield ""
    for kind, worst, counts, places in (
        ("Wire", numbers.worst_wire.value, _wire_counts(numbers), numbers.wire_breaks),
        ("Source", numbers.worst_source.value, _source_counts(numbers), numbers.source_breaks),
    ):
        breaking = f" These break: {_markdown_codes(places)}." if places else ""
        yield f"- **{kind}: {worst}** at worst; {counts}.{breaking}"
    yield from (f"- {escaped(note)}." for note in comparison.notes)
    yield from ("", "| sender → reader | old to new | new to old |", "|---|---|---|")
    for each in numbers.directions:
        yield f"| {each.sender.value} → {each.reader.value} | {each.old_to_new.value} | {each.new_to_old.value} |"


def _markdown_section(section: Section, *, everything: bool) -> Iterator[str]:
    yield from (f"### {code(section.title) if section.method is not None else escaped(section.title)}", "")
    for finding in section.findings:
        yield _markdown_finding(finding, shared=section.method is None)
    if section.added:
        yield f"- New types: {_markdown_codes(section.added, None if everything else NAMES)}"


def _markdown_codes(names: tuple[str, ...], limit: int | None = NAMES) -> str:
    """The names as code, or the first ones and the number of the others."""
    more = len(names) - limit if limit is not None else 0
    return ", ".join(map(code, names[:limit])) + (f" and {more} more" if more > 0 else "")


def _markdown_finding(finding: DiffFinding, *, shared: bool) -> str:
    place = place_words(finding)
    start = f"{code(place, None)}: " if place else ""
    wire = f"wire {wire_words(finding)}; " if finding.wire else ""
    where = f"; in {_markdown_codes(finding.methods, 5)}" if shared and finding.methods else ""
    verdicts = f"{wire}source {source_words(finding)}{where}"
    return f"- {start}{escaped(finding.message)} ({code(finding.rule.id)})<br>{_markdown_strong(finding, verdicts)}"


def _markdown_strong(finding: DiffFinding, verdicts: str) -> str:
    return f"**{verdicts}**" if breaks(finding) else verdicts


def escaped(text: str) -> str:
    """`text` as Markdown without markup, links or mentions."""
    return _MENTION.sub(rf"\1{_APART}", _SPECIAL.sub(r"\\\1", printable(text)))


def code(text: str, length: int | None = NAME) -> str:
    """`text` as a code span, cut after `length`; the fence is longer than any run of backticks in it."""
    clean = printable(text if length is None else cut(text, length))
    longest = max((len(run) for run in re.findall("`+", clean)), default=0)
    if not longest:
        return f"`{clean}`"
    fence = "`" * (longest + 1)
    return f"{fence} {clean} {fence}"


FORMAT = 1
"""The version of the JSON form; it grows when a key is renamed or removed."""


def render_json(comparison: Comparison) -> str:
    """The comparison with all findings."""
    return json.dumps(
        {
            "format": FORMAT,
            "old": comparison.old,
            "new": comparison.new,
            "notes": list(comparison.notes),
            "summary": _json_summary(summary(comparison)),
            "findings": [_json_finding(each) for each in comparison.findings],
        },
        indent=2,
    )


def _json_summary(numbers: DiffSummary) -> dict[str, object]:
    return {
        "findings": numbers.findings,
        "documentation": numbers.documentation,
        "wire": {"worst": numbers.worst_wire.value} | {each.value: numbers.wire[each] for each in Wire},
        "source": {"worst": numbers.worst_source.value} | {each.value: numbers.source[each] for each in SourceVerdict},
        "directions": [_json_direction(each) for each in numbers.directions],
        "rules": dict(sorted(numbers.rules.items())),
    }


def _json_direction(direction: Direction) -> dict[str, object]:
    return {
        "sender": direction.sender.value,
        "reader": direction.reader.value,
        "old_to_new": direction.old_to_new.value,
        "new_to_old": direction.new_to_old.value,
    }


def _json_finding(finding: DiffFinding) -> dict[str, object]:
    return {
        "rule": finding.rule.id,
        "method": finding.place.method,
        "type": finding.place.type,
        "member": finding.place.member,
        "was": finding.place.was,
        "message": finding.message,
        "wire": [_json_direction(each) for each in finding.wire],
        "source": {"verdict": finding.source.value, "uses": [use.value for use in finding.uses]},
        "methods": list(finding.methods),
    }


def render(comparison: Comparison, form: str, *, everything: bool = False) -> str:
    """The comparison in the form "text", "markdown" or "json"; JSON always has all findings."""
    match form:
        case "json":
            return render_json(comparison)
        case "markdown":
            return render_markdown(comparison, everything=everything)
        case _:
            return render_text(comparison, everything=everything)


def failures(comparison: Comparison, wanted: Iterable[str]) -> list[str]:
    """The reasons to fail, if findings of the kinds `wanted` ("wire", "source", "any") are failures."""
    found = comparison.findings
    counts = {
        "wire": (sum(each.worst_wire is Wire.BREAKS for each in found), "break messages"),
        "source": (sum(each.source is SourceVerdict.BREAKS for each in found), "break code"),
        "any": (sum(each.rule is not DOCUMENTATION for each in found), "in all"),
    }
    return [
        f"{count} {'finding' if count == 1 else 'findings'} {effect} (--fail-on {name})"
        for name, (count, effect) in ((name, counts[name]) for name in dict.fromkeys(wanted))
        if count
    ]
