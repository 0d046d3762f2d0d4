"""The option `open`: what it accepts, from whom, and what the schema as it is written keeps for itself."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.roles import Side
from tests.support import Packages, model_of, schema_of
from tests.test_lower import lowered

OPEN = Options(open=True)
TEXT = {"type": "string"}


def obj(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


# --- What fits a member as the schema writes it ----------------------------------------------------------------------


NUMERIC = obj({"type": {"enum": ["integer", "number"]}}, title=TEXT)
ONE = obj({"type": {"const": "array"}, "one": TEXT})
MANY = obj({"type": {"const": "array"}, "many": {"type": "array", "items": TEXT}})
PROPERTY = {
    "anyOf": [
        {"title": "Numeric", **NUMERIC},
        {"title": "One", **ONE},
        {"title": "Many", **MANY},
    ]
}


@pytest.fixture(scope="module")
def properties(packages: Packages) -> ModuleType:
    return packages.of(schema_of(Property=PROPERTY, Holder=obj({}, inner=reference("Property"))), OPEN)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("PropertyNumeric", {"type": "number", "title": "n"}),
        ("PropertyOne", {"type": "array", "one": "a"}),
        ("PropertyMany", {"type": "array", "many": ["a"]}),
        ("PropertyNumeric", {"type": "later", "title": "n"}),
    ],
)
def test_an_opened_enumeration_takes_what_no_member_takes_as_written(
    properties: ModuleType, kind: str, raw: dict[str, Any]
) -> None:
    value = properties.decode(properties.Property, raw)
    assert type(value).__name__ == kind
    assert properties.encode(value) == raw
    assert properties.encode(properties.decode(properties.Holder, {"inner": raw})) == {"inner": raw}


def test_opened_parts_at_any_depth_come_after_members_as_written(packages: Packages) -> None:
    """The unknown value is in a list in an object in the first member; a tag can be unknown as well."""
    schema = schema_of(
        Level={"enum": ["low", "high"]},
        Item=obj({"level": reference("Level")}),
        Block={"oneOf": [obj({"kind": {"const": "a"}, "a": TEXT}), obj({"kind": {"const": "b"}, "b": TEXT})]},
        Wide=obj({}, items={"type": "array", "items": reference("Item")}, block=reference("Block")),
        Narrow=obj({"items": {"type": "array", "items": obj({"level": TEXT, "more": TEXT})}}),
        Loose=obj({"block": obj({"kind": TEXT, "c": TEXT})}),
        Value={"anyOf": [reference("Wide"), reference("Narrow"), reference("Loose")]},
        Nested={"anyOf": [reference("Value"), {"title": "Deeper", **obj({"nested": TEXT})}]},
    )
    acp = packages.of(schema, OPEN)
    for name, raw in [
        ("Wide", {"items": [{"level": "low"}], "block": {"kind": "a", "a": "x"}}),
        ("Narrow", {"items": [{"level": "low", "more": "x"}, {"level": "medium", "more": "y"}]}),
        ("Loose", {"block": {"kind": "c", "c": "x"}}),
        ("Wide", {"items": [{"level": "medium"}]}),
        ("Wide", {"block": {"kind": "c", "d": "x"}}),
        ("Wide", {"items": [{"level": "medium"}], "block": {"kind": "a", "a": "x"}}),
    ]:
        for union in (acp.Value, acp.Nested):
            value = acp.decode(union, raw)
            assert (type(value).__name__, acp.encode(value)) == (name, raw)


def test_drops_are_those_of_the_member_that_is_taken(packages: Packages) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "x-deserialize-skip-invalid-items": True}
    first = obj({"type": {"enum": ["a", "b"]}}, numbers=numbers)
    second = obj({"type": {"const": "c"}, "numbers": {"type": "array"}})
    schema = schema_of(U={"anyOf": [{"title": "First", **first}, {"title": "Second", **second}]})
    acp = packages.of(schema, OPEN)

    def read(raw: dict[str, Any]) -> tuple[Any, list[Any]]:
        drops: list[Any] = []
        return acp.encode(acp.decode(acp.U, raw, on_drop=drops.append)), [drop.path for drop in drops]

    assert read({"type": "c", "numbers": ["x", 1]}) == ({"type": "c", "numbers": ["x", 1]}, [])
    assert read({"type": "d", "numbers": ["x", 1]}) == ({"type": "d", "numbers": [1]}, [("numbers", 0)])


def test_a_member_with_a_tag_does_not_keep_what_a_later_one_takes_as_written(packages: Packages) -> None:
    tagged = obj({"type": {"const": "http"}, "mode": {"enum": ["get", "put"]}})
    untagged = obj({"mode": TEXT, "command": TEXT})
    union = {"anyOf": [tagged, obj({"type": {"const": "sse"}}), {"title": "Stdio", **untagged}]}
    acp = packages.of(schema_of(U=union), OPEN)
    for name, raw in [
        ("UStdio", {"mode": "post", "command": "c"}),
        ("UHttp", {"type": "http", "mode": "post"}),
        ("UHttp", {"type": "http", "mode": "get"}),
    ]:
        value = acp.decode(acp.U, raw)
        assert (type(value).__name__, acp.encode(value)) == (name, raw)
    assert type(acp.decode(acp.U, {"type": "http", "mode": "post", "command": "c"})) is acp.UStdio


@pytest.mark.parametrize("options", [Options(), OPEN], ids=["closed", "open"])
@pytest.mark.parametrize(
    ("values", "warnings"),
    [
        (["integer", "number"], []),  # an opened one takes arrays, too, but last
        (["array", "number"], ["UOne", "UMany"]),
    ],
)
def test_a_member_that_takes_all_but_for_optional_properties_is_reported(
    options: Options, values: list[str], warnings: list[str]
) -> None:
    wide = {"title": "Wide", **obj({"type": {"enum": values}}, title=TEXT)}
    _, report = lowered(options, U={"anyOf": [wide, {"title": "One", **ONE}, {"title": "Many", **MANY}]})
    found = [each.message for each in report.found if each.code == "unreachable-member"]
    assert found == [
        f"U: every value of {name} also fits UWide, which comes first; no value becomes {name}" for name in warnings
    ]


# --- Names -----------------------------------------------------------------------------------------------------------


def test_a_member_tagged_other_keeps_its_name(packages: Packages) -> None:
    """Published schemas of 2025 have such unions."""
    union = {"oneOf": [obj({"kind": {"const": "text"}}), obj({"kind": {"const": "other"}, "why": TEXT})]}
    acp = packages.of(schema_of(Content=union), OPEN)
    assert acp.decode(acp.Content, {"kind": "other", "why": "w"}) == acp.ContentOther(why="w")
    assert acp.decode(acp.Content, {"kind": "new", "x": 1}) == acp.ContentOtherOther(kind="new", extra={"x": 1})


def test_a_definition_keeps_its_name(packages: Packages) -> None:
    union = {"oneOf": [obj({"kind": {"const": "text"}}), obj({"kind": {"const": "image"}})]}
    acp = packages.of(schema_of(Content=union, ContentOther=obj({"x": TEXT}), User=reference("ContentOther")), OPEN)
    assert acp.decode(acp.ContentOther, {"x": "x"}) == acp.ContentOther(x="x")
    assert type(acp.decode(acp.Content, {"kind": "new"})) is acp.ContentOtherOther


# --- Direction -------------------------------------------------------------------------------------------------------


def opened(*receivers: Side) -> set[str]:
    """The enumerations and unions of the newest schema that are open, and are not where `open` is off."""
    options = Options(open=True, receivers=receivers)
    closed, found = (model_of(SchemaChoice(), each)[0] for each in (Options(), options))
    unions = {name.removesuffix("Other") for name in found.by_name.keys() - closed.by_name.keys()}
    return unions | {name for name, each in closed.by_name.items() if found.by_name[name] != each} - {""}


def test_what_a_role_only_sends_is_closed() -> None:
    client, agent, both = opened(Side.CLIENT), opened(Side.AGENT), opened(*Side)
    assert {"StopReason", "ToolKind", "SessionUpdate", "PermissionOptionKind"} <= client - agent
    assert {"RequestPermissionOutcome", "McpServer"} <= agent - client
    assert "ContentBlock" in client & agent
    assert both == client | agent


def test_what_no_message_carries_is_open(packages: Packages) -> None:
    found = packages.of(schema_of(Color={"enum": ["red", "green"]}), Options(open=True, receivers=(Side.CLIENT,)))
    assert found.decode(found.Color, "mauve") == "mauve"
