"""Completion in shells. It must be quick, and an error gives no completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import typer

from acpgen.config.pyproject import find_config, read_config
from acpgen.config.settings import outputs_to_build, sources_in_effect

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]


def _completer(find: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Make a completer for typer, from the names that `find` returns."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return sorted({name for name in find(ctx) if name.startswith(incomplete)})
        except Exception:  # noqa: BLE001 - the command itself reports the error; a shell has no place for it
            return []

    return complete


def _config(ctx: typer.Context) -> Any:
    if ctx.params.get("no_config"):
        return None
    path = ctx.params.get("config")
    return read_config(Path(path)) if path else find_config(Path.cwd())


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
def outputs(ctx: typer.Context) -> Iterable[str]:
    """The configured outputs."""
    return (output.name for output in outputs_to_build(_config(ctx), {}) if output.name is not None)


@_completer
def names(ctx: typer.Context) -> Iterable[str]:
    """The definitions and methods of the selected schema and its extensions."""
    from acpgen.cli.parameters import given_sources
    from acpgen.sources.inputs import load_all

    given = ctx.params
    protocols = [int(each) for each in given.get("protocol") or ()]
    choice = given_sources(protocols, given.get("release"), given.get("schema"), given.get("extension"))
    inputs, _ = load_all(sources_in_effect(_config(ctx), choice, given.get("output")))
    for document in (file for each in inputs for file in (each.base, *(known.document for known in each.fragments))):
        definitions = document.root.get("$defs", {})
        yield from definitions
        yield from (node["x-method"] for node in definitions.values() if "x-method" in node)
