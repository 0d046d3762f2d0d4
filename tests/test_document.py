"""Reading JSON: what is refused, with which words, and where a pointer stands in the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acpgen.diagnostics import Diagnostic, InputError
from acpgen.schema import document as documents
from acpgen.schema.document import MAX_DEPTH, Document, parse_document, read_document

TEXT = """\
{
  "a": 1,
  "nested": {"list": [10, {"deep": true}, [[]] ], "empty": {}},
  "a/b": {"~": "tilde", "~1": "both", "": "nothing"},
  "é\\u00e9": "x", "tab\\tkey" :  2 ,
  "string with \\"$defs\\": {": {"a": ",]}"}
}
"""


def parsed(text: str | bytes) -> Document:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_document(data, label="x.json", origin="X")


def refusal(text: str | bytes) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        parsed(text)
    (found,) = caught.value.diagnostics
    return found


# --- Positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("", 1, 1),
        ("/a", 2, 8),
        ("/nested", 3, 13),
        ("/nested/list", 3, 22),
        ("/nested/list/0", 3, 23),
        ("/nested/list/1", 3, 27),
        ("/nested/list/1/deep", 3, 36),
        ("/nested/list/2/0", 3, 44),
        ("/nested/empty", 3, 60),
        ("/a~1b", 4, 10),
        ("/a~1b/~0", 4, 16),
        ("/a~1b/~01", 4, 31),
        ("/a~1b/", 4, 43),
        ("/éé", 5, 14),
        ("/tab\tkey", 5, 33),
        ('/string with "$defs": {/a', 6, 37),
    ],
)
def test_a_pointer_is_found_in_the_text(pointer: str, line: int, column: int) -> None:
    found = parsed(TEXT).location(pointer)
    assert (found.file, found.line, found.column) == ("x.json", line, column)
    assert found.excerpt == (TEXT.splitlines()[line - 1] if pointer else "")


def test_the_value_at_a_position_is_the_one_that_the_pointer_names() -> None:
    document = parsed(TEXT)
    lines = TEXT.splitlines(keepends=True)
    for pointer, value in _walk(document.root, ""):
        found = document.location(pointer)
        offset = sum(len(line) for line in lines[: found.line - 1]) + found.column - 1
        assert json.JSONDecoder().raw_decode(TEXT, offset)[0] == value, pointer


def _walk(node: object, pointer: str) -> list[tuple[str, object]]:
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    below = [each for key, child in members for each in _walk(child, documents.join(pointer, key))]
    return [(pointer, node), *below]


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("/nested/gone/further", 3, 13),
        ("/nested/list/7", 3, 22),
        ("/nested/list/x", 3, 22),
        ("/a/b/c", 2, 8),
        ("/z", 1, 1),
    ],
)
def test_a_pointer_to_nowhere_stands_where_it_was_last_seen(pointer: str, line: int, column: int) -> None:
    found = parsed(TEXT).location(pointer)
    assert (found.line, found.column) == (line, column)


def test_a_byte_order_mark_moves_nothing() -> None:
    document = parsed(b"\xef\xbb\xbf" + TEXT.encode())
    found = document.location("/a")
    assert (found.line, found.column) == (2, 8)
    assert parsed(b'\xef\xbb\xbf{"a": 1}').location("/a").column == 7


def test_windows_line_ends_count_as_one_line_and_leave_no_trace_in_the_excerpt() -> None:
    document = parsed(TEXT.replace("\n", "\r\n"))
    found = document.location("/a~1b/~0")
    assert (found.line, found.column) == (4, 16)
    assert found.excerpt == TEXT.splitlines()[3]


def test_line_separators_within_a_string_start_no_line() -> None:
    document = parsed('{"a": "\u2028\x85", "b": 1}')
    assert (document.location("/b").line, document.location("/b").column) == (1, 18)


def test_a_file_without_line_breaks_has_short_excerpts() -> None:
    text = json.dumps({"x" * 40 + str(number): number for number in range(10_000)})
    found = parsed(text).location("/" + "x" * 40 + "9999")
    assert found.line == 1
    assert found.column > 400_000
    assert len(found.excerpt) <= 200


def test_of_wide_characters_each_is_one_column() -> None:
    assert parsed('{"😀": 1, "b": 2}').location("/b").column == 15


# --- What is no document ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["{", '{"a": }', '{"a": 1,}', "[1 2]", "", "{} {}", "{'a': 1}", '{"a": 01}', '{"a": "\t"}']
)
def test_bad_json_is_refused_with_its_place(text: str) -> None:
    found = refusal(text)
    assert found.code == "bad-json"
    assert found.location is not None
    assert found.location.file == "x.json"


def test_bad_json_shows_the_line() -> None:
    found = refusal('{\n  "a": 1,\n  "b": oops\n}')
    assert found.location is not None
    assert (found.location.line, found.location.column, found.location.excerpt) == (3, 8, '  "b": oops')


@pytest.mark.parametrize("text", ["[]", '"x"', "1", "null", "true"])
def test_a_document_is_an_object(text: str) -> None:
    assert refusal(text).code == "not-an-object"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_python_adds_to_json_are_refused(constant: str) -> None:
    found = refusal(f'{{"a": [{constant}]}}')
    assert found.code == "bad-json"
    assert constant in found.message


@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "123456789e999", "9" * 400 + ".0", "-" + "9" * 400 + ".5e1", "9" * 5_000]
)
def test_numbers_out_of_range_are_refused(number: str) -> None:
    found = refusal(f'{{"9": 1,\n "a": [{number}]}}')
    assert found.code == "bad-json"
    assert found.location is not None
    assert (found.location.line, found.location.column) == (2, 8)
    assert len(found.message) < 100


def test_integers_of_any_use_are_read_exactly() -> None:
    number = 2**4096 + 1
    assert parsed(f'{{"a": {number}, "b": -{number}}}').root == {"a": number, "b": -number}


def test_numbers_close_to_nothing_are_nothing() -> None:
    assert parsed('{"a": [1e-400, -0.0, 0.0]}').root == {"a": [0.0, -0.0, 0.0]}


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"x": [{"b": 1, "c": 2, "b": 3}]}', '{"\\u0061": 1, "a": 2}'])
def test_a_name_must_not_stand_twice(text: str) -> None:
    found = refusal(text)
    assert found.code == "duplicate-name"
    assert found.message.startswith("the name")


def test_the_second_of_two_equal_names_is_pointed_to() -> None:
    found = refusal('{\n  "a": {"a": "a"},\n  "b": ["a"],\n  "a": 2\n}')
    assert found.location is not None
    assert (found.location.line, found.location.column) == (4, 3)


def test_a_name_may_stand_in_several_objects() -> None:
    assert parsed('{"a": {"a": [{"a": 1}, {"a": 2}]}}').root["a"]["a"] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "text", [r'{"a": "\ud800"}', r'{"\uDFFF": 1}', r'{"a": ["x\udc00\ud800"]}', r'{"a": "\ud83d \ude00"}']
)
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    assert refusal(text).code == "lone-surrogate"


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert parsed(r'{"a": "\ud83d\ude00", "b": "\\ud800"}').root == {"a": "😀", "b": "\\ud800"}


@pytest.mark.parametrize(
    "data", [b'{"a": "\xff"}', b"\xff\xfe{\x00}\x00", b'{"a": "\xed\xa0\x80"}', b'{"\xc0\xaf": 1}']
)
def test_bytes_that_are_no_utf_8_are_refused(data: bytes) -> None:
    found = refusal(data)
    assert found.code == "not-utf-8"
    assert found.message.startswith("x.json is not UTF-8: ")


def _nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return '{"a": ' + opening * (depth - 1) + "1" + closing * (depth - 1) + "}"


def test_nesting_is_bounded() -> None:
    assert parsed(_nested(MAX_DEPTH)).root
    assert refusal(_nested(MAX_DEPTH + 1)).code == "too-deep"
    assert refusal('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)).code == "too-deep"


def test_nesting_that_no_parser_survives_is_refused_alike() -> None:
    assert refusal(_nested(200_000)).code == "too-deep"
    assert refusal(_nested(200_000).replace("{", '{"\\u0061b": 1, ')).code == "too-deep"
    assert refusal('{"a":' * 200_000 + "1" + "}" * 200_000).code == "too-deep"


# --- Files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_with_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"{}\n")
    document = read_document(path, label="shown.json", origin="ACP")
    assert (document.label, document.origin, document.root) == ("shown.json", "ACP", {})
    assert document.digest == "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"


def test_a_byte_order_mark_is_part_of_the_digest() -> None:
    assert parsed(b"\xef\xbb\xbf{}").digest != parsed(b"{}").digest


@pytest.mark.parametrize("name", ["gone.json", "folder"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"^cannot read shown.json: ") as caught:
        read_document(tmp_path / name, label="shown.json", origin="ACP")
    assert [found.code for found in caught.value.diagnostics] == ["file-unreadable"]


def test_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": "' + "x" * 1000 + '"}')
    monkeypatch.setattr(documents, "MAX_BYTES", 500)
    with pytest.raises(InputError, match=r"shown.json is larger than"):
        read_document(path, label="shown.json", origin="ACP")
    monkeypatch.setattr(documents, "MAX_BYTES", 2000)
    assert read_document(path, label="shown.json", origin="ACP").root["a"]


# --- Pointers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pointer", "tokens"),
    [
        ("", []),
        ("/", [""]),
        ("/a/b", ["a", "b"]),
        ("/a~1b/~0", ["a/b", "~"]),
        ("/~01", ["~1"]),
        ("//x/", ["", "x", ""]),
    ],
)
def test_pointers_split_and_join(pointer: str, tokens: list[str]) -> None:
    assert documents.split(pointer) == tokens
    assert documents.join("", *tokens) == pointer


def test_a_pointer_starts_with_a_slash() -> None:
    with pytest.raises(ValueError, match="not a JSON pointer"):
        documents.split("a/b")


def test_pointers_resolve() -> None:
    root = {"a/b": [10, {"~": None}]}
    assert documents.resolve(root, "") is root
    assert documents.resolve(root, "/a~1b/0") == 10
    assert documents.resolve(root, "/a~1b/1/~0") is None
    for nowhere in ("/b", "/a~1b/2", "/a~1b/-1", "/a~1b/x", "/a~1b/0/0"):
        with pytest.raises(LookupError):
            documents.resolve(root, nowhere)
