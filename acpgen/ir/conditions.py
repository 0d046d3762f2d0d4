"""Conditions on objects: the forms of `not` that a decoder can check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from acpgen.diagnostics import Report
from acpgen.schema.document import join


@dataclass(frozen=True, slots=True)
class HasKeys:
    """The object has all these properties (JSON Schema `required`)."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyIs:
    """The property has this value, or is absent."""

    key: str
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Condition


Condition: TypeAlias = HasKeys | KeyIs | And | Or | Not


_READABLE = frozenset({"type", "description", "title", "required", "properties", "anyOf", "not", "const", "enum"})


def condition(node: Any, pointer: str, report: Report) -> Condition | None:
    """The condition that `node` states; None, with a warning, for a form that acpgen cannot check."""
    parts = _parts(node, pointer, report) if isinstance(node, dict) and node.keys() <= _READABLE else None
    if not parts:
        report.warning("unsupported-not", "acpgen cannot check this `not`: every value passes", at=pointer)
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _parts(node: dict[str, Any], pointer: str, report: Report) -> list[Condition] | None:
    parts: list[Condition | None] = []
    if "required" in node:
        parts.append(HasKeys(tuple(node["required"])))
    for key, value in node.get("properties", {}).items():
        parts.append(_property(key, value))
    if "anyOf" in node:
        members = [
            condition(member, join(pointer, "anyOf", index), report) for index, member in enumerate(node["anyOf"])
        ]
        known = tuple(member for member in members if member is not None)
        parts.append(Or(known) if len(known) == len(members) else None)
    if "not" in node:
        inner = condition(node["not"], join(pointer, "not"), report)
        parts.append(Not(inner) if inner is not None else None)
    return None if None in parts else [part for part in parts if part is not None]


def _property(key: str, node: Any) -> Condition | None:
    if not isinstance(node, dict):
        return None
    if set(node) - {"type", "description", "title"} == {"const"} and isinstance(node["const"], (str, int)):
        return KeyIs(key=key, value=node["const"])
    if set(node) == {"not"} and (inner := _property(key, node["not"])) is not None:
        # "absent or other than the value": the reverse of "present and equal"
        return Not(And((HasKeys((key,)), inner)))
    return None


def excluded_values(found: Condition | None, key: str) -> tuple[str, ...] | None:
    """The values of `key` that `found` selects, if it tests nothing else; None otherwise."""
    match found:
        case Or(parts):
            lists = [excluded_values(part, key) for part in parts]
            if any(values is None for values in lists):
                return None
            return tuple(value for values in lists if values is not None for value in values)
        case And((HasKeys((present,)), KeyIs(key=name, value=str(value)))) if present == name == key:
            return (value,)
        case _:
            return None


def holds(found: Condition, data: Mapping[str, Any]) -> bool:
    """Whether the object `data` meets the condition."""
    match found:
        case HasKeys(keys):
            return data.keys() >= set(keys)
        case KeyIs(key=key, value=value):
            return bool(data.get(key, value) == value)
        case And(parts):
            return all(holds(part, data) for part in parts)
        case Or(parts):
            return any(holds(part, data) for part in parts)
        case Not(part):
            return not holds(part, data)
