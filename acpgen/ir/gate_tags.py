"""What opens a gate in JSON, where that depends on the types of a model."""

from __future__ import annotations

from typing import TypeAlias

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.relations import follow, without_null
from acpgen.schema.gates import Gate

Tags: TypeAlias = tuple[str, tuple[str, ...]]
"""A property of the members of a union, and some of its values."""


def tags_that_do_not_count(gate: Gate, model: ir.Model) -> Tags | None:
    """The members of an array that do not open `gate`, by their tags; None if all do."""
    if not gate.but:
        return None
    for path in gate.paths:
        _, expression = follow(ir.Ref(names.class_name(gate.root)), path, model)
        found = without_null(expression, model)
        union = model.definition(without_null(found.item, model)) if isinstance(found, ir.ListOf) else None
        if isinstance(union, ir.TaggedUnion):
            return union.tag, gate.but
    return None
