"""Tell by its look whether a value of JSON is a schema, so that none is lost unsaid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from acpgen.diagnostics import Location
from acpgen.rfd.source import Findings
from acpgen.schema.document import join

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_STRUCTURE = frozenset(
    {"properties", "items", "const", "enum", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"}
)


def looks_like_schema(node: Any) -> bool:
    """Whether a value has the look of a JSON Schema."""
    if not isinstance(node, dict):
        return False
    stated = node.get("type")
    kinds = stated if isinstance(stated, list) else [stated]
    is_typed = bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
    has_structure = bool(_STRUCTURE & node.keys()) and not any(
        isinstance(node.get(key, {}), str) for key in ("properties", "items")
    )
    return (is_typed and (has_structure or node.keys() <= {"type", "description", "title", "format"})) or (
        has_structure and stated is None
    )


class _Link(NamedTuple):
    parent: _Link | None
    token: str | int


def find_schemas(value: Any) -> Iterator[str]:
    """The pointers of the values within `value` that look like schemas, outermost and in order."""
    # a value is found by a chain of links: pointers for all values would cost the product of their number and length
    waiting: list[tuple[_Link | None, Any]] = [(None, value)]
    while waiting:
        link, node = waiting.pop()
        if looks_like_schema(node):
            yield _pointer(link)
            continue
        inner = node.items() if isinstance(node, dict) else enumerate(node)
        waiting += [(_Link(link, key), child) for key, child in inner if isinstance(child, dict | list)][::-1]


def _pointer(link: _Link | None) -> str:
    tokens: list[str | int] = []
    while link is not None:
        tokens.append(link.token)
        link = link.parent
    return join("", *reversed(tokens))


def note_value(value: Any, *, what: str, place: Callable[[str], Location], findings: Findings) -> None:
    """Say that nothing follows from `value`, of which `what` says why; a warning where schemas in it get lost."""
    schemas = find_schemas(value)
    first = next(schemas, None)
    if first is None:
        findings.note("rfd-value", f"a value{what}: nothing follows from it", place(""))
        return
    count = 1 + sum(1 for _ in schemas)
    found = "a schema" if count == 1 else f"the first of {count} schemas in a value"
    findings.warn(
        "rfd-value",
        f"{found} by the look of it, where no definition is recognised: nothing of it is in the draft",
        place(first),
        hint="where it is a definition, put it under its name into `$defs` of the draft",
    )
