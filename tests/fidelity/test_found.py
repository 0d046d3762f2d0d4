"""What the generated values and mutants found, one by one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.support import Packages, schema_of

ANY_OR_KNOWN = schema_of(
    Inner={"type": "object", "properties": {"n": {"type": "integer"}}},
    Known={
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "soft": {"type": "integer", "x-deserialize-default-on-error": True},
            "nulled": {"type": "array", "items": {"type": "integer"}, "x-deserialize-default-on-null": True},
            "numbers": {"type": "array", "items": {"type": "integer"}, "x-deserialize-skip-invalid-items": True},
            "inner": {"allOf": [{"$ref": "#/$defs/Inner"}]},
            "flag": {"type": "boolean", "default": False},
        },
        "required": ["id"],
    },
    Lists={"type": "array", "items": {"$ref": "#/$defs/Known"}},
    Data={"anyOf": [{"$ref": "#/$defs/Known"}, {"$ref": "#/$defs/Lists"}, {"title": "any"}]},
)


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages.of(ANY_OR_KNOWN)


@pytest.mark.parametrize(
    "raw",
    [
        {"id": "a", "more": 1},
        {"id": "a", "soft": "x"},
        {"id": "a", "nulled": None},
        {"id": "a", "numbers": [1, "x"]},
        {"id": "a", "inner": {"n": 1, "more": 2}},
        [{"id": "a", "soft": "x"}],
    ],
)
def test_where_any_json_is_welcome_nothing_is_forgiven_or_left_out(acp: ModuleType, raw: Any) -> None:
    drops: list[Any] = []
    assert acp.decode(acp.Data, raw, on_drop=drops.append) == raw
    assert drops == []


def test_what_a_class_holds_whole_is_one_where_any_json_is_welcome(acp: ModuleType) -> None:
    known = acp.decode(acp.Data, {"id": "a", "soft": 1.0, "numbers": [1], "inner": {"n": 1}})
    assert known == acp.Known(id="a", soft=1, numbers=[1], inner=acp.Inner(n=1))
    assert acp.decode(acp.Data, [{"id": "a"}]) == [acp.Known(id="a")]


def test_a_number_too_long_to_print_is_refused_like_any_other(packages: Packages) -> None:
    acp = packages(SchemaChoice())
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.InitializeRequest, {"protocolVersion": 10**5000})
    assert str(caught.value) == "$.protocolVersion: expected 65535 or less, found a number of very many digits"


def test_a_message_is_short_however_wide_and_deep_the_value(packages: Packages) -> None:
    acp = packages(SchemaChoice())
    wide: Any = "x" * 100
    for _ in range(8):
        wide = [wide] * 8
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.PromptRequest, {"sessionId": wide, "prompt": []})
    assert len(str(caught.value)) < 300


OTHERS = schema_of(
    Plain={"type": "object", "properties": {"id": {"type": "string"}}},
    Closed={"type": "object", "properties": {"id": {"type": "string"}}},
    Open={"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": True},
    Text={"type": "object", "properties": {"hint": {"type": "string"}}, "required": ["hint"]},
    Input={
        "anyOf": [
            {"title": "text", "allOf": [{"$ref": "#/$defs/Text"}]},
            {
                "title": "other",
                "type": "object",
                "properties": {"type": {"type": "string"}},
                "required": ["type"],
                "additionalProperties": True,
            },
        ]
    },
    Around={
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "additionalProperties": True,
        "anyOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Closed"}],
    },
)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("Open", {"id": "a", "more": [1]}),
        ("Input", {"type": "form", "fields": [1]}),
        ("Around", {"id": "a", "hint": "b", "more": [1]}),
    ],
)
def test_other_properties_are_kept_where_the_schema_says_that_there_are_some(
    packages: Packages, name: str, raw: Any
) -> None:
    acp = packages.of(OTHERS)
    assert acp.encode(acp.decode(getattr(acp, name), raw)) == raw
    assert acp.encode(acp.decode(acp.Plain, {"id": "a", "more": [1]})) == {"id": "a"}
