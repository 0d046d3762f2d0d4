"""`acpgen docs`: write the reference of a composed protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.given import Given
from acpgen.diagnostics import input_error
from acpgen.text import printable

PAGE = "index.html"


@parameters.takes_sources
def docs_command(
    given: Given,
    out: Annotated[Path, typer.Option("--out", help="The folder of the page.", metavar="DIR", show_default=False)],
) -> None:
    """Write a static page about the methods and types of a schema with its extensions: `index.html` in a folder.

    The page has a search, examples in JSON and Python, and the differences between several protocols. It loads nothing
    from elsewhere, so it can be opened as a file, or published on any server. Other files in the folder stay as they
    are; a page that acpgen did not write is not overwritten.

    **Examples**

    - `acpgen docs --out site`
    - `acpgen docs --extension ./rfd/my-company.json --out site`
    - `acpgen docs --protocol 1 --protocol 2 --out site`
    """
    from acpgen.output import LOCK_NAME, apply, read_manifest
    from acpgen.output.plan import compare
    from acpgen.reference.chapters import render_page

    if read_manifest(out) is not None:  # its files would count as those of the page, and be deleted
        message = f"the folder {out.as_posix()} has a package: it has the file {LOCK_NAME}"
        raise input_error("folder-refused", message, hint="give the page a folder of its own, such as site")
    plan = compare(out, {PAGE: render_page(given.compiled())})
    plan.raise_problems()
    apply(plan)
    if sys.stderr.isatty():
        print(f"{printable(str(out / PAGE))}: {'up to date' if plan.is_clean else 'written'}", file=sys.stderr)
