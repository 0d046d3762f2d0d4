"""`acpgen trace`: check a recorded conversation, or record one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DiagnosticFormat, print_diagnostics, print_table
from acpgen.config import SchemaChoice
from acpgen.diagnostics import Diagnostic, Location, Severity, input_error

if TYPE_CHECKING:
    from acpgen.ir.model import Model
    from acpgen.trace.conversation import Conversation
    from acpgen.trace.values import Misfit

MOST = 10_000
"""The most findings that are kept: a trace with so many is wrong from the start, and is not read further."""


@parameters.takes_sources
def trace_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | -- COMMAND...", help="The messages to check; or what to record.", show_default=False
        ),
    ],
    given: parameters.Given,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Run COMMAND, and record here what it reads and writes."),
    ] = None,
    secrets: Annotated[bool, typer.Option("--secrets", help="Record secrets as they are.")] = False,
    max_mib: Annotated[
        int,
        typer.Option("--max-mib", min=1, help="The size at which the file is renamed to FILE.1, and begins anew."),
    ] = 64,
    form: parameters.DiagnosticForm = DiagnosticFormat.TEXT,
) -> None:
    """Check a recorded conversation: each message against the schema, and the order of the messages. Or record one.

    FILE has a message a line, as JSON: alone, after a prefix, or in an envelope with time and sender. The version that
    the conversation negotiates selects the protocol. The exit code is 1 if something is wrong. Notes are about unknown
    properties, warnings about values that leniency repairs.

    With --out, COMMAND is an agent, and this program stands in its place: what it reads and writes is passed on
    unchanged, and so are signals and its exit code. Environment variables, headers and logins are masked.

    **Examples**

    - `acpgen trace editor.log`
    - `acpgen trace messages.jsonl --extension auth-state`
    - `acpgen trace messages.jsonl --format github`
    - `acpgen trace --out messages.jsonl -- my-agent --acp`
    """
    if out is not None:
        from acpgen.cli.record import record

        raise typer.Exit(record(tuple(words), out, shows_secrets=secrets, max_mib=max_mib))
    if len(words) != 1:
        hint = "to record what a command reads and writes, add --out FILE"
        raise input_error("usage", "one FILE can be checked at a time", hint=hint)
    _check(Path(words[0]), given, form)


def _check(file: Path, given: parameters.Given, form: DiagnosticFormat) -> None:
    from acpgen.trace.conversation import Conversation

    conversation = Conversation(_models(given))
    found = []
    for each in _diagnostics(file, conversation):
        found.append(each)
        if len(found) >= MOST:
            break
    print_diagnostics(found, form)
    if len(found) >= MOST:
        print(f"these are the first {MOST} findings: the rest of the file was not read", file=sys.stderr)
    if form is DiagnosticFormat.TEXT:
        _print_totals(conversation)
    if any(each.severity is Severity.ERROR for each in found):
        raise typer.Exit(1)


def _models(given: parameters.Given) -> dict[int, Model]:
    """The models of the selected protocols. Without a selection of protocols, all that are bundled."""
    from acpgen.pipeline import compile_protocol, load
    from acpgen.schema.bundled import list_releases
    from acpgen.sources.inputs import find_all_inputs

    choices = list(given.sources())
    if given.config() is None and all(given.values[key] is None for key in ("protocol", "schema", "release")):
        known = {each.protocol for each in choices}
        others = sorted({each.protocol for each in list_releases()} - known)
        choices += [SchemaChoice(protocol=each, extensions=choices[0].extensions) for each in others]
    inputs, _ = find_all_inputs(choices)
    return {each.protocol: compile_protocol(load(each), given.types()).model for each in inputs}


def _diagnostics(file: Path, conversation: Conversation) -> Iterator[Diagnostic]:
    from acpgen.trace.lines import LONGEST, read_entries

    try:
        stream = file.open("rb")
    except OSError as error:
        raise input_error("unreadable", f"cannot read {file.as_posix()}: {error.strerror}") from None
    count = 0
    with stream:
        for entry in read_entries(iter(lambda: stream.readline(LONGEST + 1), b"")):
            count += 1
            for found in conversation.check(entry):
                yield _diagnostic(found, file, entry.line, conversation.model.protocol)
    if not count:
        hint = "each line has a message as JSON, alone or after a prefix"
        raise input_error("no-messages", f"{file.as_posix()} has no messages", hint=hint)
    for line, found in conversation.finish():
        yield _diagnostic(found, file, line, conversation.model.protocol)


def _diagnostic(found: Misfit, file: Path, line: int, protocol: int) -> Diagnostic:
    return Diagnostic(
        code=found.code,
        severity=found.severity,
        message=found.message,
        location=Location(file.as_posix(), line, 1),
        pointer=found.pointer or None,
        hint=_hint(found, protocol),
    )


def _hint(found: Misfit, protocol: int) -> str | None:
    from acpgen.trace.extensions import extensions_with

    if not found.unknown or not (names := extensions_with(protocol, found.owner, found.unknown)):
        return None
    return f"defined by {' and '.join(names)}: check with --extension {names[0]}"


def _print_totals(conversation: Conversation) -> None:
    rows = []
    for method, total in sorted(conversation.totals.items()):
        times = total.seconds
        middle, longest = (f"{median(times):.3f} s", f"{max(times):.3f} s") if times else ("-", "-")
        rows.append([method, str(total.count), middle, longest])
    if rows:
        print_table(["method", "messages", "median", "longest"], rows)
    else:
        print("no calls", file=sys.stderr)
