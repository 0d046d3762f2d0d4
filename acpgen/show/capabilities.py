"""What capabilities are for: the methods and values that need each, and the types that these values belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.relations import Attribute, follow, without_null
from acpgen.schema.gates import Gate


def needed_by(gated: Iterable[tuple[str, Gate]], model: ir.Model) -> Mapping[Attribute, list[str]]:
    """The names of what has a gate, by the attributes that open it."""
    found: defaultdict[Attribute, list[str]] = defaultdict(list)
    for name, gate in gated:
        for path in gate.paths:
            attribute, _ = follow(ir.Ref(names.class_name(gate.root)), path, model)
            if attribute is not None and name not in found[attribute]:
                found[attribute].append(name)
    return found


def by_type(model: ir.Model) -> Mapping[str, list[ir.GatedValue]]:
    """The gated values by the type that has them, and by that which their tag selects."""
    found: defaultdict[str, list[ir.GatedValue]] = defaultdict(list)
    for each in model.gated_values:
        union = model.by_name.get(value_type(each, model) or "")
        variants = union.variants if isinstance(union, ir.TaggedUnion) else ()
        selected = (variant.target for variant in variants if variant.tag == each.value)
        for name in dict.fromkeys((each.definition, *selected)):
            found[name].append(each)
    return found


def value_type(gated: ir.GatedValue, model: ir.Model) -> str | None:
    """The name of the union or enum that has the value, itself or as a tag."""
    _, expression = follow(ir.Ref(gated.definition), gated.properties, model)
    found = without_null(expression, model)
    definition = model.definition(without_null(found.item, model) if isinstance(found, ir.ListOf) else found)
    return definition.name if definition is not None else None
