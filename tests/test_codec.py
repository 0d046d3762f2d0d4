"""Decoding and encoding: what is refused, what an error says, and what a generic caller can do."""

from __future__ import annotations

import copy
import json
import pickle
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from tests.runtime_support import V1
from tests.support import Packages, codec_functions, schema_of

pytestmark = pytest.mark.every_python

TEXT = {"type": "text", "text": "t"}


def tagged(value: str, **properties: Any) -> dict[str, Any]:
    tag = {"kind": {"type": "string", "const": value}}
    return {"type": "object", "properties": {**tag, **properties}, "required": ["kind", *properties]}


SCHEMA = schema_of(
    Scalars={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "whole": {"type": "integer"},
            "real": {"type": "number"},
            "truth": {"type": "boolean"},
            "nothing": {"type": "null"},
            "camelCase": {"type": "string"},
            "only": {"const": "this"},
            "one": {"const": 1},
            "choice": {"enum": ["a", "b"]},
            "number": {"enum": [1, 2]},
            "short": {"type": "integer", "minimum": 0, "maximum": 255},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "name": {"type": "string", "minLength": 2},
            "list": {"type": "array", "items": {"type": "integer"}},
            "some": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {},
            "anyMap": {"type": "object", "additionalProperties": True},
        },
    },
    Port={"type": "integer", "minimum": 1, "maximum": 65535},
    Word={"type": "string"},
    Words={"type": "array", "items": {"$ref": "#/$defs/Word"}},
    Ports={"type": "object", "additionalProperties": {"$ref": "#/$defs/Port"}},
    Color={"type": "string", "oneOf": [{"const": "red"}, {"const": "green"}]},
    Leaf={"type": "object", "properties": {"camelCase": {"type": "integer"}}, "required": ["camelCase"]},
    Tree={
        "type": "object",
        "properties": {
            "leaves": {"type": "array", "items": {"$ref": "#/$defs/Leaf"}},
            "byName": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Leaf"}},
            "nested": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Shape"}}},
            "shape": {"$ref": "#/$defs/Shape"},
            "either": {"$ref": "#/$defs/Either"},
            "maybe": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]},
            "payload": {},
        },
    },
    Shape={"oneOf": [tagged("circle", radius={"type": "number"}), tagged("square", side={"type": "number"})]},
    Either={"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
)


@pytest.fixture(scope="module")
def made(packages: Packages) -> ModuleType:
    return packages.of(SCHEMA)


def test_aliases_of_null(packages: Packages) -> None:
    nothing, void = ({"$ref": f"#/$defs/{name}"} for name in ("Nothing", "Void"))
    properties = {"both": {"anyOf": [nothing, void]}, "or_null": {"anyOf": [void, {"type": "null"}]}}
    made = packages.of(
        schema_of(
            Nothing={"type": "null"},
            Void={"const": None},
            Both={"anyOf": [nothing, void]},
            More={"oneOf": [{"$ref": "#/$defs/Both"}, void, {"type": "string"}]},
            Holder={"type": "object", "properties": properties, "required": ["both"]},
        )
    )
    for name in ("Nothing", "Void", "Both", "More"):
        assert made.decode(getattr(made, name), None) is None
        with pytest.raises(made.DecodeError):
            made.decode(getattr(made, name), 1)
    assert made.decode(made.More, "text") == "text"
    raw = {"both": None, "or_null": None}
    assert made.encode(made.decode(made.Holder, raw)) == raw


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(SchemaChoice(release="2026-11-02"))


# --- Strictness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("text", ""),
        ("whole", 2**80),
        ("whole", -0.0),
        ("whole", 1.0),
        ("real", 1),
        ("real", 1.5),
        ("truth", False),
        ("nothing", None),
        ("only", "this"),
        ("one", 1),
        ("one", 1.0),
        ("choice", "b"),
        ("number", 2),
        ("number", 2.0),
        ("short", 255),
        ("short", 0),
        ("share", 1),
        ("name", "ab"),
        ("list", []),
        ("list", [1, 2.0]),
        ("some", [1, 2]),
        ("map", {"": 1}),
        ("any", None),
        ("any", {"a": [{}]}),
        ("anyMap", {"a": None}),
    ],
)
def test_fits(made: ModuleType, key: str, raw: Any) -> None:
    encoded = made.encode(made.decode(made.Scalars, {key: raw}))
    assert encoded == {key: raw}
    json.dumps(encoded)


