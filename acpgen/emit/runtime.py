"""The modules of a package that talk JSON-RPC: nearly the same text for every schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from jinja2 import Environment

from acpgen.emit.literals import Code
from acpgen.ir.role import Role

_MODULES: Mapping[str, tuple[str, ...]] = {
    "capabilities": ("CapabilityError", "advertise"),
    "checks": (),
    "limits": (),
    "options": ("ConnectionOptions",),
    "rpc": ("Connection",),
    "tasks": (),
    "transport": (
        "ConnectionClosed",
        "MemoryTransport",
        "MessageTooLarge",
        "StreamTransport",
        "Transport",
        "memory_transports",
    ),
}
"""The modules for every role, and what the package exports of them."""

_ROLE_MODULES: Mapping[Role, tuple[str, tuple[str, ...]]] = {
    Role.AGENT: ("stdio", ("run_agent", "serve_agent")),
    Role.CLIENT: ("process", ("AgentConnection", "AgentProcess", "connect", "spawn_agent")),
}


def copied(path: str, templates: Path, header: Code) -> str:
    """A file that is the same in every package, after `header`."""
    return f"{header}\n{(templates / 'runtime' / path).read_text(encoding='utf-8')}"


def runtime_files(environment: Environment, roles: tuple[Role, ...], header: Code) -> dict[str, Callable[[], str]]:
    """The runtime for `roles`: paths, and what makes the texts."""

    def render(template: str) -> str:
        return environment.get_template(template).render(header=header)

    return {f"{module}.py": partial(render, f"{module}.py.jinja") for module in _modules(roles)}


def runtime_exports(roles: tuple[Role, ...]) -> dict[str, list[str]]:
    """What `__init__` takes from the modules of the runtime, by module."""
    return {module: list(names) for module, names in _modules(roles).items() if names}


def _modules(roles: tuple[Role, ...]) -> dict[str, tuple[str, ...]]:
    return {**_MODULES, **dict(_ROLE_MODULES[role] for role in roles)}
