"""Combine the command line, the configuration file and the defaults into the outputs to build."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from acpgen.config.keys import KEYS, OUTPUTS, BuildOptions, SchemaChoice, role_defaults
from acpgen.config.kinds import from_file
from acpgen.config.package_name import check_package_name
from acpgen.config.pyproject import ConfigFile, from_here
from acpgen.diagnostics import InputError, input_error
from acpgen.flavours import Flavour
from acpgen.ir.options import Options
from acpgen.parts import check_parts, default_parts
from acpgen.roles import Role, RoleChoice, Side
from acpgen.text import did_you_mean

COMMAND_LINE = "command line"
DEFAULT = "default"

_BY_PROTOCOL = ("release", "schema")
"""The keys whose value may be a table by protocol."""

_NO_OUTPUT = 'name the folder with --out, or in [tool.acpgen] of pyproject.toml: out = "src/my_agent/acp"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value in effect. `origin` is a place in a file, the command line, or the default."""

    key: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One package to build. `name` is None for an output without a table of its own."""

    name: str | None
    settings: Mapping[str, Setting]

    def __getitem__(self, key: str) -> Any:
        """The value of a key."""
        return self.settings[key].value

    @property
    def sources(self) -> tuple[SchemaChoice, ...]:
        """The schema of each protocol, and its extensions. Raises `InputError` for a value of another protocol."""
        protocols = _protocols(self["protocol"])
        for key in _BY_PROTOCOL:
            _check_protocols(self.settings[key], protocols)
        return tuple(
            SchemaChoice(
                protocol=protocol,
                release=_for_protocol(self["release"], protocol),
                schema=_for_protocol(self["schema"], protocol),
                extensions=tuple(self["extensions"]),
            )
            for protocol in protocols
        )

    @property
    def flavour(self) -> Flavour | None:
        """The library for which there are types alone."""
        return Flavour(self["flavour"]) if self["flavour"] else None

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles; types alone read messages of either side."""
        return (RoleChoice.BOTH if self.flavour else RoleChoice(self["role"])).roles

    @property
    def types(self) -> Options:
        """The options for the types."""
        return Options.for_roles(self.roles, open=self["open"], keep_unknown=self["keep-unknown"])

    @property
    def options(self) -> BuildOptions:
        """The options for `pipeline.build`. Raises `InputError` as `sources` does, and for parts that cannot be."""
        fields = {each.name for each in dataclasses.fields(BuildOptions)}
        taken = {key.parameter: self[key.name] for key in KEYS.values() if key.parameter in fields}
        taken |= {"renames": tuple(sorted(self["renames"].items())), "flavour": self.flavour}
        sources = self.sources
        if self.flavour is None:
            _check_runtime(self.settings)
            parts, protocols = self.settings["with"], [each.protocol for each in sources]
            check_parts(parts.value, self.roles, protocols, origin=parts.origin)
        else:  # types alone have no runtime
            self._check_single(self.flavour)
            taken |= {"runtime": False, "parts": ()}
        return BuildOptions(sources=sources, roles=self.roles, types=self.types, **taken)

    def _check_single(self, flavour: Flavour) -> None:
        if len(sources := self.sources) > 1:
            message = f"--flavour {flavour.value} ({self.settings['flavour'].origin}) is for one protocol"
            hint = (
                f"choose it with --protocol {sources[0].protocol}; in a file, give each protocol an output of its own"
            )
            raise input_error("usage", message, hint=hint)


def _check_runtime(settings: Mapping[str, Setting]) -> None:
    role, runtime = settings["role"], settings["runtime"]
    if not runtime.value and any(each.record.needs_runtime for each in RoleChoice(role.value).roles):
        message = f"--role {role.value} ({role.origin}) needs --runtime, which is off ({runtime.origin})"
        hint = "most of what its class does is done by the runtime: use --runtime"
        raise input_error("usage", message, hint=hint)


