"""`acpgen config`: the settings in effect, and the origin of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acpgen.cli import parameters
from acpgen.cli.console import DataFormat, print_json, print_table

if TYPE_CHECKING:
    from acpgen.config.settings import Output

COLUMNS = ("output", "key", "value", "from")


@parameters.takes_outputs
def config_command(
    given: parameters.Given,
    names: Annotated[list[str] | None, parameters.outputs_argument("show")] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of [tool.acpgen], for editors, and exit.")
    ] = False,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """Show the settings of `acpgen build` with the same options, and the origin of each value.

    **Examples**

    - `acpgen config`
    - `acpgen config --format json`
    """
    if schema:
        from acpgen.config.keys import config_schema

        print_json(config_schema())
        return
    outputs = given.outputs(names)
    if form is DataFormat.JSON:
        print_json([_as_json(output) for output in outputs])
    else:
        print_table(COLUMNS, [row for output in outputs for row in _rows(output)])


def _rows(output: Output) -> list[list[str]]:
    return [
        [output.name or "-", setting.key, _shown(setting.value), setting.origin] for setting in output.settings.values()
    ]


def _shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(map(str, value)) or "-"
        case dict():
            return ", ".join(f"{old} = {new}" for old, new in value.items()) or "-"
        case _:
            return str(value)


def _plain(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value.as_posix() if isinstance(value, Path) else value


def _as_json(output: Output) -> dict[str, object]:
    return {
        "output": output.name,
        "settings": {
            setting.key: {
                "value": _plain(setting.value),
                "from": setting.origin,
            }
            for setting in output.settings.values()
        },
    }
