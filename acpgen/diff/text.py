"""A comparison as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff.findings import Comparison, Finding, Source, Wire
from acpgen.diff.rules import RULES
from acpgen.diff.sections import (
    Section,
    Summary,
    headline,
    listed,
    place_words,
    shown_and_counted,
    source_words,
    summary,
    wire_words,
)
from acpgen.printable import printable


def render_text(comparison: Comparison, *, everything: bool = False) -> str:
    """The comparison: summary first, then by method; quiet findings are counted, with `everything` shown as well."""
    return "\n".join(map(printable, _lines(comparison, everything=everything)))


def _lines(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"old: {comparison.old}"
    yield f"new: {comparison.new}"
    yield ""
    yield from _summary(summary(comparison))
    yield from (f"note: {note}" for note in comparison.notes)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", *_section(section, everything=everything))
    if counted:
        yield from ("", "Without effect (--all shows each in its place)")
        for rule, findings in counted:
            yield f"  {len(findings)} × {rule}: {RULES[rule].meaning}"


def _summary(numbers: Summary) -> Iterator[str]:
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


def _section(section: Section, *, everything: bool) -> Iterator[str]:
    yield listed([section.title])
    for finding in section.findings:
        yield from _finding(finding, shared=section.method is None)
    if section.added:
        yield f"  new types: {listed(section.added, None if everything else 12)}"


def _finding(finding: Finding, *, shared: bool) -> Iterator[str]:
    place = place_words(finding)
    yield f"  {place}{': ' if place else ''}{finding.message} [{finding.rule}]"
    verdicts = [f"wire: {words}"] if (words := wire_words(finding)) else []
    verdicts.append(f"source: {source_words(finding)}")
    yield f"      {'; '.join(verdicts)}" + (f"; in {listed(finding.methods, 5)}" if shared and finding.methods else "")