@pytest.mark.parametrize(("key", "raw"), [("whole", 1.0), ("one", 1.0), ("number", 2.0), ("short", 3.0)])
def test_a_whole_number_becomes_an_integer(made: ModuleType, key: str, raw: Any) -> None:
    value = getattr(made.decode(made.Scalars, {key: raw}), key)
    assert type(value) is int
    assert value == raw


@pytest.mark.parametrize(
    ("key", "raw", "expected", "found"),
    [
        ("text", 1, "a string", "1"),
        ("text", None, "a string", "null"),
        ("text", ["a"], "a string", "an array ['a']"),
        ("whole", "1", "an integer", "'1'"),
        ("whole", True, "an integer", "true"),
        ("whole", 1.5, "an integer", "1.5"),
        ("whole", float("nan"), "an integer", "nan"),
        ("whole", float("inf"), "an integer", "inf"),
        ("whole", None, "an integer", "null"),
        ("real", "1.5", "a number", "'1.5'"),
        ("real", False, "a number", "false"),
        ("truth", 1, "true or false", "1"),
        ("truth", 0.0, "true or false", "0.0"),
        ("truth", "true", "true or false", "'true'"),
        ("nothing", False, "null", "false"),
        ("nothing", 0, "null", "0"),
        ("only", "that", "'this'", "'that'"),
        ("only", None, "'this'", "null"),
        ("one", True, "1", "true"),
        ("one", "1", "1", "'1'"),
        ("choice", "c", "one of 'a', 'b'", "'c'"),
        ("choice", ["a"], "one of 'a', 'b'", "an array ['a']"),
        ("choice", {}, "one of 'a', 'b'", "an object {}"),
        ("number", True, "one of 1, 2", "true"),
        ("number", "1", "one of 1, 2", "'1'"),
        ("short", 256, "255 or less", "256"),
        ("short", -1, "0 or more", "-1"),
        ("short", True, "an integer", "true"),
        ("share", 1.01, "1 or less", "1.01"),
        ("name", "a", "a string of 2 or more characters", "'a'"),
        ("list", {}, "an array", "an object {}"),
        ("list", "ab", "an array", "'ab'"),
        ("some", [1], "an array of 2 or more items", "an array [1]"),
        ("map", [], "an object", "an array []"),
        ("anyMap", None, "an object", "null"),
    ],
)
def test_does_not_fit(made: ModuleType, key: str, raw: Any, *, expected: str, found: str) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Scalars, {key: raw})
    assert (caught.value.path, caught.value.expected, caught.value.found) == ((key,), expected, found)
    assert str(caught.value) == f"$.{key}: expected {expected}, found {found}"
    assert isinstance(caught.value, ValueError)


def test_nan_is_no_number_within_bounds(made: ModuleType) -> None:
    """`json.loads` makes it of `NaN`, although that is no JSON."""
    with pytest.raises(made.DecodeError):
        made.decode(made.Scalars, {"share": float("nan")})


def test_the_python_name_is_no_dialect_of_json(made: ModuleType) -> None:
    assert made.decode(made.Scalars, {"camel_case": "x"}).camel_case is made.UNSET
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Leaf, {"camel_case": 1})
    assert caught.value.path == ("camelCase",)


def test_an_optional_constant_is_unset_until_set(made: ModuleType) -> None:
    assert made.Scalars().only is made.UNSET
    assert made.decode(made.Scalars, {}) == made.Scalars()


@pytest.mark.parametrize("raw", [None, [], "{}", 1, True, [("camelCase", 1)]])
def test_an_object_is_a_dict(made: ModuleType, raw: Any) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Leaf, raw)
    assert caught.value.path == ()
    assert caught.value.expected == "an object"


def test_the_raw_value_is_left_alone(made: ModuleType) -> None:
    raw: dict[str, Any] = {"leaves": [{"camelCase": 1.0, "surplus": [1]}], "payload": {"deep": [{}]}, "either": [1.0]}
    before = copy.deepcopy(raw)
    made.decode(made.Tree, raw)
    assert raw == before
    assert type(raw["leaves"][0]["camelCase"]) is float


