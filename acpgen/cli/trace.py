"""`acpgen trace`: check a recorded conversation, or record one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DiagnosticFormat, print_diagnostics, print_table
from acpgen.cli.given import Given
from acpgen.config import SchemaChoice
from acpgen.diagnostics import Severity, input_error

if TYPE_CHECKING:
    from acpgen.ir import model as ir
    from acpgen.trace.conversation import Total
    from acpgen.trace.reading import Trace


def _address(value: str | None) -> str | None:
    """The address of the reference. A link must not run anything."""
    if value is not None and (urlsplit(value).scheme or "https") not in {"https", "http", "file"}:
        raise typer.BadParameter("must be a relative address, or start with https://, http:// or file://")
    return value


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE | -- COMMAND...", help="The messages to check; or what to record.", show_default=False
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write a page to look at the messages.", show_default=False),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        callback=_address,
        help="The page of `acpgen docs` that the page links to: its address, or a path from the page.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Record here what COMMAND reads and writes."),
]
Secrets = Annotated[bool, typer.Option("--secrets", help="Record, or show, secrets as they are.")]
MaxMib = Annotated[
    int,
    typer.Option("--max-mib", min=1, help="The size at which the file is renamed to FILE.1, and begins anew."),
]


@parameters.takes_sources
def trace_command(
    given: Given,
    words: Words = None,
    html: Html = None,
    reference: Reference = None,
    out: Out = None,
    secrets: Secrets = False,
    max_mib: MaxMib = 64,
    form: parameters.DiagnosticForm = DiagnosticFormat.TEXT,
) -> None:
    """Check a recorded conversation: each message against the schema, and the order of the messages. Or record one.

    FILE has a message a line, as JSON: alone, after a prefix, or in an envelope with time and sender. The version that
    the conversation negotiates selects the protocol. The exit code is 1 if something is wrong. Notes are about unknown
    properties, warnings about values that leniency repairs. The page of `--html` has all messages, and loads nothing.

    With --out, COMMAND is an agent, and this program stands in its place: what it reads and writes is passed on
    unchanged, and so are signals and its exit code. Environment variables, headers and logins are masked. Either end of
    a connection over a network records what passes, with `ACP_TRACE=FILE` in its environment.

    **Examples**

    - `acpgen trace editor.log`
    - `acpgen trace messages.jsonl --extension auth-state`
    - `acpgen trace messages.jsonl --format github`
    - `acpgen trace messages.jsonl --html trace.html --reference site/index.html`
    - `acpgen trace --out messages.jsonl -- my-agent --acp`
    """
    if out is None:
        _check(words or [], given, form, page=(html, reference), shows_secrets=secrets)
    elif words:
        raise typer.Exit(_record(tuple(words), out, shows_secrets=secrets, max_mib=max_mib))
    else:
        raise input_error("usage", "name the command to record", hint="acpgen trace --out FILE -- COMMAND")


def _record(command: tuple[str, ...], out: Path, *, shows_secrets: bool, max_mib: int) -> int:
    """Run a command between the client and the agent that it is, and record it; returns its exit code."""
    if sys.platform == "win32":
        raise input_error("usage", "a command can be recorded on systems with POSIX signals only")
    from acpgen.trace.recorder import Recorder
    from acpgen.trace.tee import run_recorded

    try:
        recorder = Recorder(out, command, max_bytes=max_mib * 2**20, shows_secrets=shows_secrets)
        return run_recorded(command, recorder)
    except OSError as error:
        what = "write" if error.filename == str(out) else "run"
        reason = error.strerror or str(error)
        raise input_error("not-started", f"cannot {what} {error.filename or command[0]}: {reason}") from None


_DEEPEST = 4000
"""The calls inside each other that a check may need: several for each level of a message, which may have 200."""


def _check(
    words: list[str],
    given: Given,
    form: DiagnosticFormat,
    *,
    page: tuple[Path | None, str | None],
    shows_secrets: bool,
) -> None:
    """Print what is wrong with a file, and write its page, which links to a reference."""
    from acpgen.trace.reading import read_trace

    if len(words) != 1:
        message = "one FILE can be checked at a time" if words else "name the FILE to check"
        raise input_error("usage", message, hint="to record what a command reads and writes, add --out FILE")
    html, reference = page
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    try:
        trace = read_trace(Path(words[0]), _models(given), keep=html is not None, shows_secrets=shows_secrets)
    finally:
        sys.setrecursionlimit(limit)
    print_diagnostics(trace.diagnostics, form)
    if html is not None:
        _write_page(html, trace, reference)
    if form is DiagnosticFormat.TEXT:
        _print_totals(trace.totals)
    if trace.counts[Severity.ERROR]:
        raise typer.Exit(1)


def _models(given: Given) -> dict[int, ir.Model]:
    """The models of the selected protocols. Without a selection of protocols, all that are bundled."""
    from acpgen.pipeline import compile_protocol
    from acpgen.schema.bundled import list_releases
    from acpgen.sources.inputs import load_all

    choices = list(given.sources())
    if given.config() is None and all(given.values[key] is None for key in ("protocol", "schema", "release")):
        known = {each.protocol for each in choices}
        others = sorted({each.protocol for each in list_releases()} - known)
        choices += [SchemaChoice(protocol=each, extensions=choices[0].extensions) for each in others]
    inputs, _ = load_all(choices)
    return {each.protocol: compile_protocol(each, given.types()).model for each in inputs}


def _write_page(path: Path, trace: Trace, reference: str | None) -> None:
    """Write the page. A trace may have secrets, so the file is for its owner alone."""
    from acpgen.files import write_file
    from acpgen.output.folder import read_below
    from acpgen.text import HTML_MARKER
    from acpgen.trace.page import render_page

    present = read_below(path.parent, path.name, limit=len(HTML_MARKER))
    if present is not None and present != HTML_MARKER.encode():
        message = f"{path.as_posix()} exists, and is not a page that acpgen wrote"
        raise input_error("not-ours", message, hint="name another file, or delete this one")
    write_file(path, render_page(trace, reference=reference), replaces=True, mode=0o600)


def _print_totals(totals: Mapping[str, Total]) -> None:
    rows = [[method, str(each.count), *(time or "-" for time in each.times)] for method, each in sorted(totals.items())]
    if rows:
        print_table(["method", "messages", "median", "longest"], rows)
    else:
        print("no calls", file=sys.stderr)
