"""`acpgen rfd`: draft an extension fragment from the text of an RFD."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DiagnosticFormat, exit_on_errors, print_data, print_diagnostics
from acpgen.cli.given import Given
from acpgen.diagnostics import Diagnostic, Severity

_CAP = 500
"""The limit for printed diagnostics. It is high because every finding is about another place in the text."""

rfd_app = typer.Typer(name="rfd", no_args_is_help=True)


@rfd_app.callback()
def rfd_options() -> None:
    """Draft extensions from the texts of RFDs.

    **Examples**

    - `acpgen rfd extract logout.md`
    """


@rfd_app.command("extract")
@parameters.takes_schema
def extract_command(
    given: Given,
    file: Annotated[Path, typer.Argument(help="The RFD: Markdown, or a page saved as text.", metavar="FILE")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the draft to a file instead of stdout.", metavar="FILE")
    ] = None,
    form: parameters.DiagnosticForm = DiagnosticFormat.TEXT,
) -> None:
    """Draft an extension file from the text of an RFD. Needs the extra `acpgen[rfd]`.

    JSON Schema, TypeScript and examples of messages are read; other lines that look like code are reported. The draft
    has `<fill in: …>` where the text does not say enough, and cannot be used before each of these is replaced. The
    exit code is 1 if there is something to fill in or to check.

    **Examples**

    - `acpgen rfd extract logout.md --out logout.json`
    - `acpgen rfd extract logout.txt --release 0.10.8`
    """
    from acpgen.files import write_file

    with exit_on_errors(form, cap=_CAP):
        text, diagnostics = _extracted(given, file, label=out.as_posix() if out else "draft")
        if out is not None:
            write_file(out, [text, "\n"])
    print_diagnostics(diagnostics, form, cap=_CAP)
    if out is None:
        print_data(text)
    is_complete = all(each.severity is Severity.NOTE for each in diagnostics)
    if out is not None and sys.stderr.isatty():
        print(f"{out}: {'complete' if is_complete else 'to be completed'}", file=sys.stderr)
    if not is_complete:
        raise typer.Exit(1)


def _extracted(given: Given, file: Path, *, label: str) -> tuple[str, Sequence[Diagnostic]]:
    """The draft as text, and the diagnostics about it; `label` is the path of the draft in them."""
    from acpgen.rfd import Base, check_draft, extract, read_source, require_parsers
    from acpgen.schema.fragment import find_marks
    from acpgen.schema.walk import schema_map
    from acpgen.sources.inputs import load_schema

    require_parsers()
    schema = load_schema(given.one_protocol())
    document = schema.document
    base = Base(
        origin=document.origin,
        protocol=schema.protocol,
        definitions=schema_map(document.root, "$defs"),
        gates=schema.facts.gates,
    )
    found = extract(read_source(file), base)
    text = _draft_text(found.draft)
    if any(find_marks(found.draft)):
        return text, found.diagnostics
    checked = check_draft(text, label=label, base=document, known=base)
    return text, [*found.diagnostics, *checked]


def _draft_text(draft: object) -> str:
    """The draft as JSON, with escapes for characters that control a terminal."""
    text = json.dumps(draft, indent=2, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
