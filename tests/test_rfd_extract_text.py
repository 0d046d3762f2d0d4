"""Texts of RFDs: where code is found, what is taken from JSON, messages, diagrams and metadata, and what is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acpgen.diagnostics import InputError, Severity
from acpgen.rfd import parse_source
from acpgen.rfd.blocks import Block, Findings, Kind, Source, find_blocks, parse_markdown
from acpgen.rfd.draft import read_metadata
from acpgen.rfd.examples import method_of
from acpgen.schema.fragment import find_marks
from tests.rfd_support import base, extraction, findings_of

TS = "```ts\ninterface Thing { a: string }\n```\n"
"""Something to find, so that a text is not without it."""


def source(text: str, name: str = "text.txt") -> Source:
    return parse_source(text.encode(), label=name, name=name)


def blocks(text: str, name: str = "text.txt") -> list[tuple[Kind, int, int]]:
    """The kind and the lines of each block."""
    return [(each.kind, each.first, each.last) for each in found_blocks(text, name)]


def found_blocks(text: str, name: str = "text.txt") -> tuple[Block, ...]:
    found = source(text, name)
    return find_blocks(found, parse_markdown(found), Findings())


def stray(text: str, name: str = "text.txt") -> list[int]:
    found, findings = source(text, name), Findings()
    find_blocks(found, parse_markdown(found), findings)
    return [each.location.line for each in findings.found if each.code == "rfd-stray-code" and each.location]


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
    kinds = [(Kind.TYPESCRIPT, 4, 4), (Kind.JSON, 7, 7), (Kind.JSON, 11, 11), (Kind.TYPESCRIPT, 15, 15)]
    assert blocks(text, "a.md") == kinds
    first = found_blocks(text, "a.md")[0]
    assert first.offsets == (3,)


def test_tags_around_a_fence_do_not_swallow_it() -> None:
    assert blocks("<Tabs>\n```rust\nx\n```\n</Tabs>\n", "a.md") == [(Kind.OTHER, 3, 3)]


def test_an_example_of_a_fence_is_no_fence() -> None:
    text = "````md\n```json\n{}\n```\n````\n"
    assert blocks(text, "a.md") == [(Kind.OTHER, 2, 4)]


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
            "enum E { A = 1 }",
        ]
    )
    typescript = [(Kind.TYPESCRIPT, 2, 5), (Kind.TYPESCRIPT, 6, 8), (Kind.TYPESCRIPT, 9, 9)]
    assert blocks(text) == [*typescript, (Kind.JSON, 11, 13), (Kind.JSON, 14, 14), (Kind.TYPESCRIPT, 15, 15)]
    assert stray(text) == []


def test_code_without_fences_is_found_beside_fences_too() -> None:
    assert blocks(f"{TS}\ninterface B {{\n}}\n", "a.md") == [(Kind.TYPESCRIPT, 2, 2), (Kind.TYPESCRIPT, 5, 6)]


@pytest.mark.parametrize(
    "line",
    [
        '"a": {',
        "}",
        "]},",
        "authMethodId: string;",
        "readonly a?: B[];",
        "interface A {",
        "{",
        '+  "a": 1',
        '{ "a": [ }',
    ],
)
def test_lines_that_look_like_code_are_listed(line: str) -> None:
    assert stray(f"prose\n{line}\nprose") == [2]


@pytest.mark.parametrize(
    "line", ["Note: this is prose.", "a: b", "(see above)", "- one", "[link](x)", "the { brace", "> quote"]
)
def test_prose_is_not_listed(line: str) -> None:
    assert stray(f"prose\n{line}\nprose") == []


def test_lines_end_in_every_way() -> None:
    assert findings_of("# A\r\rx\r\n```ts\r\ninterface A { a: B }\r\n```") == [("rfd-type", 5, 18)] + [
        (code, line, column) for code, line, column in findings_of("# A\n\nx\n```ts\ninterface A { a: B }\n```")[1:]
    ]


def test_a_block_that_is_not_read_is_listed() -> None:
    found = findings_of(f"{TS}```py\nx = 1\n```\n```\nplain\n```\n```diff\n+ fn a() {{}}\n```\n")
    assert [(code, line) for code, line, _ in found if code == "rfd-block"] == [
        ("rfd-block", 5),
        ("rfd-block", 8),
        ("rfd-block", 11),
    ]
    with_code = {each.message for each in extraction(f"{TS}```diff\n+ fn a() {{}}\n```\n").diagnostics}
    assert "the block of diff in line 5 is not read: it is neither JSON nor TypeScript" in with_code


@pytest.mark.parametrize("language", ["", "text"])
@pytest.mark.parametrize(
    "code", ["session/zap { a: 1 }", "zap { a }", "}", "Then session/zap.", "$/cancel", "see: _acme/x"]
)
def test_a_block_without_language_that_may_describe_messages_is_a_warning(language: str, code: str) -> None:
    ((line, column, text),) = warnings_of(f"```{language}\nx\n{code}\n```\n{TS}", "rfd-block")
    assert (line, column) == (2, 1)
    assert text.endswith("in lines 2 to 3 is not read, but contains names of methods or braces")


@pytest.mark.parametrize(
    "block", ["```\nplain (text): a, b\n```", "```\nhttps://a.b/c/d ./e/f // g\n```", "```py\nx = {'a/b': 1}\n```"]
)
def test_a_block_of_something_else_is_a_note(block: str) -> None:
    text = f"{block}\n{TS}"
    assert warnings_of(text, "rfd-block") == []
    assert "rfd-block" in {each.code for each in extraction(text).diagnostics}


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
{ "Thing": /* x */ { "type": "string", "description": "// no comment" } } // b
,
{ "Other": { "type": "null" } }
```"""
    assert draft(text)["$defs"] == {
        "Thing": {"description": "// no comment", "type": "string"},
        "Other": {"type": "null"},
    }


