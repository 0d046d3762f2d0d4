"""The options of a command line by key, before they are combined with a configuration."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acpgen.cli.console import print_diagnostics
from acpgen.config import SchemaChoice
from acpgen.config.keys import KEYS
from acpgen.config.kinds import from_command_line, to_command_line
from acpgen.config.pyproject import ConfigFile, find_config, read_config
from acpgen.config.settings import Output, outputs_to_build, sources_in_effect, types_in_effect
from acpgen.diagnostics import InputError, input_error
from acpgen.ir.options import Options
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
        keys = [(key, option) for key in KEYS.values() if (option := key.option) is not None]
        return cls(
            values={
                key.name: from_command_line(key.kind, parameters.get(key.parameter), option) for key, option in keys
            },
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
                words += to_command_line(KEYS[key].kind, value, KEYS[key].option or "")
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
