"""`acpgen methods`, `acpgen extensions` and `acpgen parts`: of a schema, bundled with acpgen, of a package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DataFormat, print_data, print_json, print_table
from acpgen.cli.given import Given
from acpgen.config import SchemaChoice
from acpgen.parts import Part, all_parts, default_parts, needs
from acpgen.roles import Role, RoleChoice, Side
from acpgen.text import folded, printable

if TYPE_CHECKING:
    from acpgen.ir import model as ir
    from acpgen.schema.fitting import Fit

PART_COLUMNS = ("part", "for", "needs", "content")
EXTENSION_COLUMNS = ("extension", "here", "title", "status", "adds")


@parameters.takes_sources
def methods_command(
    given: Given,
    role: Annotated[RoleChoice, typer.Option("--role", help="The role whose handlers to list.")] = RoleChoice.BOTH,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """List the methods: the name on the wire, the side that handles it, types, the capability, and the origin.

    For proxies, list who sends each, and the method of the class that passes it on.

    **Examples**

    - `acpgen methods --role agent`
    - `acpgen methods --role proxy`
    - `acpgen methods --release 0.10.8 --extension logout --format json`
    """
    from acpgen.ir.options import Options

    compiled = given.compiled(Options())
    shown = [(each.model, listed) for each in compiled for listed in _listed(each.model, role)]
    if form is DataFormat.JSON:
        protocols = [{} if len(compiled) == 1 else {"protocol": model.protocol} for model, _ in shown]
        print_json([{**_method_as_json(each), **key} for (_, each), key in zip(shown, protocols, strict=True)])
    else:
        groups = groupby(shown, key=lambda each: each[0].origin)
        print_data("\n\n".join("\n".join(_group(origin, [each for _, each in group])) for origin, group in groups))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A method. If the role passes it on: the method of the class for that, and the side that sends it."""

    method: ir.Method
    handler: str = ""
    sender: Side | None = None


def _listed(model: ir.Model, role: RoleChoice) -> list[_Listed]:
    from acpgen.emit.role_classes import RoleView

    passing = [RoleView(each.record, model) for each in role.roles if each.record.passes]
    if passing:
        return [
            _Listed(each.view.method, each.name, Side(each.target).peer) for view in passing for each in view.passed
        ]
    sides = {side for each in role.roles for side in each.record.sides}
    return [_Listed(method) for method in model.methods if sides & set(method.handlers)]


def _group(origin: str, methods: Sequence[_Listed]) -> Iterator[str]:
    """The lines of the methods of a protocol, below the origin of its schema."""
    yield printable(origin)
    for listed in methods:
        method, sender = listed.method, listed.sender
        handlers = " and ".join(f"the {side.value}" for side in method.handlers)
        way = f"from the {sender.value}" if sender else f"to {handlers}"
        yield printable(f"  {method.wire}  ({method.kind.value} {way})")
        result = f" → {_type_name(method.result)}" if method.result is not None else ""
        needs = [f"needs {method.gate}"] if method.gate is not None else []
        source = [f"from {method.origin}"] if method.origin != origin else []
        name = f"{listed.handler}: " if listed.handler else ""
        for line in (name + _type_name(method.params) + result, *needs, *source):
            yield from folded(printable(f"      {line}"))


def _method_as_json(listed: _Listed) -> dict[str, object]:
    method = listed.method
    passed = {"from": listed.sender.value, "handler": listed.handler} if listed.sender else {}
    return {
        "method": method.wire,
        "side": method.side,
        "kind": method.kind.value,
        "params": _type_name(method.params),
        "result": _type_name(method.result) if method.result is not None else None,
        "capability": str(method.gate) if method.gate is not None else None,
        "origin": method.origin,
        **passed,
    }


def _type_name(expression: ir.TypeExpr) -> str:
    from acpgen.ir import model as ir

    return expression.name if isinstance(expression, ir.Ref) else "any JSON"


@parameters.takes_schema
def extensions_command(
    given: Given,
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
        columns = EXTENSION_COLUMNS if is_single else ("extension", "protocol", *EXTENSION_COLUMNS[1:])
        print_table(columns, [_extension_row(each, None if is_single else protocol) for protocol, each in found])


def _fits(sources: SchemaChoice) -> list[Fit]:
    from acpgen.schema.bundled import bundled_fragments
    from acpgen.schema.fitting import fit
    from acpgen.sources.inputs import load_schema

    schema = load_schema(sources)
    fragments = bundled_fragments(schema.protocol)
    return [
        fit(schema.document, fragment, protocol=schema.protocol, facts=schema.facts, others=fragments)
        for fragment in fragments
    ]


def _extension_row(found: Fit, protocol: int | None) -> list[str]:
    changed = (f"{name} ({', '.join(names) or 'changed'})" for name, names in found.changed.items())
    added = [*found.methods, *changed]
    fragment, column = found.fragment, [] if protocol is None else [str(protocol)]
    return [fragment.spec, *column, found.verdict.value, fragment.title, fragment.status, ", ".join(added) or "-"]


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
        "changed": found.changed,
    }


def parts_command(
    role: Annotated[
        RoleChoice | None, typer.Option("--role", help="The role of the package. The default is all.")
    ] = None,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """List the parts that `acpgen build --with` adds to a package: the roles, the parts that each needs, its content.

    A star marks those of a package whose project names none.

    **Examples**

    - `acpgen parts`
    - `acpgen parts --role agent --format json`
    """
    roles = role.roles if role else tuple(Role)
    found = [part for part in all_parts().values() if {*part.roles} & {*roles}]
    if form is DataFormat.JSON:
        print_json([_part_as_json(part, roles) for part in found])
    else:
        print_table(PART_COLUMNS, [_part_row(part, roles) for part in found])


def _part_row(part: Part, roles: tuple[Role, ...]) -> list[str]:
    chosen = [each for each in part.roles if each in roles]
    marked = (f"{each.value}{'*' if part.name in each.record.parts else ''}" for each in chosen)
    return [part.name, ", ".join(marked), ", ".join(_needs(part, roles)) or "-", part.title]


def _part_as_json(part: Part, roles: tuple[Role, ...]) -> dict[str, object]:
    return {
        "part": part.name,
        "roles": [each.value for each in part.roles],
        "default": [each.value for each in part.roles if part.name in default_parts([each])],
        "needs": _needs(part, roles),
        "content": part.title,
    }


def _needs(part: Part, roles: tuple[Role, ...]) -> list[str]:
    """The parts that the part needs in some package for `roles`."""
    from acpgen.schema.bundled import list_releases

    protocols = {each.protocol for each in list_releases()}
    return sorted({name for role in roles for protocol in protocols for name in needs(part.name, (role,), [protocol])})
