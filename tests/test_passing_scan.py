"""How a proxy reads a message: as `json` does, with the place of each member in the text."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpgen.ir.model import Options
from acpgen.roles import Role
from tests.runtime_support import V1
from tests.support import Packages, runtime_module

NAMES = st.sampled_from(["id", "method", "params", "", "a b", 'a"b', "\\", "\u2028", "é", "😀", "\n", "\x7f"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
BLANKS = st.text(" \t\n\r", max_size=2)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """The text of an object, with blanks wherever they may be, and names that may be escaped or doubled."""
    members = draw(st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=5))
    written = []
    for name, value, is_ascii in members:
        texts = (json.dumps(each, ensure_ascii=is_ascii) for each in (name, value))
        written.append(":".join(draw(BLANKS) + text + draw(BLANKS) for text in texts))
    return draw(BLANKS) + "{" + (",".join(written) or draw(BLANKS)) + "}"


@pytest.fixture(scope="module")
def passing(packages: Packages) -> ModuleType:
    package = packages(V1, roles=(Role.PROXY,), options=Options(open=True, keep_unknown=True))
    found: ModuleType = runtime_module(package, "passing")
    return found


def scanned(passing: ModuleType, text: str) -> Any:
    """The value of a whole text, or None if it is not valid. Checks where its members are."""
    try:
        value, spans, end = passing.scan(text)
    except ValueError:
        return None
    if isinstance(value, dict):
        assert _is_message(passing, text) == (len(_names(text[:end])) == len(value))
    if text[end:].strip(" \t\n\r"):
        return None
    if isinstance(value, dict):
        assert {name: json.loads(text[start:stop]) for name, (start, stop) in spans.items()} == value
    return [value]


def _is_message(passing: ModuleType, text: str) -> bool:
    """False for an object that has a member twice."""
    try:
        passing.scan(text, is_message=True)
    except passing.RepeatedMemberError:
        return False
    return True


def _names(text: str) -> list[Any]:
    found: list[Any] = json.loads(text, object_pairs_hook=list)
    return found


def loaded(text: str) -> Any:
    try:
        return [json.loads(text)]
    except ValueError:
        return None


@given(text=objects())
@settings(deadline=None, max_examples=40)
def test_an_object_is_read_as_json_reads_it(text: str, passing: ModuleType) -> None:
    assert scanned(passing, text) == loaded(text) is not None


@given(
    text=objects(), at=st.integers(0, 80), put=st.sampled_from(["", "{", "}", '"', ":", ",", "\\", "1", " ", "\n", "["])
)
@settings(deadline=None)
def test_what_json_refuses_is_refused(text: str, at: int, put: str, passing: ModuleType) -> None:
    changed = text[:at] + put + text[at + 1 :]
    assert scanned(passing, changed) == loaded(changed)


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a":1,}',
            "{,}",
            '{"a"}',
            '{"a":}',
            '{"a" 1}',
            '{"a":1 "b":2}',
            "{'a':1}",
            "{a:1}",
            '{"a":1',
            "{",
            '{"a',
            '{"a"',
        ),
        *(
            '{"a":NaN}',
            '{"a":-Infinity}',
            '{"\n":1}',
            '{"\\x":1}',
            '{"a":01}',
            '{"a":[}',
            "",
            " ",
            "nul",
            '{"a":1}}',
            "{1:2}",
        ),
    ],
)
def test_an_invalid_text(text: str, passing: ModuleType) -> None:
    assert scanned(passing, text) is None


@pytest.mark.parametrize("text", ["[1, 2]", "null", ' "a" ', "1.5", '{"a": 1}', "true", '{"\\u0061": 1}'])
def test_a_valid_text(text: str, passing: ModuleType) -> None:
    assert scanned(passing, text) == loaded(text)


def test_an_integer_of_any_length_is_read(passing: ModuleType) -> None:
    (value,) = scanned(passing, '{"n": %s}' % ("9" * 300))
    assert value == {"n": int("9" * 300)}
    value, spans, _ = passing.scan('{"n": %s}' % ("9" * 10_000))
    assert value == {"n": float("inf")}
    assert spans == {"n": (6, 10_006)}
