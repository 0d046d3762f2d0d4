"""Forms of all kinds, with values that fit and that do not: agents, clients and an independent validator agree."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.client_support import hand_agent
from tests.forms_support import answer_by_hand, fill_in, form_client, helpers_of
from tests.runtime_support import V1, V2, acp_log
from tests.support import Packages

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"], scope="module")
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param, parts=("forms", "turns", "permissions"))


quick = settings(deadline=None, max_examples=50)

# --- Schemas and values ----------------------------------------------------------------------------------------------

PATTERNS = ["^[a-c]+$", "b", r"^\w{2,3}$", "^(a|bc)*$", "x?y?$", "^.$", r"[^\d]"]
WORDS = st.text("abcxyz1 ", max_size=5)
OPTIONS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4)
SMALL = st.integers(0, 4)
NUMBERS = st.integers(-5, 5) | st.floats(-5, 5).map(lambda each: round(each, 2))
VALUES = WORDS | NUMBERS | st.booleans() | st.lists(st.sampled_from("abcdef"), max_size=5)


def with_some(**more: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=more)


def titled(values: list[str]) -> list[dict[str, str]]:
    return [{"const": each, "title": each.upper()} for each in dict.fromkeys(values)]


def property_of(kind: str, **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    return with_some(title=WORDS, **more).map(lambda each: {"type": kind, **each})


TEXT_LIMITS = {"minLength": SMALL, "maxLength": SMALL, "pattern": st.sampled_from(PATTERNS)}
PROPERTIES = st.one_of(
    property_of("string", **TEXT_LIMITS, default=WORDS),
    property_of("string", enum=OPTIONS, default=st.sampled_from("abz")),
    property_of("string", oneOf=OPTIONS.map(titled), maxLength=SMALL),
    property_of("number", minimum=NUMBERS, maximum=NUMBERS, default=NUMBERS),
    property_of("integer", minimum=st.integers(-5, 5), maximum=st.integers(-5, 5), default=st.integers(-9, 9)),
    property_of("boolean", default=st.booleans()),
    st.builds(
        lambda base, values, is_titled: {
            **base,
            "items": {"anyOf": titled(values)} if is_titled else {"type": "string", "enum": values},
        },
        property_of("array", minItems=SMALL, maxItems=SMALL, default=st.lists(st.sampled_from("abc"), max_size=3)),
        OPTIONS,
        st.booleans(),
    ),
)
NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    fields = draw(st.dictionaries(NAMES, PROPERTIES, max_size=3))
    required = draw(st.sets(st.sampled_from(sorted(fields))) if fields else st.just(set()))
    return {"type": "object", "properties": fields, "required": sorted(required)}


def fits(schema: Any, values: Any) -> bool:
    """The verdict of the validator, by the text of patterns that its library reads in the same way."""
    return bool(Draft202012Validator(schema).is_valid(values))


# --- Both sides ------------------------------------------------------------------------------------------------------


@quick
@given(schema=schemas(), entered=st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_a_client_accepts_is_what_fits_and_passes_the_agent(acp: Any, schema: Any, entered: Any) -> None:
    entered = {name: value for name, value in entered.items() if name in schema["properties"]}
    answer, asked = fill_in(acp, schema, entered, runner=asyncio.run)
    if isinstance(answer, ValueError):  # the agent itself finds that nothing fits, or a default that does not
        assert asked == []
        assert not isinstance(answer, helpers_of(acp).FormError)
        return
    defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
    if fits(schema, {**defaults, **entered}):
        assert answer == {**defaults, **entered}
        assert len(asked) == 1
    else:
        assert answer.reason == "declined"
        wrong = {name for name, each in {**defaults, **entered}.items() if not fits(schema["properties"][name], each)}
        missing = {*schema["required"]} - {**defaults, **entered}.keys()
        assert asked[1].flaws.keys() == wrong | missing


@quick
@given(schema=schemas(), content=st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_an_agent_takes_is_what_fits(acp: Any, schema: Any, content: Any) -> None:
    answer = answer_by_hand(acp, schema, content, asyncio.run)
    known = {name: value for name, value in content.items() if name in schema["properties"]}
    if isinstance(answer, dict):
        assert answer == known
        assert fits(schema, known)
    elif isinstance(answer, helpers_of(acp).FormError):
        assert not fits(schema, known)
    else:
        assert "does not fit" not in str(answer)
        assert isinstance(answer, ValueError)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from("ab([*"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "enum", "type"]), inner, max_size=3),
    max_leaves=6,
)
TEXTS = ["title", "description", "minLength", "maxLength", "pattern", "format", "default"]
OTHERS = ["enum", "oneOf", "anyOf", "items", "minItems", "maxItems", "minimum"]
KEYWORDS = st.sampled_from(TEXTS + OTHERS)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "_other"])
HOSTILE = st.builds(
    lambda kind, more: {"type": kind, "items": {"type": "string", "enum": ["a"]}, **more},
    TYPES,
    st.dictionaries(KEYWORDS, JSON, max_size=4),
)


@quick
@given(
    fields=st.dictionaries(st.text(max_size=3), HOSTILE, max_size=3),
    required=st.none() | st.lists(st.text(max_size=3), max_size=2),
    entered=JSON,
)
def test_any_schema_is_answered_and_what_is_accepted_fits(acp: Any, fields: Any, required: Any, entered: Any) -> None:
    """A request that does not decode is refused; there is no error inside the client."""
    schema = {"type": "object", "properties": fields, "required": required}

    async def reply(question: Any) -> Any:
        return {each.name: entered for each in question.fields}

    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, reply)) as agent:
            return await agent.call("elicitation/create", mode="form", message="?", requestedSchema=schema)

    with acp_log(logging.CRITICAL):
        answer = asyncio.run(main())
    if isinstance(answer, dict) and answer["action"] == "accept":
        assert {*(required or ())} <= answer["content"].keys()
        for name, value in answer["content"].items():
            assert isinstance(value, KINDS[fields[name]["type"]])
    else:
        assert answer in (-32602, {"action": "decline"})


KINDS: dict[str, Any] = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list}

# --- Formats and patterns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("email", ["a@b.org"], ["a", "a b@c", "@b", "a@"]),
        ("uri", ["https://example.org/a?b#c", "mailto:a@b.org"], ["example.org", "https://a b", "http://ä"]),
        ("date", ["2024-02-29"], ["2025-02-29", "20250331", "2025-W01-1", "2025-3-31", "2025-03-31\n"]),
        (
            "date-time",
            ["2025-03-31T14:30:00Z", "2025-03-31t14:30:60.123456789-01:30"],
            ["2025-03-31T24:00:00Z", "2025-03-31T14:30Z", "2025-03-31", "2025-02-30T14:30:00Z", "2025-03-31T14:30:00"],
        ),
    ],
)
def test_a_text_has_its_format(acp: Any, form: str, good: list[str], bad: list[str]) -> None:
    schema = {"properties": {"a": {"type": "string", "format": form}}}
    for text in good:
        assert answer_by_hand(acp, schema, {"a": text}) == {"a": text}
    for text in bad:
        assert "a: expected" in str(answer_by_hand(acp, schema, {"a": text})), text


def test_a_format_of_a_later_version_is_a_note(packages: Packages) -> None:
    acp = packages(V2, parts=("forms", "turns", "permissions"))
    schema = {"properties": {"a": {"type": "string", "format": "_colour"}}}
    assert answer_by_hand(acp, schema, {"a": "x"}) == {"a": "x"}


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_has_64_bits(acp: Any, value: int) -> None:
    schema = {"properties": {"a": {"type": "integer"}}}
    assert not isinstance(answer_by_hand(acp, schema, {"a": value}), dict)
    inside = value - 1 if value > 0 else value + 1
    assert answer_by_hand(acp, schema, {"a": inside}) == {"a": inside}


ATOMS = st.sampled_from(["a", "b", ".", r"\d", r"\w", "[ab]", "[^a]", r"\.", "[a-c&]", "^", "$", r"\u0061"])
PATTERN = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "{2,}", "*?"])),
    ),
    max_leaves=8,
)


@quick
@given(pattern=PATTERN, text=st.text("ab.c1&", max_size=6))
def test_a_pattern_matches_what_it_matches_in_python(acp: Any, pattern: str, text: str) -> None:
    """In this part of the syntax, Python reads patterns as ECMA-262 does, but for the end of the text."""
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII).search(text) is not None
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    assert isinstance(answer_by_hand(acp, schema, {"a": text}, asyncio.run), dict) is expected
