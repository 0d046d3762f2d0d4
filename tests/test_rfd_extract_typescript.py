"""The TypeScript of RFDs: what is understood of it, what is listed, and what becomes of it in a schema."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.rfd.syntax import Constant, Declaration, Keyword, NotUnderstood, OneOf, Record
from acpgen.rfd.typescript import MAX_DEPTH, parse_typescript
from tests.rfd_support import draft_of_typescript, extraction, findings_of


def declarations(text: str) -> dict[str, Declaration]:
    """The declarations of a text in which everything is understood."""
    found, problems = parse_typescript(text)
    assert problems == ()
    return {each.name: each for each in found}


def problems(text: str) -> list[tuple[int, str]]:
    """The line and the message of everything that is not understood."""
    return [(text.count("\n", 0, each.start) + 1, each.message) for each in parse_typescript(text)[1]]


def schema(type_: str) -> Any:
    """The schema of a required property of that type."""
    return draft_of_typescript(f"interface Thing {{ a: {type_} }} interface Other {{ b: string }}")["$defs"]["Thing"][
        "properties"
    ]["a"]


# --- The parser ------------------------------------------------------------------------------------------------------


def test_docs_stand_before_or_behind() -> None:
    found = declarations("""
        /** Old. */
        /**
         * About the thing,
         * on two lines.
         */
        export interface Thing {
          /** One. */ a: string; // not this
          b?: number, // Two.
          // Three.
          c: boolean
          d: null // ... more fields
        }
        """)["Thing"]
    assert found.doc == "About the thing, on two lines."
    assert isinstance(found.type, Record)
    assert [(each.name, each.doc, each.is_optional) for each in found.type.members] == [
        ("a", "One.", False),
        ("b", "Two.", True),
        ("c", "Three.", False),
        ("d", "", False),
    ]
    assert found.type.is_elided


@pytest.mark.parametrize(
    "body",
    [
        "// ... existing fields ...",
        "...",
        "/* other fields */",
        "a: string; // …",
        "// existing properties\n a: string",
    ],
)
def test_what_stands_for_more_is_recognised(body: str) -> None:
    type_ = declarations(f"interface Thing {{\n{body}\n}}")["Thing"].type
    assert isinstance(type_, Record)
    assert type_.is_elided


def test_a_documentation_comment_with_dots_is_no_elision() -> None:
    type_ = declarations("interface Thing { /** And so on ... */ a: string }")["Thing"].type
    assert isinstance(type_, Record)
    assert not type_.is_elided


def test_unions_keep_what_is_said_of_each_member() -> None:
    type_ = declarations('type Level =\n  | "low" // A bit.\n  /** A lot. */\n  | "high"\n  | -1;')["Level"].type
    assert type_ == OneOf((Constant("low"), Constant("high"), Constant(-1)), ("A bit.", "A lot.", ""), is_elided=False)


def test_names_that_are_words_of_the_language_are_names() -> None:
    type_ = declarations("interface Thing { type: string; readonly: string; readonly readonly?: null; 'a-b': object }")
    record = type_["Thing"].type
    assert isinstance(record, Record)
    assert [each.name for each in record.members] == ["type", "readonly", "readonly", "a-b"]


def test_strings_with_quotes_and_escapes() -> None:
    type_ = declarations(r"""type T = 'it\'s "x"' | "a\"b\u00e4";""")["T"].type
    assert isinstance(type_, OneOf)
    assert type_.members == (Constant('it\'s "x"'), Constant('a"bä'))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("const x = 3;", 1, "expected `interface`, `type` or `enum`, found `const`"),
        ("function f() {\n  interface A {}\n}", 1, "expected `interface`, `type` or `enum`, found `function`"),
        ("interface A<T> { a: T }", 1, "a type with parameters has no counterpart in a schema"),
        ("interface A {\n  f(): void;\n}", 2, "f is a function, which nothing sends"),
        ("interface A {\n  f: () => void;\n}", 2, "expected a type, found `)`"),
        ("interface A {\n  f: (string) => void;\n}", 2, "a function is nothing that can be sent"),
        ("interface A {\n  a: keyof B;\n}", 2, "`keyof` has no counterpart in a schema"),
        ("interface A {\n  a: B['c'];\n}", 2, "the type of a property of another type is not followed"),
        ("interface A {\n  a: `x${string}`;\n}", 2, "expected a type, found ``x${string}``"),
        ("interface A {\n  a: [string, number];\n}", 2, "expected a type, found `[`"),
        ("interface A {\n  a: x.y.Z;\n}", 2, "names with dots are not followed"),
        ("interface A {\n  a: 1.5;\n}", 2, "only whole numbers below 10^15 can be constants"),
        ('interface A {\n  a: "x;\n}', 2, "a string that does not end"),
        ('interface A {\n  a: "\\x41";\n}', 2, "a string with an escape that is not JSON's"),
        ("interface A {\n  [key: number]: string;\n}", 2, "expected `string`, found `number`"),
        ("interface A {\n  a string;\n}", 2, "expected `:`, found `string`"),
        ("interface A {\n  a: string b: number\n}", 2, "expected `;`, found `b`"),
        ("interface A {\n  a: string;\n", 3, "expected `}`, found the end of the code"),
        ("enum A {\n  B,\n}", 2, "the enum A does not say which values are sent"),
        ("type A = string number", 1, "expected `;`, found `number`"),
        ("type A =", 1, "expected a type, found the end of the code"),
    ],
)
def test_what_is_not_understood_is_listed_by_place(text: str, line: int, message: str) -> None:
    found = problems(text)
    assert found == [(line, message)]
    # and what comes after it is read
    after, _ = parse_typescript(text + "\nexport interface After { a: string }" if line < 3 else "interface After {}")
    assert "After" in {each.name for each in after}


def test_a_property_that_is_not_understood_keeps_its_place() -> None:
    found, _ = parse_typescript("interface A { a?: B['c'][]; b: string }")
    type_ = found[0].type
    assert isinstance(type_, Record)
    first, second = type_.members
    assert (first.name, first.is_optional, first.type) == ("a", True, NotUnderstood("a?: B['c'][]", 14))
    assert (second.name, second.type) == ("b", Keyword("string"))


@pytest.mark.parametrize("line", ["3: string;", "(a: string): void;", "- a: string", "?: { b: string };"])
def test_what_has_no_name_is_listed_and_becomes_no_property(line: str) -> None:
    found, listed = parse_typescript(f"interface A {{\n{line}\nb: string }}")
    assert isinstance(found[0].type, Record)
    assert [each.name for each in found[0].type.members] == ["b"]
    assert [each.message for each in listed] == [f"expected a name, found `{line[0]}`"]


@pytest.mark.parametrize(
    ("opening", "closing"), [("{ a: ", " }"), ("(", ")"), ("Array<", ">"), ("{ [k: string]: ", " }"), ("", "[]")]
)
def test_nesting_has_a_bound(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return f"type A = {opening * depth}string{closing * depth};"

    assert parse_typescript(nested(8))[1] == ()
    assert parse_typescript(f"type A = {'readonly ' * 5_000}string;")[1] == ()
    for depth in (MAX_DEPTH + 1, 5_000):
        assert any("deep" in message for _, message in problems(nested(depth)))


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
        ("true", {"type": "boolean", "const": True}),
        ("3", {"type": "integer", "const": 3}),
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
        ("{ [key: string]: Other }", {"type": "object", "additionalProperties": {"$ref": "#/$defs/Other"}}),
        (
            "{ x: string, y?: null }",
            {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "null"}}, "required": ["x"]},
        ),
        (
            '{ type: "o" } & Other',
            {
                "type": "object",
                "properties": {"type": {"type": "string", "const": "o"}},
                "required": ["type"],
                "allOf": [{"$ref": "#/$defs/Other"}],
            },
        ),
        ("SessionId", {"$ref": "#/$defs/SessionId"}),
        ("Missing", "<fill in: a schema for: Missing>"),
        ("Partial<Other>", "<fill in: a schema for: Partial<…>>"),
        ("bigint", "<fill in: a schema for: bigint>"),
        ("void", "<fill in: a schema for: void>"),
    ],
)
def test_types(type_: str, expected: Any) -> None:
    assert schema(type_) == expected


def test_an_optional_property_may_be_null_and_one_that_may_be_undefined_is_optional() -> None:
    thing = draft_of_typescript(
        "interface Thing { a?: string; b: string | undefined; c: string | null; /** D. */ d?: Thing }"
    )
    assert thing["$defs"]["Thing"] == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "string"},
            "c": {"type": ["string", "null"]},
            "d": {"description": "D.", "anyOf": [{"$ref": "#/$defs/Thing"}, {"type": "null"}]},
        },
        "required": ["c"],
    }


def test_a_described_reference_is_wrapped() -> None:
    thing = draft_of_typescript("interface Thing { /** Which. */ a: SessionId }")["$defs"]["Thing"]
    assert thing["properties"]["a"] == {"description": "Which.", "allOf": [{"$ref": "#/$defs/SessionId"}]}


def test_capabilities_that_are_absent_have_the_value_that_says_no() -> None:
    draft = draft_of_typescript("""
        interface ClientCapabilities { ...; dance?: Dance; plain?: Marker; sure: boolean }
        interface Dance { tango?: Tango; waltz?: boolean }
        interface Tango { slow?: boolean }
        interface Marker { _meta?: Record<string, unknown> }
        interface Elsewhere { waltz?: boolean }
        """)
    changed = draft["changes"]["ClientCapabilities"]
    assert changed["properties"] == {
        "dance": {"allOf": [{"$ref": "#/$defs/Dance"}], "default": {"tango": {"slow": False}, "waltz": False}},
        "plain": {"anyOf": [{"$ref": "#/$defs/Marker"}, {"type": "null"}]},
        "sure": {"type": "boolean"},
    }
    assert changed["required"] == ["sure"]
    assert draft["$defs"]["Elsewhere"]["properties"]["waltz"] == {"type": ["boolean", "null"]}


def test_an_interface_extends_others() -> None:
    thing = draft_of_typescript("interface Thing extends Other, SessionMode { a: string } interface Other {}")
    assert thing["$defs"]["Thing"]["allOf"] == [{"$ref": "#/$defs/Other"}, {"$ref": "#/$defs/SessionMode"}]


def test_members_are_added_to_a_union_that_goes_on() -> None:
    draft = draft_of_typescript('type StopReason = | ... | "bored" // Nothing to do.\n | "end_turn";')
    assert draft["changes"]["StopReason"] == {
        "members": [{"description": "Nothing to do.", "type": "string", "const": "bored"}]
    }


def test_an_unknown_type_is_reported_where_it_stands() -> None:
    found = findings_of("```ts\ninterface Thing {\n  a: Missing;\n}\n```\n")
    assert ("rfd-type", 3, 6) in found
    assert ("rfd-fill-in", 2, 1) in found


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (
            "namespace N { interface I { a: string } }\nclass Foo { a: string }\nlet x = 3;",
            3,
            "expected `interface`, `type` or `enum`, found `namespace`; lines 3 to 5 are not read",
        ),
        ("let x = 3;", 3, "expected `interface`, `type` or `enum`, found `let`; line 3 is not read"),
        (
            "declare function f(): {\n  interface: string\n};\nclass Foo {\n  a: string\n}",
            3,
            "expected `interface`, `type` or `enum`, found `function`; lines 3 to 8 are not read",
        ),
        (
            "interface B<T> {\n  a: T\n}",
            3,
            "a type with parameters has no counterpart in a schema; lines 3 to 5 are not read",
        ),
        (
            "interface B {\n  [key: number]: {\n    a: string\n  }\n}",
            4,
            "expected `string`, found `number`; lines 4 to 6 are not read",
        ),
        ("interface B {\n  3: {\n    a: string\n  };\n}", 4, "expected a name, found `3`; lines 4 to 6 are not read"),
        ("interface B {\n  a: keyof B;\n}", 4, "`keyof` has no counterpart in a schema"),
    ],
)
def test_all_lines_that_are_passed_over_are_said(code: str, line: int, message: str) -> None:
    found = extraction(f"```ts\ninterface A {{ x: string }}\n{code}\ninterface C {{ y: string }}\n```\n")
    assert {"A", "C"} <= found.draft["$defs"].keys()
    listed = [each for each in found.diagnostics if each.code == "rfd-typescript"]
    assert [(each.location and each.location.line, each.message) for each in listed] == [
        (line, f"not understood: {message}")
    ]


def test_the_lines_of_a_declaration_that_does_not_end_are_said() -> None:
    found = extraction("```ts\ninterface A { x: string }\ninterface B {\n  a: {\ninterface C { y: string }\n```\n")
    messages = [each.message for each in found.diagnostics if each.code == "rfd-typescript"]
    assert any(message.endswith("; lines 3 to 5 are not read") for message in messages)
