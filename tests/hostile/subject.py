"""A small schema and a fragment for it, with a hostile text in every position that text can have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from tests.support import schema_of

Node = dict[str, Any]
STRING: Node = {"type": "string"}

TEXTS = ("description", "title", "const", "enum", "default", "pattern", "error", "error title", "side", "added")
"""Positions of texts that name nothing."""
NAMES = ("property", "definition", "tag property", "tag", "member", "method", "field of the fragment")
"""Positions of texts that name something."""
FRAGMENT = (
    *("id", "revision", "title of the fragment", "rfd", "fragment description", "status", "requires"),
    *("target of a change", "root of a gate", "method of a gate"),
)
"""Positions in a fragment of what has a form, or has to be there already."""
ADDED = ("added definition", "added property", "added tag", "capability")
"""Positions of names that a fragment adds, to the schema or to a definition of it."""


def obj(properties: Node, required: list[str] | None = None, **more: Any) -> Node:
    """An object with these properties."""
    return {"type": "object", "properties": properties, "required": required or [], **more}


def schema(at: Mapping[str, str]) -> Node:
    """The schema with the text `at` each position."""
    tag, side = at["tag property"], {"x-method": at["method"]}
    tags = [obj({tag: {"const": value}}, [tag]) for value in (at["tag"], "other tag")]
    codes = [{"const": 7, "title": at["error title"], "description": at["error"]}, {"type": "integer"}]
    return schema_of(
        **{
            "Thing": obj(
                {
                    "c": {"const": at["const"]},
                    "e": {"enum": [at["enum"], "a"]},
                    "d": {**STRING, "default": at["default"]},
                    "many": {"type": "array", "items": STRING, "default": [at["default"]]},
                    "pairs": {"type": "object", "additionalProperties": STRING, "default": {at["default"]: "x"}},
                    "any": {"default": {at["default"]: [at["default"]]}},
                    "p": {**STRING, "pattern": at["pattern"], "format": at["pattern"]},
                    at["property"]: {"type": "integer", "description": at["description"]},
                },
                ["c"],
                title=at["title"],
                description=at["description"],
            ),
            "Choice9": {"enum": [at["enum"], "a"], "description": at["description"]},
            "Alias": {**STRING, "description": at["description"], "title": at["title"]},
            at["definition"]: obj({"a": STRING}, description=at["description"]),
            "Tagged": {"oneOf": tags},
            "Untagged": {"anyOf": [obj({"m": STRING}, ["m"], title=at["member"]), STRING]},
            "DoRequest": obj({}, description=at["description"], **side, **{"x-side": "agent"}),
            "DoResponse": obj({}, **side, **{"x-side": "agent"}),
            "LostNotification": obj({}, **{"x-method": "lost", "x-side": at["side"]}),
            "Code": {"anyOf": codes},
            "Trouble": obj({"code": {"$ref": "#/$defs/Code"}, "message": STRING, "data": True}, ["code", "message"]),
            "Reply": obj({"error": {"$ref": "#/$defs/Trouble"}}, **{"x-docs-ignore": True}),
        }
    )


def fragment(at: Mapping[str, str]) -> Node:
    """The fragment with the text `at` each position."""
    tag = at["tag property"]
    return {
        "fragment": 1,
        "id": at["id"],
        "revision": at["revision"],
        "title": at["title of the fragment"],
        "description": at["fragment description"],
        "rfd": at["rfd"],
        "status": at["status"],
        "protocols": [1],
        "requires": [at["requires"]] if at["requires"] else [],
        "$defs": {
            "Added": obj({at["field of the fragment"]: STRING}, description=at["added"], title=at["title"]),
            "Abilities": obj({at["capability"]: {"type": "boolean", "description": at["added"]}}),
            at["added definition"]: obj({"a": STRING}, description=at["added"]),
        },
        "changes": {
            at["target of a change"]: {
                "properties": {at["added property"]: {**STRING, "description": at["added"], "default": at["default"]}}
            },
            "Tagged": {"members": [obj({tag: {"const": at["added tag"]}}, [tag], description=at["added"])]},
        },
        "gates": {at["root of a gate"]: {at["method of a gate"] or at["method"]: at["capability"]}},
    }


HARMLESS: Mapping[str, str] = {
    **{position: f"a {position}" for position in TEXTS},
    "property": "size",
    "definition": "Defined",
    "tag property": "type",
    "tag": "first",
    "member": "Member",
    "method": "do/it",
    "field of the fragment": "wave",
    "id": "wave",
    "revision": "1",
    "rfd": "https://example.com",
    "title of the fragment": "Waving",
    "fragment description": "Waves.",
    "status": "vendor",
    "requires": "",
    "target of a change": "Thing",
    "root of a gate": "Abilities",
    "method of a gate": "",
    "added definition": "Further",
    "added property": "depth",
    "added tag": "third",
    "capability": "can",
}
"""A text for every position that makes a package."""


def check_texts(package: ModuleType, at: Mapping[str, str]) -> None:
    """Each text is in the package as it was in the schema."""
    thing = package.Thing(c=at["const"])
    assert (thing.d, thing.many, thing.pairs) == (at["default"], [at["default"]], {at["default"]: "x"})
    assert thing.any == {at["default"]: [at["default"]]}
    raw = {"c": at["const"], "e": at["enum"], "d": at["default"], at["property"]: 3}
    encoded = package.encode(package.decode(package.Thing, raw))
    assert {key: encoded[key] for key in raw} == raw
    assert get_args(package.Choice9) == (at["enum"], "a")
    assert package.decode(package.Choice9, at["enum"]) == at["enum"]
    first = {at["tag property"]: at["tag"]}
    made = package.decode(package.Tagged, first)
    assert package.encode(made) == first
    assert package.encode(package.decode(package.Added, {at["field of the fragment"]: "x"})) == {
        at["field of the fragment"]: "x"
    }
    assert set(package.AGENT_METHODS) == {at["method"]}
    _check_changes(package, at)


def _check_changes(package: ModuleType, at: Mapping[str, str]) -> None:
    """What the fragment changes is there, too."""
    decoded = package.decode(package.Thing, {"c": at["const"]})
    assert package.encode(decoded).get(at["added property"], at["default"]) == at["default"]
    raw = {"c": at["const"], at["added property"]: "x"}
    assert package.encode(package.decode(package.Thing, raw))[at["added property"]] == "x"
    third = {at["tag property"]: at["added tag"]}
    assert package.encode(package.decode(package.Tagged, third)) == third
    gate = package.AGENT_METHODS[at["method"]].capability
    assert gate.paths == ((at["capability"],),)
    assert gate.advertised_in is package.Abilities


def write(folder: Path, at: Mapping[str, str], *, name: str = "schema.json") -> tuple[Path, Path]:
    """The files of the schema and the fragment."""
    paths = folder / name, folder / "wave.json"
    for path, content in zip(paths, (schema(at), fragment(at)), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    return paths
