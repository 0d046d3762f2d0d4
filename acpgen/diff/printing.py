"""The printed forms of a comparison by name, and what of it makes a command fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from acpgen.diff.data import render_json
from acpgen.diff.findings import Comparison, Finding, Source, Wire
from acpgen.diff.markdown import render_markdown
from acpgen.diff.rules import DOCUMENTATION
from acpgen.diff.text import render_text

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
