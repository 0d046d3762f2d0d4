"""`acpgen build`: compile, and write what changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from acpgen.cli import completion, options
from acpgen.cli.console import DiagnosticFormat, print_data, print_diagnostics
from acpgen.config.settings import Output
from acpgen.diagnostics import AcpgenError, Diagnostic
from acpgen.emit.aliases import check_new_names
from acpgen.output import Kind, Plan
from acpgen.pipeline import Built, Timings, build
from acpgen.text import printable

EXAMPLES = """
**Examples**

- `acpgen build --role agent --out src/my_agent/acp`
- `acpgen build --role client --protocol 2 --extension auth-state --out src/editor/acp`
- `acpgen build --schema vendor/schema.json --extension ./rfd/my-company.json --out acp`
- `acpgen build` builds all that `[tool.acpgen]` in `pyproject.toml` has

An extension file adds definitions, properties, union members and methods, the vendor's own `_name/…` among them.
"""


@options.takes_outputs
def build_command(
    asked: options.Asked,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="The configured outputs to build; all by default.",
            metavar="OUTPUT",
            autocompletion=completion.outputs,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Compile even where the manifest says nothing changed.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Build again whenever a schema, an extension or the configuration changes.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print notes, files and the time of stages.")
    ] = False,
    form: Annotated[
        DiagnosticFormat, typer.Option("--format", help="How diagnostics are printed.")
    ] = DiagnosticFormat.TEXT,
) -> None:
    """Compile a schema, and write the package."""

    def run() -> int:
        return _run(asked, names or [], dry_run=dry_run, full=full, verbose=verbose, form=form)

    if watch:
        from acpgen.cli.watch import run_on_changes

        run_on_changes(run, lambda: asked.watched(names or []))
    elif status := run():
        raise typer.Exit(status)


build_command.__doc__ = f"{build_command.__doc__}\n{EXAMPLES}"


def _run(
    asked: options.Asked,
    names: Sequence[str],
    *,
    dry_run: bool,
    full: bool,
    verbose: bool,
    form: DiagnosticFormat,
) -> int:
    """Build, and tell; the exit code."""
    found: list[Diagnostic] = []
    builds: list[tuple[Output, Built]] = []
    try:
        for output in asked.outputs(names):
            built = build(output.options, full=full)
            found.extend(built.diagnostics)
            builds.append((output, built))
        if asked.is_everything(names):
            check_new_names((output.options.renames, built.names) for output, built in builds)
        plans = [(built.plan, built.timings) for _, built in builds if built.plan is not None and not dry_run]
        _write(plans)
    except AcpgenError as error:
        print_diagnostics((*found, *error.diagnostics), form, notes=verbose)
        return error.exit_code
    print_diagnostics(found, form, notes=verbose)
    for output, built in builds:
        if dry_run:
            _print_plan(built.plan, output if len(builds) > 1 else None)
        _print_result(built, output, verbose=verbose, dry_run=dry_run)
    return 0


def _write(plans: Sequence[tuple[Plan, Timings]]) -> None:
    if not plans:
        return
    from acpgen.output import apply, check_writable

    for plan, _ in plans:  # before the first one is written
        check_writable(plan)
    for plan, timings in plans:
        with timings.stage("write"):
            apply(plan)


def _print_plan(planned: Plan | None, output: Output | None) -> None:
    """Print what would change, with the folder where there are several."""
    lines = [
        f"{change.kind.value} {printable((output.options.out / change.path).as_posix() if output else change.path)}"
        for change in (planned.changes if planned else ())
        if change.kind is not Kind.KEEP
    ]
    if lines:
        print_data("\n".join(lines))


def _print_result(built: Built, output: Output, *, verbose: bool, dry_run: bool) -> None:
    out = output.options.out
    changes = [change for change in built.plan.changes if change.kind is not Kind.KEEP] if built.plan else []
    if verbose:
        for change in changes if not dry_run else ():
            print(f"{change.kind.value} {printable(str(out / change.path))}", file=sys.stderr)
        _print_timings(built.timings)
    if verbose or sys.stderr.isatty():
        what = f"{len(changes)} files {'would change' if dry_run else 'changed'}" if changes else "up to date"
        print(f"{printable(str(out))}: {what}", file=sys.stderr)


def _print_timings(timings: Timings) -> None:
    for stage, seconds in timings.stages.items():
        print(f"{stage:>8} {seconds * 1000:7.0f} ms", file=sys.stderr)
    print(f"{'all':>8} {sum(timings.stages.values()) * 1000:7.0f} ms", file=sys.stderr)
