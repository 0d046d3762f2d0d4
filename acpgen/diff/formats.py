"""Print a comparison as text, Markdown or JSON, and explain a rule."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from acpgen.diagnostics import input_error
from acpgen.diff.compare import RULES
from acpgen.diff.findings import Comparison, DiffFinding, Effect, SourceVerdict, WireVerdict
from acpgen.diff.report import (
    NAME,
    NAMES,
    Section,
    headline,
    listed,
    place_words,
    shown_and_counted,
    source_words,
    summary,
    wire_words,
)
from acpgen.roles import Side
from acpgen.text import cut, did_you_mean, printable


def render(comparisons: Mapping[int, Comparison], form: str, *, everything: bool = False) -> str:
    """Comparisons by protocol in the form "text", "markdown" or "json"; several get headings, or keys.

    Text and Markdown have the summary, then the findings by method; they only count quiet findings, unless `everything`
    is set.
    """
    match form:
        case "json":
            found = [{"protocol": number, **_json(each)} for number, each in comparisons.items()]
            return json.dumps({"protocols": found} if len(found) > 1 else _json(*comparisons.values()), indent=2)
        case "markdown":
            printed = {n: "\n".join(_markdown(each, everything=everything)) for n, each in comparisons.items()}
            return _with_headings(printed, "# Protocol {}")
        case _:
            lines = {n: map(printable, _text(each, everything=everything)) for n, each in comparisons.items()}
            return _with_headings({n: "\n".join(each) for n, each in lines.items()}, "=== Protocol {} ===")


def _with_headings(printed: Mapping[int, str], heading: str) -> str:
    """The printed comparisons by protocol, each below a heading if there are several."""
    if len(printed) == 1:
        return "".join(printed.values())
    return "\n\n".join(f"{heading.format(number)}\n\n{text}" for number, text in printed.items())


# --- Text -----------------------------------------------------------------------------------------------------------

_names = partial(listed, shown=cut)


def _text(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield from (f"old: {comparison.old}", f"new: {comparison.new}", "")
    yield from _text_summary(comparison)
    yield from (f"note: {note}" for note in comparison.notes)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", cut(section.title, NAME))
        for finding in section.findings:
            yield from _text_finding(finding, section)
        if section.added:
            yield f"  new types: {_names(section.added, None if everything else NAMES)}"
    if counted:
        yield from ("", "No action needed (--all shows each in its place)")
        yield from (f"  {count} × {rule.id}: {rule.meaning}" for rule, count in counted)


def _text_summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    yield headline(numbers)
    for kind, worst, counts, places in numbers.verdicts() if numbers.findings else ():
        yield f"  {kind}: worst is {worst}; {counts}"
        for sender, effect in numbers.directions.items() if kind == "wire" else ():
            yield (
                f"    {sender.value} sends, {sender.peer.value} reads: "
                f"old to new {effect.old_to_new.value}, new to old {effect.new_to_old.value}"
            )
        if places:
            yield f"    breaks: {_names(places)}"


def _text_finding(finding: DiffFinding, section: Section) -> Iterator[str]:
    place, wire = place_words(finding), wire_words(finding)
    yield f"  {place}{': ' if place else ''}{finding.message} [{finding.rule.id}]"
    where = "" if section.is_method or not finding.methods else f"; in {_names(finding.methods, 5)}"
    yield f"      {f'wire: {wire}; ' if wire else ''}source: {source_words(finding)}{where}"


# --- Markdown -------------------------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~!#&$])")
_MENTION = re.compile(r"([@#])(?=\w)")
_APART = "\u2060"
"""A word joiner: invisible, and it keeps hosts from linking a mention or a reference."""


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


_codes = partial(listed, shown=code)


def _markdown(comparison: Comparison, *, everything: bool) -> Iterator[str]:
    yield from (f"## {escaped(comparison.old)} → {escaped(comparison.new)}", "")
    yield from _markdown_summary(comparison)
    shown, counted = shown_and_counted(comparison, everything=everything)
    for section in shown:
        yield from ("", f"### {code(section.title) if section.is_method else escaped(section.title)}", "")
        yield from (_markdown_finding(finding, section) for finding in section.findings)
        if section.added:
            yield f"- New types: {_codes(section.added, None if everything else NAMES)}"
    if counted:
        yield from ("", "### No action needed", "")
        yield from (f"- {count} × {code(rule.id)}: {escaped(rule.meaning)}" for rule, count in counted)


def _markdown_summary(comparison: Comparison) -> Iterator[str]:
    numbers = summary(comparison)
    text = headline(numbers)
    yield f"{text[0].upper()}{text[1:]}."
    if not numbers.findings:
        return
    yield ""
    for kind, worst, counts, places in numbers.verdicts():
        breaking = f" These break: {_codes(places)}." if places else ""
        yield f"- **{kind.capitalize()}: {worst}** at worst; {counts}.{breaking}"
    yield from (f"- {escaped(note)}." for note in comparison.notes)
    yield from ("", "| sender → reader | old to new | new to old |", "|---|---|---|")
    for sender, effect in numbers.directions.items():
        yield f"| {sender.value} → {sender.peer.value} | {effect.old_to_new.value} | {effect.new_to_old.value} |"


def _markdown_finding(finding: DiffFinding, section: Section) -> str:
    place, wire = place_words(finding), wire_words(finding)
    where = "" if section.is_method or not finding.methods else f"; in {_codes(finding.methods, 5)}"
    verdicts = f"{f'wire {wire}; ' if wire else ''}source {source_words(finding)}{where}"
    strong = "**" if finding.breaks else ""
    start = f"{code(place, None)}: " if place else ""
    return f"- {start}{escaped(finding.message)} ({code(finding.rule.id)})<br>{strong}{verdicts}{strong}"


# --- JSON -----------------------------------------------------------------------------------------------------------

FORMAT = 1
"""The version of the JSON form; it grows when a key is renamed or removed."""


def _json(comparison: Comparison) -> Mapping[str, object]:
    numbers = summary(comparison)
    wire, source = numbers.wire, numbers.source
    return {
        "format": FORMAT,
        "old": comparison.old,
        "new": comparison.new,
        "notes": comparison.notes,
        "summary": {
            "findings": len(numbers.findings),
            "documentation": numbers.documentation,
            "wire": {"worst": WireVerdict.worst(wire).value} | {each.value: wire[each] for each in WireVerdict},
            "source": {"worst": SourceVerdict.worst(source).value}
            | {each.value: source[each] for each in SourceVerdict},
            "directions": _json_directions(numbers.directions),
            "rules": dict(sorted(Counter(each.rule.id for each in comparison.findings).items())),
        },
        "findings": [_json_finding(each) for each in comparison.findings],
    }


def _json_directions(wire: Mapping[Side, Effect]) -> list[Mapping[str, str]]:
    return [
        {
            "sender": sender.value,
            "reader": sender.peer.value,
            "old_to_new": effect.old_to_new.value,
            "new_to_old": effect.new_to_old.value,
        }
        for sender, effect in wire.items()
    ]


def _json_finding(finding: DiffFinding) -> Mapping[str, object]:
    return {
        "rule": finding.rule.id,
        "method": finding.place.method,
        "type": finding.place.type,
        "member": finding.place.member,
        "was": finding.place.was,
        "message": finding.message,
        "wire": _json_directions(finding.wire),
        "source": {"verdict": finding.source.verdict.value, "uses": [use.value for use in finding.source.uses]},
        "methods": finding.methods,
    }


def failures(comparisons: Iterable[Comparison], wanted: Iterable[str]) -> list[str]:
    """The reasons to fail, if findings of the kinds `wanted` ("wire", "source", "any") are failures."""
    numbers = [summary(each) for each in comparisons]
    counts = {
        "wire": (sum(each.wire[WireVerdict.BREAKS] for each in numbers), "break messages"),
        "source": (sum(each.source[SourceVerdict.BREAKS] for each in numbers), "break code"),
        "any": (sum(len(each.findings) for each in numbers), "in all"),
    }
    return [
        f"{count} {'finding' if count == 1 else 'findings'} {effect} (--fail-on {name})"
        for name, (count, effect) in ((name, counts[name]) for name in dict.fromkeys(wanted))
        if count
    ]


def explain(name: str) -> str:
    """The meaning of the rule `name` and the reasons for its verdicts. Raises `InputError` if there is none."""
    rule = RULES.get(name)
    if rule is None:
        hint = did_you_mean(name, RULES) or f"the rules are {', '.join(RULES)}"
        raise input_error("unknown-rule", f"no rule has the id {cut(name)!r}", hint=hint)
    lines = [f"{rule.id}: {rule.meaning}", f"  wire: {rule.wire}", f"  source: {rule.source}"]
    if rule.reverse != rule.id:
        lines.append(f"  with OLD and NEW exchanged: {rule.reverse}")
    return "\n".join(lines)
