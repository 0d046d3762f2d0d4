"""Compare schemas for equality, ignoring their prose."""

from __future__ import annotations

import json
from typing import Any

from acpgen.schema.document import join
from acpgen.schema.keywords import LENIENCY_PREFIX
from acpgen.schema.walk import LISTS_OF_SCHEMAS, MAPS_OF_SCHEMAS, SINGLE_SCHEMAS
from acpgen.text import EXCERPT, cut

_PROSE = frozenset({"description", "title", "$comment"})


def canonical(node: Any) -> Any:
    """`node` without prose and leniency markers, in normal form."""
    if not isinstance(node, dict):
        return node
    form = {
        key: _canonical_value(key, value)
        for key, value in node.items()
        if key not in _PROSE and not key.startswith(LENIENCY_PREFIX) and not (key == "required" and value == [])
    }
    match form:
        case {"$ref": _}:
            return form
        case {"allOf": [{"$ref": target, **siblings}], **rest} if not siblings:
            return {"$ref": target, **rest}
    return form


def _canonical_value(key: str, value: Any) -> Any:
    if key in MAPS_OF_SCHEMAS and isinstance(value, dict):
        return {name: canonical(child) for name, child in value.items()}
    if key in LISTS_OF_SCHEMAS and isinstance(value, list):
        return [canonical(child) for child in value]
    if key in SINGLE_SCHEMAS:
        return canonical(value)
    if key in ("required", "type") and isinstance(value, list):
        return sorted(value, key=json_text)
    return value


def json_text(value: Any) -> str:
    """The canonical text of a JSON value: the order of names has no effect."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def same_shape(one: Any, other: Any) -> bool:
    """True if both schemas have the same normal form, ignoring prose and leniency.

    JSON texts are compared, because `1`, `1.0` and `True` are equal in Python.
    """
    return json_text(canonical(one)) == json_text(canonical(other))


def difference(one: Any, other: Any) -> str:
    """The outermost difference between two schemas of different shape, for a message: the place, and both values."""
    return _difference(canonical(one), canonical(other), "")


def _difference(one: Any, other: Any, pointer: str) -> str:
    first, second = _excerpt(one), _excerpt(other)
    match one, other:
        case dict(), dict():
            unequal = sorted(key for key in one.keys() | other.keys() if _entry(one, key) != _entry(other, key))
            if len(unequal) == 1 and unequal[0] in one and unequal[0] in other:
                return _difference(one[unequal[0]], other[unequal[0]], join(pointer, unequal[0]))
            first, second = _excerpt_of(one, unequal), _excerpt_of(other, unequal)
        case list(), list() if len(one) == len(other):
            indexes = [index for index in range(len(one)) if json_text(one[index]) != json_text(other[index])]
            if len(indexes) == 1:
                return _difference(one[indexes[0]], other[indexes[0]], join(pointer, indexes[0]))
    return f"at {pointer}: {first} against {second}" if pointer else f"{first} against {second}"


def _entry(node: dict[str, Any], key: str) -> str | None:
    return json_text(node[key]) if key in node else None


def _excerpt_of(node: dict[str, Any], keys: list[str]) -> str:
    """The entries of `node` under `keys`, with a mark if there are others."""
    text = _excerpt({key: node[key] for key in keys if key in node})
    if node.keys() <= set(keys):
        return text
    return "{…}" if text == "{}" else text[:-1] + ("…" if text.endswith("…") else ",…}")


def _excerpt(node: Any) -> str:
    """Compact JSON, cut if it is long."""
    text = json.dumps(node, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return cut(text, EXCERPT)
