"""Views for `versions.py`: the versions of the protocol in a package, and the types of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.diagnostics import input_error
from acpgen.emit.protocol import ProtocolView
from acpgen.emit.source import Code, identifier, listed, literal
from acpgen.ir.model import Method, MethodKind, Model, Ref, Role


def folder(model: Model) -> Code:
    """The name of the subpackage for a version, in a package of several."""
    return identifier(f"v{model.protocol}")


def check_together(models: Sequence[Model]) -> None:
    """Raise `InputError` unless one request can negotiate which of the versions a connection has."""
    if len(models) == 1:
        return
    ways = {(how.method, how.version) for model in models if (how := model.negotiation) is not None}
    if len(ways) != 1 or any(model.negotiation is None for model in models):
        raise input_error(
            "protocols-differ",
            "the versions are negotiated in different ways, so they cannot be in one package",
            hint="the facts of the bundled schemas say how a version is negotiated: `negotiation` in facts.json",
        )


def negotiating(model: Model) -> Method | None:
    """The request that negotiates the version, if there is one."""
    how = model.negotiation
    requests = (method for method in model.methods if method.kind is MethodKind.REQUEST)
    return next((method for method in requests if how is not None and method.wire == how.method), None)


def params_name(model: Model) -> Code | None:
    """The class of its params, if it has one."""
    method = negotiating(model)
    return identifier(method.params.name) if method is not None and isinstance(method.params, Ref) else None


@dataclass(frozen=True, slots=True)
class StubView:
    """The import of the stub class of one version, and the expression for it."""

    version: Code
    module: Code
    name: Code
    value: Code


class RoleTypes:
    """The types of a role, each for all versions."""

    def __init__(self, role: Role, models: Sequence[Model]) -> None:
        self._role = role
        self._models = models
        self._is_single = len(models) == 1
        self._base = role.value.capitalize()
        self._stub = f"Remote{role.peer.value.capitalize()}"

    @property
    def is_agent(self) -> bool:
        """True for the agent."""
        return self._role is Role.AGENT

    def _names(self, name: str) -> list[str]:
        return [name] if self._is_single else [f"{folder(model)}.{name}" for model in self._models]

    def _union(self, names: Sequence[str]) -> str:
        return " | ".join(dict.fromkeys(names))

    @property
    def bound(self) -> Code:
        """The classes that a user extends, as a literal."""
        return literal(self._union(self._names(self._base)))

    @property
    def factory(self) -> Code:
        """The type of a factory, as a literal. An agent's is the same for all versions; a client's is generic."""
        if not self.is_agent:
            return literal(self._union([f"Callable[[{stub}], C]" for stub in self._names(self._stub)]))
        return literal(f"Callable[[{self._stub}], {self._base}]") if self._is_single else self.any_factory

    @property
    def any_factory(self) -> Code:
        """The type of a factory for any version, as a literal."""
        return literal(f"Callable[[Any], {self._union(self._names(self._base))}]")

    @property
    def any_params(self) -> Code:
        """The params of the request that negotiates the version, as a literal."""
        prefixes = ["" if self._is_single else f"{folder(model)}." for model in self._models]
        names = [params_name(model) for model in self._models]
        types = [f"{prefix}{name}" if name else "Any" for prefix, name in zip(prefixes, names, strict=True)]
        return literal(self._union(types))

    @property
    def any_connection(self) -> Code:
        """The connection that negotiates the version, as a literal."""
        return literal(self._union([f"AgentConnection[{name}]" for name in self._names(self._base)]))

    @property
    def any_process(self) -> Code:
        """The same for a process."""
        return literal(self._union([f"AgentProcess[{name}]" for name in self._names(self._base)]))

    @property
    def stub_function(self) -> Code:
        """The name of the function that gives the stub class."""
        return identifier(f"remote_{self._role.peer.value}")

    @property
    def stub_type(self) -> Code:
        """The types of the stub class."""
        return Code(self._union([f"type[{name}]" for name in self._names(self._stub)]))

    @property
    def stubs(self) -> list[StubView]:
        """The stub class of each version."""
        if self._is_single:
            name = identifier(self._stub)
            return [StubView(literal(self._models[0].protocol), Code(f".{self._role.value}"), name, name)]
        return [
            StubView(
                literal(model.protocol), Code("."), folder(model), Code(f"{folder(model)}.{identifier(self._stub)}")
            )
            for model in self._models
        ]


class VersionsView:
    """The versions of a package."""

    def __init__(self, models: Sequence[Model], roles: Sequence[Role]) -> None:
        self._models = models
        self.roles = [RoleTypes(role, models) for role in roles]
        self.protocols = [ProtocolView(model) for model in models]

    @property
    def client(self) -> bool:
        """True if the package is for writing a client."""
        return any(not role.is_agent for role in self.roles)

    @property
    def uses_any(self) -> bool:
        """True if a type contains `Any`."""
        return self.client or len(self._models) > 1

    @property
    def imports(self) -> list[Code]:
        """The imports for type checkers."""
        found: list[str] = []
        spawned = "from .spawn import AgentConnection, AgentProcess"
        if len(self._models) > 1:
            found = [f"from . import {', '.join(map(folder, self._models))}", *([spawned] if self.client else [])]
        else:
            for role in self.roles:
                names = ("Agent, RemoteClient", "agent") if role.is_agent else ("Client, RemoteAgent", "client")
                found.append(f"from .{names[1]} import {names[0]}")
            if self.client:
                found.append(spawned)
                if name := params_name(self._models[0]):
                    found.append(f"from .types import {name}")
        return [Code(each) for each in found]

    @property
    def records(self) -> Code:
        """The record classes that are used, sorted."""
        used = {
            "Cancellation": any(each.cancel is not None for each in self.protocols),
            "Negotiation": any(each.negotiation is not None for each in self.protocols),
            "ProtocolInfo": True,
            "Unsupported": any(each.unsupported is not None for each in self.protocols),
        }
        return listed(identifier(name) for name, is_used in used.items() if is_used)
