"""The parameters that several commands share. Those of a build follow from the table in `config.keys`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from acpgen.cli import completion
from acpgen.cli.console import DataFormat, DiagnosticFormat
from acpgen.cli.given import Given
from acpgen.config.keys import KEYS, Key
from acpgen.config.kinds import ValueKind

_COMPLETION = {"release": completion.releases, "extensions": completion.extensions, "with": completion.parts}


def option(key: str, **more: Any) -> Any:
    """The option of the command line for a key of the table. `more` overrides what that says."""
    found = KEYS[key]
    declarations = [declaration for declaration in (found.option, found.short) if declaration is not None]
    options: dict[str, Any] = {
        "help": f"{found.help} The default is {found.default_text}." if found.default_text else found.help,
        "metavar": found.metavar,
        "autocompletion": _COMPLETION.get(key),
        **more,
    }
    return typer.Option(*declarations, **options)


def _of_key(key: Key) -> inspect.Parameter:
    kind: Any = key.enum or key.kind.parameter
    limits: dict[str, Any] = {"min": 1} if key.kind is ValueKind.PROTOCOLS else {}
    return _parameter(key.parameter, Annotated[kind | None, option(key.name, **limits)], None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _refuse_remote(is_given: bool) -> None:
    if is_given:
        raise typer.BadParameter("it is a part now: use --with remote, besides the other parts, as in --with turns")


_FORMER = _parameter(
    "remote",
    Annotated[bool, typer.Option("--remote", hidden=True, callback=_refuse_remote, help="Refused: it is a part now.")],
    False,
)
"""Former options."""

_OUTPUT = _parameter(
    "output",
    Annotated[
        str | None,
        typer.Option(
            "--output",
            help="Take the schema and the extensions of this configured output.",
            metavar="NAME",
            autocompletion=completion.outputs,
        ),
    ],
    None,
)
_CONFIG = (
    _parameter(
        "config",
        Annotated[
            Path | None,
            typer.Option("--config", help="The pyproject.toml to read, instead of the nearest one.", metavar="PATH"),
        ],
        None,
    ),
    _parameter("no_config", Annotated[bool, typer.Option("--no-config", help="Read no pyproject.toml.")], False),
)

Form = Annotated[DataFormat, typer.Option("--format", help="The format of the result.")]
DiagnosticForm = Annotated[DiagnosticFormat, typer.Option("--format", help="The format of diagnostics.")]


def outputs_argument(verb: str) -> Any:
    """The argument of a command that takes names of configured outputs."""
    return typer.Argument(
        help=f"The configured outputs to {verb}. The default is all.",
        metavar="OUTPUT",
        autocompletion=completion.outputs,
    )


CommandFunction = Callable[..., None]


def _takes(keys: Iterable[str], *others: inspect.Parameter) -> Callable[[CommandFunction], CommandFunction]:
    """A decorator that replaces the parameter `given` of a command by the options of `keys`, and by `others`.

    The signature is the one that typer reads. Parameters that the command has itself replace equal ones.
    """

    def decorate(command: CommandFunction) -> CommandFunction:
        own = inspect.signature(command, eval_str=True)
        options = (*(_of_key(KEYS[key]) for key in keys), *others)
        shared = [each for each in options if each.name not in own.parameters]

        @wraps(command)
        def wrapper(**values: Any) -> None:
            given = Given.of({each.name: values.pop(each.name) for each in shared})
            command(given=given, **values)

        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, each in own.parameters.items()
            for parameter in (shared if name == "given" else [each])
        ]
        wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
        return wrapper

    return decorate


takes_sources = _takes(("protocol", "release", "schema", "extensions"), _OUTPUT, *_CONFIG)
"""Adds the options that select the schema."""
takes_schema = _takes(("protocol", "release", "schema"), _OUTPUT, *_CONFIG)
"""Adds the options that select the schema, without extensions."""
takes_outputs = _takes([key.name for key in KEYS.values() if key.option], *_CONFIG, _FORMER)
"""Adds the options of a build."""
takes_project = _takes(("protocol", "release", "extensions"), _FORMER)
"""Adds the options of a new project, which has no configuration yet."""
