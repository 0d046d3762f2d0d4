"""`acpgen methods` and `acpgen extensions`: tables of the methods of a schema, and of the bundled extensions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import options
from acpgen.cli.console import DataFormat, print_diagnostics, print_json, print_table
from acpgen.config.keys import RoleChoice

if TYPE_CHECKING:
    from acpgen.ir.model import Method, TypeExpr
    from acpgen.schema.fitting import Fit

METHOD_COLUMNS = ("method", "side", "kind", "params", "result", "capability", "origin")
EXTENSION_COLUMNS = ("extension", "here", "title", "status", "adds")


@options.takes_sources
def methods_command(
    asked: options.Asked,
    role: Annotated[RoleChoice, typer.Option("--role", help="The role whose handlers to list.")] = RoleChoice.BOTH,
    form: options.Form = DataFormat.TEXT,
) -> None:
    """List the methods: the name on the wire, the side that handles it, types, the capability, and the origin.

    **Examples**

    - `acpgen methods --role agent`
    - `acpgen methods --release 0.10.8 --extension logout --format json`
    """
    from acpgen.ir.options import Options
    from acpgen.pipeline import compile_protocol, load
    from acpgen.sources.inputs import find_inputs

    compiled = compile_protocol(load(find_inputs(asked.sources())), Options())
    print_diagnostics(compiled.diagnostics, notes=False)
    rows = [_method_row(method) for method in compiled.model.methods if set(role.roles) & set(method.handlers)]
    if form is DataFormat.JSON:
        print_json([dict(zip(METHOD_COLUMNS, row, strict=True)) for row in rows])
    else:
        print_table(METHOD_COLUMNS, [[cell or "-" for cell in row] for row in rows])


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


@options.takes_schema
def extensions_command(
    asked: options.Asked,
    form: options.Form = DataFormat.TEXT,
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
    fits = _fits(asked)
    if form is DataFormat.JSON:
        print_json([_extension_as_json(found) for found in fits])
    else:
        print_table(EXTENSION_COLUMNS, [_extension_row(found) for found in fits])


def _fits(asked: options.Asked) -> list[Fit]:
    from acpgen.pipeline import load
    from acpgen.schema.bundled import bundled_fragments, known_facts
    from acpgen.schema.fitting import fit
    from acpgen.sources.inputs import find_inputs

    loaded = load(find_inputs(replace(asked.sources(), extensions=())))
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
