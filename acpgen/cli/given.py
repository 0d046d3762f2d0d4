"""The options of a command line by key, before they are combined with a configuration."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acpgen.cli.console import print_diagnostics
from acpgen.config import SchemaChoice
from acpgen.config.keys import KEYS, Key, ValueKind
from acpgen.config.pyproject import ConfigFile, find_config, read_config
from acpgen.config.settings import Output, outputs_to_build, sources_in_effect, types_in_effect
from acpgen.diagnostics import InputError, input_error
from acpgen.ir.options import Options
from acpgen.parts import NO_PART
from acpgen.sources.inputs import user_files

if TYPE_CHECKING:
    from acpgen.pipeline import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of a command line.

    `values` has the value of each key; None means that the option is not given. `output` is the name of a configured
    output.
    """

    values: dict[str, Any]
    config_file: Path | None
    no_config: bool
    output: str | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Given:
        """Read the parameters of a command by name. Raises `InputError` for a mixture of forms."""
        config = parameters.get("config")
        return cls(
            values={key.name: _value(key, parameters.get(key.parameter)) for key in KEYS.values() if key.option},
            config_file=Path(config) if config else None,
            no_config=bool(parameters.get("no_config")),
            output=parameters.get("output"),
        )

    def config(self) -> ConfigFile | None:
        """The configuration in effect. Raises `InputError` for one that cannot be used."""
        if self.no_config:
            return None
        return read_config(self.config_file) if self.config_file else find_config(Path.cwd())

    def outputs(self, names: Sequence[str] | None = None) -> tuple[Output, ...]:
        """The selected outputs: those with `names`, or all that are configured. Raises `InputError`."""
        return outputs_to_build(self.config(), self.values, names or ())

    def is_everything(self, names: Sequence[str] | None = None) -> bool:
        """Whether all outputs are selected."""
        return not names and self.values.get("out") is None

    def build_command(self, names: Sequence[str] | None = None) -> str:
        """The command that builds the selected outputs."""
        words = ["acpgen", "build", *(names or ())]
        for key, value in self.values.items():
            if value is not None:
                words += _arguments(KEYS[key], value)
        if self.config_file is not None:
            words += ["--config", self.config_file.as_posix()]
        return shlex.join([*words, *(["--no-config"] if self.no_config else [])])

    def sources(self) -> tuple[SchemaChoice, ...]:
        """The selected schemas and their extensions. Raises `InputError`."""
        return sources_in_effect(self.config(), self.values, self.output)

    def one_protocol(self) -> SchemaChoice:
        """The selected schema, for a command that reads one. Raises `InputError` if there are several."""
        sources = self.sources()
        if len(sources) > 1:
            hint = f"choose one with --protocol {sources[0].protocol}"
            raise input_error("several-protocols", "this command needs the schema of one protocol", hint=hint)
        return sources[0]

    def types(self) -> Options:
        """The options for the types of the selected outputs. Raises `InputError`."""
        return types_in_effect(self.config(), self.values, self.output)

    def compiled(self, types: Options | None = None) -> list[Compiled]:
        """The selected schemas, compiled with the extensions that fit. Prints warnings. Raises `InputError`."""
        from acpgen.pipeline import compile_protocol
        from acpgen.sources.inputs import load_all

        inputs, _ = load_all(self.sources())
        options = types or self.types()
        compiled = [compile_protocol(each, options) for each in inputs]
        print_diagnostics([found for each in compiled for found in each.diagnostics], notes=False)
        return compiled

    def input_files(self) -> set[Path]:
        """The schemas and extensions that the outputs name by path; none of a broken configuration."""
        with suppress(InputError):
            return {path for output in self.outputs() for sources in output.sources for path in user_files(sources)}
        return set()


def _arguments(key: Key, value: Any) -> list[str]:
    name = key.option or ""
    match value:
        case bool():
            return [name.split("/")[0 if value else 1]]
        case () if key.kind is ValueKind.PARTS:
            return [name, NO_PART]
        case tuple():
            return [word for each in value for word in (name, str(each))]
        case dict():
            return [word for number, each in value.items() for word in (name, f"{number}={each}")]
        case Path():
            return [name, value.as_posix()]
        case _:
            return [name, str(value)]


def _value(key: Key, given: Any) -> Any:
    """The value of a key, from the parameter of its option; None if the option is not given."""
    if given is None or given in ((), []):
        return None
    match key.kind:
        case ValueKind.CHOICE:
            return given.value
        case ValueKind.PROTOCOLS:
            numbers = tuple(map(int, given))
            return numbers[0] if len(numbers) == 1 else numbers
        case ValueKind.NAME_BY_PROTOCOL:
            return _by_protocol(key, given)
        case ValueKind.PATH_BY_PROTOCOL:
            paths = _by_protocol(key, given)
            if isinstance(paths, dict):
                return {number: Path(path) for number, path in paths.items()}
            return Path(paths)
        case ValueKind.SPECS:
            return tuple(given)
        case ValueKind.PARTS:
            return _named_parts(key, given)
        case _:
            return given


def _named_parts(key: Key, given: Sequence[str]) -> tuple[str, ...]:
    if NO_PART not in given:
        return tuple(given)
    if len(given) > 1:
        raise input_error("usage", f"{key.option} {NO_PART} is for a package without parts", hint="give it alone")
    return ()


_OF_PROTOCOL = re.compile(r"([1-9][0-9]{0,3})=(.+)")


def _by_protocol(key: Key, values: Sequence[str]) -> str | dict[int, str]:
    """The one value of an option, or a table of those in the form `N=VALUE`."""
    matches = [_OF_PROTOCOL.fullmatch(value) for value in values]
    table = {int(match[1]): match[2] for match in matches if match}
    if len(table) == len(matches):
        return table
    if len(matches) == 1:
        return values[0]
    hint = f"with several, write {key.option} 1=… {key.option} 2=…, one for each protocol"
    raise input_error("usage", f"{key.option} is given {len(matches)} times", hint=hint)