# --- Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "path", "text"),
    [
        ({"leaves": [{"camelCase": 1}, {"camelCase": "x"}]}, ("leaves", 1, "camelCase"), "$.leaves[1].camelCase"),
        ({"leaves": [{"camelCase": 1}, None]}, ("leaves", 1), "$.leaves[1]"),
        ({"byName": {"a.b": {}}}, ("byName", "a.b", "camelCase"), "$.byName['a.b'].camelCase"),
        ({"byName": {"": 1}}, ("byName", ""), "$.byName['']"),
        ({"nested": [[], [{"kind": "circle"}]]}, ("nested", 1, 0, "radius"), "$.nested[1][0].radius"),
        ({"maybe": {}}, ("maybe", "camelCase"), "$.maybe.camelCase"),
        ([], (), "$"),
    ],
)
def test_path(made: ModuleType, raw: Any, path: tuple[Any, ...], text: str) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Tree, raw)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{text}: expected ")


def test_a_missing_property(made: ModuleType) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Leaf, {})
    assert caught.value.path == ("camelCase",)
    assert str(caught.value) == "$.camelCase: expected a value, found nothing: the property is missing"
    assert caught.value.reasons == ()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"kind": "cone"}, "'cone'"),
        ({"kind": None}, "null"),
        ({"kind": ["circle"]}, "an array ['circle']"),
        ({"radius": 1}, "nothing: the property is missing"),
    ],
)
def test_an_unknown_tag(made: ModuleType, raw: Any, found: str) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Tree, {"shape": raw})
    assert caught.value.path == ("shape", "kind")
    assert caught.value.expected == "one of 'circle', 'square' (Shape)"
    assert caught.value.found == found


def test_a_known_tag_with_a_bad_payload(made: ModuleType) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Tree, {"shape": {"kind": "circle", "radius": "1"}})
    assert str(caught.value) == "$.shape.radius: expected a number, found '1'"


def test_a_union_without_tag_says_what_was_wrong_with_each_member(made: ModuleType) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Tree, {"either": {"camelCase": "x"}})
    error = caught.value
    assert error.path == ("either",)
    assert error.expected == "Either"
    assert [reason.path for reason in error.reasons] == [("camelCase",), (), ()]
    assert [reason.expected for reason in error.reasons] == ["an integer", "a string", "an array"]
    first, *rest = str(error).splitlines()
    assert first == "$.either: expected Either, found an object {'camelCase': 'x'}"
    assert rest[0] == "  as Leaf: $.either.camelCase: expected an integer, found 'x'"
    assert len(rest) == 3


def test_a_union_without_tag_names_the_properties_that_are_missing(made: ModuleType) -> None:
    with pytest.raises(made.DecodeError) as caught:
        made.decode(made.Either, {})
    assert "camelCase" in caught.value.reasons[0].expected


def test_long_values_are_cut(made: ModuleType) -> None:
    for raw in ("x" * 10_000, ["y" * 1000] * 1000, {str(key): "z" * 1000 for key in range(1000)}):
        with pytest.raises(made.DecodeError) as caught:
            made.decode(made.Scalars, {"whole": raw})
        assert len(str(caught.value)) < 1000


def test_an_error_can_be_raised_again(made: ModuleType) -> None:
    """Its path does not grow when it passes through the same code twice."""
    for _ in range(2):
        with pytest.raises(made.DecodeError) as caught:
            made.decode(made.Tree, {"leaves": [{}]})
        assert caught.value.path == ("leaves", 0, "camelCase")
        assert caught.value.__cause__ is None


# --- Any type -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("Leaf", {"camelCase": 1}),
        ("Shape", {"kind": "circle", "radius": 1.5}),
        ("Either", [1, 2]),
        ("Either", "text"),
        ("Either", {"camelCase": 1}),
        ("Color", "green"),
        ("Word", "w"),
        ("Words", ["a", "b"]),
        ("Port", 80),
        ("Ports", {"http": 80}),
    ],
)
def test_every_kind_of_definition(made: ModuleType, name: str, raw: Any) -> None:
    value = made.decode(getattr(made, name), raw)
    assert made.encode(value) == raw
    own = codec_functions(made).get(f"decode_{name.lower()}")
    assert (own is None) == (name == "Word"), "a string needs no function of its own"
    assert own is None or own(raw) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [("Port", 0), ("Port", 65536), ("Ports", {"http": 0}), ("Color", "blue"), ("Words", ["a", 1]), ("Either", 1.5)],
)
def test_every_kind_of_definition_refuses(made: ModuleType, name: str, raw: Any) -> None:
    with pytest.raises(made.DecodeError):
        made.decode(getattr(made, name), raw)