def _protocols(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(sorted(set(value)))


def _for_protocol(value: Any, protocol: int) -> Any:
    """The value for a protocol, of a value for all or of a table by protocol."""
    return value.get(protocol) if isinstance(value, dict) else value


def _check_protocols(setting: Setting, protocols: tuple[int, ...]) -> None:
    key, value = setting.key, setting.value
    if isinstance(value, dict):
        for protocol in sorted(value.keys() - set(protocols)):
            what = f"the {key} {str(value[protocol])!r} ({setting.origin}) is for protocol {protocol}"
            hint = f"add the protocol, with --protocol {protocol} or in the file, or remove the {key}"
            raise input_error("usage", f"{what}, which is not built", hint=hint)
    elif key == "schema" and value is not None and len(protocols) > 1:
        hint = f'write --schema {protocols[0]}=PATH, or a table in the file: schema = {{ {protocols[0]} = "PATH" }}'
        raise input_error("usage", f"the protocol of the schema {str(value)!r} is not named", hint=hint)


def outputs_to_build(
    config: ConfigFile | None, given: Mapping[str, Any], names: Sequence[str] = ()
) -> tuple[Output, ...]:
    """The outputs of a command, in the order of the file.

    `given` are the options of the command line by key; None means that an option is not given. `names` are outputs of
    the file. Without names, all outputs are meant, or the one whose folder the command line names. Raises `InputError`
    for unknown names, for outputs without a folder, and for two outputs with the same folder.
    """
    configured = _configured(config)
    chosen: list[tuple[str | None, _Levels]]
    if names:
        chosen = [(name, _named(name, configured)) for name in dict.fromkeys(names)]
    elif given.get("out") is not None:
        chosen = [next((each for each in configured.items() if _is_at(each[1], given["out"])), (None, _shared(config)))]
    else:
        chosen = list(configured.items())
    outputs = tuple(_output(name, levels, given) for name, levels in chosen)
    if not outputs:
        raise input_error("no-output", "no output is configured", hint=_NO_OUTPUT)
    _check_folders(outputs)
    return outputs


def sources_in_effect(
    config: ConfigFile | None, given: Mapping[str, Any], name: str | None = None
) -> tuple[SchemaChoice, ...]:
    """The schemas and extensions for a command that only shows them: those of the output `name`, or of all outputs.

    The command line wins. Raises `InputError` if no output is named and the outputs differ.
    """
    found = {output.sources for output in _selected_outputs(config, given, name)}
    return _only(found, "schemas", config)


def types_in_effect(config: ConfigFile | None, given: Mapping[str, Any], name: str | None = None) -> Options:
    """The options for the types, of the same outputs. Raises `InputError` as `sources_in_effect` does."""
    outputs = _selected_outputs(config, given, name)
    found = {output.types for output in outputs}
    if len(found) > 1:  # the default differs between roles, so it does not count; nor does what a role receives
        found = {
            replace(each.types, open=each["open"] and each.settings["open"].origin != DEFAULT, receivers=tuple(Side))
            for each in outputs
        }
    return _only(found, "choices of `open` or `keep-unknown`", config)


def _selected_outputs(config: ConfigFile | None, given: Mapping[str, Any], name: str | None) -> list[Output]:
    configured = _configured(config)
    levels = [_named(name, configured)] if name is not None else list(configured.values()) or [_shared(config)]
    return [_output(None, each, given) for each in levels]


_T = TypeVar("_T")


def _only(found: set[_T], what: str, config: ConfigFile | None) -> _T:
    if len(found) > 1:
        hint = f"choose one with --output {' or '.join(filter(None, _configured(config)))}"
        raise input_error("several-outputs", f"the outputs of pyproject.toml have different {what}", hint=hint)
    return found.pop()


_Levels = tuple[Mapping[str, Setting], ...]
"""The settings of each place, the nearest place first."""


def _shared(config: ConfigFile | None) -> _Levels:
    if config is None:
        return ()
    # `out` is not shared: two outputs cannot have the same folder
    return (_level(config, {key: value for key, value in config.shared.items() if key != "out"}),)


def _configured(config: ConfigFile | None) -> dict[str | None, _Levels]:
    if config is None:
        return {}
    if "out" in config.shared:
        return {None: (_level(config, config.shared),)}
    return {name: (_level(config, table, (OUTPUTS, name)), *_shared(config)) for name, table in config.outputs.items()}


def _level(config: ConfigFile, table: Mapping[str, Any], above: tuple[str, ...] = ()) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for key, value in table.items():
        place = config.place(*above, key)
        found = from_file(KEYS[key].kind, value, from_here(config.folder))
        settings[key] = Setting(key=key, value=found, origin=f"{place.file}:{place.line}")
    return settings


def _output(name: str | None, levels: _Levels, given: Mapping[str, Any]) -> Output:
    chosen = {key: value for key, value in given.items() if value is not None}
    from_command_line = {key: Setting(key=key, value=value, origin=COMMAND_LINE) for key, value in chosen.items()}
    settings = {key: Setting(key=key, value=spec.default, origin=DEFAULT) for key, spec in KEYS.items()}
    for level in (*reversed(levels), from_command_line):
        protocols = _protocols(level.get("protocol", settings["protocol"]).value)
        for key in _BY_PROTOCOL if "protocol" in level else ():
            settings[key] = _narrowed(settings[key], protocols)
        for key, setting in level.items():
            if excluded := KEYS[key].excludes:  # the nearer of the two wins
                settings[excluded] = _without(_like(settings[excluded], setting, protocols), setting)
        for key, setting in level.items():
            settings[key] = _merged(_like(settings[key], setting, protocols), setting)
    roles = RoleChoice(settings["role"].value).roles
    if settings["with"].value is None:
        settings["with"] = Setting(key="with", value=default_parts(roles), origin=DEFAULT)
    for key, default in role_defaults(roles).items():
        if settings[key].value is None:
            settings[key] = Setting(key=key, value=default, origin=DEFAULT)
    return Output(name=name, settings=settings)


def _narrowed(far: Setting, protocols: tuple[int, ...]) -> Setting:
    """The far value without the parts for protocols that a nearer place leaves out."""
    if not isinstance(far.value, dict):
        return far
    table = {number: each for number, each in far.value.items() if number in protocols}
    return replace(far, value=table) if table else replace(far, value=KEYS[far.key].default, origin=DEFAULT)


def _like(far: Setting, near: Setting, protocols: tuple[int, ...]) -> Setting:
    """The far value as a table, if the near one is a table by protocol, and the far one is for all protocols."""
    if near.key not in _BY_PROTOCOL or not isinstance(near.value, dict):
        return far
    is_plain = far.value is not None and not isinstance(far.value, dict)
    return replace(far, value=dict.fromkeys(protocols, far.value)) if is_plain else far


def _without(far: Setting, near: Setting) -> Setting:
    """The far value, which a near one of another key excludes; a table keeps the other protocols."""
    is_kept = isinstance(far.value, dict) and isinstance(near.value, dict)
    table = {number: each for number, each in far.value.items() if number not in near.value} if is_kept else {}
    return replace(far, value=table) if table else replace(far, value=KEYS[far.key].default, origin=DEFAULT)


def _merged(far: Setting, near: Setting) -> Setting:
    """The nearer value; of two tables, the nearer one adds to the other."""
    if not (isinstance(far.value, dict) and isinstance(near.value, dict)):
        return near
    origin = near.origin if far.origin == DEFAULT else f"{far.origin}, {near.origin}"
    return Setting(key=near.key, value={**far.value, **near.value}, origin=origin)


def _named(name: str, configured: Mapping[str | None, _Levels]) -> _Levels:
    if name in configured:
        return configured[name]
    known = [each for each in configured if each is not None]
    if known:
        hint = did_you_mean(name, known) or f"the outputs are: {', '.join(known)}"
    else:
        hint = "add a table [tool.acpgen.outputs.NAME] to pyproject.toml"
    raise input_error("unknown-output", f"unknown output {name!r}", hint=hint)


def _is_at(levels: _Levels, out: Path) -> bool:
    found: Path = next(level["out"].value for level in levels if "out" in level)
    return os.path.realpath(found) == os.path.realpath(out)


def _check_folders(outputs: Iterable[Output]) -> None:
    seen: dict[Path, Output] = {}
    for output in outputs:
        if output["out"] is None:
            raise input_error("no-output", "the output has no folder", hint=_NO_OUTPUT)
        check_package_name(output["out"])
        real = Path(os.path.normcase(os.path.realpath(output["out"])))
        for known, other in seen.items():
            if known == real or known in real.parents or real in known.parents:
                raise _same_folder(other, output)
        seen[real] = output


def _same_folder(first: Output, second: Output) -> InputError:
    what = "have the same folder:" if first["out"] == second["out"] else "have folders one in the other:"
    folders = " and ".join(dict.fromkeys(each["out"].as_posix() for each in (first, second)))
    return input_error(
        "same-folder",
        f"the outputs {first.name!r} and {second.name!r} {what} {folders}",
        hint="give each package its own folder, or name the output to build",
    )
