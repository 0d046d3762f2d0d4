"""Recognise the parts of a union by their structure: tagged members, the open member, untagged members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.schema.equality import canonical, json_text
from acpgen.schema.walk import is_null, layers, own_references, schema_list, schema_map

_KEYS = ("oneOf", "anyOf")
_TYPES = {bool: "boolean", int: "integer"}
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """The members under `key` of a definition, and their tag property, if they have one."""

    key: str
    members: list[Any]
    tag: str | None
    definitions: Mapping[str, Any]

    def identity(self, member: Any) -> tuple[str, str]:
        """The identity of `member` in the union: a kind, and a text for messages.

        Kinds are "value" (a const, or that of the tag), "open", and "untagged".
        """
        if not isinstance(member, dict):
            return ("untagged", json_text(member))
        if "const" in member:
            return ("value", json_text(member["const"]))
        tags = _const_properties(member, self.definitions)
        if self.tag in tags:
            return ("value", json_text(tags[self.tag]))
        if self._is_open(member):
            return ("open", "open")
        return ("untagged", _untagged_name(member))

    def _is_open(self, member: dict[str, Any]) -> bool:
        if self.tag is None:
            values_known = any(isinstance(known, dict) and "const" in known for known in self.members)
            return values_known and member.get("type") in _SCALARS and not ({"enum", "$ref"} & member.keys())
        tag = schema_map(member, "properties").get(self.tag)
        return isinstance(tag, dict) and tag.get("type") == "string" and not ({"enum", "const"} & tag.keys())

    def lacks_tag(self, member: Any) -> bool:
        """Whether a new `member` has no tag, although all others have one: it would take values of any tag.

        Null has none. A tag is a required property, and a string.
        """
        kinds = {self.identity(each)[0] for each in self.members if not is_null(each)}
        if self.tag is None or "value" not in kinds or "untagged" in kinds:
            return False
        if self.identity(member)[0] == "value":
            return not isinstance(_const_properties(member, self.definitions).get(self.tag), str)
        parts = [layer for _, layer in layers(member, "", self.definitions)]
        return self.identity(member)[0] == "untagged" or self.tag not in _required(parts)

    def find(self, member: Any) -> int | None:
        """The index of the member that has the identity of `member`."""
        wanted = self.identity(member)
        return next((index for index, known in enumerate(self.members) if self.identity(known) == wanted), None)

    def index_for(self, member: Any) -> int:
        """The index for a new `member`: one with a constant goes before open and untagged members, others go last."""
        if self.identity(member)[0] == "value":
            for index, known in enumerate(self.members):
                if self.identity(known)[0] != "value":
                    return index
        return len(self.members)

    def open_index(self) -> int | None:
        """The index of the open member."""
        return next((index for index, known in enumerate(self.members) if self.identity(known)[0] == "open"), None)

    def exclusion(self, member: Any) -> dict[str, Any] | None:
        """The entry for `member` in the `not.anyOf` of the open member; None if it needs none."""
        index = self.open_index()
        tags = _const_properties(member, self.definitions)
        if index is None or self.tag not in tags:
            return None
        listed = schema_list(self.members[index].get("not"), "anyOf")
        excluded = [_const_properties(entry, self.definitions).get(self.tag, ...) for entry in listed]
        if not listed or tags[self.tag] in excluded:
            return None
        name = self.tag or ""
        return {
            "type": "object",
            "properties": {name: {"type": _TYPES.get(type(tags[name]), "string"), "const": tags[name]}},
            "required": [name],
        }


def find_union(node: Any, addition: Any, definitions: Mapping[str, Any]) -> Union | None:
    """The union of the definition `node` that the member `addition` belongs to; None if there is none."""
    wanted = _const_properties(addition, definitions)
    unions = [
        _read_union(key, node[key], wanted, definitions)
        for key in _KEYS
        if isinstance(node, dict) and schema_list(node, key)
    ]
    return max(unions, key=lambda union: _likeness(union, addition, wanted), default=None)


def _read_union(key: str, members: list[Any], wanted: Mapping[str, Any], definitions: Mapping[str, Any]) -> Union:
    names = Counter(name for member in members for name in _const_properties(member, definitions))
    tag = next(iter([name for name, _ in names.most_common(1)] or wanted), None)
    return Union(key=key, members=members, tag=tag, definitions=definitions)


def _likeness(union: Union, addition: Any, wanted: Mapping[str, Any]) -> tuple[bool, int]:
    """The sort key of unions by how well `addition` fits: by its tag or constant, then the one with most constants."""
    kinds = Counter(union.identity(member)[0] for member in union.members)
    return (union.tag in wanted or union.identity(addition)[0] == "value", kinds["value"])


def _const_properties(member: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The required properties of `member` with a constant value, each with its value."""
    parts = [layer for _, layer in layers(member, "", definitions)]
    return dict(_consts(parts, _required(parts)))


def _required(parts: list[dict[str, Any]]) -> set[str]:
    return {name for layer in parts for name in schema_list(layer, "required") if isinstance(name, str)}


def _consts(parts: list[dict[str, Any]], required: set[str]) -> Iterator[tuple[str, Any]]:
    for layer in parts:
        for name, node in schema_map(layer, "properties").items():
            if name in required and isinstance(node, dict) and "const" in node:
                yield name, node["const"]


def _untagged_name(member: dict[str, Any]) -> str:
    """The identity of a member without a tag: its definition, else its title, else its shape."""
    title = member.get("title")
    shape = title if isinstance(title, str) else json_text(canonical(member))
    return next(own_references(member), shape)