def test_plain_types(made: ModuleType) -> None:
    assert made.decode(str, "a") == "a"
    assert made.decode(int, 1.0) == 1
    assert made.decode(float, 1.5) == 1.5
    assert made.decode(bool, True) is True
    assert made.decode(Any, {"a": None}) == {"a": None}
    for type_, raw in ((str, 1), (int, True), (float, "1"), (bool, 1)):
        with pytest.raises(made.DecodeError):
            made.decode(type_, raw)


@pytest.mark.parametrize("foreign", [dict, list, set, object, type(None), "Leaf", 1, [], {}, Exception])
def test_a_foreign_type(made: ModuleType, foreign: Any) -> None:
    with pytest.raises(TypeError, match="not a type of this package"):
        made.decode(foreign, {})


def test_a_class_of_another_package(made: ModuleType, acp: ModuleType) -> None:
    with pytest.raises(TypeError):
        made.decode(acp.EnvVariable, {"name": "n", "value": "v"})
    with pytest.raises(TypeError):
        made.codec.by_class(acp.EnvVariable(name="n", value="v"))
    with pytest.raises(TypeError):
        made.encode(made.Tree(shape=acp.EnvVariable(name="n", value="v")))


def test_only_classes_have_encoders_of_their_own(made: ModuleType) -> None:
    own = {name: each for name, each in codec_functions(made).items() if name.startswith("encode_")}
    assert {name for name in own if not name.startswith("encode_use_all_")} == {
        *("encode_scalars", "encode_leaf", "encode_tree", "encode_shape_circle", "encode_shape_square"),
    }
    leaf = made.Leaf(camel_case=1)
    assert own["encode_leaf"](leaf) == made.codec.by_class(leaf) == {"camelCase": 1}


def test_encode_goes_through_lists_and_dicts(made: ModuleType) -> None:
    leaf = made.Leaf(camel_case=1)
    assert made.encode([leaf, {"a": [leaf], "b": None}, 1, "x"]) == [
        {"camelCase": 1},
        {"a": [{"camelCase": 1}], "b": None},
        1,
        "x",
    ]
    assert made.encode(None) is None


def test_encode_reaches_every_place(made: ModuleType) -> None:
    leaf, circle = made.Leaf(camel_case=1), made.ShapeCircle(radius=1)
    tree = made.Tree(leaves=[leaf], by_name={"a": leaf}, nested=[[circle], []], shape=circle, either=leaf, maybe=None)
    raw = {
        "leaves": [{"camelCase": 1}],
        "byName": {"a": {"camelCase": 1}},
        "nested": [[{"kind": "circle", "radius": 1}], []],
        "shape": {"kind": "circle", "radius": 1},
        "either": {"camelCase": 1},
        "maybe": None,
    }
    assert made.encode(tree) == raw
    assert made.decode(made.Tree, raw) == tree


def test_encode_copies_what_holds_objects_only(made: ModuleType) -> None:
    """Encoding makes new objects for classes; JSON of any shape is passed on."""
    payload = {"a": [1]}
    assert made.encode(made.Tree(payload=payload))["payload"] is payload


def test_a_subclass_is_written_like_its_class(made: ModuleType, acp: ModuleType) -> None:
    class Marked(made.Leaf):  # type: ignore[misc, name-defined]
        __slots__ = ("mark",)

    marked = Marked(camel_case=3)
    marked.mark = "for ourselves"
    assert made.encode(marked) == {"camelCase": 3}
    assert made.encode(made.Tree(leaves=[marked])) == {"leaves": [{"camelCase": 3}]}

    class Loud(acp.ContentBlockText):  # type: ignore[misc, name-defined]
        pass

    request = acp.PromptRequest(session_id="s", prompt=[Loud(text="t")])
    assert acp.encode(request) == {"sessionId": "s", "prompt": [TEXT]}


def test_unset_and_none(acp: ModuleType) -> None:
    update = acp.SessionUpdateSessionInfoUpdate(title=None)
    assert acp.encode(update) == {"sessionUpdate": "session_info_update", "title": None}
    assert acp.decode(acp.SessionUpdate, acp.encode(update)) == update
    assert update != acp.SessionUpdateSessionInfoUpdate()


# --- Depth and size -------------------------------------------------------------------------------------------------


