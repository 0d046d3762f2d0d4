"""The runtime modules, copied unchanged into every package, and the Jinja environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acpgen.diagnostics import internal_error
from acpgen.emit.conversions import decoder, encoder
from acpgen.emit.source import Code, docstring, hint, identifier, literal
from acpgen.roles import Role
from acpgen.schema.data import data_folder
from acpgen.text import MARKER

HEADER = Code(f"{MARKER}\n# Change the schema or the options instead, and run `acpgen build` again.")
"""The same in every file and for every version: an upgrade changes no file for its header."""


def only_code(value: Any) -> str:
    """Return `value` if it is `Code`: text that did not pass `source` must not reach a generated file."""
    if not isinstance(value, Code):
        raise internal_error(f"a template prints {value!r}, which is not Code")
    return value


def template_environment(folders: Sequence[Path], finalize: Callable[[Any], Any], *, escapes: bool) -> Environment:
    """An environment in which a missing value is an error; `finalize` sees all values, and `escapes` is for HTML."""
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=escapes,
    )


@cache  # to compile the templates takes longer than to render them
def make_environment(up: Literal[".", ".."]) -> Environment:
    """The environment of the templates. The filters make `Code` of values.

    All templates have `header`, and `up`: the package of the runtime, relative to the module.
    """
    environment = template_environment([data_folder() / "templates"], only_code, escapes=False)
    environment.globals["header"] = HEADER
    environment.globals["up"] = Code(up)
    environment.filters.update(identifier=identifier, literal=literal, docstring=docstring, hint=hint)
    environment.filters.update(decoder=decoder, encoder=encoder)
    return environment


_ROUTING: Mapping[str, tuple[str, ...]] = {
    "_base": ("UNSET", "Gate", "Method", "Struct", "UnsetType", "WireForm"),
    "_decode": ("DecodeError", "Drop"),
    "decision": ("Decision", "decides"),
    "dispatch": ("ConnectionClosed", "Peer", "PeerKind", "dispatch_notification", "dispatch_request"),
    "on_demand/__init__": (),
    "on_demand/misnamed": (),
    "on_demand/mistakes": (),
    "on_demand/places": (),
    "on_demand/pydantic_schema": (),
    "on_demand/schema_details": (),
}
"""The modules of every package, each with its public names."""

_CONNECTION: Mapping[str, tuple[str, ...]] = {
    "capabilities": ("CapabilityError", "advertise"),
    "connection": ("Connection",),
    "endpoint": (),
    "in_flight": (),
    "log": (),
    "message": ("Message", "MessageTooLarge", "Unreadable", "Unsendable"),
    "on_demand/decorated": (),
    "on_demand/selection": (),
    "on_demand/sent": (),
    "on_demand/trace": (),
    "on_demand/trace_file": (),
    "options": ("ConnectionOptions",),
    "pending": (),
    "read_loop": (),
    "state": (),
    "stream_transport": ("StreamTransport",),
    "tasks": (),
    "thread_calls": ("BlockingStub", "blocking"),
    "transport": (
        *("ByteTransport", "MemoryTransport", "Transport", "Wire"),
        *("current_peer_kind", "memory_transports"),
    ),
}
"""The modules that speak JSON-RPC."""


def remote_modules(roles: tuple[Role, ...]) -> list[str]:
    """The modules for HTTP and WebSocket for `roles`."""
    return list(dict.fromkeys(module for role in roles for module in role.record.remote))


def copied_modules(roles: tuple[Role, ...], *, runtime: bool) -> dict[str, list[str]]:
    """The modules for `roles`, each with its public names; without `runtime`, only those for dispatch."""
    modules = {**_ROUTING, **_CONNECTION} if runtime else _ROUTING
    for role in roles if runtime else ():
        modules = {**modules, **role.record.runtime}
    return {module: list(names) for module, names in modules.items()}


def copied(module: str) -> str:
    """The text of a module, which is in the folder of its layer; a package has them all in one."""
    (path,) = (data_folder() / "templates" / "runtime").glob(f"*/{module}.py")
    return f"{HEADER}\n{path.read_text(encoding='utf-8')}"
