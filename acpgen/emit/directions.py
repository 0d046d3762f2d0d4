"""The directions of values: what a package for certain roles decodes, and what it encodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, reachable
from acpgen.ir.relations import resolved
from acpgen.roles import RoleRecord


@dataclass(frozen=True, slots=True)
class Directions:
    """The names of the definitions that a package decodes, and of those that it encodes."""

    decoded: frozenset[str]
    encoded: frozenset[str]


def directions(model: ir.Model, roles: Sequence[RoleRecord]) -> Directions:
    """The directions of all definitions.

    A package decodes the params of the methods that its roles handle and the results of those that they call. It
    encodes the params of the latter and the results of the former.
    """
    both: list[ir.TypeExpr] = [ir.Ref(model.errors.object)] if model.errors.object else []
    read, written = [*both], [*both]
    for method in model.methods:
        is_handled = any({*method.handlers} & {*role.sides} for role in roles)
        is_called = any({*method.handlers} & {*role.called} for role in roles)
        params, result = [method.params], [method.result] if method.result is not None else []
        read += params * is_handled + result * is_called
        written += params * is_called + result * is_handled
        if is_handled and method.gate is not None:  # `advertise` decodes what it has encoded and changed
            read.append(ir.Ref(names.class_name(method.gate.root)))
    decoded = reachable(read, model)
    return Directions(decoded, reachable([*written, *_written_to_compare(decoded, model)], model))


def _written_to_compare(decoded: Iterable[str], model: ir.Model) -> Iterator[ir.TypeExpr]:
    """The members of unions that also take any JSON: decoders encode what they have read, to see if all is kept."""
    for name in decoded:
        definition = model.by_name[name]
        if not isinstance(definition, (ir.Struct, ir.Alias, ir.Enum)):
            types = members(definition)
            if any(isinstance(resolved(each, model), ir.AnyJson) for each in types):
                yield from types