def deep(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_deep_json_passes_where_any_json_may_stand(acp: ModuleType) -> None:
    raw = {"toolCallId": "t", "rawInput": deep(500), "_meta": {"deep": deep(500)}}
    drops: list[Any] = []
    value = acp.decode(acp.ToolCallUpdate, raw, on_drop=drops.append)
    assert acp.encode(value) == raw
    assert drops == []


def test_deep_json_that_does_not_fit_is_an_error_like_any_other(acp: ModuleType) -> None:
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.EnvVariable, {"name": deep(500), "value": "v"})
    assert len(str(caught.value)) < 1000


def test_drops_beside_deep_json(acp: ModuleType) -> None:
    raw = {"toolCallId": "t", "rawInput": deep(5000), "title": 1}
    drops: list[Any] = []
    acp.decode(acp.ToolCallUpdate, raw, on_drop=drops.append)
    assert [drop.path for drop in drops] == [("title",)]


def test_a_large_array(acp: ModuleType) -> None:
    raw = {"sessionId": "s", "prompt": [TEXT] * 20_000}
    assert acp.encode(acp.decode(acp.PromptRequest, raw)) == raw


# --- Members that keep everything -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [{}, {"a": None}, {"a": {"b": [1, {"c": 2.5}]}, "camelCase": True, "snake_case": "x", "extra": {"extra": 1}}],
)
def test_other_members_re_emit_everything(packages: Packages, extra: dict[str, Any]) -> None:
    acp = packages(SchemaChoice(protocol=2, release="2026-11-02"))
    raw = {"type": "_x", "methodId": "m", "name": "n", **extra}
    value = acp.decode(acp.AuthMethod, raw)
    assert type(value) is acp.AuthMethodOther
    assert value.extra == extra
    assert acp.encode(value) == raw


def test_what_is_declared_wins_over_extra(packages: Packages) -> None:
    acp = packages(SchemaChoice(protocol=2, release="2026-11-02"))
    value = acp.AuthMethodOther(type="_x", method_id="m", name="n", extra={"name": "another", "more": 1})
    assert acp.encode(value) == {"type": "_x", "methodId": "m", "name": "n", "more": 1}


def test_keep_unknown_loses_nothing(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"), options=Options(keep_unknown=True))
    raw = {
        "sessionId": "s",
        "prompt": [TEXT | {"later": {"a": 1}}],
        "later": [1],
        "_meta": {"m": 1},
    }
    value = acp.decode(acp.PromptRequest, raw)
    assert value.extra == {"later": [1]}
    assert value.prompt[0].extra == {"later": {"a": 1}}
    assert acp.encode(value) == raw
    tagged_and_untagged = {"type": "env_var", "id": "a", "name": "n", "vars": []}
    assert acp.encode(acp.decode(acp.AuthMethod, tagged_and_untagged)) == tagged_and_untagged


def test_without_keep_unknown_there_is_no_extra(acp: ModuleType) -> None:
    assert not hasattr(acp.decode(acp.ContentBlock, TEXT | {"later": 1}), "extra")


def test_keep_unknown_with_a_property_called_extra_is_refused(packages: Packages) -> None:
    from acpgen.diagnostics import InputError

    schema = schema_of(Holder={"type": "object", "properties": {"extra": {"type": "string"}}})
    with pytest.raises(InputError, match="extra"):
        packages.of(schema, options=Options(keep_unknown=True))
    made = packages.of(schema)
    assert made.encode(made.decode(made.Holder, {"extra": "x"})) == {"extra": "x"}


def test_open_unions_take_unknown_tags(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"), options=Options(open=True))
    raw = {"sessionUpdate": "_new", "value": {"a": [1]}}
    value = acp.decode(acp.SessionUpdate, raw)
    assert type(value) is acp.SessionUpdateOther
    assert (value.session_update, value.extra) == ("_new", {"value": {"a": [1]}})
    assert acp.encode(value) == raw
    for bad in ({"value": 1}, {"sessionUpdate": 1}, {"sessionUpdate": "tool_call"}):
        with pytest.raises(acp.DecodeError):
            acp.decode(acp.SessionUpdate, bad)
    assert type(acp.decode(acp.ContentBlock, TEXT)) is acp.ContentBlockText


def test_open_unions_with_members_without_tag(packages: Packages) -> None:
    """They come first, in the order of the schema; what none of them takes is kept."""
    acp = packages(SchemaChoice(release="2026-11-02"), options=Options(open=True))
    stdio = {"name": "n", "command": "c", "args": [], "env": []}
    assert type(acp.decode(acp.McpServer, stdio)) is acp.McpServerStdio
    raw = {"type": "acp", "name": "n", "serverId": "x"}
    assert acp.encode(acp.decode(acp.McpServer, raw)) == raw
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.McpServer, {"type": "http", "name": "n"})


def test_open_enumerations_take_unknown_values(packages: Packages) -> None:
    holder = {
        "type": "object",
        "properties": {
            "color": {"$ref": "#/$defs/Color"},
            "size": {"$ref": "#/$defs/Size"},
            "mood": {"enum": ["glad", "sad", None]},
            "tone": {"$ref": "#/$defs/Color", "x-deserialize-default-on-error": True},
        },
        "required": ["color"],
    }
    size = {"oneOf": [{"const": 1}, {"const": 2}]}
    schema = schema_of(Color={"enum": ["red", "green"]}, Size=size, Holder=holder)
    acp = packages.of(schema, Options(open=True))
    raw = {"color": "mauve", "size": 7, "mood": "odd", "tone": "dim"}
    drops: list[Any] = []
    assert acp.encode(acp.decode(acp.Holder, raw, on_drop=drops.append)) == raw
    assert (acp.decode(acp.Color, "mauve"), acp.decode(acp.Size, 7)) == ("mauve", 7)
    assert acp.decode(acp.Holder, {"color": "red", "mood": None}).mood is None
    for bad in ({"color": 1}, {"color": "red", "size": "1"}, {"color": "red", "mood": 1}):
        with pytest.raises(acp.DecodeError):
            acp.decode(acp.Holder, bad)
    assert drops == []
    closed = packages.of(schema)
    with pytest.raises(closed.DecodeError):
        closed.decode(closed.Color, "mauve")


def test_both_options_together(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="2026-11-02"), options=Options(open=True, keep_unknown=True))
    raw = {"sessionId": "s", "update": {"sessionUpdate": "_new", "a": 1}, "b": 2}
    assert acp.encode(acp.decode(acp.SessionNotification, raw)) == raw


