"""The options that several commands share, each with one help text."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from acpgen.cli import completion
from acpgen.config import Sources
from acpgen.config.pyproject import NAME, ConfigFile, find_config, read_config
from acpgen.config.settings import Output, outputs_to_build, sources_in_effect, types_in_effect
from acpgen.diagnostics import InputError
from acpgen.ir.model import Options, Role
from acpgen.sources.inputs import user_files


class RoleChoice(str, Enum):
    """What to generate for."""

    AGENT = "agent"
    CLIENT = "client"
    BOTH = "both"

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that the choice stands for."""
        return tuple(Role) if self is RoleChoice.BOTH else (Role(self.value),)


class DataFormat(str, Enum):
    """How data is printed on stdout."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options of the command line say, not yet put together with a configuration.

    `wishes` are values by the key that they have there; None is not said. `output` is the name of a configured one.
    """

    wishes: dict[str, Any]
    config_file: Path | None
    no_config: bool
    output: str | None = None

    def config(self) -> ConfigFile | None:
        """The configuration that holds. Raises `InputError` for one that cannot be used."""
        if self.no_config:
            return None
        return read_config(self.config_file) if self.config_file else find_config(Path.cwd())

    def outputs(self, names: Sequence[str] | None = None) -> tuple[Output, ...]:
        """The outputs that are meant: all that are configured, or those with `names`. Raises `InputError`."""
        return outputs_to_build(self.config(), self.wishes, names or ())

    def is_everything(self, names: Sequence[str] | None = None) -> bool:
        """Whether all outputs are meant that there are."""
        return not names and self.wishes.get("out") is None

    def build_command(self, names: Sequence[str] | None = None) -> str:
        """The command that builds what is meant."""
        words = ["acpgen", "build", *(names or ())]
        for key, value in self.wishes.items():
            if value is not None:
                words += _arguments(key, value)
        if self.config_file is not None:
            words += ["--config", self.config_file.as_posix()]
        return shlex.join([*words, *(["--no-config"] if self.no_config else [])])

    def sources(self) -> Sources:
        """The schema and the extensions that are meant. Raises `InputError`."""
        return sources_in_effect(self.config(), self.wishes, self.output)

    def types(self) -> Options:
        """What is chosen about the types in the packages that are meant. Raises `InputError`."""
        return types_in_effect(self.config(), self.wishes, self.output)

    def watched(self, names: Sequence[str] | None = None) -> set[Path]:
        """The files of the user's that decide what comes out; those that cannot be told now are left out."""
        files: set[Path] = set()
        try:
            config = self.config()
            files |= {config.path} if config else set()
            for output in self.outputs(names):
                files |= user_files(output.sources)
        except InputError:
            files.add(self.config_file or Path(NAME))
        return files


def _arguments(key: str, value: Any) -> list[str]:
    match value:
        case bool():
            return [f"--{key}" if value else f"--no-{key}"]
        case tuple():
            return [word for each in value for word in (f"--{key.removesuffix('s')}", str(each))]
        case Path():
            return [f"--{key}", value.as_posix()]
        case _:
            return [f"--{key}", str(value)]


Protocol = Annotated[
    int | None, typer.Option("--protocol", help="The version of the protocol, 1 (the default) or 2.", metavar="N")
]
Release = Annotated[
    str | None,
    typer.Option(
        "--release",
        help="A bundled schema by release; the newest by default.",
        metavar="NAME",
        autocompletion=completion.releases,
    ),
]
Schema = Annotated[
    Path | None, typer.Option("--schema", help="A schema file to use instead of a bundled one.", metavar="PATH")
]
Extension = Annotated[
    list[str] | None,
    typer.Option(
        "--extension",
        "-e",
        help="An extension to compose with the schema: a bundled one by name, or a file. Repeatable.",
        metavar="NAME[@REVISION]|PATH",
        autocompletion=completion.extensions,
    ),
]
ConfigPath = Annotated[
    Path | None,
    typer.Option("--config", help="The pyproject.toml to read, instead of the nearest one above.", metavar="PATH"),
]
NoConfig = Annotated[bool, typer.Option("--no-config", help="Read no pyproject.toml.")]
OutputName = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="Take schema and extensions from this configured output.",
        metavar="NAME",
        autocompletion=completion.outputs,
    ),
]


def _source_options(
    protocol: Protocol = None,
    release: Release = None,
    schema: Schema = None,
    extension: Extension = None,
    output: OutputName = None,
    config: ConfigPath = None,
    no_config: NoConfig = False,
) -> Asked:
    wishes = {
        "protocol": protocol,
        "release": release,
        "schema": schema,
        "extensions": tuple(extension) if extension else None,
    }
    return Asked(wishes=wishes, config_file=config, no_config=no_config, output=output)


def _output_options(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the package; made where it is missing.", metavar="FOLDER"),
    ] = None,
    role: Annotated[
        RoleChoice | None, typer.Option("--role", help="What you write: an agent (the default), a client, or both.")
    ] = None,
    protocol: Protocol = None,
    release: Release = None,
    schema: Schema = None,
    extension: Extension = None,
    open_: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Take tags and values of enumerations not known yet; on if you write a client."
        ),
    ] = None,
    keep_unknown: Annotated[
        bool | None,
        typer.Option("--keep-unknown/--no-keep-unknown", help="Keep properties that have no name in `extra`."),
    ] = None,
    runtime: Annotated[
        bool | None,
        typer.Option("--runtime/--no-runtime", help="Add what talks JSON-RPC over stdio and other transports."),
    ] = None,
    strict: Annotated[
        bool | None, typer.Option("--strict/--no-strict", help="Treat warnings about the schema as errors.")
    ] = None,
    config: ConfigPath = None,
    no_config: NoConfig = False,
) -> Asked:
    wishes = {
        **_source_options(protocol, release, schema, extension).wishes,
        "out": out,
        "role": role.value if role else None,
        "open": open_,
        "keep-unknown": keep_unknown,
        "runtime": runtime,
        "strict": strict,
    }
    return Asked(wishes=wishes, config_file=config, no_config=no_config)


CommandFunction = Callable[..., None]


def takes_sources(command: CommandFunction) -> CommandFunction:
    """Give a command the options that say which schema to read; it gets them as `asked`."""
    return _with_options(command, _source_options)


def takes_schema(command: CommandFunction) -> CommandFunction:
    """Give a command the options that say which schema to read, without extensions; it gets them as `asked`."""
    return _with_options(command, _source_options, without="extension")


def takes_outputs(command: CommandFunction) -> CommandFunction:
    """Give a command the options that say what to build; it gets them as `asked`, but for those that it has itself."""
    return _with_options(command, _output_options)


def _with_options(command: CommandFunction, gather: Callable[..., Asked], without: str = "") -> CommandFunction:
    """`command` with the parameters of `gather` in the place of its parameter `asked`, as typer will see them."""
    own = inspect.signature(command, eval_str=True)
    has = {without, *own.parameters}
    shared = [each for name, each in inspect.signature(gather, eval_str=True).parameters.items() if name not in has]

    @wraps(command)
    def wrapper(**values: Any) -> None:
        asked = gather(**{each.name: values.pop(each.name) for each in shared})
        command(asked=asked, **values)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, each in own.parameters.items()
        for parameter in (shared if name == "asked" else [each])
    ]
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper
