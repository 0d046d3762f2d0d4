"""The runtime modules, copied unchanged into every package, and the Jinja environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acpgen.diagnostics import internal_error
from acpgen.emit.source import Code
from acpgen.ir.model import Role


def only_code(value: Any) -> str:
    """Return `value` if it is `Code`: text that did not pass `source` must not reach a generated file."""
    if not isinstance(value, Code):
        raise internal_error(f"a template prints {value!r}, which is not Code")
    return value


def make_environment(templates: Path) -> Environment:
    """The environment for the templates in the folder `templates`."""
    return Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        finalize=only_code,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


FOLDER = "runtime"
"""Their folder below the templates."""

_ROUTING: Mapping[str, tuple[str, ...]] = {
    "_base": ("UNSET", "UnsetType"),
    "_decode": ("DecodeError", "Drop"),
    "dispatch": ("ConnectionClosed", "Peer", "dispatch_notification", "dispatch_request"),
    "protocol": ("Gate", "Method"),
}
"""The modules of every package, each with its public names."""

_CONNECTION: Mapping[str, tuple[str, ...]] = {
    "capabilities": ("CapabilityError", "advertise"),
    "checks": (),
    "connection": ("Connection",),
    "inflight": (),
    "limits": (),
    "link": (),
    "log": (),
    "negotiation": (),
    "options": ("ConnectionOptions",),
    "tasks": (),
    "transport": ("MemoryTransport", "MessageTooLarge", "StreamTransport", "Transport", "memory_transports"),
}
"""The modules that speak JSON-RPC."""

_ROLES: Mapping[Role, Mapping[str, tuple[str, ...]]] = {
    Role.AGENT: {"stdio": ("run_agent", "serve_agent")},
    Role.CLIENT: {"process": (), "spawn": ("AgentConnection", "AgentProcess", "connect", "spawn_agent")},
}


def copied_modules(roles: tuple[Role, ...], *, runtime: bool) -> dict[str, list[str]]:
    """The modules for `roles`, each with its public names; without `runtime`, only those for dispatch."""
    modules = {**_ROUTING, **_CONNECTION} if runtime else _ROUTING
    for role in roles if runtime else ():
        modules = {**modules, **_ROLES[role]}
    return {module: list(names) for module, names in modules.items()}


def copied(module: str, templates: Path, header: Code) -> str:
    """The text of a module."""
    return f"{header}\n{(templates / FOLDER / module).with_suffix('.py').read_text(encoding='utf-8')}"
