"""Gates of values: their notation and checks, the bundled facts, and that no text about a capability lacks a fact."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError, Report, Severity
from acpgen.ir import model as ir
from acpgen.ir.relations import without_null
from acpgen.schema.bundled import Release, list_releases
from acpgen.schema.compose import Composed, compose
from acpgen.schema.data import data_folder
from acpgen.schema.document import join, parse_document, resolve, split
from acpgen.schema.facts import Facts
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.schema.gates import read_gates
from acpgen.schema.value_gates import GatedPart, check_value_gates, read_gated_part, tag_property
from acpgen.schema.walk import methods_of, own_references
from tests.command_line import run_acpgen
from tests.published import published
from tests.support import errors_of, fitting_fragments, model_of

Json = Any

ROOT: dict[str, Any] = {
    "$defs": {
        "Init": {"type": "object", "properties": {"wave": {"type": "boolean"}, "size": {"type": "integer"}}},
        "Shape": {
            "oneOf": [
                {"properties": {"type": {"type": "string", "const": "circle"}}, "allOf": [{"$ref": "#/$defs/Circle"}]},
                {"$ref": "#/$defs/Square"},
                {"title": "other", "properties": {"type": {"type": "string"}}},
            ]
        },
        "Square": {"type": "object", "properties": {"type": {"type": "string", "const": "square"}}},
        "Circle": {"type": "object", "properties": {"shade": {"$ref": "#/$defs/Shade"}}},
        "Shade": {"anyOf": [{"type": "string", "const": "dark"}, {"type": "string"}]},
        "Old": {"type": "string", "enum": ["a", "b"]},
        "Picture": {
            "type": "object",
            "properties": {
                "shapes": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Shape"}}, {"type": "null"}]},
                "circle": {"$ref": "#/$defs/Circle"},
            },
        },
        "Loop": {"type": "array", "items": {"$ref": "#/$defs/Loop"}},
    }
}


def problems(*parts: str, needs: str = "wave", root: str = "Init") -> list[tuple[str, str, str | None]]:
    report = Report()
    gates = read_gates({root: {part: {"needs": needs} for part in parts}}, section="values")
    check_value_gates(ROOT, gates, report)
    return [(found.code, found.message.partition(" fails: ")[2], found.hint) for found in report.found]


def test_the_notation_is_read_and_written() -> None:
    part = GatedPart(definition="Picture", properties=("circle", "shade"), value="a.b=c")
    assert read_gated_part("Picture.circle.shade=a.b=c") == part
    assert str(part) == "'a.b=c' in Picture.circle.shade"
    assert str(read_gated_part("Picture.circle")) == "Picture.circle"


@pytest.mark.parametrize(
    ("part", "tag"),
    [
        ("Shape=circle", "type"),
        ("Shape=square", "type"),
        ("Picture.shapes=square", "type"),
        ("Shade=dark", None),
        ("Picture.circle.shade=dark", None),
        ("Picture.shapes", None),
        ("Circle.shade", None),
        ("Old=b", None),
    ],
)
def test_a_value_is_a_property_a_member_of_a_union_or_a_constant(part: str, tag: str | None) -> None:
    assert problems(part) == []
    assert tag_property(read_gated_part(part), ROOT["$defs"]) == tag


def test_a_value_that_is_not_there_is_an_error_with_what_is() -> None:
    place = "/$defs/Picture"
    assert problems("Shpe=circle") == [
        ("gate-value", "the schema has no definition 'Shpe'", "did you mean 'Shape'?"),
    ]
    assert problems("Picture.shape=circle") == [
        ("gate-value", f"{place} has no property 'shape'", "did you mean 'shapes'?"),
    ]
    assert problems("Picture.zzz") == [
        ("gate-value", f"{place} has no property 'zzz'", "there are: circle, shapes"),
    ]
    assert problems("Shape=zzz") == [
        ("gate-value", "/$defs/Shape has no member or constant 'zzz'", "there are: circle, square"),
    ]
    assert [code for code, _, _ in problems("Loop=a", "Loop.b")] == ["gate-value"] * 2


def test_its_capability_is_checked_as_that_of_a_method() -> None:
    assert [code for code, _, _ in problems("Shape=circle", needs="wav")] == ["gate-path"]
    assert [code for code, _, _ in problems("Shape=circle", needs="size")] == ["gate-leaf"]
    assert [code for code, _, _ in problems("Shape=circle", root="Nothing")] == ["gate-root"]


# --- In extensions ---------------------------------------------------------------------------------------------------


def fragment(values: Json, name: str = "one", **content: Json) -> Fragment:
    head = {"fragment": 1, "id": name, "revision": "1", "title": name, "status": "vendor", "protocols": [1]}
    text = json.dumps({**head, **content, "values": values}, indent=1).encode()
    return load_fragment(parse_document(text, label=f"{name}.json", origin=""))


def composed(*fragments: Fragment, values: Json = None) -> Composed:
    base = parse_document(json.dumps(ROOT).encode(), label="base.json", origin="base")
    return compose(base, fragments, protocol=1, facts=Facts(values=read_gates(values or {})))


CIRCLE = {"Init": {"Shape=circle": {"needs": "wave", "source": "/$defs/Shape"}}}


def test_gates_of_values_compose_as_those_of_methods() -> None:
    added = composed(fragment(CIRCLE))
    assert {text: str(gate) for text, gate in added.facts.values.items()} == {"Shape=circle": "wave of Init"}
    assert added.facts.values["Shape=circle"].source == "/$defs/Shape"
    assert [each.code for each in composed(fragment(CIRCLE), values=CIRCLE).diagnostics] == ["superseded"]
    other = fragment({"Init": {"Shape=circle": {"needs": ["wave", "size"]}}})
    (conflict,) = errors_of(composed(other, values=CIRCLE))
    assert conflict.pointer == "/values/Init/Shape=circle"
    assert "the gate of the value Shape=circle: size or wave of Init against wave of Init" in conflict.message


@pytest.mark.parametrize("missing", [{"Shape=star": {"needs": "wave"}}, {"Shape=circle": {"needs": "bow"}}])
def test_an_optional_gate_is_left_out_where_the_schema_lacks_what_it_names(missing: Json) -> None:
    optional = {text: {**gate, "optional": True} for text, gate in missing.items()}
    assert composed(fragment({"Init": optional})).facts.values == {}
    assert composed(fragment({"Init": missing})).facts.values.keys() == missing.keys()


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"R": {"Shape": {"needs": "a"}}}, "/values/R"),
        ({"R": {"=a": {"needs": "a"}}}, "/values/R"),
        ({"R": {"Shape=a": "a"}}, "/values/R/Shape=a"),
        ({"R": {"Shape=a": {}}}, "/values/R/Shape=a"),
        ({"R": {"Shape=a": {"needs": "a..b"}}}, "/values/R/Shape=a/needs"),
        ({"R": {"Shape=a": {"needs": "a", "of": "b"}}}, "/values/R/Shape=a/of"),
        ({"R": {"Shape=a": {"needs": "a"}}, "S": {"Shape=a": {"needs": "a"}}}, "/values/S/Shape=a"),
    ],
)
def test_the_format_of_extensions_is_checked(values: Json, pointer: str) -> None:
    with pytest.raises(InputError) as caught:
        fragment(values)
    assert [found.pointer for found in caught.value.diagnostics] == [pointer]


def test_a_mistake_is_reported_at_its_line(tmp_path: Path) -> None:
    head = {"fragment": 1, "id": "one", "revision": "1", "title": "One", "status": "vendor", "protocols": [1]}
    values = {"InitializeRequest": {"SessionUpdate=notise": {"needs": "clientCapabilities.session"}}}
    (tmp_path / "one.json").write_text(json.dumps({**head, "values": values}, indent=2), encoding="utf-8")
    ran = run_acpgen("build", "--extension", "./one.json", "--out", "acp", cwd=tmp_path)
    assert ran.code == 2
    assert ran.stderr.startswith("./one.json:12:")
    assert "error: the gate of the value 'SessionUpdate=notise' fails" in ran.stderr
    assert "hint: did you mean 'notice'?" in ran.stderr


def test_a_definition_that_has_no_type_is_a_warning(tmp_path: Path) -> None:
    head = {"fragment": 1, "id": "one", "revision": "1", "title": "One", "status": "vendor", "protocols": [1]}
    values = {"InitializeRequest": {"ClientRequest.method": {"needs": "clientCapabilities.session"}}}
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**head, "values": values}), encoding="utf-8")
    model, diagnostics = model_of(SchemaChoice(extensions=(str(path),)))
    (found,) = [found for found in diagnostics if found.severity is Severity.WARNING]
    assert (found.code, found.pointer) == ("gate-value", "/values/InitializeRequest/ClientRequest.method")
    assert found.location is not None
    assert found.location.file == str(path)
    assert "ClientRequest" not in {each.definition for each in model.gated_values}


# --- What is bundled -------------------------------------------------------------------------------------------------

FACTS = sorted(data_folder().glob("schema/v*/*/facts.json"))
EXTENSIONS = sorted(data_folder().glob("schema/extensions/v*/*.json"))
SPEAKS = re.compile(
    r"capabilit|advertis|\bdeclare|\bonly (?:if|for|where|to)\b|\benabled?\b|\bsupport|\bopt-in\b|as far as", re.I
)
"""What a description may say that speaks of a capability."""

UNGATED = {
    "it says what `initialize` is for": (
        "Opens the connection",
        "What a client sends in `initialize`",
        "Optional features the client offers.",
        "Protocol version number",
        "Version to speak from here on",
        "Newest version the agent supports",
        "The agent supports no protocol version",
    ),
    "the members of the union that it speaks of have facts": ("Content of the message", "The message, as content"),
    "the capability is that of one tool call or terminal, or of one session, not of a peer": (
        "Cancels a single tool call",
        "Stops the process of a single terminal",
        "Names the one tool call to cancel",
        "Names the one terminal to cancel",
        "Params of `session/set_model`",
    ),
    "no capability is named for states that nobody knows yet": ("A state this version does not know",),
    "it says that no capability is needed": ("Live message for the user that stays out",),
    "it says what must be there with the capability, not that it must not without": ("Whether the session is in the",),
    "it is about what is listed in another message": (
        "API to use with it",
        "Identifies one of the authentication methods",
        "Sets one configuration option.",
    ),
    "it speaks of something else": (
        "Describes the form to show",
        "Id copied from the request",
        "Lets a client end the authenticated state",
    ),
}
"""The beginnings of descriptions that speak of a capability, and gate nothing, by the reason."""

UNUSED = {
    "it chooses one of several forms of what it opens": (
        "nes.context.editHistory.maxCount",
        "nes.context.recentFiles.maxCount",
        "nes.context.userActions.maxCount",
        "nes.events.document.didChange.syncKind",
        "positionEncoding",
        "positionEncodings",
    ),
    "it holds others, and has none yet": ("auth", "sessionCapabilities"),
}
"""The capabilities that open neither a method nor a value, below the root of all, by the reason."""


def described(node: Json, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """All that has a description, with its pointer."""
    if isinstance(node, dict) and isinstance(node.get("description"), str):
        yield pointer, node
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from described(child, join(pointer, key))


def facts_about(path: Path) -> Json:
    """The object with the facts about a schema or an extension."""
    return json.loads((path.with_name("facts.json") if path.name == "schema.json" else path).read_text("utf-8"))


def gated(facts: Json, section: str) -> dict[str, Json]:
    return {text: gate for each in facts.get(section, {}).values() for text, gate in each.items()}


def is_settled(pointer: str, node: Json, *, sources: set[str], methods: dict[str, str], gates: dict[str, Json]) -> bool:
    """Whether a description has a fact, of a value or of the method it is about. Capabilities have another test."""
    place = split(pointer)
    owner = place[1] if len(place) > 1 and place[0] in ("$defs", "changes") else ""
    is_method = len(place) == 2 and methods.get(owner) in gates
    return (
        node["description"] in sources
        or "Capabilit" in owner
        or is_method
        or any(methods.get(name) in gates for name in own_references(node))
    )


def unsettled(path: Path, *, without: str = "") -> list[str]:
    """The descriptions in a file that speak of a capability, and have no fact; `without` the facts of a section."""
    root, facts = json.loads(path.read_text("utf-8")), {**facts_about(path), without: {}}
    places = [gate["source"] for gate in gated(facts, "values").values()]
    sources = {resolve(root, each)["description"] for each in places if each.startswith("/")}
    methods, gates = dict(methods_of(root.get("$defs", {}))), gated(facts, "gates")
    return [
        node["description"]
        for pointer, node in described(root)
        if SPEAKS.search(node["description"])
        and not is_settled(pointer, node, sources=sources, methods=methods, gates=gates)
    ]


SCHEMAS = [*(path.with_name("schema.json") for path in FACTS), *EXTENSIONS]
BEGINNINGS = tuple(text for texts in UNGATED.values() for text in texts)


def named(path: Path) -> str:
    return "/".join(path.parts[path.parts.index("schema") + 1 :])


@pytest.mark.parametrize("path", SCHEMAS, ids=named)
def test_each_description_that_speaks_of_a_capability_has_a_fact_or_a_reason(path: Path) -> None:
    assert [text for text in unsettled(path) if not text.startswith(BEGINNINGS)] == []


@pytest.mark.parametrize("section", ["values", "gates"])
def test_a_fact_that_is_forgotten_is_named(section: str) -> None:
    (path,) = [each for each in SCHEMAS if named(each) == "v1/2026-11-02/schema.json"]
    forgotten = {text for text in unsettled(path, without=section) if not text.startswith(BEGINNINGS)}
    told = {"values": "Live message for the user. It stays", "gates": "Params of `session/close`; send only if"}
    assert [section for section, text in told.items() if any(each.startswith(text) for each in forgotten)] == [section]


def test_each_reason_is_still_needed() -> None:
    texts = [text for path in SCHEMAS for text in unsettled(path)]
    assert [each for each in BEGINNINGS if not any(text.startswith(each) for text in texts)] == []


@pytest.mark.parametrize("path", SCHEMAS, ids=named)
def test_each_fact_has_its_source(path: Path) -> None:
    """A pointer leads to a description in the same file that speaks of a capability; the rest are pages."""
    root = json.loads(path.read_text("utf-8"))
    for text, gate in gated(facts_about(path), "values").items():
        source = gate["source"]
        if source.startswith("/"):
            said = resolve(root, source)["description"]
            assert SPEAKS.search(said) or "`{}`" in said, text
        else:
            assert source.startswith("https://agentclientprotocol.com/protocol/v"), text


@pytest.mark.parametrize("path", FACTS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_bundled_facts_hold_in_the_published_schema(path: Path) -> None:
    facts = json.loads(path.read_text("utf-8"))
    root = json.loads(published(f"v{facts['protocol']}/{facts['release']}/schema.json").read_text("utf-8"))
    report = Report()
    check_value_gates(root, read_gates(facts["values"]), report)
    assert report.found == []


def ways(model: ir.Model, expression: ir.TypeExpr, start: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The way to each capability of a type, at any depth."""
    yield start
    struct = model.definition(without_null(expression, model))
    for field in struct.fields if isinstance(struct, ir.Struct) else ():
        if field.wire != "_meta":
            yield from ways(model, field.type, (*start, field.wire))


CAPABILITIES = ("agentCapabilities", "clientCapabilities", "capabilities")
REASONS = {text for texts in UNUSED.values() for text in texts}


def unused(model: ir.Model) -> set[str]:
    """The capabilities that open no method and no value, themselves or one below them."""
    gates = [each.gate for each in (*model.methods, *model.gated_values) if each.gate is not None]
    used = {(gate.root, path[:end]) for gate in gates for path in gate.paths for end in range(len(path) + 1)}
    return {
        ".".join(way[1:])
        for root in ("InitializeRequest", "InitializeResponse")
        for field in model.struct(root).fields
        if field.wire in CAPABILITIES
        for way in ways(model, field.type, (field.wire,))
        if (root, way) not in used
    }


def choice(release: Release, *, extended: bool) -> SchemaChoice:
    """A release, alone or with each extension that fits it."""
    extensions = fitting_fragments(release) if extended else ()
    return SchemaChoice(protocol=release.protocol, release=release.name, extensions=extensions)


def test_each_capability_opens_something_or_it_is_known_why_not() -> None:
    choices = [choice(release, extended=extended) for release in list_releases() for extended in (False, True)]
    assert {path for each in choices for path in unused(model_of(each)[0])} == REASONS
