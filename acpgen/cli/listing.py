"""`acpgen methods` and `acpgen extensions`: tables of the methods of a schema, and of the bundled extensions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer

from acpgen.cli import options
from acpgen.cli.console import print_data, print_diagnostics, print_table
from acpgen.config.keys import RoleChoice
from acpgen.ir.model import Method, Ref, TypeExpr
from acpgen.pipeline import load_base, load_model
from acpgen.schema.bundled import bundled_fragments, known_facts
from acpgen.schema.fitting import Fit, fit
from acpgen.schema.fragment import fragment_schema
from acpgen.sources.inputs import find_inputs

METHOD_COLUMNS = ("method", "side", "kind", "params", "result", "capability", "origin")
EXTENSION_COLUMNS = ("extension", "here", "title", "status", "adds")


@options.takes_sources
def methods_command(
    asked: options.Asked,
    role: Annotated[RoleChoice, typer.Option("--role", help="The role whose handlers to list.")] = RoleChoice.BOTH,
    form: options.Form = options.DataFormat.TEXT,
) -> None:
    """List the methods: the name on the wire, the side that handles it, types, the capability, and the origin.

    **Examples**

    - `acpgen methods --role agent`
    - `acpgen methods --release 0.10.8 --extension logout --format json`
    """
    model, diagnostics = load_model(asked.sources())
    print_diagnostics(diagnostics, notes=False)
    rows = [_method_row(method) for method in model.methods if set(role.roles) & set(method.handlers)]
    if form is options.DataFormat.JSON:
        print_data(json.dumps([dict(zip(METHOD_COLUMNS, row, strict=True)) for row in rows], indent=2))
    else:
        print_table(METHOD_COLUMNS, [[cell or "-" for cell in row] for row in rows])


def _method_row(method: Method) -> list[str | None]:
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


@options.takes_schema
def extensions_command(
    asked: options.Asked,
    form: options.Form = options.DataFormat.TEXT,
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
        print_data(json.dumps(fragment_schema(), indent=2))
        return
    fits = _fits(asked)
    if form is options.DataFormat.JSON:
        print_data(json.dumps([_extension_as_json(found) for found in fits], indent=2))
    else:
        print_table(EXTENSION_COLUMNS, [_extension_row(found) for found in fits])


def _fits(asked: options.Asked) -> list[Fit]:
    inputs = find_inputs(replace(asked.sources(), extensions=()))
    protocol = inputs.protocol
    base = load_base(inputs)
    facts, _ = known_facts(base, protocol, inputs.release)
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
