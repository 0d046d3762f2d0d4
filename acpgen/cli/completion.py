"""Completion in shells. It must be quick, and an error gives no completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import typer

from acpgen.cli.given import Given
from acpgen.config.settings import outputs_to_build
from acpgen.parts import NO_PART, all_parts
from acpgen.roles import Role, RoleChoice

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]


def _completer(find: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Make a completer for typer, from the names that `find` returns."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return sorted({name for name in find(ctx) if name.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - the command itself reports the error; a shell has no place for it
            return []

    return complete


@_completer
def extensions(ctx: typer.Context) -> Iterable[str]:
    """The bundled extensions, with and without revisions."""
    from acpgen.schema.bundled import fragment_specs

    for protocol in ctx.params.get("protocol") or [None]:
        for spec in fragment_specs(int(protocol) if protocol else None):
            yield from (spec, spec.partition("@")[0])


@_completer
def releases(ctx: typer.Context) -> Iterable[str]:
    """The bundled releases of the selected protocol."""
    from acpgen.schema.bundled import list_releases

    protocols = [int(each) for each in ctx.params.get("protocol") or ()]
    for release in list_releases():
        if not protocols or release.protocol in protocols:
            yield from (release.name, f"{release.protocol}={release.name}")


@_completer
def parts(ctx: typer.Context) -> Iterable[str]:
    """The parts of a package for the selected role."""
    role = ctx.params.get("role")
    roles = RoleChoice(getattr(role, "value", role)).roles if role else tuple(Role)
    return (NO_PART, *(part.name for part in all_parts().values() if {*part.roles} & {*roles}))


@_completer
def outputs(ctx: typer.Context) -> Iterable[str]:
    """The configured outputs."""
    return (output.name for output in outputs_to_build(Given.of(ctx.params).config(), {}) if output.name is not None)


@_completer
def names(ctx: typer.Context) -> Iterable[str]:
    """The definitions and methods of the selected schema and its extensions."""
    from acpgen.sources.inputs import load_all

    inputs, _ = load_all(Given.of(ctx.params).sources())
    for document in (file for each in inputs for file in (each.base, *(known.document for known in each.fragments))):
        definitions = document.root.get("$defs", {})
        yield from definitions
        yield from (node["x-method"] for node in definitions.values() if "x-method" in node)