# --- `not` ----------------------------------------------------------------------------------------------------------


def test_not_of_a_definition(packages: Packages) -> None:
    free = {"type": "object", "properties": {"hint": {"type": "string"}}, "required": ["hint"]}
    made = packages.of(
        schema_of(
            Bare={**free, "not": {"required": ["type"]}},
            Unlike={**free, "not": {"properties": {"type": {"const": "a"}}, "required": ["type"]}},
            Like={**free, "not": {"properties": {"type": {"not": {"const": "agent"}}}}},
        )
    )
    assert made.decode(made.Bare, {"hint": "h"}) == made.Bare(hint="h")
    assert made.decode(made.Unlike, {"hint": "h", "type": "b"}) == made.Unlike(hint="h")
    assert made.decode(made.Like, {"hint": "h", "type": "agent"}) == made.Like(hint="h")
    for name, rest in (
        ("Bare", {"type": "a"}),
        ("Unlike", {"type": "a"}),
        ("Like", {"type": "b"}),
        ("Like", {}),
    ):
        with pytest.raises(made.DecodeError, match="excluded"):
            made.decode(getattr(made, name), {"hint": "h", **rest})


# --- What an error tells ----------------------------------------------------------------------------------------------


def test_the_repr_of_an_error_has_its_path(packages: Packages) -> None:
    acp = packages(V1)
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.PromptRequest, {"sessionId": "s", "prompt": [{"type": "text", "text": 5}]})
    assert repr(caught.value) == "DecodeError('$.prompt[0].text: expected a string, found 5')"


def test_an_error_keeps_the_value_that_was_read(packages: Packages) -> None:
    acp = packages(V1)
    raw = {"sessionId": "s", "prompt": [{"type": "text", "text": 5}]}
    for on_drop in (None, [].append):
        with pytest.raises(acp.DecodeError) as caught:
            acp.decode(acp.PromptRequest, raw, on_drop=on_drop)
        assert caught.value.raw is raw
    assert acp.DecodeError("a string", "5").raw is acp.UNSET


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_can_be_copied(packages: Packages, again: Any) -> None:
    acp = packages(V1)
    raw = {"sessionId": "s", "prompt": [{"type": "resource", "resource": {}}]}
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.PromptRequest, raw)
    copied = again(caught.value)
    assert type(copied) is acp.DecodeError
    assert (str(copied), repr(copied), copied.path) == (str(caught.value), repr(caught.value), caught.value.path)
    assert copied.raw == raw
    assert [str(reason) for reason in copied.reasons] == [str(reason) for reason in caught.value.reasons]
