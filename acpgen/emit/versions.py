"""Views for the versions in `methods.py`: the versions of the protocol in a package, and the types of their classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acpgen.diagnostics import input_error
from acpgen.emit.runtime import dotted
from acpgen.emit.source import Code, docstring, identifier, literal, value
from acpgen.ir import model as ir
from acpgen.ir.least import least_members
from acpgen.roles import Role, RoleRecord, Side, with_article
from acpgen.runtime_modules import place


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


class StubClass:
    """The stub class of a side, for all versions, as the module of `role` has it."""

    def __init__(self, side: Side, role: RoleRecord, models: Sequence[ir.Model]) -> None:
        name = identifier(side.stub)
        self.name = name
        self.function = identifier(f"remote_{side.value}")
        self.types = [identifier(f"{prefix}{name}") for prefix in _prefixes(models)]
        self.type = Code(_union(f"type[{each}]" for each in self.types))
        sources = (
            [f".{role.name} import {name}"] if len(models) == 1 else [f". import {folder(each)}" for each in models]
        )
        self.versions = [
            (literal(model.protocol), Code(f"from {source}"), type_)
            for model, source, type_ in zip(models, sources, self.types, strict=True)
        ]
        """Each version with the import of what the expression for its class needs, and that."""


class RoleTypes:
    """The types of a role, each for all versions. The text has them as strings."""

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
        self.bound = _union(bases)
        """The classes that a user extends."""
        self.any_factory = f"Callable[[{', '.join(['Any'] * len(self.stubs))}], {_union(bases)}]"
        made = "C" if self.spawns else self.base
        by_version = zip(*(each.types for each in self.stubs), strict=True)
        factories = _union(f"Callable[[{', '.join(stubs)}], {made}]" for stubs in by_version)
        self.factory = factories if self.spawns or len(models) == 1 else self.any_factory
        """The type of a factory. It is generic if the role starts its peer."""
        params = [(prefix, params_name(model)) for prefix, model in zip(_prefixes(models), models, strict=True)]
        self.any_params = _union(f"{prefix}{name}" if name else "Any" for prefix, name in params)
        """The params of the request that negotiates the version."""
        self.any_connection = _union(f"AgentConnection[{name}]" for name in bases)
        """The connection that negotiates the version."""
        self.any_process = _union(f"AgentProcess[{name}]" for name in bases)
        """The same for a process."""


class VersionsView:
    """The versions of a package."""

    def __init__(self, models: Sequence[ir.Model], roles: Sequence[Role]) -> None:
        self.roles = [RoleTypes(role.record, models) for role in roles]
        self.models = [(model, _least(model)) for model in models]
        """The versions, each with the smallest params of the request that negotiates it."""
        self.imports = [Code(each) for each in _type_imports(self.roles, models)]
        self.quoted = [text for role in self.roles for text in (role.factory, role.any_factory if role.spawns else "")]
        """The annotations that are strings."""


def _least(model: ir.Model) -> Code:
    how = model.negotiation
    return value(least_members(model, how.method, how.version)) if how else Code("{}")


def _type_imports(roles: Sequence[RoleTypes], models: Sequence[ir.Model]) -> list[str]:
    spawns = any(role.spawns for role in roles)
    spawned = [f"from .{dotted(place('spawn'))} import AgentConnection, AgentProcess"] if spawns else []
    if len(models) > 1:
        return [f"from . import {', '.join(map(folder, models))}", *spawned]
    name = params_name(models[0]) if spawns else None
    return [*(role.imports for role in roles), *spawned, *([f"from .types import {name}"] if name else [])]