def test_schemas_are_recognised_with_and_without_defs() -> None:
    text = """
```json
{ "$schema": "x", "$defs": { "A": { "type": "string" }, "B": 3, "C": true }, "more": 1 }
```
```json
{ "D": { "type": ["null", "object"], "properties": {} }, "E": { "anyOf": [{ "$ref": "#/$defs/A" }] } }
```
```json
{ "title": "F", "type": "object", "properties": { "a": {} } }
```
Here:
```json
{ "type": "object", "properties": {} }
```
```json
{ "type": "text", "properties": "many", "H": { "type": "text" } }
```
"""
    found = extraction(text)
    assert sorted(found.draft["$defs"]) == ["A", "C", "D", "E", "F"]
    assert found.draft["$defs"]["D"]["type"] == ["object", "null"]
    messages = {(each.location.line, each.message) for each in found.diagnostics if each.location}
    assert {
        (3, "the definition B is not a schema"),
        (3, "`more` next to `$defs` is not read"),
        (13, "a schema without a name"),
        (16, "this value adds nothing to the draft"),
    } <= messages


SCHEMA = '{"type": "object", "properties": {"a": {"type": "string"}}}'


@pytest.mark.parametrize(
    ("code", "place", "found"),
    [
        (f'{{"NewThing": {SCHEMA}, "n": 3}}', (2, 14), "a schema"),
        (f'{{"n": 3,\n "newThing": {SCHEMA}}}', (3, 14), "a schema"),
        (f'{{"components": [{{"Old": 1}},\n{{"NewThing": {SCHEMA}}}]}}', (3, 14), "a schema"),
        (f'{{"A": {SCHEMA}, "n": [], "B": {SCHEMA}}}', (2, 7), "2 schemas, the first of them here,"),
        ('{"type": "string", "enum": ["a", "b"]}', (2, 1), "a schema"),
        (f"3,\n[{SCHEMA}]", (3, 1), "a schema"),
    ],
)
def test_a_value_with_schemas_that_are_not_taken_is_a_warning(code: str, place: tuple[int, int], found: str) -> None:
    said, *_ = warnings_of(f"```json\n{code}\n```\n{TS}", "rfd-value")
    text = f"this value has {found} without a definition's name: not in the draft"
    assert said == (*place, text)


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
    assert twice.message == "Other is already defined in line 9, with other properties: c there, b here"
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
interface HttpHeader { ...; name: string }
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
        '```json\n{"EnvVariable": {"properties": {"_meta": {}, "name": {}, "value": {"type": "number"}}}}\n```\n',
    ],
)
def test_the_same_properties_with_other_types_are_another_definition(block: str) -> None:
    found = extraction(block)
    assert found.draft["$defs"]["EnvVariable"]["properties"]["value"] == {"type": "number"}
    assert "rfd-name-taken" in {each.code for each in found.diagnostics}


def test_additions_to_one_definition_are_put_together() -> None:
    code = "interface AgentCapabilities {{ ...; {} }}"
    text = "\n".join(f"```ts\n{code.format(each)}\n```\n" for each in ("a?: boolean", "b?: boolean", "a: string"))
    found = extraction(text)
    assert list(found.draft["changes"]["AgentCapabilities"]["properties"]) == ["a", "b"]
    assert "line 2 already adds the property a to AgentCapabilities, with another type" in {
        each.message for each in found.diagnostics
    }


def test_a_name_that_the_schema_has_for_something_else_is_reported() -> None:
    text = """```json
{ "$defs": {
  "Plan": { "type": "object", "properties": { "x": {} } },
  "bad name": { "$ref": "#/definitions/A" }
} }
```"""
    codes = [code for code, _, _ in findings_of(text)]
    assert {"rfd-name-taken", "rfd-name", "rfd-reference"} <= set(codes)


def patch(code: str) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """What a patch changes, and what is said of it."""
    found = extraction(f"```diff\n{code}\n```\n")
    said = [(each.code, each.location.line) for each in found.diagnostics if each.location]
    return found.draft.get("changes", {}), [each for each in said if each[0] not in ("rfd-fill-in", "rfd-no-address")]


def test_a_patch_of_typescript_adds_its_lines_alone() -> None:
    changes, said = patch(""" interface Implementation {
   name: string;
-  version: string
+  version: string,
   title?: {
+    short: string;
   }
+  /**
+   * The year.
+   */
+  year: number;
 }""")
    year = {"description": "The year.", "type": "number"}
    assert changes == {"Implementation": {"properties": {"year": year}, "required": ["year"]}}
    assert said == [("rfd-patch", 7)]


