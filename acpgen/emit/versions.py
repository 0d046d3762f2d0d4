"""Views for the versions in `methods.py`: the versions of the protocol in a package, and the types of their classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acpgen.diagnostics import input_error
from acpgen.emit.imports import standard_imports
from acpgen.emit.runtime import dotted
from acpgen.emit.source import Code, docstring, identifier, listed, literal, value
from acpgen.ir import model as ir
from acpgen.ir.least import least_members
from acpgen.roles import Role, RoleRecord, Side, with_article
from acpgen.runtime_modules import place
from acpgen.schema.facts import IntroductionFacts


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


def params_name(model: ir.Model) -> Code | None:
    """The class of its params, if it has one."""
    method = model.negotiating
    return identifier(method.params.name) if method is not None and isinstance(method.params, ir.Ref) else None


def _prefixes(models: Sequence[ir.Model]) -> list[str]:
    """The prefix of class names in each version."""
    return [""] if len(models) == 1 else [f"{folder(model)}." for model in models]


def _union(names: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(names))


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
        self.function = identifier(f"remote_{side.value}")
        self.types = [identifier(f"{prefix}{side.stub}") for prefix in _prefixes(models)]
        self.type = Code(_union(f"type[{each}]" for each in self.types))
        is_single = len(models) == 1
        module = Code(f".{identifier(role.name)}" if is_single else ".")
        self.views = [
            StubView(literal(model.protocol), module, self.name if is_single else folder(model), each)
            for model, each in zip(models, self.types, strict=True)
        ]


class RoleTypes:
    """The types of a role, each for all versions, as literals."""

    def __init__(self, role: RoleRecord, models: Sequence[ir.Model]) -> None:
        self.spawns = role.spawns
        self.base = identifier(role.base)
        self.stubs = [StubClass(side, role, models) for side in role.called]
        names = sorted([self.base, *(each.name for each in self.stubs)])
        self.imports = Code(f"from .{identifier(role.name)} import {', '.join(names)}")
        """The import of its classes, in a package of one version."""
        peers = " and ".join(with_article(side.value) for side in role.called)
        factory = f"Makes {role.noun} for {peers}; a subclass of `{self.base}` is such a factory."
        self.factory_doc = docstring(factory, 0)
        self._set_types(models)

    def _set_types(self, models: Sequence[ir.Model]) -> None:
        bases = [f"{prefix}{self.base}" for prefix in _prefixes(models)]
        self.bound = literal(_union(bases))
        """The classes that a user extends."""
        self.any_factory = literal(f"Callable[[{', '.join(['Any'] * len(self.stubs))}], {_union(bases)}]")
        made = "C" if self.spawns else self.base
        by_version = zip(*(each.types for each in self.stubs), strict=True)
        factories = literal(_union(f"Callable[[{', '.join(stubs)}], {made}]" for stubs in by_version))
        self.factory = factories if self.spawns or len(models) == 1 else self.any_factory
        """The type of a factory. It is generic if the role starts its peer."""
        params = [(prefix, params_name(model)) for prefix, model in zip(_prefixes(models), models, strict=True)]
        self.any_params = literal(_union(f"{prefix}{name}" if name else "Any" for prefix, name in params))
        """The params of the request that negotiates the version."""
        self.any_connection = literal(_union(f"AgentConnection[{name}]" for name in bases))
        """The connection that negotiates the version."""
        self.any_process = literal(_union(f"AgentProcess[{name}]" for name in bases))
        """The same for a process."""


class RulesView:
    """The rules of the protocol in one version."""

    def __init__(self, model: ir.Model) -> None:
        how = model.negotiation
        self.model = model
        self.cancel = model.envelope.cancel
        self.negotiation = how
        self.unsupported = how.unsupported if how else None
        self.introductions = _introductions(model)
        """The arguments for what the peers say of themselves in that request and in its result."""
        self.least = value(least_members(model, how.method, how.version)) if how else Code("{}")
        """The smallest params of the request that negotiates the version."""


def _introductions(model: ir.Model) -> list[Code]:
    """The arguments `params` and `result` of the negotiation, as far as the schema has such properties."""
    how = model.negotiation
    stated = (("params", how.params), ("result", how.result)) if how else ()
    return [
        Code(f"{name}=Introduction({literal(each.capabilities)}, {literal(each.info)}),")
        for name, each in stated
        if each != IntroductionFacts()
    ]


class VersionsView:
    """The versions of a package."""

    def __init__(self, models: Sequence[ir.Model], roles: Sequence[Role]) -> None:
        self.roles = [RoleTypes(role.record, models) for role in roles]
        self.protocols = [RulesView(model) for model in models]
        self.standard_names = _standard_names(self.roles, models)
        """The names of the standard library that the text uses, by module."""
        self.standard = standard_imports(self.standard_names)
        self.imports = [Code(each) for each in _type_imports(self.roles, models)]
        used = {
            "Cancellation": any(each.cancel for each in self.protocols),
            "Introduction": any(each.introductions for each in self.protocols),
            "Negotiation": any(each.negotiation for each in self.protocols),
            "ProtocolInfo": True,
            "Unsupported": any(each.unsupported for each in self.protocols),
        }
        self.record_names = [name for name, is_used in used.items() if is_used]
        """The record classes that are used, sorted."""
        self.records = listed(map(identifier, self.record_names))


def _standard_names(roles: Sequence[RoleTypes], models: Sequence[ir.Model]) -> dict[str, set[str]]:
    if not roles:
        return {"collections.abc": {"Mapping"}, "typing": {"Final"}}
    spawns = any(role.spawns for role in roles)
    typing = {"TYPE_CHECKING", "Final", "TypeAlias"} | ({"Any", "TypeVar"} if spawns else set())
    return {"collections.abc": {"Callable", "Mapping"}, "typing": typing | ({"Any"} if len(models) > 1 else set())}


def _type_imports(roles: Sequence[RoleTypes], models: Sequence[ir.Model]) -> list[str]:
    spawns = any(role.spawns for role in roles)
    spawned = [f"from .{dotted(place('spawn'))} import AgentConnection, AgentProcess"] if spawns else []
    if len(models) > 1:
        return [f"from . import {', '.join(map(folder, models))}", *spawned]
    name = params_name(models[0]) if spawns else None
    return [*(role.imports for role in roles), *spawned, *([f"from .types import {name}"] if name else [])]
