"""`acpgen build`: compile, and write what changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from acpgen.build import Built, Timings, build
from acpgen.cli import options
from acpgen.cli.printing import DiagnosticFormat, print_diagnostics, printable
from acpgen.config import DEFAULT_PROTOCOL, BuildOptions
from acpgen.diagnostics import AcpgenError, Diagnostic
from acpgen.ir.context import Options
from acpgen.output import Kind, Plan, apply

EXAMPLES = """
**Examples**

- `acpgen build --role agent --out src/my_agent/acp`
- `acpgen build --role client --protocol 2 --extension auth-state --out src/editor/acp`
- `acpgen build --schema vendor/schema.json --extension ./rfd/my-company.json --out acp`

An extension file adds definitions, properties, union members and methods, the vendor's own `_name/…` among them.
"""


def build_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder of the package; made where it is missing.", metavar="FOLDER")
    ],
    role: Annotated[
        options.RoleChoice, typer.Option("--role", help="What you write: an agent, a client, or both.")
    ] = options.RoleChoice.AGENT,
    protocol: options.Protocol = DEFAULT_PROTOCOL,
    release: options.Release = None,
    schema: options.Schema = None,
    extension: options.Extension = None,
    open_unions: Annotated[
        bool, typer.Option("--open-unions", help="Give closed unions a variant for tags that are not known yet.")
    ] = False,
    keep_unknown: Annotated[
        bool, typer.Option("--keep-unknown", help="Keep properties that the schema does not name in `extra`.")
    ] = False,
    no_runtime: Annotated[
        bool, typer.Option("--no-runtime", help="Leave out what talks JSON-RPC over stdio and other transports.")
    ] = False,
    strict: options.Strict = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Compile even where the manifest says nothing changed.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print notes, files and the time of stages.")
    ] = False,
    form: Annotated[
        DiagnosticFormat, typer.Option("--format", help="How diagnostics are printed.")
    ] = DiagnosticFormat.TEXT,
) -> None:
    """Compile a schema, and write the package."""
    wishes = BuildOptions(
        sources=options.sources(protocol, release=release, schema=schema, extension=extension),
        roles=role.roles,
        out=out,
        types=Options(open_unions=open_unions, keep_unknown=keep_unknown),
        runtime=not no_runtime,
        strict=strict,
    )
    found: tuple[Diagnostic, ...] = ()
    try:
        built = build(wishes, full=full)
        found = built.diagnostics
        if built.plan is not None and not dry_run:
            with built.timings.stage("write"):
                apply(built.plan)
    except AcpgenError as error:
        print_diagnostics((*found, *error.diagnostics), form, notes=verbose)
        raise typer.Exit(error.exit_code) from None
    print_diagnostics(found, form, notes=verbose)
    if dry_run:
        _print_plan(built.plan)
    _print_result(built, out, verbose=verbose, dry_run=dry_run)


build_command.__doc__ = f"{build_command.__doc__}\n{EXAMPLES}"


def _print_plan(planned: Plan | None) -> None:
    for change in planned.changes if planned else ():
        if change.kind is not Kind.KEEP:
            print(f"{change.kind.value} {printable(change.path)}")


def _print_result(built: Built, out: Path, *, verbose: bool, dry_run: bool) -> None:
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
