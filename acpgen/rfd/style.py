"""Put a schema into the form that the bundled fragments have: the order of keywords, and null as the last type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acpgen.schema.equality import canonical
from acpgen.schema.walk import LISTS_OF_SCHEMAS, MAPS_OF_SCHEMAS, SINGLE_SCHEMAS

_FIRST = (
    *("title", "description", "$ref", "type", "const", "enum", "format", "pattern", "items", "properties", "required"),
    *("allOf", "anyOf", "oneOf", "not", "default"),
)
_LAST = ("x-deserialize-default-on-error", "x-deserialize-skip-invalid-items", "additionalProperties")
_VERY_LAST = ("x-side", "x-method")
_EXTENSION_POINT = "_meta"
"""The property that is for extensions stands behind the others."""


def styled(node: Any) -> Any:
    """`node` in the order of the house; what it says stays the same."""
    if not isinstance(node, dict):
        return node
    others = [key for key in node if key not in (*_FIRST, *_LAST, *_VERY_LAST)]
    order = [*_FIRST, *others, *_LAST, *_VERY_LAST]
    return {key: _styled_value(key, node[key]) for key in order if key in node}


def _styled_value(key: str, value: Any) -> Any:
    if key in MAPS_OF_SCHEMAS and isinstance(value, dict):
        return {name: styled(value[name]) for name in sorted(value, key=lambda name: name == _EXTENSION_POINT)}
    if key in LISTS_OF_SCHEMAS and isinstance(value, list):
        return [styled(child) for child in value]
    if key in SINGLE_SCHEMAS:
        return styled(value)
    if key == "type" and isinstance(value, list) and len(value) == 1:
        return value[0]
    if key == "type" and isinstance(value, list):
        return sorted(value, key=lambda name: name == "null")
    return value


def without_prose(node: Any) -> Any:
    """`node` without prose and leniency markers, in the order of the house."""
    return styled(canonical(node))


def nullable(node: Mapping[str, Any]) -> dict[str, Any]:
    """A schema for the values of `node`, and null."""
    kind = node.get("type")
    if isinstance(kind, str) and not ({"const", "enum"} & node.keys()):
        return {**node, "type": kind if kind == "null" else [kind, "null"]}
    if not node:
        return {}
    if node.keys() == {"anyOf"}:
        return {"anyOf": [*node["anyOf"], {"type": "null"}]}
    return {"anyOf": [dict(node), {"type": "null"}]}


def reference(name: str) -> dict[str, Any]:
    """A reference to the definition `name`."""
    return {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1")}


def described(node: dict[str, Any], doc: str) -> dict[str, Any]:
    """`node` with a description; a reference gets into an `allOf`, so that it can have one."""
    if not doc:
        return node
    wrapped = {"allOf": [node]} if "$ref" in node else node
    return {"description": doc, **wrapped}
