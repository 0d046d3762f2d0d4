"""The dialect of JSON Schema that acpgen reads: what it refuses, and what it reads past with a word."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.diagnostics import Diagnostic, Report, Severity
from acpgen.schema.dialect import MAX_LEVELS, check_dialect
from acpgen.schema.keywords import KEYWORDS, LENIENCY
from tests.published import FILES, published
from tests.support import schema_of


def findings(root: dict[str, Any]) -> tuple[Diagnostic, ...]:
    report = Report()
    check_dialect(root, report)
    return tuple(report.found)


def about(found: tuple[Diagnostic, ...]) -> list[tuple[str, str | None]]:
    return [(each.code, each.pointer) for each in found]


def test_a_schema_in_the_dialect_has_no_findings() -> None:
    thing = {
        "title": "Thing",
        "description": "A thing.",
        "type": ["object", "null"],
        "properties": {"a": {"$ref": "#/$defs/Other"}, "b": True, "c": {"const": None}, "type": {"type": "string"}},
        "required": ["a"],
        "not": {"required": ["b"]},
        "additionalProperties": False,
    }
    other = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1.5}, {"enum": ["a"]}, {"allOf": [True]}]}
    assert findings(schema_of(Thing=thing, Other=other)) == ()


@pytest.mark.parametrize("name", FILES)
def test_published_schemas_are_in_the_dialect(name: str) -> None:
    from acpgen.schema.document import read_document

    assert findings(read_document(published(name), label="x", origin="x").root) == ()


@pytest.mark.parametrize(
    "root", [{}, {"$defs": {}}, {"$defs": []}, {"$defs": None}, {"$defs": {"Thing": 1}}, {"properties": {}}]
)
def test_a_schema_without_definitions_is_none(root: dict[str, Any]) -> None:
    assert about(findings(root)) == [("no-definitions", "")]


_BAD_VALUES = {
    "$schema": 1,
    "$ref": ["#/$defs/Thing"],
    "title": None,
    "description": ["text"],
    "type": "objekt",
    "properties": ["a"],
    "required": "a",
    "items": [{"type": "string"}],
    "anyOf": [],
    "oneOf": {"type": "string"},
    "allOf": [1],
    "not": "never",
    "enum": [],
    "format": True,
    "minimum": "1",
    "maximum": True,
    "minItems": -1,
    "minLength": 1.5,
    "pattern": 3,
    "contentEncoding": {},
    "additionalProperties": None,
    "unevaluatedProperties": 0,
    "x-method": None,
    "x-side": ["agent"],
    "x-docs-ignore": "yes",
    **dict.fromkeys(LENIENCY, "true"),
}


@pytest.mark.parametrize("keyword", sorted(_BAD_VALUES))
def test_a_keyword_with_a_value_of_another_kind_is_an_error(keyword: str) -> None:
    found = findings(schema_of(Thing={keyword: _BAD_VALUES[keyword]}))
    assert ("bad-schema", f"/$defs/Thing/{keyword}") in about(found)
    assert any(f"`{keyword}` takes " in each.message and each.severity is Severity.ERROR for each in found)


def test_every_keyword_with_a_wrong_value_is_tried() -> None:
    takes_anything = {keyword for keyword, (_, legal) in KEYWORDS.items() if legal == "any value"}
    assert _BAD_VALUES.keys() == KEYWORDS.keys() - takes_anything - {"$defs"}


@pytest.mark.parametrize("types", ["integer", ["integer"], ["string", "null"]])
def test_types_may_be_listed(types: Any) -> None:
    assert findings(schema_of(Thing={"type": types})) == ()


@pytest.mark.parametrize("types", [[], [1], ["string", "text"], {"string": True}, None, 1])
def test_types_that_json_schema_does_not_know_are_errors(types: Any) -> None:
    assert ("bad-schema", "/$defs/Thing/type") in about(findings(schema_of(Thing={"type": types})))


def test_a_schema_is_an_object_or_a_boolean() -> None:
    found = findings(schema_of(Thing={"properties": {"a": {"items": 3}}}))
    assert ("bad-schema", "/$defs/Thing/properties/a/items") in about(found)


def test_all_is_found_at_once() -> None:
    found = findings(schema_of(A={"type": "x"}, B={"$ref": "#/$defs/C"}, D={"x-new": 1}))
    assert [each.code for each in found] == ["bad-schema", "ref-not-found", "unknown-x-keyword"]


# --- What is read past -----------------------------------------------------------------------------------------------


def test_an_unknown_x_keyword_is_a_warning_at_its_place() -> None:
    (found,) = findings(schema_of(Thing={"properties": {"a": {"x-encrypt": True}}}))
    assert (found.code, found.severity) == ("unknown-x-keyword", Severity.WARNING)
    assert found.pointer == "/$defs/Thing/properties/a/x-encrypt"
    assert "`x-encrypt`" in found.message
    assert found.hint


@pytest.mark.parametrize(
    "keyword", ["patternProperties", "prefixItems", "if", "maxLength", "maxItems", "dependentRequired"]
)
def test_a_keyword_without_effect_is_a_warning(keyword: str) -> None:
    (found,) = findings(schema_of(Thing={keyword: {}}))
    assert (found.code, found.severity) == ("unsupported-keyword", Severity.WARNING)
    assert f"`{keyword}`" in found.message


@pytest.mark.parametrize(
    ("keyword", "code", "near"),
    [
        ("minItmes", "unknown-keyword", "minItems"),
        ("x-methd", "unknown-x-keyword", "x-method"),
        ("wibble", "unknown-keyword", None),
        ("x-wibble", "unknown-x-keyword", None),
    ],
)
def test_an_unknown_keyword_has_the_nearest_one_for_a_hint(keyword: str, code: str, near: str | None) -> None:
    (found,) = findings(schema_of(Thing={keyword: {}}))
    assert (found.code, found.severity) == (code, Severity.WARNING)
    assert found.hint == f"did you mean {near!r}?" if near else "newer acpgen" in str(found.hint)


@pytest.mark.parametrize("keyword", ["$comment", "$id", "deprecated", "examples", "readOnly", "writeOnly"])
def test_annotations_need_no_word(keyword: str) -> None:
    assert findings(schema_of(Thing={keyword: True})) == ()


def test_properties_are_not_taken_for_keywords() -> None:
    properties = {name: {"type": "string"} for name in ("x-odd", "patternProperties", "$ref", "type", "enum", "items")}
    assert findings(schema_of(Thing={"properties": properties})) == ()


def test_examples_and_defaults_are_not_taken_for_schemas() -> None:
    thing = {"default": {"$ref": "#/$defs/Gone", "type": 3}, "examples": [{"x-odd": 1}], "const": {"type": 1}}
    assert findings(schema_of(Thing=thing)) == ()


# --- References ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "https://example.org/x.json",
        "other.json#/$defs/Thing",
        "#",
        "#Elsewhere",
        "#/definitions/Elsewhere",
        "",
        "file:///etc/passwd",
    ],
)
def test_a_reference_stays_within_the_definitions(target: str) -> None:
    (found,) = findings(schema_of(Thing={"properties": {"a": {"$ref": target}}}))
    assert (found.code, found.pointer) == ("remote-ref", "/$defs/Thing/properties/a/$ref")
    assert repr(target) in found.message
    assert "fetches nothing" in str(found.hint)


@pytest.mark.parametrize(
    "target",
    ["#/defs/SessionId", "#/definitions/SessionId", "#/$def/sessionId", "#SessionId", "SessionId", "sessionId"],
)
def test_a_reference_that_is_written_wrongly_has_the_right_one_for_a_hint(target: str) -> None:
    (found,) = findings(schema_of(SessionId={}, Thing={"properties": {"a": {"$ref": target}}}))
    assert found.hint == "did you mean '#/$defs/SessionId'?"


def test_a_reference_into_a_definition_is_refused() -> None:
    (found,) = findings(
        schema_of(Thing={"properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/Thing/properties/a"}}})
    )
    assert found.severity is Severity.ERROR
    assert found.pointer == "/$defs/Thing/properties/b/$ref"


def test_a_reference_to_nowhere_has_the_nearest_name_for_a_hint() -> None:
    near, far = findings(schema_of(SessionId={}, A={"$ref": "#/$defs/SesionId"}, B={"$ref": "#/$defs/Xyz"}))
    assert (near.code, near.hint) == ("ref-not-found", "did you mean 'SessionId'?")
    assert (far.code, far.hint) == ("ref-not-found", None)


def test_names_in_references_are_escaped_as_pointers() -> None:
    assert findings(schema_of(**{"a/b~c": {"type": "string"}, "Thing": {"$ref": "#/$defs/a~1b~0c"}})) == ()


@pytest.mark.parametrize(
    ("definitions", "circle"),
    [
        ({"A": {"$ref": "#/$defs/A"}}, "A → A"),
        ({"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"$ref": "#/$defs/A"}}, "A → B → A"),
        ({"X": {"$ref": "#/$defs/A"}, "A": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}}, "A → A"),
        (
            {
                "A": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/B"}}, {"$ref": "#/$defs/C"}]},
                "B": {"$ref": "#/$defs/A"},
                "C": {"$ref": "#/$defs/B"},
            },
            "A → C → B → A",
        ),
    ],
)
def test_a_definition_that_contains_itself_is_refused(definitions: dict[str, Any], circle: str) -> None:
    (found,) = findings(schema_of(**definitions))
    assert found.code == "ref-cycle"
    assert found.message.endswith(circle)
    assert found.hint


@pytest.mark.parametrize(
    "node",
    [
        {"type": "array", "items": {"$ref": "#/$defs/A"}},
        {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}},
        {"additionalProperties": {"oneOf": [{"$ref": "#/$defs/A"}]}},
        {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/B"}}]},
    ],
)
def test_a_definition_may_contain_itself_in_an_array_or_a_map(node: dict[str, Any]) -> None:
    assert findings(schema_of(A=node, B={"$ref": "#/$defs/A"})) == ()


def test_a_chain_of_arrays_is_bounded() -> None:
    links = {f"A{at}": {"type": "array", "items": {"$ref": f"#/$defs/A{(at + 1) % 150}"}} for at in range(150)}
    assert {found.code for found in findings(schema_of(**links))} == {"too-deep"}


def test_a_definition_may_contain_itself_through_a_property() -> None:
    tree = {"type": "object", "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    twig = {"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/Twig"}}}]}
    barred = {"not": {"$ref": "#/$defs/Barred"}}
    assert findings(schema_of(Tree=tree, Twig=twig, Barred=barred)) == ()


def test_every_circle_is_named_once() -> None:
    chain = {f"A{number}": {"$ref": f"#/$defs/A{number + 1}"} for number in range(20)}
    found = findings(schema_of(**chain, A20={"$ref": "#/$defs/A19"}, B={"$ref": "#/$defs/B"}))
    assert [each.message.partition(": ")[2] for each in found] == ["A19 → A20 → A19", "B → B"]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("length", "codes"), [(MAX_LEVELS // 2, []), (MAX_LEVELS * 100, ["too-deep"])])
def test_chains_of_references_are_bounded(length: int, codes: list[str], *, backwards: bool) -> None:
    chain: dict[str, Any] = {f"A{number}": {"$ref": f"#/$defs/A{number + 1}"} for number in range(length)}
    chain[f"A{length}"] = {"type": "string"}
    found = findings(schema_of(**dict(reversed(chain.items())) if backwards else chain))
    assert [each.code for each in found][:1] == codes
    assert all(each.severity is Severity.ERROR for each in found)


@pytest.mark.parametrize(("length", "levels", "codes"), [(4, 24, []), (5, 24, ["too-deep"]), (45, 20, ["too-deep"])])
def test_unions_count_in_chains_of_references(length: int, levels: int, codes: list[str]) -> None:
    chain: dict[str, Any] = {f"A{length}": {"type": "string"}}
    for number in range(length):
        node: dict[str, Any] = {"$ref": f"#/$defs/A{number + 1}"}
        for _ in range(levels):
            node = {"oneOf": [node]}
        chain[f"A{number}"] = node
    found = findings(schema_of(**chain))
    assert [each.code for each in found] == codes
    assert all(each.hint and (each.pointer or "").startswith("/$defs/A") for each in found)
