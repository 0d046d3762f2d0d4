"""The options that several commands share. Names and help texts come from the table in `config.keys`."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from acpgen.cli import completion
from acpgen.cli.console import DataFormat, DiagnosticFormat
from acpgen.config import SchemaChoice
from acpgen.config.keys import KEYS, Key
from acpgen.config.pyproject import NAME, ConfigFile, find_config, read_config
from acpgen.config.settings import Output, outputs_to_build, sources_in_effect, types_in_effect
from acpgen.diagnostics import InputError, input_error
from acpgen.flavours import Flavour
from acpgen.ir.options import Options
from acpgen.roles import RoleChoice
from acpgen.sources.inputs import user_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of a command line, not yet combined with a configuration.

    `values` has the value of each key; None means that the option is not given. `output` is the name of a configured
    output.
    """

    values: dict[str, Any]
    config_file: Path | None
    no_config: bool
    output: str | None = None

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

    def watched(self, names: Sequence[str] | None = None) -> set[Path]:
        """The user's files that decide the result. A broken configuration counts, without the files that it names."""
        files: set[Path] = set()
        try:
            config = self.config()
            files |= {config.path} if config else set()
            for output in self.outputs(names):
                for sources in output.sources:
                    files |= user_files(sources)
        except InputError:
            files.add(self.config_file or Path(NAME))
        return files


def _arguments(key: Key, value: Any) -> list[str]:
    name = key.option or ""
    match value:
        case bool():
            return [name.split("/")[0 if value else 1]]
        case tuple():
            return [word for each in value for word in (name, str(each))]
        case dict():
            return [word for number, each in value.items() for word in (name, f"{number}={each}")]
        case Path():
            return [name, value.as_posix()]
        case _:
            return [name, str(value)]


_COMPLETION = {"release": completion.releases, "extensions": completion.extensions}


def option(key: str, **more: Any) -> Any:
    """The option of the command line for a key of the table."""
    found = KEYS[key]
    declarations = [declaration for declaration in (found.option, found.short) if declaration is not None]
    return typer.Option(
        *declarations,
        help=f"{found.help} The default is {found.default_text}." if found.default_text else found.help,
        metavar=found.metavar,
        autocompletion=_COMPLETION.get(key),
        **more,
    )


Protocol = Annotated[list[int] | None, option("protocol", min=1)]
Release = Annotated[list[str] | None, option("release")]
Schema = Annotated[list[str] | None, option("schema")]
Extension = Annotated[list[str] | None, option("extensions")]
ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", help="The pyproject.toml to read, instead of the nearest one.", metavar="PATH"),
]
NoConfig = Annotated[bool, typer.Option("--no-config", help="Read no pyproject.toml.")]
OutputName = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="Take the schema and the extensions of this configured output.",
        metavar="NAME",
        autocompletion=completion.outputs,
    ),
]
Form = Annotated[DataFormat, typer.Option("--format", help="The format of the result.")]
DiagnosticForm = Annotated[DiagnosticFormat, typer.Option("--format", help="The format of diagnostics.")]


def outputs_argument(verb: str) -> Any:
    """The argument of a command that takes names of configured outputs."""
    return typer.Argument(
        help=f"The configured outputs to {verb}. The default is all.",
        metavar="OUTPUT",
        autocompletion=completion.outputs,
    )


def _source_options(
    protocol: Protocol = None,
    release: Release = None,
    schema: Schema = None,
    extension: Extension = None,
    output: OutputName = None,
    config: ConfigPath = None,
    no_config: NoConfig = False,
) -> Given:
    values = given_sources(protocol, release, schema, extension)
    return Given(values=values, config_file=config, no_config=no_config, output=output)


def given_sources(
    protocol: Sequence[int] | None,
    release: Sequence[str] | None,
    schema: Sequence[str] | None,
    extension: Sequence[str] | None,
) -> dict[str, Any]:
    """The values of the options that select schemas, by key. Raises `InputError` for a mixture of forms."""
    paths = _by_protocol("schema", schema)
    by_protocol = {number: Path(path) for number, path in paths.items()} if isinstance(paths, dict) else None
    return {
        "protocol": protocol[0] if protocol and len(protocol) == 1 else tuple(protocol or ()) or None,
        "release": _by_protocol("release", release),
        "schema": by_protocol or (Path(paths) if isinstance(paths, str) else None),
        "extensions": tuple(extension) if extension else None,
    }


_OF_PROTOCOL = re.compile(r"([1-9][0-9]{0,3})=(.+)")


def _by_protocol(key: str, values: Sequence[str] | None) -> str | dict[int, str] | None:
    """The one value of an option, or a table of those in the form `N=VALUE`."""
    matches = [_OF_PROTOCOL.fullmatch(value) for value in values or ()]
    table = {int(match[1]): match[2] for match in matches if match}
    if len(table) == len(matches):
        return table or None
    if len(matches) == 1:
        return (values or [""])[0]
    hint = f"with several, write --{key} 1=… --{key} 2=…, one for each protocol"
    raise input_error("usage", f"--{key} is given {len(matches)} times", hint=hint)


def _output_options(
    out: Annotated[Path | None, option("out")] = None,
    role: Annotated[RoleChoice | None, option("role")] = None,
    flavour: Annotated[Flavour | None, option("flavour")] = None,
    protocol: Protocol = None,
    release: Release = None,
    schema: Schema = None,
    extension: Extension = None,
    open_: Annotated[bool | None, option("open")] = None,
    keep_unknown: Annotated[bool | None, option("keep-unknown")] = None,
    runtime: Annotated[bool | None, option("runtime")] = None,
    remote: Annotated[bool | None, option("remote")] = None,
    strict: Annotated[bool | None, option("strict")] = None,
    config: ConfigPath = None,
    no_config: NoConfig = False,
) -> Given:
    values = {
        **_source_options(protocol, release, schema, extension).values,
        "out": out,
        "role": role.value if role else None,
        "flavour": flavour.value if flavour else None,
        "open": open_,
        "keep-unknown": keep_unknown,
        "runtime": runtime,
        "remote": remote,
        "strict": strict,
    }
    return Given(values=values, config_file=config, no_config=no_config)


CommandFunction = Callable[..., None]


def _with_options(gather: Callable[..., Given], *, without: str = "") -> Callable[[CommandFunction], CommandFunction]:
    """A decorator that replaces the parameter `given` of a command by the parameters of `gather`, but for `without`.

    The signature is the one that typer reads. Parameters that the command has itself replace equal ones.
    """

    def decorate(command: CommandFunction) -> CommandFunction:
        own = inspect.signature(command, eval_str=True)
        has = {without, *own.parameters}
        shared = [each for name, each in inspect.signature(gather, eval_str=True).parameters.items() if name not in has]

        @wraps(command)
        def wrapper(**values: Any) -> None:
            given = gather(**{each.name: values.pop(each.name) for each in shared})
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


takes_sources = _with_options(_source_options)
"""Adds the options that select the schema."""
takes_schema = _with_options(_source_options, without="extension")
"""Adds the options that select the schema, without extensions."""
takes_outputs = _with_options(_output_options)
"""Adds the options of a build."""
