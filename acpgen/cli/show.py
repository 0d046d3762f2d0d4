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
            help="A type, a definition, or a method by its name on the wire or its handler.",
            show_default=False,
            autocompletion=completion.names,
        ),
    ],
    asked: options.Asked,
    form: options.Form = options.DataFormat.TEXT,
) -> None:
    """Show a type or a method: its Python signature, its schema, its uses, its capability and its origin.

    The schema is the composed one, with extensions. A name with several meanings shows all of them.

    **Examples**

    - `acpgen show session/new`
    - `acpgen show ContentBlock --protocol 2`
    - `acpgen show InitializeResponse --extension auth-state --format json`
    """
    # imported here: the templates are slow to import, and other commands do not need them
    from acpgen.emit.signatures import Signatures
    from acpgen.schema.data import data_folder
    from acpgen.show.describe import Describer
    from acpgen.show.display import render_json, render_text

    composed, model, diagnostics = load_composed(asked.sources(), asked.types())
    print_diagnostics(diagnostics, notes=False)
    entries = Describer(composed, model, Signatures(model, data_folder() / "templates")).describe(name)
    print_data(render_json(name, entries) if form is options.DataFormat.JSON else render_text(entries))
