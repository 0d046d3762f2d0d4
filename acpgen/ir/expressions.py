"""Lower property schemas to type expressions. Inline objects and unions are named after their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acpgen.ir import model as ir
from acpgen.ir.context import Context
from acpgen.schema.document import join
from acpgen.schema.walk import referenced_definition

DefineInline = Callable[[Any, str, str], None]
"""Lower (node, pointer) as a definition with the given Python name."""

_ANNOTATING = ("format", "pattern", "contentEncoding")
_CONSTRAINING = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "const", "enum", "type", "properties", "items"})


class Expressions:
    """Lower any schema node to a type. `define` is called for a node that needs a class or union of its own."""

    def __init__(self, context: Context, define: DefineInline) -> None:
        self._context = context
        self._define = define

    def read(self, node: Any, pointer: str, name: str) -> ir.TypeExpr:
        """The type of `node`; `name` is the name for an inline object or union."""
        if not isinstance(node, dict) or not _CONSTRAINING & node.keys():
            return ir.AnyJson()
        if (target := referenced_definition(node)) is not None:
            return ir.Ref(self._context.class_name(target))
        if "const" in node:
            return self._const(node, pointer)
        if "enum" in node:
            return self._enum(node, pointer, name)
        if "properties" in node:
            return self._inline(node, pointer, name)
        for key in ("oneOf", "anyOf"):
            if key in node:
                return self._union(node, key, pointer, name)
        if "allOf" in node:
            return self._all_of(node, pointer, name)
        return self._typed(node, pointer, name)

    def _inline(self, node: dict[str, Any], pointer: str, name: str) -> ir.TypeExpr:
        kind = node.get("type")
        self._define(node, pointer, name)
        return ir.Nullable(ir.Ref(name)) if isinstance(kind, list) and "null" in kind else ir.Ref(name)

    def _const(self, node: dict[str, Any], pointer: str) -> ir.TypeExpr:
        value = node["const"]
        if value is None:
            return ir.Scalar(primitive=ir.Primitive.NULL)
        if isinstance(value, (str, int)):
            return ir.Const(value)
        self._context.report.warning(
            "unsupported-const",
            "`const` is read where it is a string, an integer, a boolean or null; any value passes here",
            at=join(pointer, "const"),
        )
        return ir.AnyJson()

    def _enum(self, node: dict[str, Any], pointer: str, name: str) -> ir.TypeExpr:
        listed = self.enumeration(node, pointer)
        found: ir.TypeExpr = listed
        if isinstance(listed, ir.InlineEnum):
            self._define({**node, "enum": list(listed.values)}, pointer, name)
            found = ir.Ref(name)
        return ir.Nullable(found) if None in node["enum"] else found

    def enumeration(self, node: dict[str, Any], pointer: str) -> ir.InlineEnum | ir.Const | ir.AnyJson:
        """The type of `enum` without null: several constants, or a single one."""
        values = [value for value in node["enum"] if value is not None]
        match [*{ir.Primitive.of(value) for value in values}]:
            case [ir.Primitive.STRING | ir.Primitive.INTEGER as primitive]:
                constants = tuple(dict.fromkeys(values))
                is_single = len(constants) == 1
                return (
                    ir.Const(constants[0])
                    if is_single
                    else ir.InlineEnum(primitive=primitive, values=constants, open=False)
                )
        message = "`enum` takes strings only, or integers only"
        self._context.report.error("unsupported-enum", message, at=join(pointer, "enum"))
        return ir.AnyJson()

    def _union(self, node: dict[str, Any], key: str, pointer: str, name: str) -> ir.TypeExpr:
        members = [(join(pointer, key, index), member) for index, member in enumerate(node[key])]
        rest = [(where, member) for where, member in members if not self._context.definitions.is_null(member)]
        if not rest:
            return ir.Scalar(primitive=ir.Primitive.NULL)
        if len(rest) == 1:
            inner = self.read(rest[0][1], rest[0][0], name)
        else:
            inner = self._named_union(node, key, pointer, name)
        return ir.Nullable(inner) if len(rest) < len(members) else inner

    def _named_union(self, node: dict[str, Any], key: str, pointer: str, name: str) -> ir.TypeExpr:
        self._define(
            {**node, key: [member for member in node[key] if not self._context.definitions.is_null(member)]},
            pointer,
            name,
        )
        return ir.Ref(name)

    def inline_enum_of(self, members: list[Any]) -> ir.InlineEnum | None:
        """The enum that the members of a union form: constants, and at most one free scalar of their type."""
        values: list[str | int] = []
        is_open, kinds = False, set()
        for member in members:
            if not isinstance(member, dict) or referenced_definition(member) or "allOf" in member:
                return None
            if isinstance(member.get("type"), list):
                return None
            constants = [member["const"]] if "const" in member else member.get("enum", [])
            primitive = ir.Primitive.of(constants[0]) or ir.Primitive.NULL if constants else None
            kinds.add(primitive.value if primitive else member.get("type"))
            is_open = is_open or not constants
            values.extend(constants)
        if not values or kinds not in ({"string"}, {"integer"}) or len({type(value) for value in values}) != 1:
            return None
        return ir.InlineEnum(primitive=ir.Primitive(kinds.pop()), values=tuple(dict.fromkeys(values)), open=is_open)

    def _all_of(self, node: dict[str, Any], pointer: str, name: str) -> ir.TypeExpr:
        parts = node["allOf"]
        if len(parts) == 1:
            return self.read(parts[0], join(pointer, "allOf", 0), name)
        if self._context.definitions.is_object(node):
            return self._inline(node, pointer, name)
        self._context.report.error(
            "unsupported-all-of", "`allOf` of several schemas is read for objects only", at=join(pointer, "allOf")
        )
        return ir.AnyJson()

    def _typed(self, node: dict[str, Any], pointer: str, name: str) -> ir.TypeExpr:
        kinds = node.get("type", "array" if "items" in node else [])
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        rest = [kind for kind in kinds if kind != "null"]
        if len(rest) > 1:
            members = [{**node, "type": kind} for kind in rest]
            self._define({"description": node.get("description", ""), "anyOf": members}, pointer, name)
            inner: ir.TypeExpr = ir.Ref(name)
        elif rest:
            inner = self._single(rest[0], node, pointer, name)
        else:
            return ir.Scalar(primitive=ir.Primitive.NULL) if kinds else ir.AnyJson()
        return ir.Nullable(inner) if len(rest) < len(kinds) else inner

    def _single(self, kind: str, node: dict[str, Any], pointer: str, name: str) -> ir.TypeExpr:
        if kind == "array":
            item = self.read(node.get("items", True), join(pointer, "items"), name + "Item")
            return ir.ListOf(item=item, min_items=node.get("minItems", 0))
        if kind == "object":
            values = node.get("additionalProperties", True)
            return ir.MapOf(self.read(values, join(pointer, "additionalProperties"), name + "Value"))
        return ir.Scalar(
            primitive=ir.Primitive(kind),
            minimum=node.get("minimum"),
            maximum=node.get("maximum"),
            min_length=node.get("minLength"),
            annotations=tuple((key, node[key]) for key in _ANNOTATING if key in node),
        )
