"""The typer app with its commands."""

from __future__ import annotations

from typing import Annotated

import typer

import acpgen
from acpgen.cli.build import build_command
from acpgen.cli.check import check_command
from acpgen.cli.config import config_command
from acpgen.cli.diff import diff_command
from acpgen.cli.docs import docs_command
from acpgen.cli.init import init_command
from acpgen.cli.listing import extensions_command, methods_command, parts_command
from acpgen.cli.rfd import rfd_app
from acpgen.cli.show import show_command
from acpgen.cli.trace import trace_command


def make_app() -> typer.Typer:
    """The app with all commands, in the order of the help."""
    app = typer.Typer(
        name="acpgen",
        help="Compile the Agent Client Protocol's schema into a small, typed Python package without dependencies.",
        epilog="Exit codes: 0 fine, 1 findings, 2 usage or input, 3 a bug in acpgen.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(_global_options)
    app.command("build")(build_command)
    app.command("check")(check_command)
    app.command("config")(config_command)
    app.command("diff")(diff_command)
    app.command("extensions")(extensions_command)
    app.command("methods")(methods_command)
    app.command("parts")(parts_command)
    app.command("show")(show_command)
    app.command("trace")(trace_command)
    app.command("docs")(docs_command)
    app.command("init")(init_command)
    app.add_typer(rfd_app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"acpgen {acpgen.__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    """The options before the command. Each acts on its own."""
