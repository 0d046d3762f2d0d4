"""`acpgen show`: everything about one name."""

from __future__ import annotations

from typing import Annotated

import typer

from acpgen.cli import completion, options
from acpgen.cli.console import DataFormat, print_data, print_diagnostics


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
    form: options.Form = DataFormat.TEXT,
) -> None:
    """Show a type or a method: its Python signature, its schema, its uses, its capability and its origin.

    The schema is the composed one, with extensions. A name with several meanings shows all of them.

    **Examples**

    - `acpgen show session/new`
    - `acpgen show ContentBlock --protocol 2`
    - `acpgen show InitializeResponse --extension auth-state --format json`
    """
    from acpgen.emit.signatures import Signatures
    from acpgen.pipeline import compile_protocol, load
    from acpgen.show.describe import Describer
    from acpgen.show.display import render_json, render_text
    from acpgen.sources.inputs import find_inputs

    compiled = compile_protocol(load(find_inputs(asked.sources())), asked.types())
    composed, model = compiled.composed, compiled.model
    print_diagnostics(compiled.diagnostics, notes=False)
    entries = Describer(composed, model, Signatures(model)).describe(name)
    print_data(render_json(name, entries) if form is DataFormat.JSON else render_text(entries))
