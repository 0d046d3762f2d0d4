"""Where the schema says to be lenient: what replaces a bad value, and what the drop hook gets."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.support import Packages, schema_of

pytestmark = pytest.mark.every_python

ON_ERROR = {"x-deserialize-default-on-error": True}
SKIP = {"x-deserialize-skip-invalid-items": True}
ON_NULL = {"x-deserialize-default-on-null": True}
INTEGERS = {"type": "array", "items": {"type": "integer"}}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}


def nullable(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "type": [node["type"], "null"]}


FIELDS: dict[str, dict[str, Any]] = {
    "plain": {"type": "integer", **ON_ERROR},
    "defaulted": {"type": "integer", "default": 7, **ON_ERROR},
    "maybe": {"type": ["integer", "null"], **ON_ERROR},
    "maybeDefaulted": {"type": ["integer", "null"], "default": 7, **ON_ERROR},
    "list": {**INTEGERS, **ON_ERROR},
    "listDefaulted": {**INTEGERS, "default": [1], **ON_ERROR},
    "map": {**COUNTS, **ON_ERROR},
    "enum": {"allOf": [{"$ref": "#/$defs/Size"}], "default": "small", **ON_ERROR},
    "object": {"allOf": [{"$ref": "#/$defs/Point"}], "default": {}, **ON_ERROR},
    "items": {**INTEGERS, **ON_ERROR, **SKIP},
    "maybeItems": {**nullable(INTEGERS), **ON_ERROR, **SKIP},
    "members": {**COUNTS, **ON_ERROR, **SKIP},
    "strictItems": {**INTEGERS, **SKIP},
    "nullToDefault": {"type": "integer", "default": 7, **ON_NULL},
    "nullToList": {**INTEGERS, **ON_NULL},
    "nullOrBad": {**INTEGERS, **ON_NULL, **ON_ERROR, **SKIP},
}
REQUIRED: dict[str, dict[str, Any]] = {
    "list": {**INTEGERS, **ON_ERROR},
    "map": {**COUNTS, **ON_ERROR},
    "maybe": {"type": ["integer", "null"], **ON_ERROR},
    "maybeList": {**nullable(INTEGERS), **ON_ERROR},
    "defaulted": {"type": "integer", "default": 7, **ON_ERROR},
    "items": {**INTEGERS, **SKIP},
    "nullToList": {**INTEGERS, **ON_NULL},
    "nullToMap": {**COUNTS, **ON_NULL},
    "nullOrBad": {**INTEGERS, **ON_NULL, **ON_ERROR, **SKIP},
}
VALID: dict[str, Any] = {key: [] if "ist" in key or "tems" in key or "Bad" in key else 3 for key in REQUIRED} | {
    "map": {},
    "nullToMap": {},
}
INNER = {"type": "object", "properties": {"n": {"type": "integer"}, "soft": FIELDS["plain"]}, "required": ["n"]}

SCHEMA = schema_of(
    Size={"type": "string", "oneOf": [{"const": "small"}, {"const": "large"}]},
    Point={"type": "object", "properties": {"x": {"type": "integer", "default": 0, **ON_ERROR}}},
    Optional={"type": "object", "properties": FIELDS},
    Required={"type": "object", "properties": REQUIRED, "required": [*REQUIRED]},
    Inner=INNER,
    Nested={
        "type": "object",
        "properties": {
            "inners": {"type": "array", "items": {"$ref": "#/$defs/Inner"}, **ON_ERROR, **SKIP},
            "inner": {"allOf": [{"$ref": "#/$defs/Inner"}], **ON_ERROR},
            "byName": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Inner"}, **SKIP},
        },
    },
    Soft={"type": "object", "properties": {"a": FIELDS["plain"], "b": {"type": "integer"}}, "required": ["b"]},
    Softer={"type": "object", "properties": {"a": {"type": "string"}, "c": FIELDS["plain"]}, "required": ["a"]},
    Untagged={"anyOf": [{"$ref": "#/$defs/Soft"}, {"$ref": "#/$defs/Softer"}]},
    Tagged={
        "anyOf": [
            {
                "type": "object",
                "properties": {"kind": {"type": "string", "const": "soft"}, "a": FIELDS["plain"], "z": COUNTS},
                "required": ["kind", "z"],
            },
            {
                "title": "fallback",
                "type": "object",
                "properties": {"z": {"type": "string"}, "b": FIELDS["plain"]},
                "required": ["z"],
            },
        ]
    },
    Holder={
        "type": "object",
        "properties": {
            "union": {"allOf": [{"$ref": "#/$defs/Untagged"}]},
            "unions": {"type": "array", "items": {"$ref": "#/$defs/Tagged"}, **SKIP},
            "soft": {"allOf": [{"$ref": "#/$defs/Tagged"}], **ON_ERROR},
        },
    },
)


@pytest.fixture(scope="module", params=[True, False], ids=["written", "reflected"])
def soft(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages.of(SCHEMA, is_used=request.param)


def decode(soft: ModuleType, name: str, raw: Any) -> tuple[Any, list[tuple[str | int, ...]]]:
    """The decoded value, and the paths that were dropped on the way, sorted."""
    paths: list[tuple[str | int, ...]] = []
    value = soft.decode(getattr(soft, name), raw, on_drop=lambda drop: paths.append(drop.path))
    assert soft.decode(getattr(soft, name), raw) == value, "listening must not change the result"
    return value, sorted(paths, key=lambda path: [(isinstance(step, str), step) for step in path])


# --- Optional properties --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "bad", "expected", "drops"),
    [
        ("plain", "x", None, [()]),
        ("plain", None, None, [()]),
        ("plain", True, None, [()]),
        ("defaulted", "x", 7, [()]),
        ("defaulted", None, 7, [()]),
        ("maybe", "x", None, [()]),
        ("maybeDefaulted", "x", 7, [()]),
        ("list", 1, None, [()]),
        ("list", [1, "x"], None, [()]),
        ("listDefaulted", [1, "x"], [1], [()]),
        ("map", {"a": "x"}, None, [()]),
        ("enum", "huge", "small", [()]),
        ("object", [], {"x": 0}, [()]),
        ("object", {"x": "y"}, {"x": 0}, [("x",)]),
        ("items", [1, "x", 2, None], [1, 2], [(1,), (3,)]),
        ("items", ["x"], [], [(0,)]),
        ("items", "x", None, [()]),
        ("items", None, None, [()]),
        ("maybeItems", ["x", 1], [1], [(0,)]),
        ("maybeItems", {}, None, [()]),
        ("members", {"a": 1, "b": "x"}, {"a": 1}, [("b",)]),
        ("strictItems", ["x", 1], [1], [(0,)]),
        ("nullToDefault", None, 7, []),
        ("nullToList", None, None, []),
        ("nullOrBad", None, None, []),
        ("nullOrBad", 1, None, [()]),
        ("nullOrBad", [1, "x"], [1], [(1,)]),
    ],
)
def test_bad_value(soft: ModuleType, key: str, bad: Any, *, expected: Any, drops: list[tuple[Any, ...]]) -> None:
    """`expected` is what is encoded again; None stands for an absent key."""
    value, paths = decode(soft, "Optional", {key: bad})
    empty = soft.encode(soft.Optional())
    encoded = soft.encode(value)
    assert encoded == (empty if expected is None else empty | {key: expected})
    assert encoded.get(key) == expected
    assert paths == [(key, *drop) for drop in drops]


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("plain", 3),
        ("maybe", None),
        ("maybeDefaulted", None),
        ("list", [1, 2]),
        ("map", {"a": 1}),
        ("enum", "large"),
        ("object", {"x": 5}),
        ("items", []),
        ("maybeItems", None),
        ("nullToList", [1]),
    ],
)
def test_good_value(soft: ModuleType, key: str, good: Any) -> None:
    value, paths = decode(soft, "Optional", {key: good})
    assert soft.encode(value)[key] == good
    assert paths == []


def test_absent_values_are_defaults_and_no_drops(soft: ModuleType) -> None:
    value, paths = decode(soft, "Optional", {})
    assert value == soft.Optional()
    assert (value.plain, value.maybe, value.list, value.items) == (soft.UNSET,) * 4
    assert (value.defaulted, value.maybe_defaulted, value.list_defaulted) == (7, 7, [1])
    assert paths == []


@pytest.mark.parametrize(
    ("key", "bad"), [("strictItems", 1), ("strictItems", None), ("nullToDefault", "x"), ("nullToList", ["x"])]
)
def test_leniency_of_one_kind_is_no_leniency_of_another(soft: ModuleType, key: str, bad: Any) -> None:
    with pytest.raises(soft.DecodeError) as caught:
        soft.decode(soft.Optional, {key: bad})
    assert caught.value.path[0] == key


# --- Required properties --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "bad", "expected", "drops"),
    [
        ("list", "x", [], [()]),
        ("list", ["x"], [], [()]),
        ("list", None, [], [()]),
        ("map", 1, {}, [()]),
        ("maybe", "x", None, [()]),
        ("maybeList", {}, None, [()]),
        ("defaulted", "x", 7, [()]),
        ("items", [1, "x"], [1], [(1,)]),
        ("nullToList", None, [], []),
        ("nullToMap", None, {}, []),
        ("nullOrBad", None, [], []),
        ("nullOrBad", 7, [], [()]),
        ("nullOrBad", [None, 2], [2], [(0,)]),
    ],
)
def test_bad_required_value(
    soft: ModuleType, key: str, bad: Any, *, expected: Any, drops: list[tuple[Any, ...]]
) -> None:
    value, paths = decode(soft, "Required", VALID | {key: bad})
    assert soft.encode(value) == VALID | {key: expected}
    assert paths == [(key, *drop) for drop in drops]


@pytest.mark.parametrize("key", REQUIRED)
def test_a_required_value_has_to_be_there(soft: ModuleType, key: str) -> None:
    with pytest.raises(soft.DecodeError) as caught:
        soft.decode(soft.Required, {name: value for name, value in VALID.items() if name != key})
    assert caught.value.path == (key,)
    assert "missing" in caught.value.found


@pytest.mark.parametrize(
    ("key", "bad"), [("items", 1), ("items", None), ("nullToList", 1), ("nullToList", ["x"]), ("nullToMap", [])]
)
def test_strict_where_the_schema_does_not_forgive(soft: ModuleType, key: str, bad: Any) -> None:
    with pytest.raises(soft.DecodeError) as caught:
        soft.decode(soft.Required, VALID | {key: bad})
    assert caught.value.path[0] == key


@pytest.mark.parametrize(
    ("definition", "bad", "expected"),
    [(INTEGERS, "x", []), (COUNTS, "x", {}), ({"type": ["integer", "null"]}, "x", None)],
)
def test_a_required_value_whose_type_has_a_name(packages: Packages, definition: Any, bad: Any, expected: Any) -> None:
    """An array that is an alias is an array still."""
    properties = {"value": {"allOf": [{"$ref": "#/$defs/Alias"}], **ON_ERROR}}
    soft = packages.of(
        schema_of(Alias=definition, Holder={"type": "object", "properties": properties, "required": ["value"]})
    )
    value, paths = decode(soft, "Holder", {"value": bad})
    assert value.value == expected
    assert paths == [("value",)]


# --- Nesting --------------------------------------------------------------------------------------------------------


def test_drops_are_where_they_were(soft: ModuleType) -> None:
    raw = {
        "inners": [{"n": 1}, {"n": "x", "soft": "y"}, {"n": 2, "soft": "y"}, 5],
        "inner": {"soft": "y", "n": 3},
        "byName": {"a": {"n": 4, "soft": None}, "b": {}, "c.d": {"n": 5}},
    }
    value, paths = decode(soft, "Nested", raw)
    assert soft.encode(value) == {
        "inners": [{"n": 1}, {"n": 2}],
        "inner": {"n": 3},
        "byName": {"a": {"n": 4}, "c.d": {"n": 5}},
    }
    assert paths == [("byName", "a", "soft"), ("byName", "b"), ("inner", "soft"), *inners()]


def inners() -> list[tuple[str | int, ...]]:
    return [("inners", 1), ("inners", 2, "soft"), ("inners", 3)]


def test_nothing_is_said_of_the_parts_of_what_was_dropped(soft: ModuleType) -> None:
    """The soft part is read, and dropped, before the strict part fails."""
    _, paths = decode(soft, "Nested", {"inner": {"soft": "y", "n": "x"}})
    assert paths == [("inner",)]
    _, paths = decode(soft, "Holder", {"soft": {"kind": "soft", "a": "x", "z": 1}})
    assert paths == [("soft",)]


def test_a_drop_says_why(soft: ModuleType) -> None:
    drops: list[Any] = []
    soft.decode(soft.Nested, {"inners": [{"n": 1}, {"n": "x"}]}, on_drop=drops.append)
    (drop,) = drops
    assert isinstance(drop, soft.Drop)
    assert drop.path == ("inners", 1)
    assert (drop.error.path, drop.error.expected, drop.error.found) == (("n",), "an integer", "'x'")


def test_nothing_is_said_where_the_whole_fails(soft: ModuleType) -> None:
    drops: list[Any] = []
    with pytest.raises(soft.DecodeError):
        soft.decode(soft.Inner, {"soft": "x", "n": "y"}, on_drop=drops.append)
    assert drops == []


def test_many_drops_come_in_the_order_of_the_document(soft: ModuleType) -> None:
    paths: list[Any] = []
    soft.decode(soft.Optional, {"items": ["x"] * 12}, on_drop=lambda drop: paths.append(drop.path))
    assert paths == [("items", index) for index in range(12)]


def test_equal_values_are_different_places(soft: ModuleType) -> None:
    _, paths = decode(soft, "Nested", {"inners": [{"n": 1, "soft": "x"}, {"n": 1, "soft": "x"}]})
    assert paths == [("inners", 0, "soft"), ("inners", 1, "soft")]


def test_a_listener_is_not_heard_by_another_decode(soft: ModuleType) -> None:
    paths: list[Any] = []

    def on_drop(drop: Any) -> None:
        paths.append(drop.path)
        soft.decode(soft.Optional, {"plain": "x"})
        soft.decode(soft.Optional, {"plain": "x"}, on_drop=lambda inner: paths.append(("inner", *inner.path)))

    soft.decode(soft.Optional, {"defaulted": "x"}, on_drop=on_drop)
    assert paths == [("defaulted",), ("inner", "plain")]
    soft.decode(soft.Optional, {"plain": "x"})
    assert len(paths) == 2


# --- Unions ---------------------------------------------------------------------------------------------------------


def test_a_candidate_that_failed_has_dropped_nothing(soft: ModuleType) -> None:
    """`Soft` would drop `a`, and then fails for want of a good `b`."""
    value, paths = decode(soft, "Holder", {"union": {"a": "text", "b": "x", "c": "y"}})
    assert value.union == soft.Softer(a="text")
    assert paths == [("union", "c")]


def test_the_candidate_that_fits_has_dropped(soft: ModuleType) -> None:
    value, paths = decode(soft, "Holder", {"union": {"a": "text", "b": 1}})
    assert value.union == soft.Soft(b=1)
    assert paths == [("union", "a")]


def test_a_tagged_member_that_failed_has_dropped_nothing(soft: ModuleType) -> None:
    """The member of the tag would drop `a`, and fails at `z`; the one that is tried next knows no `a`."""
    raw = {"kind": "soft", "a": "x", "b": "y", "z": "text"}
    value, paths = decode(soft, "Tagged", raw)
    assert soft.encode(value) == {"z": "text"}
    assert paths == [("b",)]


def test_unions_in_an_array(soft: ModuleType) -> None:
    raw = {
        "unions": [{"kind": "soft", "a": "x", "z": "text"}, {"kind": "soft", "a": "x", "z": 1}, {"z": "t", "b": "x"}]
    }
    value, paths = decode(soft, "Holder", raw)
    assert soft.encode(value) == {"unions": [{"z": "text"}, {"z": "t"}]}
    assert paths == [("unions", 1), ("unions", 2, "b")]


# --- The protocol itself --------------------------------------------------------------------------------------------


def test_a_lenient_initialize(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"))
    raw = {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": "yes", "promptCapabilities": {"image": 1, "audio": True}},
        "authMethods": [{"id": "a", "name": "n"}, {"id": 1}, None],
        "_meta": [],
    }
    value, paths = decode(acp, "InitializeResponse", raw)
    assert value.agent_capabilities.load_session is False
    assert value.agent_capabilities.prompt_capabilities == acp.PromptCapabilities(audio=True)
    assert value.auth_methods == [acp.AuthMethodAgent(id="a", name="n")]
    assert value.meta is acp.UNSET
    assert paths == [
        ("_meta",),
        ("agentCapabilities", "loadSession"),
        ("agentCapabilities", "promptCapabilities", "image"),
        ("authMethods", 1),
        ("authMethods", 2),
    ]


def test_mcp_servers_may_be_null(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"))
    value, paths = decode(acp, "NewSessionRequest", {"cwd": "/", "mcpServers": None})
    assert (value.mcp_servers, paths) == ([], [])
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.NewSessionRequest, {"cwd": "/"})


def test_an_unknown_kind_of_tool_is_left_out(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"))
    raw = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "kind": "new", "status": "pending"}
    value, paths = decode(acp, "SessionUpdate", raw)
    assert (value.kind, value.status) == (acp.UNSET, "pending")
    assert paths == [("kind",)]
