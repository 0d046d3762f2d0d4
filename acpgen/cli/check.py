"""`acpgen check`: compare the vendored packages with the result of a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import (
    CAP,
    DiagnosticFormat,
    annotation,
    exit_on_errors,
    print_data,
    print_diagnostics,
    print_json,
)
from acpgen.cli.given import Given
from acpgen.text import printable

if TYPE_CHECKING:
    from acpgen.drift import Checked

FINDINGS = 1
"""The exit code for findings."""


@parameters.takes_outputs
def check_command(
    given: Given,
    names: Annotated[list[str] | None, parameters.outputs_argument("check")] = None,
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
    from acpgen.drift import check
    from acpgen.emit.aliases import check_new_names

    with exit_on_errors(form):
        found = [(output, check(output.options)) for output in given.outputs(names)]
        if given.is_everything(names):
            check_new_names((output.options.renames, checked.names) for output, checked in found)
    results = [checked for _, checked in found]
    if obstacles := [problem for checked in results for problem in checked.plan.problems]:
        print_diagnostics(obstacles, form, notes=False)
    # without --full, a build trusts a manifest that shows no change
    fix = given.build_command(names) + (" --full" if any(checked.is_hidden for checked in results) else "")
    match form:
        case DiagnosticFormat.TEXT:
            print_data("\n".join(_text(results, fix, diff=diff)))
        case DiagnosticFormat.JSON:
            print_json([{"output": output.name, **_as_json(checked, fix, diff=diff)} for output, checked in found])
        case DiagnosticFormat.GITHUB:
            if lines := list(_annotations(results, fix)):
                print_data("\n".join(lines))
    if any(checked.findings for checked in results):
        raise typer.Exit(FINDINGS)


def _text(results: Sequence[Checked], fix: str, *, diff: bool) -> Iterator[str]:
    for checked in results:
        yield f"{checked.folder.as_posix()}: {_summary(checked)}"
        yield from (f"  {printable(reason)}" for reason in checked.reasons)
        named = [finding for finding in checked.findings if finding.path]
        yield from (f"  {finding.flaw.value:<7} {printable(finding.path)}" for finding in named[:CAP])
        if len(named) > CAP:
            yield f"  … and {len(named) - CAP} more"
        if diff:
            yield from map(printable, checked.diff())
    if any(checked.can_be_built for checked in results):
        yield f"fix it with: {fix}"


def _summary(checked: Checked) -> str:
    if not checked.findings:
        return "up to date"
    if checked.findings[0].path == "":
        return "there is no package"
    return ", ".join(f"{count} {flaw.value}" for flaw, count in checked.counts.items())


def _as_json(checked: Checked, fix: str, *, diff: bool) -> dict[str, object]:
    return {
        "folder": checked.folder.as_posix(),
        "findings": [{"flaw": finding.flaw.value, "path": finding.path} for finding in checked.findings],
        "reasons": list(checked.reasons),
        "fix": fix if checked.can_be_built else None,
        **({"diff": "\n".join(checked.diff())} if diff else {}),
    }


def _annotations(results: Sequence[Checked], fix: str) -> Iterator[str]:
    for checked in results:
        for finding in checked.findings:
            what = f"{finding.path} {finding.flaw.meaning}" if finding.path else "there is no package"
            lines = [what, f"fix it with: {fix}"] if finding.can_be_built else [what]
            where = [("file", (checked.folder / finding.path).as_posix()), ("title", f"acpgen: {finding.flaw.value}")]
            yield annotation("error", where, lines)
