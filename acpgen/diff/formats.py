"""A comparison as text, as Markdown and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from acpgen.diff.findings import Comparison, Direction, Finding, Source, Wire
from acpgen.diff.report import (
    NAME,
    NAMES,
    Section,
    Summary,
    breaks,
    headline,
    listed,
    place_words,
    shown_and_counted,
    source_words,
    summary,
    wire_words,
)
from acpgen.diff.rules import DOCUMENTATION, RULES
from acpgen.text import cut, printable


def render_text(comparison: Comparison, *, everything: bool = False) -> str:
    """The comparison: summary first, then by method; quiet findings are counted, with `everything` shown as well."""
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
        yield from ("", "Without effect (--all shows each in its place)")
        for rule, findings in counted:
            yield f"  {len(findings)} × {rule}: {RULES[rule].meaning}"


def _text_summary(numbers: Summary) -> Iterator[str]:
    yield headline(numbers)
    if not numbers.findings:
        return
    wire, source = numbers.wire, numbers.source
    yield f"  wire: worst is {numbers.worst_wire.value}; {wire[Wire.BREAKS]} break, {wire[Wire.LOSES]} lose"
    for direction in numbers.directions:
        yield (
            f"    {direction.sender.value} sends, {direction.reader.value} reads: "
            f"old to new {direction.old_to_new.value}, new to old {direction.new_to_old.value}"
        )
    if numbers.wire_breaks:
        yield f"    breaks: {listed(numbers.wire_breaks)}"
    yield f"  source: worst is {numbers.worst_source.value}; {source[Source.BREAKS]} break, {source[Source.RISK]} risk"
    if numbers.source_breaks:
        yield f"    breaks: {listed(numbers.source_breaks)}"


def _text_section(section: Section, *, everything: bool) -> Iterator[str]:
    yield listed([section.title])
    for finding in section.findings:
        yield from _text_finding(finding, shared=section.method is None)
    if section.added:
        yield f"  new types: {listed(section.added, None if everything else 12)}"


def _text_finding(finding: Finding, *, shared: bool) -> Iterator[str]:
    place = place_words(finding)
    yield f"  {place}{': ' if place else ''}{finding.message} [{finding.rule}]"
    verdicts = [f"wire: {words}"] if (words := wire_words(finding)) else []
    verdicts.append(f"source: {source_words(finding)}")
    yield f"      {'; '.join(verdicts)}" + (f"; in {listed(finding.methods, 5)}" if shared and finding.methods else "")


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~!#&$])")
_MENTION = re.compile(r"([@#])(?=\w)")
_APART = "\u2060"
"""A word joiner: nobody sees it, and hosts see neither a mention nor a reference to an issue."""


def render_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """The comparison: summary first, then by method; quiet findings are counted, with `everything` shown as well."""
    return "\n".join(_markdown_lines(comparison, everything=everything))


def _markdown_lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"## {escaped(comparison.old)} → {escaped(comparison.new)}"
    yield ""
    yield from _markdown_summary(comparison)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", *_markdown_section(section, everything=everything))
    if counted:
        yield from ("", "### Without effect", "")
        for rule, findings in counted:
            yield f"- {len(findings)} × {code(rule)}: {escaped(RULES[rule].meaning)}"


def _markdown_summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    text = headline(numbers)
    yield f"{text[0].upper()}{text[1:]}."
    if not numbers.findings:
        return
    wire, source = numbers.wire, numbers.source
    yield ""
    yield (
        f"- **Wire: {numbers.worst_wire.value}** at worst; {wire[Wire.BREAKS]} break, {wire[Wire.LOSES]} lose."
        f"{_markdown_breaking(numbers.wire_breaks)}"
    )
    yield (
        f"- **Source: {numbers.worst_source.value}** at worst; "
        f"{source[Source.BREAKS]} break, {source[Source.RISK]} are a risk.{_markdown_breaking(numbers.source_breaks)}"
    )
    yield from (f"- {escaped(note)}." for note in comparison.notes)
    yield from ("", "| who sends, who reads | old to new | new to old |", "|---|---|---|")
    for each in numbers.directions:
        yield f"| {each.sender.value} → {each.reader.value} | {each.old_to_new.value} | {each.new_to_old.value} |"


def _markdown_breaking(places: tuple[str, ...]) -> str:
    return f" These break: {_markdown_codes(places)}." if places else ""


def _markdown_section(section: Section, *, everything: bool) -> Iterator[str]:
    yield from (f"### {code(section.title) if section.method is not None else escaped(section.title)}", "")
    for finding in section.findings:
        yield _markdown_finding(finding, shared=section.method is None)
    if section.added:
        yield f"- New types: {_markdown_codes(section.added, None if everything else NAMES)}"


def _markdown_codes(names: tuple[str, ...], limit: int | None = NAMES) -> str:
    """The names as code, or the first of them and how many more there are."""
    more = len(names) - limit if limit is not None else 0
    return ", ".join(map(code, names[:limit])) + (f" and {more} more" if more > 0 else "")


def _markdown_finding(finding: Finding, *, shared: bool) -> str:
    place = place_words(finding)
    start = f"{code(place, None)}: " if place else ""
    wire = f"wire {wire_words(finding)}; " if finding.wire else ""
    where = f"; in {_markdown_codes(finding.methods, 5)}" if shared and finding.methods else ""
    verdicts = f"{wire}source {source_words(finding)}{where}"
    return f"- {start}{escaped(finding.message)} ({code(finding.rule)})<br>{_markdown_strong(finding, verdicts)}"


def _markdown_strong(finding: Finding, verdicts: str) -> str:
    return f"**{verdicts}**" if breaks(finding) else verdicts


def escaped(text: str) -> str:
    """`text` as Markdown that shows it and does nothing else."""
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
"""The version of the form, which grows when something in it is renamed or removed."""


def render_json(comparison: Comparison) -> str:
    """The comparison with every finding."""
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


def _json_summary(numbers: Summary) -> dict[str, object]:
    return {
        "findings": numbers.findings,
        "documentation": numbers.documentation,
        "wire": {"worst": numbers.worst_wire.value} | {each.value: numbers.wire[each] for each in Wire},
        "source": {"worst": numbers.worst_source.value} | {each.value: numbers.source[each] for each in Source},
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


def _json_finding(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "method": finding.place.method,
        "type": finding.place.type,
        "member": finding.place.member,
        "was": finding.place.was,
        "message": finding.message,
        "wire": [_json_direction(each) for each in finding.wire],
        "source": {"verdict": finding.source.value, "uses": [use.value for use in finding.uses]},
        "methods": list(finding.methods),
    }


_FAILURES: Mapping[str, tuple[Callable[[Finding], bool], str]] = {
    "wire": (lambda finding: finding.worst_wire is Wire.BREAKS, "break messages"),
    "source": (lambda finding: finding.source is Source.BREAKS, "break code"),
    "any": (lambda finding: finding.rule != DOCUMENTATION, "in all"),
}


def render(comparison: Comparison, form: str, *, everything: bool = False) -> str:
    """The comparison in the form "text", "markdown" or "json", which has everything always."""
    if form == "json":
        return render_json(comparison)
    printed = {"text": render_text, "markdown": render_markdown}[form]
    return printed(comparison, everything=everything)


def failures(comparison: Comparison, wanted: Iterable[str]) -> list[str]:
    """Why the comparison fails, if findings that are "wire", "source" or "any" make it fail; nothing if it does not."""
    reasons = []
    for name in dict.fromkeys(wanted):
        counts, what = _FAILURES[name]
        if count := sum(map(counts, comparison.findings)):
            reasons.append(f"{count} {'finding' if count == 1 else 'findings'} {what} (--fail-on {name})")
    return reasons
