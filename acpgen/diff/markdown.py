"""A comparison as Markdown, for a changelog or the description of a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acpgen.diff.findings import Comparison, Finding, Source, Wire
from acpgen.diff.rules import RULES
from acpgen.diff.sections import (
    NAMES,
    Section,
    counted,
    is_quiet,
    listed,
    place_words,
    sections,
    source_words,
    summary,
    wire_words,
)
from acpgen.printable import printable

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
    quiet = [] if everything else [each for each in comparison.findings if is_quiet(each) and each.rule != "type-added"]
    hidden = set(map(id, quiet))
    for section in sections(each for each in comparison.findings if id(each) not in hidden):
        yield from ("", *_section(section, everything=everything))
    if quiet:
        yield from ("", "### Without effect", "")
        for rule, places in counted(quiet):
            yield f"- {len(places)} × {code(rule)}: {escaped(RULES[rule].meaning)}"


def _summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    if not numbers.findings:
        yield "No differences" + (f" but in documentation ({numbers.documentation})." if numbers.documentation else ".")
        return
    wire, source = numbers.wire, numbers.source
    documented = f", and documentation of {numbers.documentation} types and methods" if numbers.documentation else ""
    yield f"{numbers.findings} findings{documented}."
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
    return (
        f" Breaks: {', '.join(map(code, (listed([place]) for place in places[:NAMES])))}{_more(places, NAMES)}."
        if places
        else ""
    )


def _section(section: Section, *, everything: bool) -> Iterator[str]:
    title = code(listed([section.title])) if section.method is not None else escaped(section.title)
    yield from (f"### {title}", "")
    for finding in section.findings:
        yield _finding(finding, shared=section.method is None)
    if section.added:
        limit = None if everything else 12
        yield f"- New types: {', '.join(map(code, section.added[:limit]))}" + _more(section.added, limit)


def _more(names: tuple[str, ...], limit: int | None) -> str:
    return f" and {len(names) - limit} more" if limit is not None and len(names) > limit else ""


def _finding(finding: Finding, *, shared: bool) -> str:
    place = place_words(finding)
    start = f"{code(place)}: " if place else ""
    wire = f"wire {wire_words(finding)}; " if finding.wire else ""
    where = f"; in {', '.join(map(code, finding.methods[:5]))}{_more(finding.methods, 5)}" if shared else ""
    where = where if finding.methods else ""
    verdicts = f"{wire}source {source_words(finding)}{where}"
    return f"- {start}{escaped(finding.message)} ({code(finding.rule)})<br>{_strong(finding, verdicts)}"


def _strong(finding: Finding, verdicts: str) -> str:
    breaks = finding.worst_wire is Wire.BREAKS or finding.source is Source.BREAKS
    return f"**{verdicts}**" if breaks else verdicts


def escaped(text: str) -> str:
    """`text` as Markdown that shows it and does nothing else."""
    return _MENTION.sub(rf"\1{_APART}", _SPECIAL.sub(r"\\\1", printable(text)))


def code(text: str) -> str:
    """`text` as a code span; the fence is longer than any run of backticks in it."""
    clean = printable(text)
    longest = max((len(run) for run in re.findall("`+", clean)), default=0)
    if not longest:
        return f"`{clean}`"
    fence = "`" * (longest + 1)
    return f"{fence} {clean} {fence}"
