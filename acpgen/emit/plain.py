"""Write the IR as a plain JSON Schema in which nothing is left to guess, for datamodel-code-generator to render.

Every class, union and alias is a definition of its own under its final name, and so is every property. A property that
may be absent is not required: the generator writes `UnsetType` for it. One with another default counts as required, and
gets it from the view.
"""

from __future__ import annotations

from typing import Any

from acpgen.emit.classes import alias_target
from acpgen.ir.model import (
    EXTRA_FIELD,
    AnyJson,
    Choice,
    Const,
    Definition,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TypeExpr,
)

PlainSchema = dict[str, Any]


def plain_schema(model: Model) -> PlainSchema:
    """The schema of all definitions of `model`, in their order."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {definition.name: _definition(definition, model) for definition in model.definitions},
    }


def own_fields(struct: Struct, model: Model) -> list[tuple[str, TypeExpr]]:
    """The attributes that the class of `struct` declares itself, `extra` included."""
    fields = [(field.name, field.type) for field in struct.fields if not field.inherited]
    inherits_extra = struct.base is not None and model.struct(struct.base).keeps_extra
    if struct.keeps_extra and not inherits_extra:
        fields.append((EXTRA_FIELD, MapOf(AnyJson())))
    return fields


def _definition(definition: Definition, model: Model) -> PlainSchema:
    if not isinstance(definition, Struct):
        target = alias_target(definition)
        return {"anyOf": [_type(member) for member in target]} if len(target) > 1 else _type(target[0])
    properties = {name: _type(expression) for name, expression in own_fields(definition, model)}
    absent = {field.name for field in definition.fields if field.may_be_unset}
    schema: PlainSchema = {"type": "object", "properties": properties, "required": sorted(properties.keys() - absent)}
    if definition.base:
        schema["allOf"] = [_type(Ref(definition.base))]
    return schema


def _type(expression: TypeExpr) -> PlainSchema:
    match expression:
        case Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case Scalar(primitive=primitive):
            return {"type": primitive.value}
        case Const(value):
            return {"const": value}
        case Choice():
            return _choice(expression)
        case ListOf(item=item):
            return {"type": "array", "items": _type(item)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _type(value)}
        case AnyJson() | Nullable(AnyJson()):
            return {}
        case Nullable(Scalar() | ListOf() | MapOf(AnyJson()) as inner):  # the generator is slow at `anyOf`
            known = _type(inner)
            return {**known, "type": [known["type"], Primitive.NULL.value]}
        case Nullable(inner):
            return {"anyOf": [_type(inner), {"type": Primitive.NULL.value}]}


def _choice(choice: Choice) -> PlainSchema:
    closed = {"type": choice.primitive.value, "enum": list(choice.values)}
    return {"anyOf": [closed, {"type": choice.primitive.value}]} if choice.open else closed