def test_a_patch_of_a_schema_adds_its_lines_alone() -> None:
    changes, said = patch(""" { "$defs": {
   "Implementation": {
     "properties": {
       "name": {
+        "minLength": 1,
         "type": "string"
       },
-      "version": { "type": "string" }
+      "version": { "type": "string" },
+      "year": {
+        "type": "integer"
+      }
     },
-    "required": ["name"]
+    "required": ["name", "year"],
+    "additionalProperties": false
   }
 } }""")
    assert changes == {"Implementation": {"properties": {"year": {"type": "integer"}}, "required": ["year"]}}
    assert sorted(said) == [("rfd-patch", 6), ("rfd-patch", 17), ("rfd-removal", 15)]


def test_a_definition_that_a_patch_adds_is_whole() -> None:
    found = extraction("```diff\n+interface Fresh {\n+  a: string;\n+}\n```\n")
    assert found.draft["$defs"]["Fresh"]["required"] == ["a"]


def test_what_is_left_out_within_a_type_is_reported() -> None:
    code = """interface A { a: { x: string; ... } }
interface B { b: 'x' | ... }
interface AgentCapabilities extends A { ... c?: A }"""
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


def test_an_example_that_contradicts_the_definitions_of_its_method_is_a_warning() -> None:
    code = "```ts\ninterface AcmeForkResponse { a: string }\ninterface AcmeSpoonNotification { a: string }\n```\n"
    wrong = message(method="_acme/fork", params={}) + message(id=1, method="_acme/spoon", params={})
    assert warnings_of(code + wrong, "rfd-example") == [
        (6, 1, "an example: a notification of _acme/fork, but a request elsewhere: AcmeForkResponse"),
        (9, 1, "an example: a request of _acme/spoon, but a notification elsewhere: AcmeSpoonNotification"),
    ]
    right = message(id=1, method="_acme/fork", params={}) + message(method="_acme/spoon") + message(method="_acme/cup")
    assert warnings_of(code + right, "rfd-example") == []


def test_examples_that_contradict_each_other_are_a_warning() -> None:
    text = message(id=1, method="_x/y", params={}) + message(method="_x/y", params={})
    assert warnings_of(text, "rfd-example") == [
        (5, 1, "an example: a notification of _x/y, but a request elsewhere: line 2")
    ]


def test_prose_and_diagrams_do_not_say_who_handles_a_method() -> None:
    definitions = "```ts\ninterface ARequest {}\ninterface AResponse {}\n```\n"
    diagram = "```mermaid\nsequenceDiagram\nAgent->>Client: a\n```\n"
    found = draft(f"{definitions}Agent → Client:\n\n{message(id=1, method='a')}{diagram}")
    assert found["$defs"]["ARequest"]["x-side"] == "<fill in: the side that handles a, agent or client>"


def test_a_gate_is_the_capability_that_has_the_name_of_the_method() -> None:
    code = """
```ts
interface {} {{ ...; {} }}
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
        ("AgentCapabilities", "acmeDance?: string", None),
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
    code = "```ts\ninterface AgentCapabilities { ...; nod?: boolean }\ninterface NodNotification {}\n```\n"
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
        ("", "logout-2026-02-02.txt", ("logout", None, "2026-02-02", "draft", None)),
        ("# RFD: A *b* #\n", "a.md", ("a", "A *b*", None, "draft", None)),
        ("```\n# no title\n```\n", "A_b.c.md", ("a-b-c", None, None, "draft", None)),
        (
            "---\ntitle: 'T'\nstatus: Completed\nupdated: 2026-01-02\n---",
            "x.md",
            ("x", "T", "2026-01-02", "landed", None),
        ),
        ("Status: on hold\nrevision: rc.1", "x.md", ("x", None, "rc.1", None, None)),
        ("RFD: see https://a.example/b).", "x.md", ("x", None, None, "draft", "https://a.example/b")),
        (
            "date: 2025-12-31\n## Revision history\n- 2026-01-05: b\n- 2026-02-31: no day\n- 2026-01-09: c\n",
            "x-2024-01-01.md",
            ("x", None, "2026-01-09", "draft", None),
        ),
        ("title: T\u202e\x07", "é.md", ("t", "T", None, "draft", None)),
    ],
)
def test_metadata(text: str, name: str, expected: tuple[str | None, ...]) -> None:
    page = source(text, name)
    found = read_metadata(page, parse_markdown(page))
    assert (found.id, found.title, found.revision, found.status, found.rfd) == expected


def test_methods_of_a_vendor_make_it_a_vendors() -> None:
    assert draft(message(id=1, method="_a/b"))["status"] == "vendor"
    assert draft(message(id=1, method="_a/b") + message(id=1, method="c"))["status"] == "draft"
    assert draft("status: landed\n\n" + message(id=1, method="_a/b"))["status"] == "landed"


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
    text = message(id=1, method="session/new") + '```json\n{ "a": ... }\n```\n"b": {\n'
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
