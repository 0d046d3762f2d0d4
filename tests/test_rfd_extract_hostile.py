"""Hostile and meaningless texts: the extraction ends within bounds, and never with a bug report."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acpgen.diagnostics import InputError
from acpgen.rfd.blocks import MAX_BYTES
from acpgen.schema.fragment import find_marks
from tests.command_line import run_acpgen
from tests.rfd_support import extraction
from tests.support import DEEP

pytestmark = pytest.mark.full

CPU_SECONDS = 60.0
"""The CPU time that any text may take; the slowest takes two seconds. A loaded machine does not count."""

EXAMPLES = 300 if DEEP else 40

PIECES = st.sampled_from(
    [
        *(
            "```ts\n",
            "```json\n",
            "```\n",
            "```diff\n",
            "\n",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            "|",
            "&",
            ":",
            ";",
            ",",
            "?",
        ),
        *("interface ", "type ", "enum ", "export ", "extends ", "readonly ", "A", "AgentCapabilities", "AuthMethod"),
        *(
            "string",
            "null",
            "...",
            "// x\n",
            "/** d */",
            "/*",
            "*/",
            '"',
            "'",
            "`",
            "\\",
            "=",
            "=>",
            "<",
            ">",
            "+",
            "-",
        ),
        *(
            '{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {}}',
            '{"$defs": {"A": ',
            '"type"',
            '"properties"',
            "1",
            " ",
        ),
        *("# Revision history\n", "2026-01-01", "title: ", "Client->>Agent: a\n", "\u202e", "\0", "\ud7ff", "é"),
    ]
)

NAMES = st.sampled_from(
    [
        *(
            "$defs",
            "type",
            "properties",
            "required",
            "items",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "const",
            "default",
            "$ref",
        ),
        *(
            "description",
            "title",
            "x-method",
            "x-side",
            "_meta",
            "additionalProperties",
            "not",
            "jsonrpc",
            "id",
            "method",
        ),
        *(
            "params",
            "result",
            "error",
            "code",
            "message",
            "A",
            "ARequest",
            "AResponse",
            "ANotification",
            "name",
            "kind",
        ),
        *("AgentCapabilities", "StopReason", "AuthMethod", "a"),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["object", "string", "null", "array", "#/$defs/A", "#/$defs/ARequest", "a", "agent", "", "initialize"]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=6)),
    max_leaves=30,
)


def survives(text: str) -> None:
    """Whatever the text, there is a draft whose marks are all named, or an error that says what is wrong."""
    try:
        found = extraction(text)
    except InputError:
        return
    json.dumps(found.draft)
    named = sum(each.code == "rfd-fill-in" for each in found.diagnostics)
    assert named == len(list(find_marks(found.draft)))
    assert all(each.location for each in found.diagnostics)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(1 <= each.location.line <= lines for each in found.diagnostics if each.location)


@given(st.text(max_size=300))
@settings(deadline=None, max_examples=EXAMPLES)
def test_any_text(text: str) -> None:
    survives(text)


@given(st.lists(PIECES, max_size=60).map("".join))
@example("```ts\ninterface A { 'a")
@example('```json\n{"$defs": {"A": {"type": [{}]}}}')
@example("```ts\ninterface StopReason { ...; a: string }\ntype StopReason = 'a' | ...\n")
@settings(deadline=None, max_examples=EXAMPLES)
def test_any_mixture_of_what_rfds_consist_of(text: str) -> None:
    survives(text)


@given(
    st.lists(VALUES, min_size=1, max_size=4),
    st.sampled_from(["```json\n", "", "```ts\ninterface A { ...; a: A }\n```\n"]),
)
@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_any_json(values: list[Any], before: str) -> None:
    survives(before + "\n".join(json.dumps(value, indent=1) for value in values))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_any_schema(definitions: dict[str, Any]) -> None:
    call = '{"jsonrpc": "2.0", "id": 1, "method": "a"}'
    typescript = "```ts\ninterface AgentCapabilities { ...; a?: A }\ninterface ARequest { a: ANotification }\n```"
    survives(f"{typescript}\n```json\n{json.dumps({'$defs': definitions})}\n{call}\n```\n")


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_on_the_command_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert run_acpgen("rfd", "extract", "a.md", cwd=tmp_path).code in (0, 1, 2)


# --- Size ------------------------------------------------------------------------------------------------------------


def filled(piece: str, before: str = "", after: str = "") -> str:
    """A text of the largest size, most of it `piece`."""
    return before + piece * ((MAX_BYTES - len(before) - len(after)) // len(piece.encode())) + after


def lines(line: str, before: str = "") -> str:
    return before + "\n".join([line] * ((MAX_BYTES - 100) // (len(line) + 1)))


FAN = "".join(
    f"interface T{index} {{ b?: boolean; {''.join(f'p{each}?: T{index + 1};' for each in range(20))} }}\n"
    for index in range(60)
)
CALLS = "\n".join(f'{{"jsonrpc":"2.0","id":1,"method":"m{index}"}}' for index in range(490))
TEXTS = {
    "braces": filled("{"),
    "lines of braces": lines("{"),
    "open objects": lines('{ "a": ['),
    "open interfaces": lines("interface A {"),
    "open aliases": lines("type A ="),
    "quotes": filled('"', "{"),
    "escapes": filled('\\"', '{"'),
    "backticks": filled("`"),
    "comments": filled("/*", "{"),
    "stars": filled("*", "```ts\n/*"),
    "apostrophes": filled("'", "```ts\ninterface A { a: "),
    "bars": filled("|", "```ts\ntype A = "),
    "parentheses": filled("(", "```ts\ntype A = "),
    "brackets": filled("[]", "```ts\ntype A = x"),
    "members": filled("a:b;", "```ts\ninterface A {", "}"),
    "words": filled("x ", "```ts\n"),
    "quotations": filled("> ", "# a\n"),
    "lists": filled("- ", "# a\n"),
    "tags": filled("<a ", "# a\n"),
    "fences": lines("```"),
    "values": filled("{}", "```json\n"),
    "stray": filled("a:b;"),
    "spaces": filled(" "),
    "patch": lines("- a: b;", "```diff\n interface A {\n"),
    "examples": "AuthMethod\n" + "\n".join(f'{{"id":"1","name":"n","type":"t{each}"}}' for each in range(6_000)),
    "calls": "\n".join(f'{{"jsonrpc":"2.0","id":1,"method":"m{index}"}}' for index in range(5_000)),
    "ways to a capability": f"```ts\ninterface AgentCapabilities {{ ...; a?: T0 }}\n{FAN}```\n{CALLS}",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_largest_texts_take_seconds(name: str) -> None:
    text = TEXTS[name]
    assert len(text.encode()) <= MAX_BYTES
    start = time.process_time()
    survives(text)
    assert time.process_time() - start < CPU_SECONDS


def test_the_default_of_a_capability_does_not_grow_without_bound() -> None:
    found = extraction(TEXTS["ways to a capability"])
    assert len(json.dumps(found.draft)) < 1_000_000


@pytest.mark.parametrize(
    "type_",
    [
        "(x[]|" * 25 + "x" + ")[]" * 25,
        "(" * 28 + "x" + ("[]" * 20 + "|y)") * 28,
        "x" + "[]" * 5_000,
        "{a:" * 5_000,
        "Array<" * 5_000,
        "readonly " * 5_000 + "x",
        "x & " * 5_000 + "x",
        "x | " * 5_000 + "x",
    ],
)
def test_types_within_types(type_: str) -> None:
    survives(f"```ts\ntype A = {type_};\ninterface B {{}}\n```\n")


def test_schemas_within_schemas() -> None:
    deep = '{"items":' * 95 + "{}" + "}" * 95
    survives(f'```json\n{{"$defs":{{"A":{deep}}}}}\n```\n')


# --- What is printed -------------------------------------------------------------------------------------------------


def test_nothing_that_a_terminal_would_act_upon_is_printed(tmp_path: Path) -> None:
    evil = "\x1b[31m\x07\u202e\x9b"
    text = f"# A{evil}\n{evil}: x;\n```ts\n/** {evil} */\ninterface A {{ a: '{evil}'; c: string }}\n```\n"
    text += f"```ts\ninterface B {{ /** {evil} */ a: {evil} }}\n```\n"
    text += f'```json\n{{"$defs": {{"B{evil}": {{"type": "string"}}}}, "{evil}": ... }}\n```\n'
    text += '```json\n{"$defs": {"C\\u001b[31m": {"type": "string", "x-method": "\\u009b"}}}\n```\n'
    text += '```json\n{"jsonrpc": "2.0", "id": 1, "method": "\\u001b[31m\\u202e"}\n```\n'
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    ran = run_acpgen("rfd", "extract", "a.md", cwd=tmp_path)
    assert ran.code == 1
    for stream in (ran.stdout, ran.stderr):
        assert all(char.isprintable() for char in stream.replace("\n", ""))
    assert json.loads(ran.stdout)["$defs"]["A"]["description"] == evil


def test_a_mark_in_the_text_is_no_way_around_the_loader(tmp_path: Path) -> None:
    text = "RFD: https://a.example\n\n2026\n```ts\n/** <fill in: me> */\ninterface A { b: string }\n```\n"
    (tmp_path / "a-2026-01-01.md").write_text(f"# T\n{text}", encoding="utf-8")
    ran = run_acpgen("rfd", "extract", "a-2026-01-01.md", cwd=tmp_path)
    assert ran.code == 1
    assert "to fill in at /$defs/A/description: me" in ran.stderr
