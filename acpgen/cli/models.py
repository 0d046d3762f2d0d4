"""`acpgen models`: write the types alone, for another library."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.given import Given
from acpgen.config.package_name import name_flaw
from acpgen.diagnostics import input_error
from acpgen.flavours import Flavour
from acpgen.roles import Side
from acpgen.text import printable


@parameters.takes_sources
def models_command(
    given: Given,
    flavour: Annotated[
        Flavour, typer.Option("--flavour", help="The library for which the types are.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The module to write.", metavar="FILE", show_default=False)],
    open_: Annotated[bool | None, parameters.option("open", text="Accept unknown tags and enumeration values.")] = None,
    keep_unknown: Annotated[
        bool | None, parameters.option("keep-unknown", text="Keep unknown properties, in model_extra of pydantic.")
    ] = None,
) -> None:
    """Write the types of a schema with its extensions as one module, for pydantic or as typed dicts.

    The types have the names of the package, and the keys on the wire. The module needs no package. A file that acpgen
    did not write is not overwritten.

    **Examples**

    - `acpgen models --flavour pydantic --out models.py`
    - `acpgen models --flavour typeddict --protocol 2 --extension auth-state --out models.py`
    """
    from acpgen.emit.flavours.models import render_models
    from acpgen.output import write_generated

    if flaw := "its name does not end with .py" if out.suffix != ".py" else name_flaw(out.stem):
        hint = "choose a name such as models.py"
        raise input_error("module-name", f"Python cannot import {out.name!r} as a module: {flaw}", hint=hint)
    given = replace(given, values={**given.values, "open": open_, "keep-unknown": keep_unknown})
    types = replace(given.types(), receivers=tuple(Side))
    given.one_protocol()  # more are refused
    [compiled] = given.compiled(types)
    is_new = write_generated(out, render_models(compiled.model, flavour))
    if sys.stderr.isatty():
        print(f"{printable(str(out))}: {'written' if is_new else 'up to date'}", file=sys.stderr)
