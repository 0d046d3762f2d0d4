"""Texts of RFDs: where code is found, what is taken from JSON, messages, diagrams and metadata, and what is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acpgen.diagnostics import InputError, Report, Severity
from acpgen.rfd import parse_source
from acpgen.rfd.blocks import Block, Language, Source, find_blocks, parse_markdown, read_metadata
from acpgen.rfd.entries import method_of
from acpgen.schema.fragment import find_marks
from tests.rfd_support import base, extraction, findings_of

TS = "```ts\ninterface Thing { a: string }\n```\n"
"""Something to find, so that a text is not without it."""


def source(text: str, name: str = "text.txt") -> Source:
    return parse_source(text.encode(), label=name, name=name)


def blocks(text: str, name: str = "text.txt") -> list[tuple[Language, int, int]]:
    """The kind and the lines of each block."""
    return [(each.kind, each.first, each.last) for each in found_blocks(text, name)]


def found_blocks(text: str, name: str = "text.txt") -> list[Block]:
    found = source(text, name)
    return find_blocks(found, parse_markdown(found), Report())


def stray(text: str, name: str = "text.txt") -> list[int]:
    found, report = source(text, name), Report()
    find_blocks(found, parse_markdown(found), report)
    return [each.location.line for each in report.found if each.code == "rfd-stray-code" and each.location]


def draft(text: str, name: str = "text.md", **arguments: Any) -> dict[str, Any]:
    return extraction(text, name, **arguments).draft


def warnings_of(text: str, code: str) -> list[tuple[int, int, str]]:
    """The place and the message of the warnings of one code."""
    found = [each for each in extraction(text).diagnostics if each.code == code and each.severity is Severity.WARNING]
    return [(each.location.line, each.location.column, each.message) for each in found if each.location]


def message(**members: Any) -> str:
    return "```json\n" + json.dumps({"jsonrpc": "2.0", **members}) + "\n```\n"


# --- Blocks ----------------------------------------------------------------------------------------------------------


def test_fences_are_found_wherever_markdown_has_them() -> None:
    text = "\n".join(
        [
            "# Title",
            "1. One:",
            "   ````ts {1} title=x",
            "   interface A {}",
            "   ````",
            "   > ~~~json",
            "   > {}",
            "   > ~~~",
            "<Tabs>",
            "```jsonc",
            "{}",
            "```",
            "</Tabs>",
            "```",
            "type A = string",
        ]
    )
    kinds = [(Language.TYPESCRIPT, 4, 4), (Language.JSON, 7, 7), (Language.JSON, 11, 11), (Language.TYPESCRIPT, 15, 15)]
    assert blocks(text, "a.md") == kinds
    first = found_blocks(text, "a.md")[0]
    assert first.offsets == (3,)


def test_tags_around_a_fence_do_not_swallow_it() -> None:
    assert blocks("<Tabs>\n```rust\nx\n```\n</Tabs>\n", "a.md") == [(Language.OTHER, 3, 3)]


def test_an_example_of_a_fence_is_no_fence() -> None:
    text = "````md\n```json\n{}\n```\n````\n"
    assert blocks(text, "a.md") == [(Language.OTHER, 2, 4)]


def test_code_without_fences_goes_from_its_first_to_its_last_bracket() -> None:
    text = "\n".join(
        [
            "Prose (with brackets).",  # 1
            "interface A {",
            "  // a } in a comment, and don't stop",
            '  a: "}"; /* { */',
            "}",  # 5
            "export type B =",
            '  | "x"',
            '  | "y";',
            "type C = string",
            "type of thing = prose",  # 10
            "{",
            '  "a": [1, {"b": "}"}] // {',
            "}",
            '{"b": false}',
        ]
    )
    typescript = [(Language.TYPESCRIPT, 2, 5), (Language.TYPESCRIPT, 6, 8), (Language.TYPESCRIPT, 9, 9)]
    assert blocks(text) == [*typescript, (Language.JSON, 11, 13), (Language.JSON, 14, 14)]
    assert stray(text) == []


def test_code_without_fences_is_found_beside_fences_too() -> None:
    assert blocks(f"{TS}\ninterface B {{\n}}\n", "a.md") == [(Language.TYPESCRIPT, 2, 2), (Language.TYPESCRIPT, 5, 6)]


@pytest.mark.parametrize(
    "line",
    ["}", "]},", "interface A {", "{", '{ "a": [ }', "type A = {", "  {"],
)
def test_lines_that_start_or_end_code_are_listed(line: str) -> None:
    assert stray(f"prose\n{line}\nprose") == [2]


@pytest.mark.parametrize(
    "line", ["Note: this is prose.", "a: b;", "(see above)", "- one", "[link](x)", "the { brace", "> quote"]
)
def test_prose_is_not_listed(line: str) -> None:
    assert stray(f"prose\n{line}\nprose") == []


def test_lines_end_in_every_way() -> None:
    assert findings_of("# A\r\rx\r\n```ts\r\ninterface A { a: B }\r\n```") == [("rfd-type", 5, 18)] + [
        (code, line, column) for code, line, column in findings_of("# A\n\nx\n```ts\ninterface A { a: B }\n```")[1:]
    ]


def test_a_block_that_is_not_read_is_listed() -> None:
    found = extraction(f"{TS}```py\nx = 1\n```\n```\nplain\n```\n```diff\n+ fn a() {{}}\n```\n")
    assert [(each.severity, each.message) for each in found.diagnostics if each.code == "rfd-block"] == [
        (Severity.NOTE, "the block of py in line 5 is not read"),
        (Severity.WARNING, "the block in line 8 is not read"),
        (Severity.WARNING, "the block of diff in line 11 is not read"),
    ]


# --- JSON ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ('{\n  "a": ...\n}', 3, 8),
        ('{\n  "a": 1,\n  "a": 2\n}', 2, 1),
        ('{ "a": NaN }', 2, 1),
        ('{ "a": "\\ud800" }', 2, 1),
        ('{ "a": 1 } trailing', 2, 12),
        ("'a'", 2, 1),
        ("[" * 200 + "]" * 200, 2, 1),
        ("[" * 100_000, 2, 1),
        ('{ "a": ' + "9" * 5_000 + " }", 2, 1),
    ],
)
def test_what_is_not_json_is_listed_by_place(code: str, line: int, column: int) -> None:
    found = findings_of(f"```json\n{code}\n```\n{TS}")
    assert [each for each in found if each[0] in ("rfd-bad-json", "rfd-value")][:1] in (
        [("rfd-bad-json", line, column)],
        [("rfd-value", line, column)],  # an array, however deep
    )


def test_comments_and_several_values_in_one_block_are_read() -> None:
    text = """```json
// "a": {
{ "$defs": { "Thing": /* x */ { "type": "string", "description": "// no comment" } } } // b

{ "$defs": { "Other": { "type": "null" } } }
```"""
    assert draft(text)["$defs"] == {
        "Thing": {"description": "// no comment", "type": "string"},
        "Other": {"type": "null"},
    }


def test_definitions_are_read_from_defs() -> None:
    text = """
