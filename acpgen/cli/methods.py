"""`acpgen methods`: the routing table, to look at."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from acpgen.cli import options
from acpgen.cli.console import print_data, print_diagnostics, print_table
from acpgen.ir.model import Method, Ref, TypeExpr
from acpgen.pipeline import load_model

COLUMNS = ("method", "side", "kind", "params", "result", "capability", "origin")


@options.takes_sources
def methods_command(
    asked: options.Asked,
    role: Annotated[
        options.RoleChoice, typer.Option("--role", help="Whose handlers to list.")
    ] = options.RoleChoice.BOTH,
    form: Annotated[options.DataFormat, typer.Option("--format", help="How to print.")] = options.DataFormat.TEXT,
) -> None:
    """List the methods: name on the wire, who handles it, types, the capability it needs, and where it comes from.

    **Examples**

    - `acpgen methods --role agent`
    - `acpgen methods --release 0.10.8 --extension logout --format json`
    """
    model, diagnostics = load_model(asked.sources())
    print_diagnostics(diagnostics, notes=False)
    rows = [_row(method) for method in model.methods if set(role.roles) & set(method.handlers)]
    if form is options.DataFormat.JSON:
        print_data(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        print_table(COLUMNS, [[cell or "-" for cell in row] for row in rows])


def _row(method: Method) -> list[str | None]:
    return [
        method.wire,
        method.side,
        method.kind.value,
        _name(method.params),
        _name(method.result) if method.result is not None else None,
        str(method.gate) if method.gate is not None else None,
        method.origin,
    ]


def _name(expression: TypeExpr) -> str:
    return expression.name if isinstance(expression, Ref) else "any JSON"
