"""`acpgen check`: compare the vendored packages with the result of a build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from acpgen.check import Checked, Flaw, check, unified_diff
from acpgen.cli import options
from acpgen.cli.console import CAP, DiagnosticFormat, annotation, print_data, print_diagnostics
from acpgen.config.settings import Output
from acpgen.diagnostics import AcpgenError
from acpgen.emit.aliases import check_new_names
from acpgen.text import printable

FINDINGS = 1
"""The exit code for findings."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    output: Output
    checked: Checked


@options.takes_outputs
def check_command(
    asked: options.Asked,
    names: Annotated[list[str] | None, options.outputs_argument("check")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show the changes of a build, line by line.")] = False,
    form: Annotated[DiagnosticFormat, typer.Option("--format", help="The format of findings.")] = DiagnosticFormat.TEXT,
) -> None:
    """Compare packages with the result of a build. Exit code 1: a file is stale, edited, missing or extra.

    The packages are compiled: nothing is written, and nothing in `acpgen.lock` is trusted. Files that no build has
    written are findings, too, but caches and hidden files are not.

    **Examples**

    - `acpgen check`
    - `acpgen check --diff`
    - `acpgen check --role agent --out src/my_agent/acp --format github`
    """
    try:
        verdicts = [_Verdict(output, check(output.options)) for output in asked.outputs(names)]
        if asked.is_everything(names):
            check_new_names((verdict.output.options.renames, verdict.checked.names) for verdict in verdicts)
    except AcpgenError as error:
        print_diagnostics(error.diagnostics, form, notes=False)
        raise typer.Exit(error.exit_code) from None
    if obstacles := [found for verdict in verdicts for found in verdict.checked.plan.problems]:
        print_diagnostics(obstacles, form, notes=False)
    # without --full, a build trusts a manifest that shows no change
    fix = asked.build_command(names) + (" --full" if any(verdict.checked.is_hidden for verdict in verdicts) else "")
    match form:
        case DiagnosticFormat.TEXT:
            print_data("\n".join(_text(verdicts, fix, diff=diff)))
        case DiagnosticFormat.JSON:
            print_data(json.dumps([_as_json(each, fix, diff=diff) for each in verdicts], indent=2))
        case DiagnosticFormat.GITHUB:
            if lines := list(_annotations(verdicts, fix)):
                print_data("\n".join(lines))
    if any(verdict.checked.findings for verdict in verdicts):
        raise typer.Exit(FINDINGS)


def _text(verdicts: Sequence[_Verdict], fix: str, *, diff: bool) -> Iterator[str]:
    for verdict in verdicts:
        checked = verdict.checked
        yield f"{checked.folder.as_posix()}: {_summary(checked)}"
        yield from (f"  {printable(reason)}" for reason in checked.reasons)
        named = [finding for finding in checked.findings if finding.path]
        yield from (f"  {finding.flaw.value:<7} {printable(finding.path)}" for finding in named[:CAP])
        if len(named) > CAP:
            yield f"  … and {len(named) - CAP} more"
        if diff:
            yield from (printable(line) for line in unified_diff(checked))
    if any(verdict.checked.can_be_built for verdict in verdicts):
        yield f"fix it with: {fix}"


def _summary(checked: Checked) -> str:
    if not checked.findings:
        return "up to date"
    if checked.findings[0].path == "":
        return "there is no package"
    counts = {flaw: sum(finding.flaw is flaw for finding in checked.findings) for flaw in Flaw}
    return ", ".join(f"{count} {flaw.value}" for flaw, count in counts.items() if count)


def _as_json(verdict: _Verdict, fix: str, *, diff: bool) -> dict[str, object]:
    checked = verdict.checked
    return {
        "output": verdict.output.name,
        "folder": checked.folder.as_posix(),
        "findings": [{"flaw": finding.flaw.value, "path": finding.path} for finding in checked.findings],
        "reasons": list(checked.reasons),
        "fix": fix if checked.can_be_built else None,
        **({"diff": "\n".join(unified_diff(checked))} if diff else {}),
    }


def _annotations(verdicts: Sequence[_Verdict], fix: str) -> Iterator[str]:
    for verdict in verdicts:
        folder = verdict.checked.folder
        for finding in verdict.checked.findings:
            what = "there is no package" if not finding.path else f"{finding.path} {finding.flaw.meaning}"
            hint = "" if finding.flaw is Flaw.EXTRA else f"fix it with: {fix}"
            where = [("file", (folder / finding.path).as_posix()), ("title", f"acpgen: {finding.flaw.value}")]
            yield annotation("error", where, [what, hint] if hint else [what])