```json
{ "$schema": "x", "$defs": { "A": { "type": "string" }, "C": true }, "more": 1 }
```
```json
{ "$defs": { "D": { "type": ["null", "object"], "properties": {} } } }
```
"""
    found = extraction(text)
    assert sorted(found.draft["$defs"]) == ["A", "C", "D"]
    assert found.draft["$defs"]["D"]["type"] == ["object", "null"]
    messages = {(each.location.line, each.message) for each in found.diagnostics if each.location}
    assert (3, "`more` next to `$defs` is not read") in messages


SCHEMA = '{"type": "object", "properties": {"a": {"type": "string"}}}'


@pytest.mark.parametrize(
    ("code", "place"),
    [
        (SCHEMA, (2, 1)),
        (f'{{"NewThing": {SCHEMA}}}', (2, 1)),
        (f'{{"components": [{{"Old": 1}},\n{{"NewThing": {SCHEMA}}}]}}', (2, 1)),
        ('{"type": "string", "enum": ["a", "b"]}', (2, 1)),
        (f"3,\n[{SCHEMA}]".replace(",", "", 1), (3, 1)),
    ],
)
def test_a_schema_without_defs_is_a_warning(code: str, place: tuple[int, int]) -> None:
    said, *_ = warnings_of(f"```json\n{code}\n```\n{TS}", "rfd-value")
    assert said == (*place, "this value adds nothing to the draft, but looks like a schema without a name")


@pytest.mark.parametrize(
    "code",
    [
        '{"type": "text", "text": "Hello"}',
        '{"jsonCode": {"type": "image", "uri": "x"}, "n": [1, {"type": ["a"]}]}',
        "[1, 2]",
        "3",
        '{"a": {"properties": "many"}}',
    ],
)
def test_a_value_without_schemas_is_a_note(code: str) -> None:
    text = f"```json\n{code}\n```\n{TS}"
    assert warnings_of(text, "rfd-value") == []
    assert "rfd-value" in {each.code for each in extraction(text).diagnostics}


def test_json_schema_wins_over_typescript_and_what_disagrees_is_listed() -> None:
    text = """
