"""The modules of a package that talk JSON-RPC: nearly the same text for every schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from jinja2 import Environment

from acpgen.emit.literals import Code, literal
from acpgen.ir.model import Envelope
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


@dataclass(frozen=True, slots=True)
class _CancelView:
    """The notification that cancels requests: its name and the property with the id, as literals."""

    method: Code
    key: Code

    @property
    def params(self) -> Code:
        """What tells that the request `number` is cancelled."""
        return Code(f"{{{self.key}: number}}")


def runtime_files(
    environment: Environment, envelope: Envelope, roles: tuple[Role, ...], header: Code
) -> dict[str, Callable[[], str]]:
    """The runtime for `roles`: paths, and what makes the texts."""
    cancel = _CancelView(literal(envelope.cancel.method), literal(envelope.cancel.key)) if envelope.cancel else None

    def render(template: str) -> str:
        return environment.get_template(template).render(header=header, envelope=envelope, cancel=cancel)

    return {f"{module}.py": partial(render, f"{module}.py.jinja") for module in _modules(roles)}


def runtime_exports(roles: tuple[Role, ...]) -> dict[str, list[str]]:
    """What `__init__` takes from the modules of the runtime, by module."""
    return {module: list(names) for module, names in _modules(roles).items() if names}


def _modules(roles: tuple[Role, ...]) -> dict[str, tuple[str, ...]]:
    return {**_MODULES, **dict(_ROLE_MODULES[role] for role in roles)}
