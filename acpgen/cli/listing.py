"""`acpgen methods` and `acpgen extensions`: tables of the methods of a schema, and of the bundled extensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DataFormat, print_diagnostics, print_json, print_table
from acpgen.config import SchemaChoice
from acpgen.config.keys import RoleChoice

if TYPE_CHECKING:
    from acpgen.ir.model import Method, TypeExpr
    from acpgen.schema.fitting import Fit

METHOD_COLUMNS = ("method", "side", "kind", "params", "result", "capability", "origin")
EXTENSION_COLUMNS = ("extension", "here", "title", "status", "adds")


@parameters.takes_sources
def methods_command(
    given: parameters.Given,
    role: Annotated[RoleChoice, typer.Option("--role", help="The role whose handlers to list.")] = RoleChoice.BOTH,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """List the methods: the name on the wire, the side that handles it, types, the capability, and the origin.

    **Examples**

    - `acpgen methods --role agent`
    - `acpgen methods --release 0.10.8 --extension logout --format json`
    """
    from acpgen.ir.options import Options
    from acpgen.pipeline import compile_protocol, load
    from acpgen.sources.inputs import find_all_inputs

    inputs, _ = find_all_inputs(given.sources())
    compiled = [compile_protocol(load(each), Options()) for each in inputs]
    print_diagnostics([found for each in compiled for found in each.diagnostics], notes=False)
    models = [each.model for each in compiled]
    rows = [
        (model.protocol, _method_row(method))
        for model in models
        for method in model.methods
        if set(role.roles) & set(method.handlers)
    ]
    _print_rows(METHOD_COLUMNS, rows, form, is_single=len(models) == 1)


def _print_rows(
    columns: Sequence[str], rows: Sequence[tuple[int, Sequence[str | None]]], form: DataFormat, *, is_single: bool
) -> None:
    """Print rows, each with its protocol, which gets a column unless there is a single one."""
    head = columns if is_single else (columns[0], "protocol", *columns[1:])
    cells = [[row[0], *([] if is_single else [protocol]), *row[1:]] for protocol, row in rows]
    if form is DataFormat.JSON:
        print_json([dict(zip(head, row, strict=True)) for row in cells])
    else:
        print_table(head, [["-" if cell is None else str(cell) for cell in row] for row in cells])


def _method_row(method: Method) -> list[str | None]:
    return [
        method.wire,
        method.side,
        method.kind.value,
        _type_name(method.params),
        _type_name(method.result) if method.result is not None else None,
        str(method.gate) if method.gate is not None else None,
        method.origin,
    ]


def _type_name(expression: TypeExpr) -> str:
    from acpgen.ir.model import Ref

    return expression.name if isinstance(expression, Ref) else "any JSON"


@parameters.takes_schema
def extensions_command(
    given: parameters.Given,
    form: parameters.Form = DataFormat.TEXT,
    file_schema: Annotated[
        bool, typer.Option("--file-schema", help="Print the JSON Schema of extension files, with examples, and exit.")
    ] = False,
) -> None:
    """List the bundled extensions: revision, status, whether each applies to the schema, and its additions.

    **Examples**

    - `acpgen extensions`
    - `acpgen extensions --release 0.10.8`
    - `acpgen extensions --file-schema > fragment.schema.json`
    """
    if file_schema:
        from acpgen.schema.fragment import fragment_schema

        print_json(fragment_schema())
        return
    sources = given.sources()
    found = [(each.protocol, fitting) for each in sources for fitting in _fits(each)]
    is_single = len(sources) == 1
    if form is DataFormat.JSON:
        print_json([{**_extension_as_json(each), **({} if is_single else {"protocol": n})} for n, each in found])
    else:
        rows = [(protocol, _extension_row(each)) for protocol, each in found]
        _print_rows(EXTENSION_COLUMNS, rows, form, is_single=is_single)


def _fits(sources: SchemaChoice) -> list[Fit]:
    from acpgen.pipeline import load
    from acpgen.schema.bundled import bundled_fragments, known_facts
    from acpgen.schema.fitting import fit
    from acpgen.sources.inputs import find_inputs

    loaded = load(find_inputs(replace(sources, extensions=())))
    base, protocol = loaded.base, loaded.protocol
    facts, _ = known_facts(base, protocol, loaded.release)
    fragments = bundled_fragments(protocol)
    return [fit(base, fragment, protocol=protocol, facts=facts, others=fragments) for fragment in fragments]


def _extension_row(found: Fit) -> list[str]:
    added = [*found.methods, *(f"{name} (changed)" for name in found.changed)]
    fragment = found.fragment
    return [fragment.spec, found.verdict.value, fragment.title, fragment.status, ", ".join(added) or "-"]


def _extension_as_json(found: Fit) -> dict[str, object]:
    fragment = found.fragment
    return {
        "extension": fragment.id,
        "revision": fragment.revision,
        "title": fragment.title,
        "status": fragment.status,
        "rfd": fragment.rfd,
        "verdict": found.verdict.value,
        "reasons": list(found.reasons),
        "methods": list(found.methods),
        "definitions": list(found.definitions),
        "changed": list(found.changed),
    }
