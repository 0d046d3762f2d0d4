"""`acpgen show`: everything about one name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acpgen.cli import completion, parameters
from acpgen.cli.console import DataFormat, print_data
from acpgen.cli.given import Given

if TYPE_CHECKING:
    from acpgen.show.describe import Describer, Description


@parameters.takes_sources
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A type, a definition, a method by its name on the wire or its handler, or a value that messages and "
            "logs have: a tag, the value of an enumeration, an error.",
            show_default=False,
            autocompletion=completion.names,
        ),
    ],
    given: Given,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """Show a type or a method: its Python signature, its schema, its uses, its capability and its origin.

    Of a value, show what it means, and the messages that carry it. The schema is the composed one, with extensions. A
    name with several meanings shows all of them, of each protocol.

    **Examples**

    - `acpgen show session/new`
    - `acpgen show ContentBlock --protocol 2`
    - `acpgen show end_turn`
    - `acpgen show -- -32602`
    - `acpgen show InitializeResponse --extension auth-state --format json`
    """
    from acpgen.emit.signatures import Signatures
    from acpgen.emit.versions import folder
    from acpgen.show.describe import Describer
    from acpgen.show.display import render_json, render_text

    compiled = given.compiled()
    describers = []
    for each in compiled:
        place = f"{folder(each.model)}/" if len(compiled) > 1 else ""
        describers.append(Describer(each.composed, each.model, Signatures(each.model, folder=place)))
    entries = _described(name, describers)
    print_data(render_json(name, entries) if form is DataFormat.JSON else render_text(entries))


def _described(name: str, describers: Sequence[Describer]) -> list[Description]:
    """Describe a name in each protocol that knows it. Raises `InputError` if none does."""
    from acpgen.diagnostics import InputError

    entries, errors = list[Any](), list[InputError]()
    for describer in describers:
        try:
            entries += describer.describe(name)
        except InputError as error:
            errors.append(error)
    if not entries:
        raise errors[0]
    return entries
