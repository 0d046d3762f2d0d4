"""The plain JSON Schema that datamodel-code-generator reads: written from the model, with nothing left to guess.

Each class, union or alias is a definition, and all names are final.
"""

from __future__ import annotations

from typing import Any

from acpgen.emit.classes import Classes
from acpgen.emit.types import alias_target
from acpgen.ir import model as ir

PlainSchema = dict[str, Any]


def plain_schema(model: ir.Model) -> PlainSchema:
    """The schema of all definitions. All properties are required: type hints are those of values that are present."""
    classes = Classes(model)
    definitions = {each.name: _definition(each, classes) for each in classes.definitions}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def _definition(definition: ir.Definition, classes: Classes) -> PlainSchema:
    if definition.name in classes.model.recursive:  # the view writes it
        return {"type": "string"}
    if not isinstance(definition, ir.Struct):
        target = alias_target(definition)
        return {"anyOf": [_type(member) for member in target]} if len(target) > 1 else _type(target[0])
    properties = {name: _type(expression) for name, expression in classes.own_attributes(definition)}
    schema: PlainSchema = {"type": "object", "properties": properties, "required": sorted(properties)}
    if base := classes.base(definition):
        schema["allOf"] = [_type(ir.Ref(base))]
    return schema


def _type(expression: ir.TypeExpr) -> PlainSchema:
    match expression:
        case ir.Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case ir.Scalar(primitive=primitive):
            return {"type": primitive.value}
        case ir.Const(only):
            return {"const": only}
        case ir.InlineEnum(primitive=primitive, values=constants, open=is_open):
            closed = {"type": primitive.value, "enum": list(constants)}
            return {"anyOf": [closed, {"type": primitive.value}]} if is_open else closed
        case ir.ListOf(item=item):
            return {"type": "array", "items": _type(item)}
        case ir.MapOf(inner):
            return {"type": "object", "additionalProperties": _type(inner)}
        case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
            return {}
        case ir.Nullable(
            ir.Scalar() | ir.ListOf() | ir.MapOf(ir.AnyJson()) as inner
        ):  # the generator is slow at `anyOf`
            known = _type(inner)
            return {**known, "type": [known["type"], ir.Primitive.NULL.value]}
        case ir.Nullable(inner):
            return {"anyOf": [_type(inner), {"type": ir.Primitive.NULL.value}]}
