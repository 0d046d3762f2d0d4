"""Views for the versions in `methods.py`: the versions of the protocol in a package, and the types of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.diagnostics import input_error
from acpgen.emit.imports import standard_imports
from acpgen.emit.source import Code, docstring, identifier, listed, literal, value
from acpgen.ir import model as ir
from acpgen.ir.least import least_members
from acpgen.roles import Role, RoleRecord, Side, with_article


def folder(model: ir.Model) -> Code:
    """The name of the subpackage for a version, in a package of several."""
    return identifier(f"v{model.protocol}")


def check_together(models: Sequence[ir.Model]) -> None:
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


def negotiating(model: ir.Model) -> ir.Method | None:
    """The request that negotiates the version, if there is one."""
    how = model.negotiation
    requests = (method for method in model.methods if method.kind is ir.MethodKind.REQUEST)
    return next((method for method in requests if how is not None and method.wire == how.method), None)


def params_name(model: ir.Model) -> Code | None:
    """The class of its params, if it has one."""
    method = negotiating(model)
    return identifier(method.params.name) if method is not None and isinstance(method.params, ir.Ref) else None


@dataclass(frozen=True, slots=True)
class StubView:
    """The import of the stub class of one version, and the expression for it."""

    version: Code
    module: Code
    name: Code
    value: Code


class StubClass:
    """The stub class of a side, for all versions, as the module of `role` has it."""

    def __init__(self, side: Side, role: RoleRecord, models: Sequence[ir.Model]) -> None:
        self.name = identifier(side.stub)
        self._module = Code(f".{identifier(role.name)}")
        self._models = models
        self.function = identifier(f"remote_{side.value}")
        """The name of the function that gives the class."""

    @property
    def type(self) -> Code:
        """The types of the class."""
        return Code(_union([f"type[{name}]" for name in _names(self.name, self._models)]))

    @property
    def views(self) -> list[StubView]:
        """The class of each version."""
        if len(self._models) == 1:
            return [StubView(literal(self._models[0].protocol), self._module, self.name, self.name)]
        return [
            StubView(literal(model.protocol), Code("."), folder(model), Code(f"{folder(model)}.{self.name}"))
            for model in self._models
        ]


def _names(name: str, models: Sequence[ir.Model]) -> list[str]:
    """The name of a class in each version."""
    return [name] if len(models) == 1 else [f"{folder(model)}.{name}" for model in models]


def _union(names: Sequence[str]) -> str:
    return " | ".join(dict.fromkeys(names))


class RoleTypes:
    """The types of a role, each for all versions."""

    def __init__(self, role: RoleRecord, models: Sequence[ir.Model]) -> None:
        self._role = role
        self._models = models
        self._is_single = len(models) == 1
        self.spawns = role.spawns
        """True if the role starts its peer."""
        self.base = identifier(role.base)
        """The class to extend."""
        self.stubs = [StubClass(side, role, models) for side in role.called]
        """The stub of each side that the role calls."""

    @property
    def factory_doc(self) -> Code:
        """The docstring of the type of a factory."""
        peers = " and ".join(with_article(side.value) for side in self._role.called)
        return docstring(f"Makes {self._role.noun} for {peers}; a subclass of `{self.base}` is such a factory.", 0)

    @property
    def imports(self) -> Code:
        """The import of its classes, in a package of one version."""
        names = sorted([self.base, *(each.name for each in self.stubs)])
        return Code(f"from .{identifier(self._role.name)} import {', '.join(names)}")

    @property
    def bound(self) -> Code:
        """The classes that a user extends, as a literal."""
        return literal(_union(_names(self.base, self._models)))

    @property
    def factory(self) -> Code:
        """The type of a factory, as a literal. It is generic if the role starts its peer."""
        if not self.spawns and not self._is_single:
            return self.any_factory
        made = "C" if self.spawns else self.base
        by_version = zip(*(_names(each.name, self._models) for each in self.stubs), strict=True)
        return literal(_union([f"Callable[[{', '.join(stubs)}], {made}]" for stubs in by_version]))

    @property
    def any_factory(self) -> Code:
        """The type of a factory for any version, as a literal."""
        return literal(f"Callable[[{', '.join(['Any'] * len(self.stubs))}], {_union(_names(self.base, self._models))}]")

    @property
    def any_params(self) -> Code:
        """The params of the request that negotiates the version, as a literal."""
        prefixes = ["" if self._is_single else f"{folder(model)}." for model in self._models]
        names = [params_name(model) for model in self._models]
        types = [f"{prefix}{name}" if name else "Any" for prefix, name in zip(prefixes, names, strict=True)]
        return literal(_union(types))

    @property
    def any_connection(self) -> Code:
        """The connection that negotiates the version, as a literal."""
        return literal(_union([f"AgentConnection[{name}]" for name in _names(self.base, self._models)]))

    @property
    def any_process(self) -> Code:
        """The same for a process."""
        return literal(_union([f"AgentProcess[{name}]" for name in _names(self.base, self._models)]))


class RulesView:
    """The rules of the protocol in one version."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.cancel = model.envelope.cancel
        self.negotiation = model.negotiation
        self.unsupported = model.negotiation.unsupported if model.negotiation else None

    @property
    def least(self) -> Code:
        """The smallest params of the request that negotiates the version."""
        found = self.negotiation
        return value(least_members(self.model, found.method, found.version)) if found else Code("{}")


class VersionsView:
    """The versions of a package."""

    def __init__(self, models: Sequence[ir.Model], roles: Sequence[Role]) -> None:
        self._models = models
        self.roles = [RoleTypes(role.record, models) for role in roles]
        self.protocols = [RulesView(model) for model in models]

    @property
    def spawns(self) -> bool:
        """True if a role starts its peer."""
        return any(role.spawns for role in self.roles)

    @property
    def standard_names(self) -> dict[str, set[str]]:
        """The names of the standard library that the text uses, by module."""
        if not self.roles:
            return {"collections.abc": {"Mapping"}, "typing": {"Final"}}
        typing = {"TYPE_CHECKING", "Final", "TypeAlias"}
        typing |= {"TypeVar"} if self.spawns else set()
        typing |= {"Any"} if self.spawns or len(self._models) > 1 else set()
        return {"collections.abc": {"Callable", "Mapping"}, "typing": typing}

    @property
    def standard(self) -> Code:
        """The imports from the standard library."""
        return standard_imports(self.standard_names)

    @property
    def imports(self) -> list[Code]:
        """The imports for type checkers."""
        found: list[str] = []
        spawned = "from .spawn import AgentConnection, AgentProcess"
        if len(self._models) > 1:
            found = [f"from . import {', '.join(map(folder, self._models))}", *([spawned] if self.spawns else [])]
        else:
            found = [role.imports for role in self.roles]
            if self.spawns:
                found.append(spawned)
                if name := params_name(self._models[0]):
                    found.append(f"from .types import {name}")
        return [Code(each) for each in found]

    @property
    def record_names(self) -> list[str]:
        """The record classes that are used, sorted."""
        used = {
            "Cancellation": any(each.cancel is not None for each in self.protocols),
            "Negotiation": any(each.negotiation is not None for each in self.protocols),
            "ProtocolInfo": True,
            "Unsupported": any(each.unsupported is not None for each in self.protocols),
        }
        return [name for name, is_used in used.items() if is_used]

    @property
    def records(self) -> Code:
        """The same, as an import has them."""
        return listed(map(identifier, self.record_names))
