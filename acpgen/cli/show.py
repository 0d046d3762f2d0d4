"""`acpgen show`: everything about one name."""

from __future__ import annotations

from typing import Annotated

import typer

from acpgen.cli import completion, options
from acpgen.cli.console import print_data, print_diagnostics
from acpgen.pipeline import load_composed


@options.takes_sources
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A type or definition, or a method by wire name or handler.",
            show_default=False,
            autocompletion=completion.names,
        ),
    ],
    asked: options.Asked,
    form: Annotated[options.DataFormat, typer.Option("--format", help="The output format.")] = options.DataFormat.TEXT,
) -> None:
    """Show a type or a method: its Python signature, schema, users, capability and origin.

    The schema is the composed one, with extensions. If a name has several meanings, all are shown.

    **Examples**

    - `acpgen show session/new`
    - `acpgen show ContentBlock --protocol 2`
    - `acpgen show InitializeResponse --extension auth-state --format json`
    """
    # imported here: other commands need no templates
    from acpgen.emit.signatures import Signatures
    from acpgen.schema.data import data_folder
    from acpgen.show.describe import Describer, find
    from acpgen.show.display import render_json, render_text

    composed, model, diagnostics = load_composed(asked.sources(), asked.types())
    print_diagnostics(diagnostics, notes=False)
    subjects = find(name, composed, model)
    describer = Describer(composed, model, Signatures(model, data_folder() / "templates"))
    entries = [describer.describe(subject) for subject in subjects]
    print_data(render_json(name, entries) if form is options.DataFormat.JSON else render_text(entries))
