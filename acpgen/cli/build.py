"""`acpgen build`: compile, and write the changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DiagnosticFormat, print_data, print_diagnostics
from acpgen.cli.given import Given
from acpgen.diagnostics import AcpgenError, Diagnostic, Report, Severity
from acpgen.text import printable

if TYPE_CHECKING:
    from acpgen.config.settings import Output
    from acpgen.output import Change, OutputPlan
    from acpgen.pipeline import Built

_TOLD = {"extension-partial", "merge-resolved", "output-ignored"}
"""Notes that are printed without --verbose: about what the user asked for, or has to do."""

EXAMPLES = """
**Examples**

- `acpgen build --role agent --out src/my_agent/acp`
- `acpgen build --role client --protocol 2 --extension auth-state --out src/editor/acp`
- `acpgen build --schema vendor/schema.json --extension ./rfd/my-company.json --out acp`
- `acpgen build` builds all outputs of `[tool.acpgen]` in `pyproject.toml`

An extension file adds definitions, properties, union members and methods, such as a vendor's own `_name/…`.
"""


@parameters.takes_outputs
def build_command(
    given: Given,
    names: Annotated[list[str] | None, parameters.outputs_argument("build")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes, and write nothing.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Compile even if the manifest shows no change.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print notes and files.")] = False,
    form: parameters.DiagnosticForm = DiagnosticFormat.TEXT,
) -> None:
    """Compile a schema, and write the package."""
    if status := _run(given, names or [], dry_run=dry_run, full=full, verbose=verbose, form=form):
        raise typer.Exit(status)


build_command.__doc__ = f"{build_command.__doc__}\n{EXAMPLES}"


def _run(
    given: Given,
    names: Sequence[str],
    *,
    dry_run: bool,
    full: bool,
    verbose: bool,
    form: DiagnosticFormat,
) -> int:
    """Build, and print the outcome. Returns the exit code."""
    from acpgen.emit.aliases import check_new_names
    from acpgen.pipeline import build

    report = Report()
    builds: list[tuple[Output, Built]] = []
    try:
        for output in given.outputs(names):
            built = build(output.options, full=full)
            lost: list[Diagnostic] = []
            if built.plan is not None:
                from acpgen.handlers import lost_handlers

                built.plan.raise_problems()
                lost = lost_handlers(built, output.options)
            report.add(*built.diagnostics, *lost)
            builds.append((output, built))
        if given.is_everything(names):
            check_new_names((output.options.renames, built.names) for output, built in builds)
        if not dry_run:
            _write([built.plan for _, built in builds if built.plan is not None])
    except AcpgenError as error:
        print_diagnostics((*report.found, *error.diagnostics), form, notes=verbose)
        return error.exit_code
    if not dry_run:
        report.add(*_ignored(builds))
    told = [found for found in report.found if found.severity is not Severity.NOTE or found.code in _TOLD or verbose]
    print_diagnostics(told, form)
    for output, built in builds:
        if dry_run:
            _print_plan(built, output if len(builds) > 1 else None)
        if form is DiagnosticFormat.TEXT:
            _print_result(built, output, verbose=verbose, dry_run=dry_run)
    return 0


def _ignored(builds: Sequence[tuple[Output, Built]]) -> Iterator[Diagnostic]:
    """A note for each written package that git ignores."""
    from acpgen.sources.git import is_ignored

    for output, built in builds:
        out = output.options.out
        if _changes(built) and is_ignored(out / "__init__.py"):
            message = f"git ignores {out.as_posix()}: the package is in no commit"
            hint = "remove it from .gitignore, or run `acpgen build` in each checkout"
            yield Diagnostic(code="output-ignored", severity=Severity.NOTE, message=message, hint=hint)


def _write(plans: Sequence[OutputPlan]) -> None:
    if plans:
        from acpgen.output import apply, check_writable

        for plan in plans:  # all of them, before the first one is written
            check_writable(plan.folder, [change.path for change in plan.different])
        for plan in plans:
            apply(plan)


def _changes(built: Built) -> Sequence[Change]:
    return built.plan.different if built.plan is not None else ()


def _print_plan(built: Built, output: Output | None) -> None:
    """Print the changes; `output` adds its folder, for several outputs."""
    paths = [(each, (output.options.out / each.path).as_posix() if output else each.path) for each in _changes(built)]
    if paths:
        print_data("\n".join(f"{change.kind.value} {printable(path)}" for change, path in paths))


def _print_result(built: Built, output: Output, *, verbose: bool, dry_run: bool) -> None:
    out, changes = output.options.out, _changes(built)
    if verbose:
        for change in changes if not dry_run else ():
            print(f"{change.kind.value} {printable(str(out / change.path))}", file=sys.stderr)
    if verbose or sys.stderr.isatty() or (changes and not dry_run):
        print(f"{printable(str(out))}: {_outcome(built, output, dry_run=dry_run)}", file=sys.stderr)


def _outcome(built: Built, output: Output, *, dry_run: bool) -> str:
    """The work of a build, and the next step of the user, in one line."""
    if not (changes := _changes(built)):
        return "up to date"
    files = f"{len(changes)} file{'s' if len(changes) > 1 else ''}"
    if dry_run:
        return f"{files} would change"
    if built.old is not None:
        return f"{files} changed; next, run your tests, and commit the package"
    if output.flavour:
        return f"{files} written; next, import the types from the package, and commit it"
    classes = " and ".join(role.record.base for role in output.options.roles)
    return f"{files} written; next, import {classes} from the package, and commit it"
