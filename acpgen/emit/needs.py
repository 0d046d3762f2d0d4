"""The capabilities that values need, in the descriptions of what has them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from acpgen.ir import model as ir
from acpgen.ir.relations import follow

_QUOTED = re.compile(r"`([^`]+)`")
_FEWEST_NAMES = 2
"""The fewest names at the end of a path that tell which capability a text speaks of."""

Described: TypeAlias = tuple[str, str]
"""A definition, and its attribute or constant; an empty one stands for itself."""
D = TypeVar("D", bound=ir.Definition | ir.Field | ir.EnumMember)


def with_needs(model: ir.Model) -> ir.Model:
    """The model with the capabilities in its descriptions, but for those that name them already."""
    found = defaultdict[Described, list[ir.GatedValue]](list)
    for gated in model.gated_values:
        if (place := _described(gated, model)) is not None:
            found[place].append(gated)
    return replace(model, definitions=tuple(_with_texts(each, found) for each in model.definitions))


def _described(gated: ir.GatedValue, model: ir.Model) -> Described | None:
    """What the text about a value belongs to."""
    if gated.properties:
        attribute, _ = follow(ir.Ref(gated.definition), gated.properties, model)
        return attribute
    match model.by_name[gated.definition]:
        case ir.TaggedUnion(variants=variants):
            return next(((each.target, "") for each in variants if each.tag == gated.value), None)
        case ir.Enum(name=name):
            return name, gated.value or ""
        case _:
            return None


def _with_texts(definition: ir.Definition, found: Mapping[Described, list[ir.GatedValue]]) -> ir.Definition:
    name = definition.name
    if isinstance(definition, ir.Struct):
        fields = tuple(_with_text(each, found.get((name, each.name), []), " ") for each in definition.fields)
        definition = replace(definition, fields=fields)
    elif isinstance(definition, ir.Enum):
        constants = (_with_text(each, found.get((name, str(each.value)), []), " ") for each in definition.members)
        definition = replace(definition, members=tuple(constants))
    return _with_text(definition, found.get((name, ""), []), "\n\n")


def _with_text(described: D, gated: list[ir.GatedValue], separator: str) -> D:
    texts = [_text(each) for each in gated if not _is_said(each, described.doc)]
    return (
        replace(described, doc=separator.join(filter(None, (described.doc, " ".join(texts))))) if texts else described
    )


def _text(gated: ir.GatedValue) -> str:
    paths = " or ".join(f"`{'.'.join(path)}`" for path in gated.gate.paths)
    what = f"`{gated.value}` needs" if gated.value is not None and gated.properties else "Needs"
    return f"{what} {paths} in `{gated.gate.root}`."


def _is_said(gated: ir.GatedValue, text: str) -> bool:
    """True if the text quotes the end of the path of each capability that will do."""
    quoted = {tuple(each.split(".")) for each in _QUOTED.findall(text)}
    return all(
        any(path[at:] in quoted for at in range(max(1, len(path) - _FEWEST_NAMES + 1))) for path in gated.gate.paths
    )