```ts
interface Same { a?: string }
interface Other { a: string; b?: string }
```
```json
{ "$defs": {
  "Same": { "type": "object", "properties": { "a": { "type": "string" } } },
  "Other": { "type": "object", "properties": { "a": { "type": "string" }, "c": {} } } } }
```
"""
    found = extraction(text)
    assert found.draft["$defs"]["Same"]["properties"] == {"a": {"type": "string"}}
    (twice,) = (each for each in found.diagnostics if each.code == "rfd-twice")
    assert twice.message == "Other is already stated in line 9, with other properties"
    assert twice.location
    assert (twice.location.line, twice.location.column) == (4, 1)


def test_what_the_schema_has_already_becomes_a_change_of_it() -> None:
    text = """
```json
{ "$defs": { "Implementation": { "type": "object", "required": ["name", "version", "year"], "properties": {
  "_meta": {}, "name": {}, "version": {}, "title": {}, "year": { "type": "integer" } } } } }
```
```ts
interface EnvVariable { _meta?: object; name: string; value: string; secret?: boolean | null }
interface HttpHeader {
  ...
  name: string
}
```
"""
    found = extraction(text)
    assert found.draft["changes"] == {
        "Implementation": {"properties": {"year": {"type": "integer"}}, "required": ["year"]},
        "EnvVariable": {"properties": {"secret": {"type": ["boolean", "null"]}}},
    }
    assert "HttpHeader is the same in ACP v1, 0.10.8" in {each.message for each in found.diagnostics}


@pytest.mark.parametrize(
    "block",
    [
        "```ts\ninterface EnvVariable { _meta?: object; name: string; value: number }\n```\n",
        '```json\n{"$defs": {"EnvVariable":\n'
        '{"properties": {"_meta": {}, "name": {}, "value": {"type": "number"}}}}}\n```\n',
    ],
)
def test_the_same_properties_with_other_types_are_another_definition(block: str) -> None:
    found = extraction(block)
    assert found.draft["$defs"]["EnvVariable"]["properties"]["value"] == {"type": "number"}
    assert "rfd-name-taken" in {each.code for each in found.diagnostics}


def test_the_first_of_two_changes_counts() -> None:
    code = "interface AgentCapabilities {{\n  // ...\n  {}\n}}"
    text = "\n".join(f"```ts\n{code.format(each)}\n```\n" for each in ("a?: boolean", "b?: boolean"))
    found = extraction(text)
    assert list(found.draft["changes"]["AgentCapabilities"]["properties"]) == ["a"]
    assert warnings_of(text, "rfd-twice") == [
        (9, 1, "AgentCapabilities is already stated in line 2, with other properties")
    ]


def test_a_name_that_the_schema_has_for_something_else_is_reported() -> None:
    text = '```json\n{ "$defs": { "Plan": { "type": "object", "properties": { "x": {} } } } }\n```\n'
    assert "rfd-name-taken" in [code for code, _, _ in findings_of(text)]


def test_what_is_left_out_within_a_type_is_reported() -> None:
    code = """interface A { a: { x: string; /* ... */ } }
interface B { b: 'x' | /* ... */ 'y' }
interface AgentCapabilities extends A { /* ... */ c?: A }"""
    found = [(each, line) for each, line, _ in findings_of(f"```ts\n{code}\n```\n") if each.startswith("rfd-type")]
    assert sorted(found) == [("rfd-type", 2), ("rfd-type", 3), ("rfd-type", 4)]


# --- Methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "method"),
    [
        ("SessionFork", "session/fork"),
        ("ForkSession", "session/fork"),
        ("Fork", None),
        ("AcmeFork", "_acme/fork"),
        ("Spoon", "_acme/spoon"),
        ("", None),
        ("Else", None),
    ],
)
def test_definitions_find_their_method_by_name(stem: str, method: str | None) -> None:
    assert method_of(stem, ["session/fork", "_acme/fork", "_acme/spoon"]) == method


def test_a_method_without_definitions_and_a_definition_without_method_are_marked() -> None:
    text = f"```ts\ninterface LostRequest {{}}\n```\n{message(id=1, method='_x/y', params={})}{message(method='_x/z')}"
    text += message(id=9, result={}) + message(method="_x/w", params={})
    marks = dict(find_marks(draft(text)))
    assert marks["/$defs/LostRequest/x-method"] == "the wire name of the method"
    assert marks["/$defs/LostRequest/x-side"] == "agent or client"
    assert marks["/$defs/XYRequest"] == "the schema of the params of _x/y, with x-side and x-method"
    assert marks["/$defs/XYResponse"] == "the schema of the result of _x/y, with x-side and x-method"
    assert marks["/$defs/XZNotification"] == "the schema of the params of _x/z, with x-side and x-method"
    assert "/$defs/XWNotification" in marks
    assert not [pointer for pointer in marks if "XZRequest" in pointer]


def test_prose_and_diagrams_do_not_say_who_handles_a_method() -> None:
    definitions = "```ts\ninterface ARequest {}\ninterface AResponse {}\n```\n"
    diagram = "```mermaid\nsequenceDiagram\nAgent->>Client: a\n```\n"
    found = draft(f"{definitions}Agent → Client:\n\n{message(id=1, method='a')}{diagram}")
    assert found["$defs"]["ARequest"]["x-side"] == "<fill in: the side that handles a, agent or client>"


def test_a_gate_is_the_capability_that_has_the_name_of_the_method() -> None:
    code = """
