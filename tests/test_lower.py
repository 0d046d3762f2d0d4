"""Lowering: for each idiom of JSON Schema, a tiny schema and the part of the model that it becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError, Report, Severity
from acpgen.ir.lower import lower
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Candidate,
    Const,
    Construct,
    Definition,
    Enum,
    Field,
    Leniency,
    ListOf,
    ListValue,
    Literal,
    MapOf,
    MapValue,
    MethodKind,
    Model,
    Nullable,
    Options,
    OtherVariant,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
    Variant,
)
from acpgen.roles import Side
from acpgen.schema.compose import compose
from acpgen.schema.dialect import check_dialect
from acpgen.schema.document import parse_document
from acpgen.schema.keywords import LENIENCY
from tests.support import REPOSITORY, model_of, schema_of

Node = dict[str, Any]

STRING = Scalar(primitive=Primitive.STRING)
INTEGER = Scalar(primitive=Primitive.INTEGER)
NUMBER = Scalar(primitive=Primitive.NUMBER)
BOOLEAN = Scalar(primitive=Primitive.BOOLEAN)
NULL = Scalar(primitive=Primitive.NULL)


def lowered(options: Options | None = None, **definitions: Any) -> tuple[Model, Report]:
    """The model of a schema with these definitions, and what was said about it."""
    document = parse_document(json.dumps(schema_of(**definitions)).encode(), label="x.json", origin="X")
    composed = compose(document, [], protocol=1)
    report = Report(locate=composed.locate, found=list(composed.diagnostics))
    check_dialect(composed.root, report)
    report.raise_errors()
    return lower(composed, options or Options(), report), report


def model(**definitions: Any) -> Model:
    return lowered(**definitions)[0]


def told(**definitions: Any) -> list[tuple[Severity, str, str | None]]:
    """What is said about a schema that is usable: severity, code and pointer of each diagnostic."""
    return [(found.severity, found.code, found.pointer) for found in lowered(**definitions)[1].found]


def refused(**definitions: Any) -> list[tuple[str, str | None]]:
    """What is said about a schema that is not usable: code and pointer of each error."""
    with pytest.raises(InputError) as caught:
        lowered(**definitions)
    assert all(found.severity is Severity.ERROR for found in caught.value.diagnostics)
    return [(found.code, found.pointer) for found in caught.value.diagnostics]


def names(found: Model) -> set[str]:
    return set(found.by_name)


def fields(found: Model, name: str) -> dict[str, Field]:
    return {field.wire: field for field in found.struct(name).fields}


def field(node: Any, *, required: bool = False, **definitions: Any) -> Field:
    """The lowered property `x` of an object."""
    thing = obj({"x": node}, ["x"] if required else [])
    return fields(model(Thing=thing, **definitions), "Thing")["x"]


def type_of(node: Any, **definitions: Any) -> TypeExpr:
    return field(node, **definitions).type


def definition(found: Model, name: str) -> Definition:
    return found.by_name[name]


def tagged_union(found: Model, name: str) -> TaggedUnion:
    union = found.by_name[name]
    assert isinstance(union, TaggedUnion)
    return union


def untagged_union(found: Model, name: str) -> UntaggedUnion:
    union = found.by_name[name]
    assert isinstance(union, UntaggedUnion)
    return union


def obj(properties: Node | None = None, required: list[str] | None = None, **more: Any) -> Node:
    node: Node = {"type": "object", **more}
    if properties is not None:
        node["properties"] = properties
    if required:
        node["required"] = required
    return node


def ref(name: str) -> Node:
    return {"$ref": f"#/$defs/{name}"}


def tagged(value: str, payload: str | None = None, tag: str = "type", **more: Any) -> Node:
    node = obj({tag: {"type": "string", "const": value}}, [tag], **more)
    return node | ({"allOf": [ref(payload)]} if payload else {})


TEXT: Node = {"type": "string"}
COUNT: Node = {"type": "integer"}


# --- Properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("sessionId", "session_id"),
        ("_meta", "meta"),
        ("class", "class_"),
        ("from", "from_"),
        ("self", "self_"),
        ("HTTPServer", "http_server"),
        ("x-y.z", "x_y_z"),
        ("3d", "field_3_d"),
        ("type", "type"),
        ("a1b", "a_1_b"),
    ],
)
def test_properties_get_snake_case_names_and_keep_their_own(wire: str, name: str) -> None:
    (found,) = model(Thing=obj({wire: TEXT})).struct("Thing").fields
    assert (found.wire, found.name) == (wire, name)


def test_two_properties_of_one_name_are_an_error() -> None:
    assert refused(Thing=obj({"sessionId": TEXT, "session_id": TEXT})) == [
        ("name-clash", "/$defs/Thing/properties/session_id")
    ]


@pytest.mark.parametrize("wire", ["", "_", "---", "é", "名前", "$"])
def test_a_property_that_leaves_no_name_is_an_error(wire: str) -> None:
    assert refused(Thing=obj({wire: TEXT})) == [("bad-name", f"/$defs/Thing/properties/{wire}")]


def test_a_required_property_has_its_type() -> None:
    found = field(TEXT, required=True)
    assert (found.type, found.required, found.default, found.may_be_unset) == (STRING, True, None, False)


def test_an_optional_property_may_be_unset_and_null_only_where_null_is_legal() -> None:
    assert (field(TEXT).type, field(TEXT).may_be_unset) == (STRING, True)
    assert (field({"type": ["string", "null"]}).type, field({"type": ["null", "string"]}).may_be_unset) == (
        Nullable(STRING),
        True,
    )


def test_an_optional_property_with_a_default_is_never_unset() -> None:
    found = field({"type": "string", "default": "a"})
    assert (found.type, found.default, found.may_be_unset) == (STRING, Literal("a"), False)


@pytest.mark.parametrize(
    "node",
    [
        {"type": ["string", "null"]},
        {"anyOf": [TEXT, {"type": "null"}]},
        {"oneOf": [{"type": "null"}, TEXT]},
        {"anyOf": [{"const": None}, TEXT]},
        {"anyOf": [{"allOf": [TEXT]}, {"type": "null"}]},
    ],
)
def test_all_ways_of_saying_or_null_are_one(node: Node) -> None:
    assert type_of(node) == Nullable(STRING)


@pytest.mark.parametrize("node", [True, {}, {"description": "x"}, {"default": None}, {"x-odd": 1}])
def test_a_property_without_constraints_is_any_json(node: Any) -> None:
    assert type_of(node) == AnyJson()


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "null"}, NULL),
        ({"type": "boolean"}, BOOLEAN),
        ({"type": "number"}, NUMBER),
        ({"const": "a"}, Const("a")),
        ({"const": True}, Const(True)),
        ({"const": None}, NULL),
        ({"type": "array"}, ListOf(item=AnyJson())),
        ({"items": TEXT}, ListOf(item=STRING)),
        ({"type": "array", "items": TEXT, "minItems": 2}, ListOf(item=STRING, min_items=2)),
        ({"type": "object"}, MapOf(AnyJson())),
        ({"type": "object", "additionalProperties": TEXT}, MapOf(STRING)),
        ({"type": ["object", "null"], "additionalProperties": True}, Nullable(MapOf(AnyJson()))),
        ({"enum": [1, None]}, Nullable(Const(1))),
    ],
)
def test_types_of_properties(node: Node, expected: TypeExpr) -> None:
    assert type_of(node) == expected


@pytest.mark.parametrize(
    ("node", "values", "is_open"),
    [
        ({"enum": ["a", "b", "a"]}, ["a", "b"], False),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, ["a", "b"], False),
        ({"anyOf": [{"const": "a"}, {"type": "string"}]}, ["a"], True),
        ({"type": "integer", "enum": [2, 1]}, [2, 1], False),
    ],
)
def test_an_inline_enum_is_named_after_where_it_stands(node: Node, values: list[Any], is_open: bool) -> None:
    found = model(Thing=obj({"x": node}))
    assert fields(found, "Thing")["x"].type == Ref("ThingX")
    enum = definition(found, "ThingX")
    assert isinstance(enum, Enum)
    assert ([each.value for each in enum.members], enum.open) == (values, is_open)


def test_an_inline_enum_may_be_null() -> None:
    assert type_of({"enum": ["a", "b", None]}) == Nullable(Ref("ThingX"))
    assert type_of({"anyOf": [{"const": "a"}, {"type": "string"}, {"type": "null"}]}) == Nullable(Ref("ThingX"))


def test_a_constant_beside_a_list_of_types_is_a_type() -> None:
    node = {"anyOf": [{"const": "a"}, {"type": ["string", "null"]}]}
    assert type_of(node) in (Ref("ThingX"), Nullable(Ref("ThingX")))


def test_bounds_and_annotations_are_kept() -> None:
    node = {"type": "string", "minLength": 2, "format": "uri", "pattern": "^a", "contentEncoding": "base64"}
    assert type_of(node) == Scalar(
        primitive=Primitive.STRING,
        min_length=2,
        annotations=(("format", "uri"), ("pattern", "^a"), ("contentEncoding", "base64")),
    )
    assert type_of({"type": "integer", "minimum": 0, "maximum": 65535}) == Scalar(
        primitive=Primitive.INTEGER, minimum=0, maximum=65535
    )


@pytest.mark.parametrize("wrapped", [ref("Other"), {"allOf": [ref("Other")], "description": "x"}])
def test_a_reference_is_one_whatever_stands_around_it(wrapped: Node) -> None:
    assert type_of(wrapped, Other=obj({"a": TEXT})) == Ref("Other")


def test_enums_of_mixed_or_other_types_are_errors() -> None:
    at = "/$defs/Thing/properties/x/enum"
    for values in ([1, "a"], [True, False], [1.5], [None], [{"a": 1}]):
        assert refused(Thing=obj({"x": {"enum": values}})) == [("unsupported-enum", at)]


def test_a_const_of_another_type_is_any_json_with_a_warning() -> None:
    found = told(Thing=obj({"x": {"const": 1.5}, "y": {"const": {"a": 1}}}))
    assert found == [
        (Severity.WARNING, "unsupported-const", "/$defs/Thing/properties/x/const"),
        (Severity.WARNING, "unsupported-const", "/$defs/Thing/properties/y/const"),
    ]


def test_several_schemas_at_once_are_read_for_objects_only() -> None:
    assert refused(Thing=obj({"x": {"allOf": [TEXT, {"minLength": 1}]}})) == [
        ("unsupported-all-of", "/$defs/Thing/properties/x/allOf")
    ]


# --- Defaults --------------------------------------------------------------------------------------------------------


def test_a_default_object_becomes_its_class_with_what_differs() -> None:
    inner = obj({"on": {"type": "boolean", "default": False}, "size": {**COUNT, "default": 1}})
    found = field({**ref("Inner"), "default": {"on": True, "size": 1}}, Inner=inner)
    assert found.default == Construct("Inner", (("on", Literal(True)),))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "array", "items": COUNT, "default": [1, 2]}, ListValue((Literal(1), Literal(2)))),
        ({"type": "object", "additionalProperties": COUNT, "default": {"a": 1}}, MapValue((("a", Literal(1)),))),
        ({"type": ["string", "null"], "default": None}, Literal(None)),
        ({"type": "number", "default": 1}, Literal(1)),
        ({"default": {"a": [None]}}, MapValue((("a", ListValue((Literal(None),))),))),
        ({"enum": ["a", "b"], "default": "b"}, Literal("b")),
        ({"type": ["integer", "string"], "default": "b"}, Literal("b")),
    ],
)
def test_defaults_are_read_through_their_type(node: Node, expected: object) -> None:
    assert field(node).default == expected


def test_a_default_of_a_union_becomes_the_member_that_takes_it() -> None:
    shape = {"oneOf": [tagged("circle", "Circle"), tagged("point")]}
    found = field({**ref("Shape"), "default": {"type": "circle", "r": 2}}, Shape=shape, Circle=obj({"r": COUNT}, ["r"]))
    assert isinstance(found.default, Construct)
    assert found.default.name == "ShapeCircle"
    assert ("r", Literal(2)) in found.default.arguments


@pytest.mark.parametrize(
    "node",
    [
        {"type": "integer", "default": "1"},
        {"type": "integer", "default": True},
        {"type": "string", "default": None},
        {"type": "array", "items": TEXT, "default": [1]},
        {"type": "array", "items": TEXT, "default": "a"},
        {"enum": ["a"], "default": "b"},
        {"type": ["integer", "string"], "default": []},
        {**ref("Inner"), "default": {"b": 1}},
        {**ref("Inner"), "default": {"a": "", "b": 1}},
        {**ref("Inner"), "default": {}},
        {**ref("Inner"), "default": []},
    ],
)
def test_a_default_that_does_not_fit_is_an_error(node: Node) -> None:
    assert refused(Thing=obj({"x": node}), Inner=obj({"a": TEXT}, ["a"])) == [
        ("bad-default", "/$defs/Thing/properties/x/default")
    ]


@pytest.mark.parametrize(
    "node",
    [
        {"type": "integer", "minimum": 1, "default": 0},
        {"type": "string", "minLength": 1, "default": ""},
        {"type": "array", "items": TEXT, "minItems": 1, "default": []},
    ],
)
def test_a_default_out_of_bounds_is_an_error(node: Node) -> None:
    assert refused(Thing=obj({"x": node})) == [("bad-default", "/$defs/Thing/properties/x/default")]


def test_a_default_that_contains_itself_ends() -> None:
    found = fields(model(Thing=obj({"x": {**ref("Thing"), "default": {}}})), "Thing")["x"]
    assert found.default == Construct("Thing", ())


# --- Definitions of scalars ------------------------------------------------------------------------------------------


def test_scalars_maps_and_arrays_become_aliases() -> None:
    found = model(Id=TEXT, Labels=obj(additionalProperties=TEXT), Grid={"items": {"items": COUNT}}, Free={"title": "x"})
    aliases = {each.name: each.type for each in found.definitions if isinstance(each, Alias)}
    assert aliases == {
        "Id": STRING,
        "Labels": MapOf(STRING),
        "Grid": ListOf(item=ListOf(item=INTEGER)),
        "Free": AnyJson(),
    }


def test_an_object_without_a_word_about_its_properties_is_a_class() -> None:
    found = model(Empty=obj()).struct("Empty")
    assert (found.fields, found.base, found.keeps_extra) == ((), None, False)


@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_constants_become_a_closed_enum(key: str) -> None:
    node = {key: [{"const": "a", "type": "string", "title": "A", "description": "First."}, {"const": "b"}]}
    found = definition(model(Letter=node), "Letter")
    assert isinstance(found, Enum)
    assert (found.open, found.primitive) == (False, Primitive.STRING)
    assert [(each.value, each.title, each.doc) for each in found.members] == [("a", "A", "First."), ("b", None, "")]


@pytest.mark.parametrize("rest", [{"type": "string"}, {"type": "string", "title": "no matter what"}])
def test_constants_beside_a_free_string_become_an_open_enum(rest: Node) -> None:
    found = definition(model(Letter={"anyOf": [{"const": "a", "type": "string"}, rest]}), "Letter")
    assert isinstance(found, Enum)
    assert found.open
    assert [each.value for each in found.members] == ["a"]


def test_integers_make_enums_too() -> None:
    found = definition(model(Code={"anyOf": [{"const": -1, "type": "integer"}, {"type": "integer"}]}), "Code")
    assert isinstance(found, Enum)
    assert (found.primitive, found.open) == (Primitive.INTEGER, True)


def test_the_enum_keyword_makes_an_enum_and_a_single_value_stays_one() -> None:
    found = definition(model(Letter={"type": "string", "enum": ["a", "b"]}), "Letter")
    assert isinstance(found, Enum)
    assert [each.value for each in found.members] == ["a", "b"]


# --- Tagged unions ---------------------------------------------------------------------------------------------------


def test_members_are_named_after_union_and_tag() -> None:
    found = tagged_union(model(Shape={"oneOf": [tagged("circle"), tagged("filled_square")]}), "Shape")
    assert found.tag == "type"
    assert [(each.tag, each.target) for each in found.variants] == [
        ("circle", "ShapeCircle"),
        ("filled_square", "ShapeFilledSquare"),
    ]
    assert found.fallbacks == ()


def test_the_tag_is_found_without_the_discriminator_keyword_and_in_spite_of_it() -> None:
    members = [tagged("a", tag="kind"), tagged("b", tag="kind")]
    assert tagged_union(model(U={"oneOf": members, "discriminator": {"propertyName": "nonsense"}}), "U").tag == "kind"


def test_the_tag_is_constant_in_most_members_and_differs_in_each() -> None:
    def member(kind: str, version: str) -> Node:
        return obj({"v": {"const": version}, "kind": {"const": kind}}, ["v", "kind"])

    assert tagged_union(model(U={"oneOf": [member("a", "1"), member("b", "1")]}), "U").tag == "kind"


def test_a_tag_may_be_an_enum_of_one() -> None:
    member = obj({"type": {"type": "string", "enum": ["only"]}}, ["type"])
    found = model(U={"oneOf": [member, tagged("b")]})
    assert [each.tag for each in tagged_union(found, "U").variants] == ["only", "b"]


def test_an_enum_of_one_is_a_literal_with_that_value_for_its_default() -> None:
    member = obj({"type": {"type": "string", "enum": ["only"]}}, ["type"])
    found = fields(model(U={"oneOf": [member, tagged("b")]}), "UOnly")["type"]
    assert found.type == Const("only")


def test_an_optional_constant_is_no_tag() -> None:
    members = [{"title": "a", **obj({"type": {"const": "a"}})}, {"title": "b", **obj({"type": {"const": "b"}})}]
    assert isinstance(definition(model(U={"oneOf": members}), "U"), UntaggedUnion)


def test_a_payload_of_one_member_is_absorbed() -> None:
    found = model(Shape={"oneOf": [tagged("circle", "Circle"), tagged("point")]}, Circle=obj({"r": COUNT}, ["r"]))
    assert names(found) == {"Shape", "ShapeCircle", "ShapePoint"}
    assert list(fields(found, "ShapeCircle")) == ["type", "r"]
    assert found.struct("ShapeCircle").base is None


def test_a_payload_of_two_members_stays_and_is_their_base() -> None:
    found = model(
        Shape={"oneOf": [tagged("a", "Square"), tagged("b", "Square")]}, Square=obj({"side": COUNT}, ["side"])
    )
    assert names(found) == {"Shape", "ShapeA", "ShapeB", "Square"}
    assert [found.struct(name).base for name in ("ShapeA", "ShapeB", "Square")] == ["Square", "Square", None]
    assert [(each.wire, each.inherited) for each in found.struct("ShapeA").fields] == [("side", True), ("type", False)]


def test_a_payload_that_is_used_elsewhere_stays_too() -> None:
    found = model(
        Shape={"oneOf": [tagged("circle", "Circle"), tagged("point")]},
        Circle=obj({"r": COUNT}, ["r"]),
        Holder=obj({"circle": ref("Circle")}),
    )
    assert found.struct("ShapeCircle").base == "Circle"


def test_a_base_stands_before_its_use() -> None:
    found = model(Shape={"oneOf": [tagged("a", "Square"), tagged("b", "Square")]}, Square=obj({"side": COUNT}))
    order = [each.name for each in found.definitions]
    assert order.index("Square") < order.index("ShapeA") < order.index("Shape")


def test_a_payload_that_is_a_message_is_never_absorbed() -> None:
    payload = obj({"r": COUNT}, **{"x-method": "m", "x-side": "agent"})
    found = model(Shape={"oneOf": [tagged("circle", "DrawNotification"), tagged("p")]}, DrawNotification=payload)
    assert found.struct("ShapeCircle").base == "DrawNotification"


def test_properties_around_a_union_belong_to_every_member() -> None:
    step = obj({"note": TEXT}, anyOf=[tagged("move", tag="kind"), tagged("draw", tag="kind")])
    found = model(Step=step)
    assert list(fields(found, "StepMove")) == list(fields(found, "StepDraw")) == ["note", "kind"]


def test_a_member_that_is_itself_a_union_is_distributed() -> None:
    inner = {"anyOf": [{"title": "one", **obj({"a": TEXT}, ["a"])}, {"title": "two", **obj({"b": TEXT}, ["b"])}]}
    found = model(Outer=obj({"id": TEXT}, oneOf=[tagged("x", "Inner"), tagged("y")]), Inner=inner)
    assert tagged_union(found, "Outer").variants[0] == Variant(tag="x", target="OuterX", doc="")
    assert [each.type for each in untagged_union(found, "OuterX").members] == [Ref("OuterXOne"), Ref("OuterXTwo")]
    assert set(fields(found, "OuterXOne")) == {"id", "type", "a"}
    assert "Inner" not in names(found)


def test_an_object_with_properties_and_two_unions_has_a_class_for_each_pair() -> None:
    thing = obj(
        {"id": TEXT}, oneOf=[tagged("a"), tagged("b")], anyOf=[tagged("x", tag="mode"), tagged("y", tag="mode")]
    )
    found = model(Thing=thing)
    structs = {each.name for each in found.definitions if isinstance(each, Struct)}
    assert structs == {"ThingAX", "ThingAY", "ThingBX", "ThingBY"}
    assert all(set(fields(found, name)) == {"id", "type", "mode"} for name in structs)


def test_there_is_one_chain_of_bases() -> None:
    found = model(
        U={"oneOf": [{**tagged("a"), "allOf": [ref("One"), ref("Two")]}, tagged("b", "One"), tagged("c", "Two")]},
        One=obj({"one": TEXT}),
        Two=obj({"two": TEXT}),
    )
    first = found.struct("UA")
    assert first.base == "One"
    assert [(each.wire, each.inherited) for each in first.fields] == [("one", True), ("type", False), ("two", False)]


def test_a_base_of_a_base_is_inherited_through_it() -> None:
    found = model(
        A=obj({"a": TEXT}),
        B=obj({"b": TEXT}, allOf=[ref("A")]),
        C=obj({"c": TEXT}, allOf=[ref("B")]),
        Uses=obj({"a": ref("A"), "b": ref("B")}),
    )
    assert (found.struct("B").base, found.struct("C").base) == ("A", "B")
    inherited = {each.wire: each.inherited for each in found.struct("C").fields}
    assert inherited == {"a": True, "b": True, "c": False}


RULES = {
    "a description": {"description": "Anything."},
    "required properties": {"required": ["a"]},
    "an exclusion": {"not": {"required": ["b"]}},
    "values of other properties": {"type": "object", "additionalProperties": TEXT},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_becomes_no_class_is_no_base(rule: Node) -> None:
    found = model(Thing=obj({"a": TEXT}, allOf=[ref("Rule")]), Rule=rule)
    assert found.struct("Thing").base is None
    assert fields(found, "Thing")["a"].required is ("required" in rule)
    assert (found.struct("Thing").rejects is not None) is ("not" in rule)


@pytest.mark.parametrize(
    "other", [TEXT, {"enum": ["a", "b"]}, {"const": 1}, {"type": ["array", "null"], "items": TEXT}]
)
def test_an_object_cannot_also_be_something_else(other: Node) -> None:
    assert refused(Thing=obj({"a": TEXT}, allOf=[ref("Other")]), Other=other) == [("no-object", "/$defs/Thing")]
    assert refused(Thing=obj({"a": TEXT}, oneOf=[{**ref("Other"), "title": "T"}]), Other=other) == [
        ("no-object", "/$defs/Thing/oneOf/0")
    ]


# --- The member for other tags ---------------------------------------------------------------------------------------


def other(*excluded: str, **more: Any) -> Node:
    node = obj({"type": TEXT}, ["type"], **more)
    return node | ({"not": {"anyOf": [tagged(value) for value in excluded]}} if excluded else {})


@pytest.mark.parametrize("title", ["other", "Unknown", "whatever", None])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_other_is_recognised_by_its_structure(title: str | None, position: int) -> None:
    members = [tagged("a"), tagged("b")]
    members.insert(position, {**other("a", "b"), **({"title": title} if title else {})})
    found = tagged_union(model(U={"anyOf": members}), "U")
    assert found.other == OtherVariant(target="UOther", excluded=("a", "b"), doc="")
    assert [each.tag for each in found.variants] == ["a", "b"]


def test_a_title_alone_makes_no_other() -> None:
    found = tagged_union(model(U={"anyOf": [tagged("a"), {"title": "other", **obj({"x": TEXT}, ["x"])}]}), "U")
    assert found.other is None
    assert [each.type for each in found.untagged] == [Ref("UOther")]


def test_the_excluded_tags_are_those_of_not_whatever_the_members() -> None:
    found = tagged_union(model(U={"anyOf": [tagged("a"), tagged("b"), other("a", "ghost")]}), "U")
    assert found.other is not None
    assert found.other.excluded == ("a", "ghost")


def test_an_other_without_not_excludes_nothing() -> None:
    found = tagged_union(model(U={"anyOf": [tagged("a"), other()]}), "U")
    assert found.other is not None
    assert found.other.excluded == ()


def test_other_keeps_what_it_does_not_name_and_rejects_the_known_tags() -> None:
    found = model(U={"anyOf": [tagged("a"), {**other("a"), "properties": {"type": TEXT, "n": COUNT}}]}).struct("UOther")
    assert found.keeps_extra
    assert found.rejects is not None
    assert [each.wire for each in found.fields] == ["type", "n"]


def test_members_without_a_tag_are_tried_in_schema_order_after_the_tag() -> None:
    found = tagged_union(
        model(
            Server={"anyOf": [ref("Stdio"), tagged("http", "Http"), other("http"), ref("Pipe")]},
            Http=obj({"url": TEXT}, ["url"]),
            Stdio=obj({"command": TEXT}, ["command"]),
            Pipe=obj({"pipe": TEXT}, ["pipe"]),
        ),
        "Server",
    )
    assert [each.target for each in found.variants] == ["ServerHttp"]
    assert found.fallbacks == (
        Candidate(type=Ref("Stdio"), required=("command",), doc=""),
        OtherVariant(target="ServerOther", excluded=("http",), doc=""),
        Candidate(type=Ref("Pipe"), required=("pipe",), doc=""),
    )


def test_open_unions_have_an_other_of_their_own() -> None:
    found = lowered(Options(open=True), U={"oneOf": [tagged("a"), tagged("b")]})[0]
    assert tagged_union(found, "U").other is not None
    assert found.struct("UOther").keeps_extra
    closed = model(U={"oneOf": [tagged("a"), tagged("b")]})
    assert tagged_union(closed, "U").other is None


def test_open_unions_leave_those_alone_that_are_open_already() -> None:
    found = lowered(Options(open=True), U={"oneOf": [tagged("a"), other("a")]})[0]
    union = tagged_union(found, "U")
    assert [each for each in union.fallbacks if isinstance(each, OtherVariant)] == [union.other]


def test_keep_unknown_gives_every_class_extra() -> None:
    found = lowered(Options(keep_unknown=True), A=obj({"a": TEXT}), U={"oneOf": [tagged("x"), tagged("y")]})[0]
    assert all(each.keeps_extra for each in found.definitions if isinstance(each, Struct))


def test_keep_unknown_refuses_a_property_that_is_called_extra() -> None:
    with pytest.raises(InputError, match="`extra`"):
        lowered(Options(keep_unknown=True), A=obj({"extra": TEXT}))
    assert list(fields(model(A=obj({"extra": TEXT})), "A")) == ["extra"]


# --- Untagged unions -------------------------------------------------------------------------------------------------


def test_members_of_several_json_types_keep_their_order() -> None:
    node = {"anyOf": [{"type": "null"}, TEXT, COUNT, {"items": TEXT}, ref("Point")]}
    found = untagged_union(model(Value=node, Point=obj({"x": COUNT}, ["x"])), "Value")
    assert [each.type for each in found.members] == [NULL, STRING, INTEGER, ListOf(item=STRING), Ref("Point")]
    assert [each.required for each in found.members] == [(), (), (), (), ("x",)]


def test_a_list_of_types_is_a_union() -> None:
    found = model(Thing=obj({"x": {"type": ["string", "boolean", "null"]}}))
    assert fields(found, "Thing")["x"].type == Nullable(Ref("ThingX"))
    assert [each.type for each in untagged_union(found, "ThingX").members] == [STRING, BOOLEAN]


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ({"title": "by name", **obj({"name": TEXT}, ["name"])}, "UByName"),
        (obj({"firstName": TEXT, "age": COUNT}, ["firstName", "age"]), "UWithFirstNameAge"),
        (obj({"extra": TEXT}, allOf=[ref("Base")]), "UBase"),
    ],
)
def test_members_without_a_tag_are_named_after_title_reference_or_requirement(member: Node, name: str) -> None:
    found = model(U={"anyOf": [ref("Zed"), member]}, Zed=obj({"z": TEXT}, ["z"]), Base=obj({"b": TEXT}, ["b"]))
    assert untagged_union(found, "U").members[1].type == Ref(name)


def test_a_member_that_nothing_names_is_an_error() -> None:
    found = refused(U={"anyOf": [ref("Zed"), obj({"a": TEXT})]}, Zed=obj({"z": TEXT}, ["z"]))
    assert found == [("unnamed-member", "/$defs/U/anyOf/1")]


def test_a_member_that_is_never_reached_is_a_warning() -> None:
    wide, narrow = obj({"a": TEXT}), obj({"a": TEXT, "b": TEXT}, ["a", "b"])
    assert told(U={"anyOf": [ref("Wide"), ref("Narrow")]}, Wide=wide, Narrow=narrow) == [
        (Severity.WARNING, "unreachable-member", "/$defs/U")
    ]


TEXTS = {"type": "array", "items": TEXT}
PAIR = {**TEXTS, "minItems": 2}
MAYBE_TEXT = {"type": ["string", "null"]}
MAYBE_NUMBER = {"type": ["integer", "null"]}


@pytest.mark.parametrize(
    ("first", "second", "is_reachable"),
    [
        pytest.param(PAIR, TEXTS, True, id="short arrays"),
        pytest.param(TEXTS, PAIR, False, id="long arrays are arrays"),
        pytest.param(TEXT, MAYBE_TEXT, True, id="null"),
        pytest.param(MAYBE_TEXT, TEXT, False, id="text may be text"),
        pytest.param(MAYBE_TEXT, {"type": "null"}, False, id="null may be text"),
        pytest.param(obj({"a": TEXT}, ["a"]), obj({"a": MAYBE_TEXT}, ["a"]), True, id="null in a property"),
        pytest.param(obj({"a": PAIR}, ["a"]), obj({"a": TEXTS}, ["a"]), True, id="short arrays in a property"),
    ],
)
def test_a_member_is_reached_by_what_the_one_before_it_refuses(
    first: Node, second: Node, *, is_reachable: bool
) -> None:
    found = told(U={"anyOf": [ref("First"), ref("Second")]}, First=first, Second=second)
    assert [code for _, code, _ in found] == (["ambiguous-union"] if is_reachable else ["unreachable-member"])


def test_members_may_have_nothing_but_null_in_common() -> None:
    found = told(U={"anyOf": [ref("Text"), ref("Number")]}, Text=MAYBE_TEXT, Number=MAYBE_NUMBER)
    assert [code for _, code, _ in found] == ["ambiguous-union"]


def test_members_that_one_value_may_fit_are_a_note() -> None:
    one, two = obj({"a": TEXT}, ["a"]), obj({"b": TEXT}, ["b"])
    assert told(U={"anyOf": [ref("One"), ref("Two")]}, One=one, Two=two) == [
        (Severity.NOTE, "ambiguous-union", "/$defs/U")
    ]


def test_members_that_no_value_fits_at_once_need_no_word() -> None:
    one, two = obj({"k": {"const": 1}}, ["k"]), obj({"k": {"const": 2}}, ["k"])
    assert told(U={"anyOf": [TEXT, ref("One"), ref("Two"), COUNT]}, One=one, Two=two) == []


# --- Inline objects and unions, merged properties, `not` -------------------------------------------------------------


def test_inline_objects_and_unions_are_named_after_where_they_stand() -> None:
    found = model(
        Thing=obj(
            {
                "homePlace": obj({"x": COUNT}),
                "either": {"anyOf": [TEXT, COUNT]},
                "parts": {"type": "array", "items": obj({"y": COUNT})},
                "byName": {"type": "object", "additionalProperties": obj({"z": COUNT})},
                "maybe": {"anyOf": [obj({"w": COUNT}), {"type": "null"}]},
            }
        )
    )
    types = {wire: each.type for wire, each in fields(found, "Thing").items()}
    assert types == {
        "homePlace": Ref("ThingHomePlace"),
        "either": Ref("ThingEither"),
        "parts": ListOf(item=Ref("ThingPartsItem")),
        "byName": MapOf(Ref("ThingByNameValue")),
        "maybe": Nullable(Ref("ThingMaybe")),
    }
    assert names(found) == {
        *("Thing", "ThingHomePlace", "ThingEither", "ThingPartsItem", "ThingByNameValue", "ThingMaybe"),
    }


def test_a_name_made_for_an_inline_object_may_be_taken() -> None:
    assert refused(Thing=obj({"part": obj({"x": COUNT})}), ThingPart=obj({"y": COUNT})) == [
        ("name-clash", "/$defs/ThingPart")
    ]


def test_an_inline_object_of_a_shared_payload_is_one_class() -> None:
    found = model(
        U={"oneOf": [tagged("a", "Load"), tagged("b", "Load")]}, Load=obj({"inner": obj({"x": COUNT})}), H=ref("Load")
    )
    assert "LoadInner" in names(found)
    assert fields(found, "UA")["inner"].type == fields(found, "UB")["inner"].type == Ref("LoadInner")


def test_a_property_in_two_layers_has_the_narrower_type_and_is_required_if_either_is() -> None:
    base = obj({"kind": {"type": ["string", "null"]}, "n": COUNT}, ["n"])
    found = fields(
        model(Thing={"allOf": [ref("Base")], **obj({"kind": {"const": "a"}, "n": True}, ["kind"])}, Base=base), "Thing"
    )
    assert (found["kind"].type, found["kind"].required) == (Const("a"), True)
    assert (found["n"].type, found["n"].required) == (INTEGER, True)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"type": "number"}, {"type": "integer"}),
        ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "minimum": 0}, {"const": 3}),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"type": "object"}, {"type": "object", "additionalProperties": COUNT}),
        ({"anyOf": [ref("Word"), {"type": "null"}]}, ref("Word")),
    ],
)
def test_bounds_items_and_references_of_two_layers_are_compared(wide: Any, narrow: Any) -> None:
    (expected,) = model(Word={"type": "string"}, Only=obj({"a": narrow})).struct("Only").fields
    for own, inherited in ((wide, narrow), (narrow, wide)):
        thing = {"allOf": [ref("Base")], **obj({"a": own})}
        (found,) = model(Word={"type": "string"}, Thing=thing, Base=obj({"a": inherited})).struct("Thing").fields
        assert found.type == expected.type


def test_a_property_in_two_layers_with_types_that_differ_is_an_error() -> None:
    base = obj({"kind": COUNT})
    assert refused(Thing={"allOf": [ref("Base")], **obj({"kind": TEXT})}, Base=base)[0][0] == "property-clash"


def test_not_of_required_names_is_a_condition() -> None:
    found = model(T=obj({"a": TEXT, "b": TEXT}, **{"not": {"required": ["a", "b"]}})).struct("T")
    assert found.rejects is not None


@pytest.mark.parametrize(
    "barred",
    [
        {"properties": {"a": {"const": "x"}}, "required": ["a"]},
        {"anyOf": [{"required": ["a"]}, {"not": {"required": ["b"]}}]},
        {"type": "object", "properties": {"a": {"not": {"const": "x"}}}},
    ],
)
def test_forms_of_not_that_can_be_checked(barred: Node) -> None:
    found, report = lowered(T=obj({"a": TEXT, "b": TEXT}, **{"not": barred}))
    assert found.struct("T").rejects is not None
    assert report.found == []


@pytest.mark.parametrize(
    "barred",
    [{"minProperties": 1}, {"properties": {"a": {"type": "integer"}}}, {"properties": {"a": True}}, True, {}],
)
def test_a_not_that_cannot_be_checked_is_a_warning(barred: Any) -> None:
    found, report = lowered(T=obj({"a": TEXT}, **{"not": barred}))
    assert found.struct("T").rejects is None
    assert ("unsupported-not", "/$defs/T/not") in [(each.code, each.pointer) for each in report.found]


def test_null_counts_once_in_a_union() -> None:
    null = {"type": "null"}
    assert type_of({"anyOf": [null, {"const": None}]}) == NULL
    union = untagged_union(model(Either={"anyOf": [null, TEXT, null, COUNT]}), "Either")
    assert [member.type for member in union.members] == [NULL, STRING, INTEGER]


# --- Leniency --------------------------------------------------------------------------------------------------------


def test_the_keywords_of_leniency_are_read() -> None:
    node = {
        "type": "array",
        "items": TEXT,
        "x-deserialize-default-on-error": True,
        "x-deserialize-skip-invalid-items": True,
        "x-deserialize-default-on-null": True,
    }
    assert field(node).leniency == Leniency(default_on_error=True, skip_invalid_items=True, default_on_null=True)
    assert field({**node, **{key: False for key in node if key.startswith("x-")}}).leniency == Leniency()


@pytest.mark.parametrize(("keyword", "effects"), LENIENCY.items())
def test_a_keyword_of_leniency_has_its_effects_alone(keyword: str, effects: Leniency) -> None:
    assert field({"type": "array", "items": TEXT, keyword: True}).leniency == effects != Leniency()


def test_leniency_without_anything_to_fall_back_to_is_a_warning() -> None:
    lenient = {**TEXT, "x-deserialize-default-on-error": True}
    at = "/$defs/T/properties/x"
    assert told(T=obj({"x": lenient}, ["x"])) == [(Severity.WARNING, "leniency-without-default", at)]
    assert told(T=obj({"x": lenient})) == []
    assert told(T=obj({"x": {**lenient, "default": "a"}}, ["x"])) == []
    assert told(T=obj({"x": {**lenient, "type": "array"}}, ["x"])) == []


# --- Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "name"),
    [("Thing", "Thing"), ("thing", "Thing"), ("my-thing", "MyThing"), ("HTTPThing", "HTTPThing"), ("a_b", "AB")],
)
def test_definitions_keep_their_names_or_get_pascal_case(wire: str, name: str) -> None:
    assert names(model(**{wire: obj()})) == {name}


@pytest.mark.parametrize("name", ["", "3d", "é", "名", "_", "$"])
def test_a_definition_that_leaves_no_name_is_an_error(name: str) -> None:
    assert refused(**{name: obj()}) == [("bad-name", f"/$defs/{name}")]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Exception",
            "None",
            "True",
            "ValueError",
            "Agent",
            "Client",
            "RemoteAgent",
            "RequestError",
            "DecodeError",
            "Struct",
        ),
        *(
            "UNSET",
            "UnsetType",
            "Any",
            "Literal",
            "MethodNotFoundError",
            "Peer",
            "Gate",
            "Method",
            "exception",
            "agent",
        ),
    ],
)
def test_names_that_the_package_needs_are_errors(name: str) -> None:
    assert refused(**{name: obj()}) == [("name-clash", f"/$defs/{name}")]


def test_names_that_differ_in_case_alone_are_errors() -> None:
    assert refused(HTTPServer=obj(), HttpServer=obj()) == [("name-clash", "/$defs/HttpServer")]
    assert refused(thing=obj({"a": TEXT}), Thing=obj({"b": TEXT})) == [("name-clash", "/$defs/Thing")]


def test_names_do_not_depend_on_position() -> None:
    first, second = {"title": "one", **obj({"a": TEXT}, ["a"])}, {"title": "two", **obj({"b": TEXT}, ["b"])}
    assert names(model(U={"anyOf": [first, second]})) == names(model(U={"anyOf": [second, first]}))


# --- Methods ---------------------------------------------------------------------------------------------------------


def message(method: str, side: str, **more: Any) -> Node:
    return obj(**more, **{"x-method": method, "x-side": side})


def methods(**definitions: Any) -> list[tuple[str, str, MethodKind, tuple[Side, ...]]]:
    return [(each.wire, each.name, each.kind, each.handlers) for each in model(**definitions).methods]


@pytest.mark.parametrize(
    ("side", "handlers"),
    [
        ("agent", (Side.AGENT,)),
        ("client", (Side.CLIENT,)),
        ("both", (Side.AGENT, Side.CLIENT)),
        ("protocol", (Side.AGENT, Side.CLIENT)),
    ],
)
def test_the_side_says_who_handles_a_method(side: str, handlers: tuple[Side, ...]) -> None:
    found = methods(
        DoRequest=message("do/it", side), DoResponse=message("do/it", side), SeenNotification=message("$/seen", side)
    )
    assert found == [
        ("do/it", "do_it", MethodKind.REQUEST, handlers),
        ("$/seen", "seen", MethodKind.NOTIFICATION, handlers),
    ]


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("session/new", "session_new"),
        ("document/didOpen", "document_did_open"),
        ("$/cancel_request", "cancel_request"),
        ("_example.org/wave", "example_org_wave"),
        ("import", "import_"),
    ],
)
def test_methods_are_called_by_their_wire_names(wire: str, name: str) -> None:
    ((_, found, _, _),) = methods(XNotification=message(wire, "agent"))
    assert found == name


def test_params_and_result_are_the_definitions() -> None:
    result = {"anyOf": [{"title": "a", **obj({"a": TEXT}, ["a"])}, {"title": "b", **obj({"b": TEXT}, ["b"])}]}
    (found,) = model(
        DoRequest=message("do", "agent"), DoResponse={**result, "x-method": "do", "x-side": "agent"}
    ).methods
    assert (found.params, found.result, found.side) == (Ref("DoRequest"), Ref("DoResponse"), "agent")


def test_a_request_that_is_a_notification_too_has_two_handlers() -> None:
    found = methods(
        MRequest=message("mcp/message", "both"),
        MResponse=message("mcp/message", "both"),
        MNotification=message("mcp/message", "both"),
    )
    assert [(name, kind) for _, name, kind, _ in found] == [
        ("mcp_message", MethodKind.REQUEST),
        ("mcp_message_notification", MethodKind.NOTIFICATION),
    ]


def test_so_has_one_whose_request_has_no_response() -> None:
    found, _ = lowered(MRequest=message("m", "agent"), MNotification=message("m", "agent"))
    assert [(each.name, each.kind) for each in found.methods] == [
        ("m", MethodKind.REQUEST),
        ("m_notification", MethodKind.NOTIFICATION),
    ]


def test_request_and_notification_of_one_method_may_be_for_different_sides() -> None:
    found = methods(
        MRequest=message("m", "client"), MResponse=message("m", "client"), MNotification=message("m", "agent")
    )
    assert [(kind, handlers) for _, _, kind, handlers in found] == [
        (MethodKind.REQUEST, (Side.CLIENT,)),
        (MethodKind.NOTIFICATION, (Side.AGENT,)),
    ]


def test_a_request_and_its_response_are_for_one_side() -> None:
    assert refused(DoRequest=message("do", "agent"), DoResponse=message("do", "client")) == [
        ("side-clash", "/$defs/DoResponse/x-side")
    ]


def test_an_unknown_side_is_a_warning_and_the_types_are_still_there() -> None:
    found, report = lowered(DoRequest=message("do", "pilot"), DoResponse=message("do", "pilot"))
    assert found.methods == ()
    assert names(found) == {"DoRequest", "DoResponse"}
    assert [(each.severity, each.code) for each in report.found] == [(Severity.WARNING, "unknown-side")]


def test_methods_of_proxies_have_types_alone() -> None:
    found, report = lowered(DoRequest=message("do", "proxy"), DoResponse=message("do", "proxy"))
    assert (found.methods, names(found), report.found) == ((), {"DoRequest", "DoResponse"}, [])


def test_a_side_may_be_misspelt() -> None:
    _, report = lowered(DoNotification=message("do", "agnet"))
    assert [each.hint for each in report.found] == ["did you mean 'agent'?"]


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("LoneResponse", message("m", "agent")),
        ("Oddity", message("m", "agent")),
        ("HalfRequest", obj(**{"x-method": "m"})),
        ("HalfNotification", obj(**{"x-side": "agent"})),
    ],
)
def test_what_does_not_pair_is_a_warning(name: str, node: Node) -> None:
    assert model(**{name: node}).methods == ()
    assert told(**{name: node}) == [(Severity.WARNING, "unpaired-method", f"/$defs/{name}")]


def test_messages_without_a_method_are_named() -> None:
    part = {"$ref": "#/$defs/PartRequest"}
    found = {
        "DoRequest": message("do", "agent"),
        "DoResponse": message("do", "agent"),
        "LostRequest": obj({"part": part}),
        "LostResponse": {"anyOf": [obj({"a": TEXT}, title="A")]},
        "PartRequest": obj({}),
        "AnyRequest": {"description": "Whatever it is."},
        "ClientRequest": {"x-docs-ignore": True, "anyOf": [{"$ref": "#/$defs/LostRequest"}]},
    }
    _, report = lowered(**found)
    assert [(each.severity, each.code, each.message, each.pointer) for each in report.found] == [
        (
            Severity.WARNING,
            "unrouted-message",
            "no `x-method`: these get types but no routing: LostRequest, LostResponse",
            "/$defs/LostRequest",
        )
    ]


def test_of_many_messages_without_a_method_some_are_named() -> None:
    _, report = lowered(**{f"M{letter}Request": obj({}) for letter in "abcdefghijklm"}, Other=obj({}))
    (found,) = report.found
    assert "MaRequest, MbRequest" in found.message
    assert "MjRequest and 3 more" in found.message


def test_a_request_without_a_response_may_have_any_result() -> None:
    found, report = lowered(DoRequest=message("do", "agent"))
    assert [each.result for each in found.methods] == [AnyJson()]
    assert [each.code for each in report.found] == ["unpaired-method"]


def test_two_definitions_for_one_part_of_a_method_are_an_error() -> None:
    assert refused(ARequest=message("m", "agent"), BRequest=message("m", "agent")) == [
        ("method-clash", "/$defs/BRequest")
    ]


def test_two_methods_of_one_handler_are_an_error_on_one_side_only() -> None:
    assert refused(ANotification=message("do/it", "agent"), BNotification=message("do_it", "agent")) == [
        ("name-clash", "/$defs/BNotification")
    ]
    assert len(methods(ANotification=message("do/it", "agent"), BNotification=message("do_it", "client"))) == 2


def test_a_notification_s_second_name_may_be_taken() -> None:
    found = refused(
        MRequest=message("m", "agent"),
        MResponse=message("m", "agent"),
        MNotification=message("m", "agent"),
        TakenNotification=message("m/notification", "agent"),
    )
    assert found == [("name-clash", "/$defs/TakenNotification")]


def test_a_method_without_a_name_is_an_error() -> None:
    assert refused(ANotification=message("$/", "agent")) == [("bad-name", "/$defs/ANotification/x-method")]


@pytest.mark.parametrize("wire", ["client", "ext/method", "ext_notification", "REQUESTS/"])
def test_a_method_never_takes_the_place_of_what_a_role_has_already(wire: str) -> None:
    ((_, name, _, _),) = methods(ANotification=message(wire, "agent"))
    assert name not in {"client", "ext_method", "ext_notification", "REQUESTS"}


def test_envelopes_are_not_emitted_and_describe_the_methods() -> None:
    envelope = {
        "x-docs-ignore": True,
        "anyOf": [{"title": "DoRequest", "description": "Does it.", "allOf": [ref("DoRequest")]}],
    }
    found = model(AgentRequest=envelope, DoRequest=message("do", "agent"), DoResponse=message("do", "agent"))
    assert names(found) == {"DoRequest", "DoResponse"}
    assert [each.doc for each in found.methods] == ["Does it."]


def test_a_marked_definition_that_others_use_is_emitted() -> None:
    found = model(Shared={**obj({"a": TEXT}), "x-docs-ignore": True}, Thing=obj({"s": ref("Shared")}))
    assert names(found) == {"Shared", "Thing"}


# --- Errors ----------------------------------------------------------------------------------------------------------

ENVELOPE = {"x-docs-ignore": True, "anyOf": [obj({"error": ref("Trouble")}, ["error"])]}
TROUBLE = obj({"code": ref("Number"), "message": TEXT, "data": True}, ["code", "message"])
NUMBERS = {
    "anyOf": [
        {"const": -32601, "type": "integer", "title": "Method not found", "description": "Nobody knows it."},
        {"const": -32000, "type": "integer", "title": "Authentication required"},
        {"const": 7, "type": "integer"},
        {"type": "integer", "title": "Other"},
    ]
}


def test_error_codes_are_found_by_structure() -> None:
    found = model(Reply=ENVELOPE, Trouble=TROUBLE, Number=NUMBERS).errors
    assert found.object == "Trouble"
    named = {code.code: (code.name, code.title, code.doc) for code in found.codes}
    assert named[-32000] == ("AuthenticationRequiredError", "Authentication required", "")
    assert named[-32601] == ("MethodNotFoundError", "Method not found", "Nobody knows it.")
    assert 7 not in named


def test_without_an_error_object_there_are_the_codes_of_json_rpc() -> None:
    found = model(Thing=obj()).errors
    assert found.object is None
    assert [code.code for code in found.codes] == [-32700, -32600, -32601, -32602, -32603]


def test_an_error_object_lacks_nothing_of_json_rpc() -> None:
    assert model(Reply=ENVELOPE, Trouble=obj({"code": COUNT, "message": TEXT})).errors.object is None


# --- Origins and places ----------------------------------------------------------------------------------------------


def test_every_node_keeps_its_pointer_and_origin() -> None:
    found = model(Thing=obj({"a": TEXT}), U={"oneOf": [tagged("x"), tagged("y")]})
    assert all(each.origin == "X" for each in found.definitions)
    assert {each.name: each.pointer for each in found.definitions} == {
        "Thing": "/$defs/Thing",
        "U": "/$defs/U",
        "UX": "/$defs/U/oneOf/0",
        "UY": "/$defs/U/oneOf/1",
    }
    assert fields(found, "Thing")["a"].pointer == "/$defs/Thing/properties/a"


def test_what_an_extension_brings_has_its_origin() -> None:
    found, _ = model_of(SchemaChoice(release="0.10.8", extensions=("logout",)))
    by_wire = {method.wire: method.origin for method in found.methods}
    assert by_wire["logout"] == "logout, 2026-02-02"
    assert by_wire["initialize"] == "ACP v1, 0.10.8"
    assert found.extensions == ("logout, 2026-02-02",)


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("schema/v*/*/schema.json")), ids=lambda path: "-".join(path.parts[-3:-1])
)
def test_bundled_schemas_lower_without_warnings(path: Any) -> None:
    found, diagnostics = model_of(SchemaChoice(protocol=int(path.parts[-3].removeprefix("v")), release=path.parts[-2]))
    assert found.definitions
    assert [each for each in diagnostics if each.severity is not Severity.NOTE] == []
