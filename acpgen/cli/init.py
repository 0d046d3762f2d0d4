"""`acpgen init`: write a new project that runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from acpgen.cli import parameters
from acpgen.cli.console import print_diagnostics
from acpgen.cli.given import Given
from acpgen.config.settings import sources_in_effect
from acpgen.roles import Role
from acpgen.text import printable

*_FIRST, _LAST = (role.record.noun for role in Role)
_PARTS = "A part besides those that the project uses: see `acpgen parts`. Repeatable."
_ROLES = f"What you write: {', '.join(_FIRST)} or {_LAST}."


@parameters.takes_project
def init_command(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder of the project, new or empty. The name of the project is that of the folder.",
            metavar="FOLDER",
        ),
    ],
    role: Annotated[Role, typer.Option("--role", help=_ROLES)] = Role.AGENT,
    parts: Annotated[list[str] | None, parameters.option("with", help=_PARTS)] = None,
    *,
    given: Given,
) -> None:
    """Write a new project that runs: a package with the vendored code, tests, and instructions.

    The agent streams each prompt back, and asks for permission before a pretended edit. The client is a chat in the
    terminal. The proxy asks the user before an agent writes outside the folders of a session.

    **Examples**

    - `acpgen init my-agent`
    - `acpgen init my-client --role client --protocol 2`
    - `acpgen init my-proxy --role proxy`
    - `acpgen init my-agent --protocol 1 --protocol 2`
    """
    from acpgen.output import apply
    from acpgen.scaffold import Project, plan_project

    sources = sources_in_effect(None, given.values)
    plan, diagnostics = plan_project(Project(folder=folder, role=role, sources=sources, parts=tuple(parts or ())))
    print_diagnostics(diagnostics, notes=False)
    apply(plan)
    where = printable(folder.as_posix())
    next_step = f"next, run `python -m unittest` in it, and read {where}/README.md"
    print(f"{where}: {len(plan.files)} files written; {next_step}", file=sys.stderr)
