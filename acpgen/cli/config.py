"""`acpgen config`: the settings in effect, and the origin of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from acpgen.cli import parameters
from acpgen.cli.console import DataFormat, print_json, print_table
from acpgen.cli.given import Given
from acpgen.diagnostics import InputError

if TYPE_CHECKING:
    from acpgen.config.settings import Output, Setting

COLUMNS = ("output", "key", "value", "from")


@parameters.takes_outputs
def config_command(
    given: Given,
    names: Annotated[list[str] | None, parameters.outputs_argument("show")] = None,
    form: parameters.Form = DataFormat.TEXT,
) -> None:
    """Show the settings of `acpgen build` with the same options, and the origin of each value.

    **Examples**

    - `acpgen config`
    - `acpgen config --format json`
    """
    outputs = given.outputs(names)
    if form is DataFormat.JSON:
        print_json([_as_json(output) for output in outputs])
    else:
        rows = [(output.name or "-", each) for output in outputs for each in _in_effect(output)]
        print_table(COLUMNS, [[name, each.key, _shown(each.value), each.origin] for name, each in rows])


def _in_effect(output: Output) -> Iterator[Setting]:
    """The settings, with the name of the newest release where it is the default."""
    for setting in output.settings.values():
        yield _with_newest(setting, output) if setting.key == "release" else setting


def _with_newest(release: Setting, output: Output) -> Setting:
    from acpgen.schema.bundled import newest_release

    if isinstance(release.value, str):
        return release
    found: dict[int, str] = {}
    with suppress(InputError):  # the settings are shown, even if a build refuses them
        bundled = [each.protocol for each in output.sources if each.schema is None]
        found = {known.protocol: known.name for known in map(newest_release, bundled) if known is not None}
    if release.value is not None:
        origin = release.origin if release.value.keys() >= found.keys() else f"{release.origin}, default"
        return replace(release, value={**found, **release.value}, origin=origin)
    return replace(release, value=found if len(found) > 1 else next(iter(found.values()), None))


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
            setting.key: {"value": _plain(setting.value), "from": setting.origin} for setting in _in_effect(output)
        },
    }
