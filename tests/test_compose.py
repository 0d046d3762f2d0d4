"""Composing: a small schema for each rule."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from acpgen.diagnostics import Report, Severity
from acpgen.schema import bundled
from acpgen.schema.compose import Composed, compose
from acpgen.schema.document import Document, parse_document
from acpgen.schema.facts import Facts
from acpgen.schema.fitting import Fit, FitResult, fit
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.schema.gates import Gate, check_gates
from tests.support import errors_of


def ref(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/$defs/{name}"}]}


def tagged(value: str, name: str | None = None) -> dict[str, Any]:
    tag = {"type": "object", "properties": {"type": {"type": "string", "const": value}}, "required": ["type"]}
    return tag | (ref(name) if name else {})


CIRCLE = tagged("circle", "Circle")
OTHER = {
    "title": "anything at all",
    "type": "object",
    "properties": {"type": {"type": "string"}},
    "required": ["type"],
    "not": {"anyOf": [tagged("circle"), tagged("ghost")]},
    "additionalProperties": True,
}
NESTED = {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": {"deep": False}}
NARROWER = {"allOf": [{"$ref": "#/$defs/Inner", "required": ["deep"]}]}
BASE: dict[str, Any] = {
    "$defs": {
        "Init": {
            "type": "object",
            "properties": {"caps": {**ref("Caps"), "default": {"fly": False, "inner": {"deep": False}}}},
        },
        "Caps": {
            "description": "prose",
            "type": "object",
            "properties": {
                "fly": {"type": "boolean", "default": False},
                "inner": NESTED,
            },
            "required": ["fly", "inner"],
        },
        "Inner": {"type": "object", "properties": {"deep": {"type": "boolean", "default": False}}},
        "Shape": {"anyOf": [CIRCLE, OTHER, {"title": "plain", **ref("Inner")}]},
        "Circle": {"type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"]},
        "Closed": {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}]},
        "Open": {"anyOf": [{"const": 1, "type": "integer"}, {"type": "integer", "title": "x"}]},
        "Old": {"type": "string", "enum": ["a", "b"]},
        "Name": {"type": "string"},
        "FlyRequest": {"type": "object", "x-method": "fly", "x-side": "agent"},
    }
}
GATES = {"fly": Gate("Init", (("caps", "fly"),))}


@pytest.fixture(autouse=True)
def _bundled_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "revisions_of", lambda name, _: ("1", "2") if name == "one" else ())
    monkeypatch.setattr(bundled, "releases_defining", lambda name, _: ("0.1", "0.2") if name == "Known" else ())


def base(root: dict[str, Any] = BASE) -> Document:
    return parse_document(json.dumps(root, indent=1).encode(), label="base.json", origin="ACP v1, 0.3")


def fragment(name: str = "one", **content: Any) -> Fragment:
    head = {"fragment": 1, "id": name, "revision": "1", "title": name, "status": "draft", "protocols": [1]}
    head.update({{"defs": "$defs"}.get(key, key): value for key, value in content.items()})
    return load_fragment(parse_document(json.dumps(head, indent=1).encode(), label=f"{name}.json", origin=""))


def put(*fragments: Fragment, on: dict[str, Any] = BASE, gates: Mapping[str, Gate] = GATES) -> Composed:
    return compose(base(on), fragments, protocol=1, release="0.3", facts=Facts(gates=gates))


def fine(*fragments: Fragment, on: dict[str, Any] = BASE) -> Composed:
    composed = put(*fragments, on=on)
    assert errors_of(composed) == []
    return composed


def codes(composed: Composed) -> list[tuple[str, str, str]]:
    """Code, file and pointer of each diagnostic, whose place in the text has to be that of the pointer."""
    documents = {each.document.label: each.document for each in composed.fragments}
    found = []
    for each in composed.diagnostics:
        assert each.location is not None
        assert each.pointer is not None
        if each.location.file in documents:
            assert each.location == documents[each.location.file].location(each.pointer)
        found.append((each.code, each.location.file, each.pointer))
    return found


def test_no_fragments_leave_the_base_as_it_is() -> None:
    composed = fine()
    assert composed.root == BASE
    assert composed.root is composed.base.root
    assert (composed.facts.gates, composed.protocol, composed.release) == (GATES, 1, "0.3")
    location, pointer = composed.locate("/$defs/Caps/properties/fly")
    assert (location.file, location.line > 1, pointer) == ("base.json", True, "/$defs/Caps/properties/fly")
    assert composed.origin("/$defs/Caps") == "ACP v1, 0.3"


def test_definitions_and_properties_are_added_and_remember_their_file() -> None:
    composed = fine(
        fragment(
            defs={"Wing": {"type": "object", "properties": {"span": {"type": "number"}}}},
            changes={"Caps": {"properties": {"wing": ref("Wing"), "x/y": {}}, "required": ["wing"]}},
        )
    )
    definitions = composed.root["$defs"]
    assert list(definitions) == [*BASE["$defs"], "Wing"]
    assert definitions["Caps"]["properties"] == {**BASE["$defs"]["Caps"]["properties"], "wing": ref("Wing"), "x/y": {}}
    assert definitions["Caps"]["required"] == ["fly", "inner", "wing"]
    assert composed.locate("/$defs/Wing/properties/span")[1] == "/$defs/Wing/properties/span"
    assert composed.origin("/$defs/Wing/properties/span") == "one, 1"
    location, pointer = composed.locate("/$defs/Caps/properties/x~1y")
    assert (location.file, pointer) == ("one.json", "/changes/Caps/properties/x~1y")
    assert composed.locate("/$defs/Caps/required/2")[1] == "/changes/Caps/required/0"
    assert composed.origin("/$defs/Caps/required/1") == "ACP v1, 0.3"
    assert composed.origin("/$defs/Caps") == "ACP v1, 0.3"


def test_nothing_given_is_changed_and_what_did_not_change_is_shared() -> None:
    extension = fragment(
        defs={"Wing": {"type": "object", "properties": {}}},
        changes={
            "Caps": {"properties": {"wing": {"type": "boolean", "default": True}}},
            "Shape": {"members": [tagged("square")]},
            "Wing": {"properties": {"span": {}}},
        },
    )
    document = base()
    before = copy.deepcopy((document.root, extension.document.root))
    composed = compose(document, [extension], protocol=1, facts=Facts(gates=GATES))
    assert errors_of(composed) == []
    assert composed.root != document.root
    assert (document.root, extension.document.root) == before
    assert composed.root["$defs"]["Circle"] is document.root["$defs"]["Circle"]
    assert composed.root["$defs"]["Wing"]["properties"] == {"span": {}}


def test_the_order_of_fragments_makes_no_difference() -> None:
    fragments = [
        fragment("a", changes={"Shape": {"members": [tagged("a")]}, "Caps": {"required": ["late"]}}),
        fragment("b", defs={"B": {"type": "object"}}, changes={"Shape": {"members": [tagged("b"), tagged("a")]}}),
        fragment("c", changes={"B": {"properties": {"late": {}}}, "Caps": {"properties": {"late": {"default": 1}}}}),
        fragment("d", changes={"Caps": {"properties": {"late": {"type": "string"}}}, "Nowhere": {"required": ["x"]}}),
    ]
    results = [put(*order) for order in itertools.permutations(fragments)]
    first = results[0]
    assert [found.id for found in first.fragments] == ["a", "b", "c", "d"]
    for result in results:
        assert json.dumps(result.root) == json.dumps(first.root)
        assert result.diagnostics == first.diagnostics
        assert {at: place for at, (_, place) in result.origins.sources.items()} == {
            at: place for at, (_, place) in first.origins.sources.items()
        }
    assert codes(first) == [
        ("superseded", "b.json", "/changes/Shape/members/1"),
        ("fragment-conflict", "d.json", "/changes/Caps/properties/late"),
        ("fragment-missing", "d.json", "/changes/Nowhere"),
    ]


def test_what_is_there_in_the_same_shape_is_superseded() -> None:
    same_caps = {
        "type": "object",
        "title": "T",
        "properties": {
            "inner": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}], "default": {"deep": False}},
            "fly": {"type": "boolean", "default": False, "x-deserialize-default-on-error": True, "description": "d"},
        },
        "required": ["inner", "fly"],
    }
    init = {"properties": {"caps": {"$ref": "#/$defs/Caps", "default": {"fly": False, "inner": {"deep": False}}}}}
    composed = fine(
        fragment(
            defs={"Caps": same_caps, "New": True},
            changes={
                "Init": init,
                "Caps": {"required": ["fly"]},
                "Shape": {"members": [tagged("circle", "Circle") | {"description": "round"}]},
                "Old": {"members": [{"const": "b"}]},
            },
            gates={"Init": {"fly": "caps.fly"}},
        )
    )
    assert composed.root["$defs"] == {**BASE["$defs"], "New": True}
    assert sorted(codes(composed)) == [
        ("superseded", "one.json", pointer)
        for pointer in (
            "/$defs/Caps",
            "/changes/Caps/required/0",
            "/changes/Init/properties/caps",
            "/changes/Old/members/0",
            "/changes/Shape/members/0",
            "/gates/Init/fly",
        )
    ]
    assert {found.severity for found in composed.diagnostics} == {Severity.NOTE}


def test_a_fragment_that_is_superseded_altogether_gets_one_note() -> None:
    extension = fragment(defs={"Name": {"type": "string", "title": "n"}}, changes={"Caps": {"required": ["fly"]}})
    composed = fine(extension)
    (note,) = composed.diagnostics
    assert note.message == "one, 1 is superseded: all of it is part of ACP v1, 0.3"
    assert str(note.location) == "one.json:1:1"


def test_two_fragments_may_agree() -> None:
    composed = fine(fragment("a", defs={"New": {}}), fragment("b", defs={"New": {"description": "same"}}))
    (note,) = composed.diagnostics
    assert note.message == "b, 1 is superseded: all of it is part of a, 1"
    assert composed.origin("/$defs/New") == "a, 1"


@pytest.mark.parametrize(
    ("content", "pointer", "words"),
    [
        ({"defs": {"Name": {"type": "integer"}}}, "/$defs/Name", ['"integer" against "string"', "at /type"]),
        (
            {"changes": {"Caps": {"properties": {"fly": {"type": "boolean", "default": True}}}}},
            "/changes/Caps/properties/fly",
            ["the property fly of Caps", "at /default: true against false"],
        ),
        (
            {"changes": {"Caps": {"properties": {"inner": {**NESTED, "anyOf": [NARROWER, {"type": "null"}]}}}}},
            "/changes/Caps/properties/inner",
            ["the property inner of Caps", '"required":["deep"]'],
        ),
        ({"changes": {"Shape": {"members": [tagged("circle")]}}}, "/changes/Shape/members/0", ['"circle" of Shape']),
        ({"changes": {"Name": {"members": [{"const": "a"}]}}}, "/changes/Name/members/0", ["not a union"]),
        ({"changes": {"Name": {"properties": {"a": {}}}}}, "/changes/Name/properties/a", ["the property a of Name"]),
        ({"gates": {"Init": {"fly": "caps"}}}, "/gates/Init/fly", ["caps of Init", "caps.fly of Init"]),
        (
            {"changes": {"Name": {"replace": {"expect": {"type": "null"}, "with": {"type": "object"}}}}},
            "/changes/Name/replace/expect",
            ["as expected", '"null" against "string"'],
        ),
        (
            {"defs": {"SoarRequest": {"type": "object", "x-method": "fly", "x-side": "agent"}}},
            "/$defs/SoarRequest",
            ["of the method fly", "FlyRequest"],
        ),
    ],
)
def test_what_is_there_in_another_shape_is_a_conflict(content: Any, pointer: str, words: list[str]) -> None:
    composed = put(fragment(**content))
    (found,) = errors_of(composed)
    assert codes(composed) == [("fragment-conflict", "one.json", pointer)]
    for word in [*words, "one@1", "ACP v1, 0.3"]:
        assert word in found.message
    assert found.hint == "leave out the extension one, or try another revision: one@2"
    assert found.location == fragment(**content).document.location(pointer)


def test_a_conflict_of_two_fragments_names_both() -> None:
    composed = put(fragment("one", defs={"New": {"type": "null"}}), fragment("two", defs={"New": {}}))
    (found,) = errors_of(composed)
    assert "two@1" in found.message
    assert "one, 1" in found.message
    assert '{"type":"null"}' in found.message
    assert found.hint == "edit two.json: the two sides are at two.json:11:10 and one.json:11:10"


def test_a_conflict_in_a_file_of_the_user_names_both_sides() -> None:
    (found,) = errors_of(put(fragment("two", defs={"Circle": {"type": "null"}})))
    assert found.hint is not None
    assert re.fullmatch(r"edit two\.json: the two sides are at two\.json:\d+:\d+ and base\.json:\d+:\d+", found.hint)


def test_shapes_in_messages_are_cut() -> None:
    big = {"type": "object", "properties": {f"property{index}": {} for index in range(1000)}}
    (found,) = errors_of(put(fragment(defs={"Circle": big})))
    assert len(found.message) < 700


def test_a_change_to_what_is_not_there_says_which_releases_have_it() -> None:
    composed = put(
        fragment(changes={"Known": {"required": ["x"], "properties": {"x": {}}}, "Unknown": {"members": []}})
    )
    assert codes(composed) == [("fragment-missing", "one.json", f"/changes/{name}") for name in ("Known", "Unknown")]
    first, second = errors_of(composed)
    assert first.message == "one, 1 changes /$defs/Known, which ACP v1, 0.3 does not have"
    assert first.hint == "releases of protocol 1 that have it: 0.1, 0.2"
    assert second.hint == "no bundled release of protocol 1 has it"


OPTIONAL = {"New": {"optional": True, "properties": {"x": {"type": "string"}}}}


def test_an_optional_change_is_left_out_where_there_is_nothing_to_change() -> None:
    composed = fine(fragment(changes=OPTIONAL))
    assert composed.root == BASE
    (found,) = composed.diagnostics
    assert (found.code, found.severity, found.pointer) == ("left-out", Severity.NOTE, "/changes/New")
    assert found.message == "one, 1 leaves out its change to /$defs/New, which is not defined"
    assert codes(composed) == [("left-out", "one.json", "/changes/New")]


def test_an_optional_change_is_made_where_another_fragment_has_the_definition() -> None:
    both = [fragment(changes=OPTIONAL), fragment("two", defs={"New": {"type": "object"}})]
    for order in itertools.permutations(both):
        composed = fine(*order)
        assert composed.diagnostics == ()
        assert composed.root["$defs"]["New"] == {"type": "object", "properties": {"x": {"type": "string"}}}
        assert composed.origin("/$defs/New/properties/x") == "one, 1"


def test_an_optional_change_can_conflict() -> None:
    other = fragment("two", defs={"New": {"type": "object", "properties": {"x": {"type": "integer"}}}})
    composed = put(fragment(changes=OPTIONAL), other)
    assert codes(composed) == [("fragment-conflict", "one.json", "/changes/New/properties/x")]


def test_a_required_name_has_to_be_a_property() -> None:
    composed = put(fragment(changes={"Caps": {"required": ["nothing"]}}))
    assert codes(composed) == [("fragment-required", "one.json", "/changes/Caps/required/0")]


def test_inherited_properties_count_as_there() -> None:
    on = {"$defs": {**BASE["$defs"], "Heir": {"type": "object", **ref("Circle")}}}
    composed = fine(fragment(changes={"Heir": {"properties": {"r": {"type": "number"}}, "required": ["r"]}}), on=on)
    assert composed.root == on
    assert codes(put(fragment(changes={"Heir": {"properties": {"r": {}}}}), on=on))[0][0] == "fragment-conflict"


def test_the_same_fragment_twice_is_an_error() -> None:
    (found,) = errors_of(put(fragment(), fragment()))
    assert (found.code, found.location) == ("fragment-twice", None)
    assert found.hint == "give one@1 once"
    (found,) = errors_of(put(fragment(revision="1"), fragment(revision="2")))
    assert found.message == "the extension one is given as 1 and as 2"
    assert found.hint == "choose one: one@1 or one@2"


def test_a_fragment_of_another_protocol_is_refused() -> None:
    composed = put(fragment(protocols=[2, 3], defs={"New": {}}))
    (found,) = errors_of(composed)
    assert codes(composed) == [("fragment-protocol", "one.json", "/protocols")]
    assert found.message == "one, 1 extends protocol 2, 3, not 1"
    assert found.hint == "for protocol 1 there is one@1, one@2"
    assert composed.root == BASE


def test_requirements_have_to_be_there() -> None:
    needy = fragment("needy", requires=["one", "two@2"])
    composed = put(needy, fragment())
    assert codes(composed) == [("fragment-requires", "needy.json", "/requires/1")]
    assert errors_of(fine(needy, fragment(), fragment("two", revision="2"))) == []


def test_a_member_goes_before_the_open_and_the_untagged_ones() -> None:
    square, star = tagged("square"), {"title": "star", "type": "object", "properties": {"points": {}}}
    extension = fragment(changes={"Shape": {"members": [square, star, tagged("ghost")]}})
    composed = fine(extension)
    members = composed.root["$defs"]["Shape"]["anyOf"]
    assert [member.get("title") or member["properties"]["type"]["const"] for member in members] == [
        "circle",
        "square",
        "ghost",
        "anything at all",
        "plain",
        "star",
    ]
    assert members[3]["not"]["anyOf"] == [tagged("circle"), tagged("ghost"), tagged("square")]
    places = [composed.locate(f"/$defs/Shape/anyOf/{index}")[1] for index in range(6)]
    assert places == [
        "/$defs/Shape/anyOf/0",
        "/changes/Shape/members/0",
        "/changes/Shape/members/2",
        "/$defs/Shape/anyOf/1",
        "/$defs/Shape/anyOf/2",
        "/changes/Shape/members/1",
    ]
    assert composed.origin("/$defs/Shape/anyOf/3/not/anyOf/2") == "one, 1"
    assert composed.origin("/$defs/Shape/anyOf/3/not/anyOf/1") == "ACP v1, 0.3"
    assert composed.locate("/$defs/Shape/anyOf/4/title") == (
        base().location("/$defs/Shape/anyOf/2/title"),
        places[4] + "/title",
    )


def test_members_of_several_fragments_keep_their_origins() -> None:
    composed = fine(*(fragment(name, changes={"Shape": {"members": [tagged(name)]}}) for name in ("x", "y", "z")))
    array = "/$defs/Shape/anyOf"
    assert [composed.origin(f"{array}/{index}") for index in range(6)] == [
        "ACP v1, 0.3", "x, 1", "y, 1", "z, 1", "ACP v1, 0.3", "ACP v1, 0.3",
    ]  # fmt: skip
    assert [composed.origin(f"{array}/4/not/anyOf/{index}") for index in range(5)] == [
        "ACP v1, 0.3", "ACP v1, 0.3", "x, 1", "y, 1", "z, 1",
    ]  # fmt: skip
    assert composed.locate(f"{array}/5")[1] == f"{array}/2"


def test_values_of_enumerations() -> None:
    values = {name: {"members": [{"type": "string", "const": "c"}]} for name in ("Closed", "Old")}
    composed = fine(fragment(changes={**values, "Open": {"members": [{"type": "integer", "const": 2}]}}))
    definitions = composed.root["$defs"]
    assert [member["const"] for member in definitions["Closed"]["oneOf"]] == ["a", "b", "c"]
    assert definitions["Old"]["enum"] == ["a", "b", "c"]
    assert [member.get("const") for member in definitions["Open"]["anyOf"]] == [1, 2, None]
    assert composed.locate("/$defs/Old/enum/2")[1] == "/changes/Old/members/0/const"
    assert composed.locate("/$defs/Open/anyOf/2")[1] == "/$defs/Open/anyOf/1"


def test_a_union_without_tags_takes_its_tag_from_the_first_tagged_member() -> None:
    on: dict[str, Any] = {
        "$defs": {"Method": {"anyOf": [{"title": "agent", **ref("Agent")}]}, "Agent": {"type": "object"}}
    }
    composed = fine(fragment(changes={"Method": {"members": [tagged("a"), tagged("b")]}}), on=on)
    members = composed.root["$defs"]["Method"]["anyOf"]
    assert members == [tagged("a"), tagged("b"), on["$defs"]["Method"]["anyOf"][0]]


def test_of_two_unions_the_one_with_tags_grows() -> None:
    scopes = [{"title": "s", "properties": {"s": {}}}, {"title": "r", "properties": {"r": {}}}]
    on = {"$defs": {"Both": {"type": "object", "oneOf": scopes, "anyOf": [tagged("a")]}}}
    composed = fine(fragment(changes={"Both": {"members": [tagged("b")]}}), on=on)
    assert composed.root["$defs"]["Both"] == {"type": "object", "oneOf": scopes, "anyOf": [tagged("a"), tagged("b")]}


def test_default_literals_grow_at_every_depth() -> None:
    composed = fine(
        fragment(
            "a",
            changes={
                "Inner": {"properties": {"swim": {"type": "boolean", "default": False}}},
                "Caps": {"properties": {"more": {**ref("Inner"), "default": {"deep": True}}}},
            },
        ),
        fragment("b", changes={"Inner": {"properties": {"dive": {"default": 7}, "unset": {"type": "string"}}}}),
    )
    inner = {"deep": False, "swim": False, "dive": 7}
    more = {"deep": True, "swim": False, "dive": 7}
    caps = composed.root["$defs"]["Caps"]["properties"]
    assert composed.root["$defs"]["Init"]["properties"]["caps"]["default"] == {
        "fly": False,
        "inner": inner,
        "more": more,
    }
    assert caps["inner"]["default"] == inner
    assert caps["more"]["default"] == more
    at = "/$defs/Init/properties/caps/default"
    assert composed.locate(f"{at}/inner/dive")[1] == "/changes/Inner/properties/dive/default"
    assert composed.origin(f"{at}/more") == "a, 1"
    assert composed.origin(f"{at}/more/dive") == "b, 1"
    assert composed.origin(f"{at}/inner") == "ACP v1, 0.3"


def test_the_default_of_a_recursive_type_ends() -> None:
    extension = fragment(changes={"Inner": {"properties": {"again": {**ref("Inner"), "default": {}}}}})
    inner = fine(extension).root["$defs"]["Caps"]["properties"]["inner"]
    assert inner["default"] == {"deep": False, "again": {}}


def test_a_definition_is_replaced_where_it_is_what_the_fragment_expects() -> None:
    change = {"replace": {"expect": {"type": "string", "title": "whatever"}, "with": {"anyOf": [tagged("a")]}}}
    later = fragment("a-later", changes={"Name": {"members": [tagged("b")]}})
    composed = fine(fragment(changes={"Name": change}), later)
    assert composed.root["$defs"]["Name"] == {"anyOf": [tagged("a"), tagged("b")]}
    assert composed.locate("/$defs/Name/anyOf/0/properties")[1] == "/changes/Name/replace/with/anyOf/0/properties"
    assert composed.origin("/$defs/Name/anyOf/1") == "a-later, 1"
    on = {"$defs": {"Name": {"anyOf": [tagged("a")]}}}
    assert [code for code, _, _ in codes(fine(fragment(changes={"Name": change}), on=on))] == ["superseded"]


def test_gates_are_added_and_placed() -> None:
    composed = fine(fragment(defs={"HopRequest": {"x-method": "hop"}}, gates={"Init": {"hop": "caps.hop"}}))
    assert composed.facts.gates == {**GATES, "hop": Gate("Init", (("caps", "hop"),))}
    report = Report(locate=composed.locate)
    check_gates(composed.root, composed.facts.gates, report)
    (found,) = report.found
    assert (found.code, found.pointer, found.location and found.location.file) == (
        "gate-path",
        "/gates/Init/hop",
        "one.json",
    )


@pytest.mark.parametrize(
    "root",
    [{}, {"$defs": 3}, {"$defs": {"Caps": 1}}, {"$defs": {"Caps": {"properties": [], "anyOf": 3, "required": "x"}}}],
)
def test_malformed_schemas_are_left_to_the_stage_that_checks_them(root: dict[str, Any]) -> None:
    """Composing neither fails on them nor fixes them, which would hide them from that stage."""
    change = {"properties": {"a": {"default": {}}}, "required": ["a"], "members": [tagged("x"), True, {"allOf": 1}]}
    definitions = {"X": {"allOf": 4, "properties": 5, "default": {"a": {}}}}
    composed = put(fragment(defs=definitions, changes={"Caps": change, "X": change}), on=root)
    assert composed.root.get("$defs", {}) == 3 or composed.root["$defs"]["X"] == definitions["X"]
    if isinstance(root.get("$defs"), dict):
        assert composed.root["$defs"]["Caps"] == root["$defs"]["Caps"]


def fitted(extension: Fragment, *others: Fragment, on: dict[str, Any] = BASE) -> Fit:
    return fit(base(on), extension, protocol=1, facts=Facts(gates=GATES), others=others)


def test_a_fit_tells_what_a_fragment_would_add() -> None:
    found = fitted(
        fragment(
            defs={"HopRequest": {"x-method": "hop"}, "HopResponse": {"x-method": "hop"}, "Name": {"type": "string"}},
            changes={
                "Caps": {"properties": {"hop": {}}},
                "Init": {"properties": {"caps": {**BASE["$defs"]["Init"]["properties"]["caps"]}}},
            },
        )
    )
    assert (found.verdict, found.methods, found.definitions, found.changed) == (
        FitResult.APPLIES,
        ("hop",),
        ("HopRequest", "HopResponse"),
        {"Caps": ["hop"]},
    )
    assert len(found.reasons) == 2


def test_the_verdicts_of_a_fitted() -> None:
    assert fitted(fragment(defs={"Name": {"type": "string"}})).verdict is FitResult.SUPERSEDED
    conflict = fitted(fragment(defs={"Name": {"type": "null"}}, changes={"Known": {"members": [{}]}}))
    assert (conflict.verdict, len(conflict.reasons)) == (FitResult.CONFLICTS, 2)
    assert fitted(fragment(changes={"Known": {"members": [{}]}})).verdict is FitResult.LACKS
    needy = fragment("needy", requires=["one"], changes={"New": {"properties": {"x": {}}}})
    assert fitted(needy).verdict is FitResult.LACKS
    assert fitted(needy, fragment(defs={"New": {"type": "object"}}), fragment("two")).verdict is FitResult.APPLIES


@pytest.mark.parametrize(
    "content",
    [
        {"defs": {"New": {"type": "object", "properties": {"x": ref("Gone")}}}},
        {"changes": {"Caps": {"properties": {"x": ref("Gone")}}}},
        {"changes": {"Shape": {"members": [tagged("gone", "Gone")]}}},
        {"changes": {"Name": {"replace": {"expect": {"type": "string"}, "with": ref("Gone")}}}},
    ],
)
def test_a_fragment_that_refers_to_what_is_not_there_does_not_apply(content: dict[str, Any]) -> None:
    found = fitted(fragment(**content))
    assert (found.verdict, found.reasons) == (
        FitResult.LACKS,
        ("one, 1 refers to /$defs/Gone, which ACP v1, 0.3 does not have",),
    )
    has_it = fragment("two", defs={"Gone": {"type": "object"}})
    assert fitted(fragment(requires=["two"], **content), has_it).verdict is FitResult.APPLIES


def test_what_is_left_out_may_refer_to_anything() -> None:
    change = {"New": {"optional": True, "properties": {"x": ref("Gone")}}}
    assert fitted(fragment(changes=change, defs={"More": {}})).verdict is FitResult.APPLIES