```ts
interface {} {{
  ...
  {}
}}
interface DanceRequest {{}}
interface DanceResponse {{}}
```
"""
    text = code + message(id=1, method="_acme/dance").replace("{", "{{").replace("}", "}}")
    for owner, member, gates in (
        ("AgentCapabilities", "acmeDance?: boolean", {"InitializeResponse": "agentCapabilities.acmeDance"}),
        ("ClientCapabilities", "acmeDance?: boolean", {"InitializeRequest": "clientCapabilities.acmeDance"}),
        ("AgentCapabilities", "/** If _acme/dance works. */ d?: boolean", None),
        ("AgentCapabilities", "acme?: { dance?: boolean }", None),
    ):
        found = draft(text.format(owner, member))
        sides = {"InitializeResponse": "agent", "InitializeRequest": "client"}
        if gates is None:
            assert any(pointer.startswith("/gates/") for pointer, _ in find_marks(found))
        else:
            ((root, path),) = gates.items()
            assert found["gates"] == {root: {"_acme/dance": path}}
            assert found["$defs"]["DanceRequest"]["x-side"] == sides[root]


def test_a_capability_does_not_say_who_handles_a_notification() -> None:
    code = "```ts\ninterface AgentCapabilities {\n  ...\n  nod?: boolean\n}\ninterface NodNotification {}\n```\n"
    found = draft(code + message(method="nod", params={}))
    assert found["gates"] == {"InitializeResponse": {"nod": "agentCapabilities.nod"}}
    assert found["$defs"]["NodNotification"]["x-side"] == "<fill in: the side that handles nod, agent or client>"


def test_responses_belong_to_the_request_with_their_id() -> None:
    text = message(id=1, method="a") + message(id=2, method="b") + message(id=1, result={}) + message(id=3, result={})
    said = [each.message for each in extraction(text).diagnostics if each.code == "rfd-example"]
    assert said[2:] == ["an example: a response to a", "an example: a response to a request that is not shown"]


def test_methods_of_the_schema_are_not_new() -> None:
    found = draft(f"{TS}{message(id=1, method='session/new', params={})}")
    assert found.keys() & {"gates", "changes"} == set()
    assert list(found["$defs"]) == ["Thing"]


# --- Metadata --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "logout-2026-02-02.txt", ("logout", None, "2026-02-02", None)),
        ("# A *b* #\n", "a.md", ("a", "A *b*", None, None)),
        ("```\n# no title\n```\n", "A_b.c.md", ("a-b-c", None, None, None)),
        ("---\ntitle: 'T'\n---\n# U\n", "x.md", ("x", "T", None, None)),
        ("RFD: see https://a.example/b).", "x.md", ("x", None, None, "https://a.example/b")),
        ("## Revision history\n- 2026-01-05: b\n- 2026-01-09: c\n", "x-2024-01-01.md", ("x", None, "2026-01-09", None)),
        ("title: T\u202e\x07", "é.md", ("t", "T", None, None)),
    ],
)
def test_metadata(text: str, name: str, expected: tuple[str | None, ...]) -> None:
    page = source(text, name)
    found = read_metadata(page, parse_markdown(page))
    stated = {key: None if value and value.startswith("<fill in") else value for key, value in found.items()}
    assert tuple(stated[key] for key in ("id", "title", "revision", "rfd")) == expected


def test_a_byte_order_mark_is_no_part_of_a_text() -> None:
    found = [extraction(text, "a.md") for text in (f"# A\n{TS}", f"\ufeff# A\n{TS}")]
    assert [each.draft["title"] for each in found] == ["A", "A"]


def test_methods_of_a_vendor_make_it_a_vendors() -> None:
    assert draft(message(id=1, method="_a/b"))["status"] == "vendor"
    assert draft(message(id=1, method="_a/b") + message(id=1, method="c"))["status"] == "draft"


# --- Examples --------------------------------------------------------------------------------------------------------


def test_variants_follow_from_examples_of_a_type_that_the_text_names() -> None:
    text = """
