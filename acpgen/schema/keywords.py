"""The keywords of the dialect: those that acpgen reads, with their legal values, and those that it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """The effects of leniency on a property."""

    default_on_error: bool = False
    skip_invalid_items: bool = False
    default_on_null: bool = False

    def __or__(self, other: Leniency) -> Leniency:
        """The effects of both."""
        return Leniency(**{each.name: getattr(self, each.name) or getattr(other, each.name) for each in fields(self)})

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> Leniency:
        """The effects of all keywords of leniency that are true in `node`."""
        found = cls()
        for keyword, effects in LENIENCY.items():
            found = found | effects if node.get(keyword) else found
        return found


LENIENCY: Mapping[str, Leniency] = {
    "x-deserialize-default-on-error": Leniency(default_on_error=True),
    "x-deserialize-skip-invalid-items": Leniency(skip_invalid_items=True),
    "x-deserialize-default-on-null": Leniency(default_on_null=True),
}
"""The keywords of leniency with their effects. `ir/leniency` says what an effect means; all else follows from both."""
LENIENCY_PREFIX = "x-deserialize-"
"""Schemas that differ in keywords with this prefix only, known or not, are the same to an extension."""

_TYPE_NAMES = {"null", "boolean", "object", "array", "number", "string", "integer"}


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def is_schema_map(value: Any) -> bool:
    """True for an object of schemas."""
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_schema_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_string, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPE_NAMES for name in names)


_LEGAL: Mapping[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "a string": (
        _is_string,
        ("$schema", "$ref", "title", "description", "format", "pattern", "contentEncoding", "x-method", "x-side"),
    ),
    "an object of schemas": (is_schema_map, ("$defs", "properties")),
    "the name of a JSON type, or a list of them": (_is_type, ("type",)),
    "a list of property names": (_is_string_list, ("required",)),
    "a schema": (_is_schema, ("items", "not", "additionalProperties", "unevaluatedProperties")),
    "a list of schemas": (_is_schema_list, ("anyOf", "oneOf", "allOf")),
    "a list of values": (lambda value: isinstance(value, list) and bool(value), ("enum",)),
    "a number": (_is_number, ("minimum", "maximum")),
    "a whole number": (_is_count, ("minItems", "minLength")),
    "true or false": (lambda value: isinstance(value, bool), ("x-docs-ignore", *LENIENCY)),
    "any value": (lambda _: True, ("const", "default", "discriminator")),
}
"""The legal values of keywords: their name, the test for them, and the keywords."""

KEYWORDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    keyword: (is_legal, legal) for legal, (is_legal, keywords) in _LEGAL.items() for keyword in keywords
}
"""The keywords that acpgen reads, each with the test and the name of its legal values."""

ANNOTATIONS = frozenset({"$comment", "$id", "deprecated", "examples", "readOnly", "writeOnly"})
"""Keywords that do not affect which values are valid."""

WITHOUT_EFFECT = frozenset(
    {
        *("$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "definitions", "dependencies"),
        *("contains", "contentMediaType", "contentSchema", "dependentRequired", "dependentSchemas", "else", "if"),
        *("exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties"),
        *("minContains", "minProperties", "multipleOf", "patternProperties", "prefixItems", "propertyNames", "then"),
        *("unevaluatedItems", "uniqueItems"),
    }
)
"""Keywords of JSON Schema, in this draft or an earlier one, that acpgen does not read."""
