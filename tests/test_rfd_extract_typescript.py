"""The TypeScript of RFDs: the part that is understood, the part that is reported, and the schemas that result."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.diagnostics import Report
from acpgen.rfd.base import Base
from acpgen.rfd.blocks import Block, Language, parse_source
from acpgen.rfd.entries import DraftEntry
from acpgen.rfd.typescript import MAX_CODE, MAX_DEPTH, convert_declarations, read_declarations
from tests.rfd_support import draft_of_typescript, extraction, findings_of

BARE = Base(origin="nothing", protocol=1, definitions={}, gates={})


def converted(text: str) -> tuple[dict[str, DraftEntry], list[tuple[int, str]]]:
    """The definitions in a text, and the line and the message of each finding."""
    source = parse_source(text.encode(), label="text.ts", name="text.ts")
    offsets = (0,) * len(source.lines)
    block = Block(source=source, kind=Language.TYPESCRIPT, language="ts", first=1, text=text, offsets=offsets)
    report = Report()
    found = convert_declarations(read_declarations(block, report), {}, base=BARE, report=report)
    messages = [(each.location.line, each.message) for each in report.found if each.location]
    return {each.name: each for each in found}, messages


def definitions(text: str) -> dict[str, DraftEntry]:
    """The definitions of a text in which everything is understood."""
    found, messages = converted(text)
    assert messages == []
    return found


def schema(type_: str) -> Any:
    """The schema of a required property of that type."""
    return draft_of_typescript(f"interface Thing {{ a: {type_} }} interface Other {{ b: string }}")["$defs"]["Thing"][
        "properties"
    ]["a"]


# --- Parsing ---------------------------------------------------------------------------------------------------------


def test_docs_stand_before() -> None:
    found = definitions("""
        /** Old. */
        /**
         * About the thing,
         * on two lines.
         */
        export interface Thing {
          /** One. */ a: string; // not this
          /** Two. */
          // nor this
          b?: number,
          c: boolean
          d: null // ... more fields
        }
        """)["Thing"]
    assert found.node["description"] == "About the thing, on two lines."
    properties = found.node["properties"]
    assert {wire: node.get("description") for wire, node in properties.items()} == {
        "a": "One.",
        "b": "Two.",
        "c": None,
        "d": None,
    }
    assert found.node["required"] == ["a", "c", "d"]
    assert found.is_change


@pytest.mark.parametrize(
    "body",
    [
        "// ... existing fields ...",
        "...",
        "...\n a: string",
        "a: string\n  ...;",
        "/* other fields */",
        "a: string; // …",
        "// existing properties\n a: string",
    ],
)
def test_what_stands_for_more_is_recognised(body: str) -> None:
    thing = definitions(f"interface Thing {{\n{body}\n}}")["Thing"]
    assert thing.is_change
    assert thing.node["properties"].keys() <= {"a"}


def test_a_documentation_comment_with_dots_is_no_elision() -> None:
    thing = definitions('interface Thing { /** And so on ... */ a: "..." }')["Thing"]
    assert not thing.is_change
    assert thing.node["properties"]["a"] == {"description": "And so on ...", "type": "string", "const": "..."}


def test_unions_keep_what_is_said_of_each_member() -> None:
    level = definitions('type Level =\n  | "low"\n  /** A lot. */\n  | "high"')["Level"]
    assert level.node == {
        "anyOf": [
            {"type": "string", "const": "low"},
            {"description": "A lot.", "type": "string", "const": "high"},
        ]
    }


def test_names_that_are_words_of_the_language_are_names() -> None:
    type_ = definitions("interface Thing { type: string; readonly: string; readonly readonly_?: null }")
    assert list(type_["Thing"].node["properties"]) == ["type", "readonly", "readonly_"]


NOT_READ = "is not a valid interface or type alias without type parameters"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("enum A {\n  B\n}", 1, f"lines 1 to 3 not read: `enum A {{ B }}` {NOT_READ}"),
        ("const x = 3;", 1, f"line 1 not read: `const x = 3;` {NOT_READ}"),
        (
            "function f() {\n  interface A {}\n}",
            1,
            f"lines 1 to 3 not read: `function f() {{ interface A {{}} }}` {NOT_READ}",
        ),
        ("interface A<T> { a: T }", 1, f"line 1 not read: `interface A<T> {{ a: T }}` {NOT_READ}"),
        ("interface A {\n  f(): void;\n}", 2, "line 2 not read: `f(): void` is not a property"),
        ("interface A {\n  'a-b': null;\n}", 2, "line 2 not read: `'a-b': null` is not a property"),
        ("interface A {\n  a: { b: null } & B;\n}", 2, "`{ b: null } & B` has no schema"),
        ("interface A {\n  f: () => void;\n}", 2, "`() => void` has no schema"),
        ("interface A {\n  a: keyof B;\n}", 2, "`keyof B` has no schema"),
        ("interface A {\n  a: B['c'];\n}", 2, "`B['c']` has no schema"),
        ("interface A {\n  a: `x${string}`;\n}", 2, "``x${string}`` has no schema"),
        ("interface A {\n  a: [string, number];\n}", 2, "`[string, number]` has no schema"),
        ("interface A {\n  a: x.y.Z;\n}", 2, "`x.y.Z` has no schema"),
        ("interface A {\n  a: 1.5;\n}", 2, "`1.5` has no schema"),
        ('interface A {\n  a: "x;\n}', 2, '`a: "x;` has no schema'),
        ('interface A {\n  a: "\\x41";\n}', 2, '`"\\x41"` has no schema'),
        ("interface A {\n  [key: number]: string;\n}", 2, "line 2 not read: `[key: number]: string` is not a property"),
        ("interface A {\n  a: string;\n", 1, f"lines 1 to 2 not read: `interface A {{ a: string;` {NOT_READ}"),
        ("type A = string number", 1, f"line 1 not read: `type A = string number` {NOT_READ}"),
        ("type A =", 1, f"line 1 not read: `type A =` {NOT_READ}"),
    ],
)
def test_what_is_not_understood_is_listed_by_place(text: str, line: int, message: str) -> None:
    assert converted(text)[1] == [(line, message)]
    # the declarations around it are read, unless it does not end
    found, _ = converted(f"interface Before {{}}\n{text}\nexport interface After {{ a: string }}")
    assert "Before" in found
    assert "After" in found or text.endswith((";\n", "="))


@pytest.mark.parametrize("text", ["interface A {\n  a: string b: number\n}", "interface A {\n  a string;\n}"])
def test_what_comes_after_an_error_is_read(text: str) -> None:
    found, messages = converted(f"{text}\ninterface After {{ a: string }}")
    assert "After" in found
    assert messages


def test_a_property_that_is_not_understood_keeps_its_place() -> None:
    found, _ = converted("interface A { a?: B['c'][]; b: string }")
    assert found["A"].node["properties"] == {
        "a": {"type": ["array", "null"], "items": "<fill in: a schema for: B['c']>"},
        "b": {"type": "string"},
    }
    assert found["A"].node["required"] == ["b"]


@pytest.mark.parametrize("line", ["3: string;", "(a: string): void;", "new (): A;"])
def test_what_has_no_name_is_listed_and_becomes_no_property(line: str) -> None:
    found, messages = converted(f"interface A {{\n{line}\nb: string }}")
    assert list(found["A"].node["properties"]) == ["b"]
    assert messages == [(2, f"line 2 not read: `{line.rstrip(';')}` is not a property")]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("{ a: ", " }"), ("(", ")"), ("Array<", ">"), ("Record<string, ", ">"), ("", "[]")],
)
def test_nesting_has_a_bound(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return f"type A = {opening * depth}string{closing * depth};"

    assert converted(nested(8))[1] == []
    for depth in (MAX_DEPTH + 2, 500):
        assert any(f"is nested more than {MAX_DEPTH} deep" in message for _, message in converted(nested(depth))[1])


def test_a_block_has_a_bound() -> None:
    line = "interface A { a: string }\n"
    found, messages = converted(line * (MAX_CODE // len(line) + 1))
    assert found == {}
    assert [message.partition(": ")[2] for _, message in messages] == ["more than 32 KiB of TypeScript"]


# --- Schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("string", {"type": "string"}),
        ("number", {"type": "number"}),
        ("unknown", {}),
        ("any | null", {}),
        ("null", {"type": "null"}),
        ("object", {"type": "object"}),
        ("string | null", {"type": ["string", "null"]}),
        ('"a"', {"type": "string", "const": "a"}),
        ('"a" | null', {"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}),
        (
            '"a" | "b" | null',
            {"anyOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "b"}, {"type": "null"}]},
        ),
        ("string | number", {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("Array<Other>", {"type": "array", "items": {"$ref": "#/$defs/Other"}}),
        ("(string | null)[]", {"type": "array", "items": {"type": ["string", "null"]}}),
        ("Other", {"$ref": "#/$defs/Other"}),
        ("Other | null", {"anyOf": [{"$ref": "#/$defs/Other"}, {"type": "null"}]}),
        ("Record<string, unknown>", {"type": "object", "additionalProperties": True}),
        ("Record<string, number> | null", {"type": ["object", "null"], "additionalProperties": {"type": "number"}}),
        (
            "{ x: string, y?: null }",
            {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "null"}}, "required": ["x"]},
        ),
        ("SessionId", {"$ref": "#/$defs/SessionId"}),
        ("Missing", "<fill in: a schema for: Missing>"),
        ("Partial<Other>", "<fill in: a schema for: Partial<Other>>"),
        ("bigint", "<fill in: a schema for: bigint>"),
        ("void", "<fill in: a schema for: void>"),
    ],
)
def test_types(type_: str, expected: Any) -> None:
    assert schema(type_) == expected


def test_an_optional_property_may_be_null() -> None:
    thing = draft_of_typescript("interface Thing { a?: string; c: string | null; /** D. */ d?: Thing }")
    assert thing["$defs"]["Thing"] == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "c": {"type": ["string", "null"]},
            "d": {"description": "D.", "anyOf": [{"$ref": "#/$defs/Thing"}, {"type": "null"}]},
        },
        "required": ["c"],
    }


def test_a_described_reference_is_wrapped() -> None:
    thing = draft_of_typescript("interface Thing { /** Which. */ a: SessionId }")["$defs"]["Thing"]
    assert thing["properties"]["a"] == {"description": "Which.", "allOf": [{"$ref": "#/$defs/SessionId"}]}


def test_capabilities_that_are_absent_have_the_value_that_says_no() -> None:
    found = extraction("""```ts
interface ClientCapabilities {
  ...
  dance?: Dance;
  waltz?: boolean;
  plain?: Marker;
  sure: boolean
}
interface Marker { _meta?: Record<string, unknown> }
interface Elsewhere { waltz?: boolean }
```
```json
{ "$defs": { "Dance": { "type": "object", "properties": { "tango": { "type": "boolean", "default": false } } } } }
```
""").draft
    changed = found["changes"]["ClientCapabilities"]
    assert changed["properties"] == {
        "dance": {"allOf": [{"$ref": "#/$defs/Dance"}], "default": {"tango": False}},
        "waltz": {"type": "boolean", "default": False},
        "plain": {"anyOf": [{"$ref": "#/$defs/Marker"}, {"type": "null"}]},
        "sure": {"type": "boolean"},
    }
    assert changed["required"] == ["sure"]
    assert found["$defs"]["Elsewhere"]["properties"]["waltz"] == {"type": ["boolean", "null"]}


def test_an_interface_extends_others() -> None:
    thing = draft_of_typescript("interface Thing extends Other, SessionMode { a: string } interface Other {}")
    assert thing["$defs"]["Thing"]["allOf"] == [{"$ref": "#/$defs/Other"}, {"$ref": "#/$defs/SessionMode"}]


def test_an_unknown_type_is_reported_where_it_stands() -> None:
    found = findings_of("```ts\ninterface Thing {\n  a: Missing;\n}\n```\n")
    assert ("rfd-type", 3, 6) in found
    assert ("rfd-fill-in", 2, 1) in found


@pytest.mark.parametrize(
    ("code", "line", "messages"),
    [
        (
            "namespace N { interface I { a: string } }\nclass Foo { a: string }\nlet x = 3;",
            3,
            ["line 3", "line 4", "line 5"],
        ),
        ("let x = 3;", 3, ["line 3"]),
        (
            "declare function f(): {\n  interface: string\n};\nclass Foo {\n  a: string\n}",
            3,
            ["lines 3 to 5", "lines 6 to 8"],
        ),
        ("interface B<T> {\n  a: T\n}", 3, ["lines 3 to 5"]),
        ("interface B {\n  [key: number]: {\n    a: string\n  }\n}", 4, ["lines 4 to 6"]),
        ("interface B {\n  3: {\n    a: string\n  };\n}", 4, ["lines 4 to 6"]),
        ("interface B {\n  a: keyof B;\n}", 4, ["`keyof B` has no schema"]),
    ],
)
def test_all_lines_that_are_passed_over_are_said(code: str, line: int, messages: list[str]) -> None:
    found = extraction(f"```ts\ninterface A {{ x: string }}\n{code}\ninterface C {{ y: string }}\n```\n")
    assert {"A", "C"} <= found.draft["$defs"].keys()
    said = [each for each in found.diagnostics if each.code == "rfd-typescript"]
    assert [each.message.partition(" not read")[0] for each in said] == messages
    assert said[0].location
    assert said[0].location.line == line


def test_the_lines_of_a_declaration_that_does_not_end_are_said() -> None:
    found = extraction("```ts\ninterface A { x: string }\ninterface B {\n  a: {\ninterface C { y: string }\n```\n")
    messages = [each.message for each in found.diagnostics if each.code == "rfd-typescript"]
    assert any(message.startswith("lines 3 to 5 not read") for message in messages)