The HttpHeaders get types:

```json
{ "name": "a", "value": "b", "kind": "plain" } // kind is optional
{ "name": "a", "value": "b", "kind": "signed", "keys": [1, 2], "nonce": null, "MAP": { "A": 1.5 }, "mixed": [1, "a"] }
```
"""
    found = extraction(text)
    assert found.draft["$defs"]["HttpHeaderPlain"]["properties"]["kind"] == {
        "type": "string",
        "const": "plain",
        "default": "plain",
    }
    signed = found.draft["$defs"]["HttpHeaderSigned"]
    unknown = "<fill in: a schema: the example does not determine one>"
    assert {key: signed["properties"][key] for key in ("keys", "nonce", "MAP", "mixed")} == {
        "keys": {"type": "array", "items": {"type": "integer"}},
        "nonce": unknown,
        "MAP": {"type": "object", "additionalProperties": {"type": "number"}},
        "mixed": unknown,
    }
    assert signed["required"][-1] == "<fill in: those of keys, nonce, MAP, mixed that are never absent>"
    change = found.draft["changes"]["HttpHeader"]["replace"]
    assert list(change["expect"]["properties"]) == ["name", "value", "_meta"]
    assert [member.get("title") for member in change["with"]["anyOf"]] == [None, "plain"]
    assert [each.code for each in found.diagnostics].count("rfd-inferred") == 2


@pytest.mark.parametrize(
    "examples",
    [
        ['{ "name": "a", "value": "b", "kind": "plain" }'],
        ['{ "name": "a", "value": "b", "kind": "x" }', '{ "name": "a", "value": "b", "kind": "x" }'],
        ['{ "name": "a", "kind": "x" }', '{ "name": "a", "kind": "y" }'],
    ],
)
def test_nothing_follows_from_too_little(examples: list[str]) -> None:
    blocks = "".join(f"```json\n{each}\n```\n" for each in examples)
    found = extraction(f"The HttpHeaders\n\n{blocks}{TS}")
    assert list(found.draft["$defs"]) == ["Thing"]
    assert [each.code for each in found.diagnostics].count("rfd-value") == len(examples)


def test_a_union_that_the_schema_has_gets_the_variants_that_it_lacks() -> None:
    text = """
Each AuthMethod has a type:

```json
{ "id": "a", "name": "b", "type": "agent" } // type is optional
{ "id": "a", "name": "b", "type": "terminal", "args": [] }
{ "id": "a", "name": "b", "type": "badge", "reader": "x" }
```
"""
    found = extraction(text, against=base(1, "2026-11-02"))
    assert list(found.draft["$defs"]) == ["AuthMethodBadge"]
    assert list(found.draft["$defs"]["AuthMethodBadge"]["properties"]) == [
        "id",
        "name",
        "reader",
        "description",
        "_meta",
    ]
    (member,) = found.draft["changes"]["AuthMethod"]["members"]
    assert member["properties"] == {"type": {"type": "string", "const": "badge"}}
    assert member["allOf"] == [{"$ref": "#/$defs/AuthMethodBadge"}]
    notes = [each.location.line for each in found.diagnostics if each.code == "rfd-example" and each.location]
    assert notes == [5, 6]


def test_what_an_error_has_besides_is_added_to_the_error_object() -> None:
    text = message(id=1, error={"code": 1, "message": "m", "retryAfter": 3, "authMethods": []})
    assert draft(text)["changes"] == {
        "Error": {
            "properties": {
                "retryAfter": {"type": "integer"},
                "authMethods": {"type": "array", "items": {"$ref": "#/$defs/AuthMethod"}},
            }
        }
    }


# --- Nothing ---------------------------------------------------------------------------------------------------------


def test_a_text_without_additions_is_refused_with_all_that_was_seen() -> None:
    text = message(id=1, method="session/new") + '```json\n{ "a": ... }\n```\n{\n'
    with pytest.raises(InputError) as caught:
        extraction(text)
    assert {each.code for each in caught.value.diagnostics} == {
        *("rfd-example", "rfd-bad-json", "rfd-stray-code", "rfd-nothing-found")
    }


def test_a_schema_of_another_shape_is_no_obstacle() -> None:
    """A base without a handshake has no capabilities, and none are asked for."""
    bare = base().__class__(origin="x", protocol=1, definitions={"A": True, "B": {"properties": 3}}, gates={})
    found = draft(f"{TS}{message(id=1, method='a')}", against=bare)
    assert "gates" not in found
