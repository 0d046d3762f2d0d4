"""A comparison as Markdown, for a changelog or the description of a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acpgen.diff.findings import Comparison, Finding, Source, Wire
from acpgen.diff.rules import RULES
from acpgen.diff.sections import (
    NAME,
    NAMES,
    Section,
    breaks,
    headline,
    place_words,
    shown_and_counted,
    source_words,
    summary,
    wire_words,
)
from acpgen.printable import cut, printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~!#&$])")
_MENTION = re.compile(r"([@#])(?=\w)")
_APART = "\u2060"
"""A word joiner: nobody sees it, and hosts see neither a mention nor a reference to an issue."""


def render_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """The comparison: summary first, then by method; quiet findings are counted, with `everything` shown as well."""
    return "\n".join(_lines(comparison, everything=everything))


def _lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"## {escaped(comparison.old)} → {escaped(comparison.new)}"
    yield ""
    yield from _summary(comparison)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", *_section(section, everything=everything))
    if counted:
        yield from ("", "### Without effect", "")
        for rule, findings in counted:
            yield f"- {len(findings)} × {code(rule)}: {escaped(RULES[rule].meaning)}"


def _summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    text = headline(numbers)
    yield f"{text[0].upper()}{text[1:]}."
    if not numbers.findings:
        return
    wire, source = numbers.wire, numbers.source
    yield ""
    yield (
        f"- **Wire: {numbers.worst_wire.value}** at worst; {wire[Wire.BREAKS]} break, {wire[Wire.LOSES]} lose."
        f"{_breaking(numbers.wire_breaks)}"
    )
    yield (
        f"- **Source: {numbers.worst_source.value}** at worst; "
        f"{source[Source.BREAKS]} break, {source[Source.RISK]} are a risk.{_breaking(numbers.source_breaks)}"
    )
    yield from (f"- {escaped(note)}." for note in comparison.notes)
    yield from ("", "| who sends, who reads | old to new | new to old |", "|---|---|---|")
    for each in numbers.directions:
        yield f"| {each.sender.value} → {each.reader.value} | {each.old_to_new.value} | {each.new_to_old.value} |"


def _breaking(places: tuple[str, ...]) -> str:
    return f" These break: {_codes(places)}." if places else ""


def _section(section: Section, *, everything: bool) -> Iterator[str]:
    yield from (f"### {code(section.title) if section.method is not None else escaped(section.title)}", "")
    for finding in section.findings:
        yield _finding(finding, shared=section.method is None)
    if section.added:
        yield f"- New types: {_codes(section.added, None if everything else NAMES)}"


def _codes(names: tuple[str, ...], limit: int | None = NAMES) -> str:
    """The names as code, or the first of them and how many more there are."""
    more = len(names) - limit if limit is not None else 0
    return ", ".join(map(code, names[:limit])) + (f" and {more} more" if more > 0 else "")


def _finding(finding: Finding, *, shared: bool) -> str:
    place = place_words(finding)
    start = f"{code(place, None)}: " if place else ""
    wire = f"wire {wire_words(finding)}; " if finding.wire else ""
    where = f"; in {_codes(finding.methods, 5)}" if shared and finding.methods else ""
    verdicts = f"{wire}source {source_words(finding)}{where}"
    return f"- {start}{escaped(finding.message)} ({code(finding.rule)})<br>{_strong(finding, verdicts)}"


def _strong(finding: Finding, verdicts: str) -> str:
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
