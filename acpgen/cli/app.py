"""The typer app with its commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

import acpgen
from acpgen.cli.command import command_of

COMMANDS: Mapping[str, str] = {
    "build": "build_command",
    "check": "check_command",
    "config": "config_command",
    "diff": "diff_command",
    "extensions": "extensions_command",
    "methods": "methods_command",
    "show": "show_command",
    "init": "init_command",
    "rfd": "rfd_app",
}
"""The commands in the order of the help: each has a module of its own here, and in it a function or an app."""


def make_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The app for a command line without the name of the program.

    Where that begins with a command, the app has no other: a build in CI does not wait for what it does not use.
    """
    is_command = bool(arguments) and arguments[0] in COMMANDS and "_ACPGEN_COMPLETE" not in os.environ
    app = typer.Typer(
        name="acpgen",
        help="Compile the Agent Client Protocol's schema into a small, typed Python package without dependencies.",
        epilog="Exit codes: 0 fine, 1 findings, 2 usage or input, 3 a bug in acpgen.",
        no_args_is_help=True,
        add_completion=not is_command,  # what stands before commands is not there, and takes time all the same
        add_help_option=not is_command,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_acpgen_options)
    for name in arguments[:1] if is_command else COMMANDS:
        found = getattr(import_module(f"acpgen.cli.{name}"), COMMANDS[name])
        if isinstance(found, typer.Typer):
            app.add_typer(found)
        else:
            app.command(name, cls=command_of(found))(found)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"acpgen {acpgen.__version__}")
        raise typer.Exit


def _acpgen_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and stop.")
    ] = False,
) -> None:
    """The options before the command; each acts on its own."""
