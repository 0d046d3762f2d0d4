"""`acpgen init`: write a new project that runs."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from acpgen.cli import options
from acpgen.cli.console import print_diagnostics
from acpgen.config import DEFAULT_PROTOCOL, Sources
from acpgen.ir.model import Role
from acpgen.output import apply
from acpgen.scaffold import Project, plan_project
from acpgen.text import printable


class ProjectRole(str, Enum):
    """The kinds of projects."""

    AGENT = "agent"
    CLIENT = "client"


def init_command(
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder of the project, new or empty. The name of the project is that of the folder.",
            metavar="FOLDER",
        ),
    ],
    role: Annotated[
        ProjectRole, typer.Option("--role", help="What you write: an agent or a client.")
    ] = ProjectRole.AGENT,
    protocol: options.Protocol = None,
    extension: options.Extension = None,
) -> None:
    """Write a new project that runs: a package with the vendored code, tests, and instructions.

    The agent streams each prompt back, and asks for permission before a pretended edit. The client is a chat in the
    terminal.

    **Examples**

    - `acpgen init my-agent`
    - `acpgen init my-client --role client --protocol 2`
    """
    sources = Sources(protocol=protocol or DEFAULT_PROTOCOL, extensions=tuple(extension or ()))
    plan, diagnostics = plan_project(Project(folder=folder, role=Role(role.value), sources=sources))
    print_diagnostics(diagnostics, notes=False)
    apply(plan)
    if sys.stderr.isatty():
        print(f"{printable(str(folder))}: {len(plan.files)} files; README.md says how to run it", file=sys.stderr)
