"""Forms: an agent asks with a dataclass or a schema, a client shows the fields, and both check the values."""

import asyncio
import logging
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import pytest

from tests.client_support import hand_agent
from tests.forms_support import answer_by_hand, ask, fill_in, form_client, hand_client, helpers_of, talking
from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param, parts=("forms", "turns", "permissions"))


# --- Dataclasses -----------------------------------------------------------------------------------------------------


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


def every_kind(acp: Any) -> type[Any]:
    """A dataclass with a field of each kind, and with everything that one may say about a field."""
    about = helpers_of(acp).FormInput

    @dataclass
    class Order:
        name: Annotated[str, about(title="Name", description="On it", minimum=2, maximum=9, pattern="^[A-Z]")]
        mail: Annotated[str, about(format="email")]
        count: Annotated[int, about(minimum=1, maximum=9)]
        weight: float
        gift: bool
        size: Size
        colour: Annotated[Literal["r", "g"], about(titles={"r": "Red"})]
        extras: Annotated[list[Literal["a", "b", "c"]], about(minimum=1, maximum=2)]
        sizes: list[Size] = field(default_factory=lambda: [Size.LARGE])
        note: str | None = None
        reference: Annotated[int | None, about(title="Reference")] = None
        inner: Annotated[str, about(title="Inner")] | None = None
        speed: Literal["slow", "fast"] = "slow"
        total: float = field(init=False, default=0.0)

    return Order


ENTERED = {
    "name": "Ada",
    "mail": "ada@example.org",
    "count": 3,
    "weight": 2,
    "gift": True,
    "size": "l",
    "colour": "g",
    "extras": ["c", "a"],
}


def test_a_dataclass_has_fields_of_each_kind(acp: Any) -> None:
    order, (question,) = fill_in(acp, every_kind(acp), ENTERED)
    shown = {each.name: each for each in question.fields}
    assert question.message == "Well?"
    assert {name: each.kind for name, each in shown.items()} == {
        "name": "text",
        "mail": "text",
        "count": "integer",
        "weight": "number",
        "gift": "boolean",
        "size": "choice",
        "colour": "choice",
        "extras": "choices",
        "sizes": "choices",
        "note": "text",
        "reference": "integer",
        "inner": "text",
        "speed": "choice",
    }
    assert {name for name, each in shown.items() if each.is_required} == ENTERED.keys()
    name = shown["name"]
    assert (name.title, name.description, name.minimum, name.maximum) == ("Name", "On it", 2, 9)
    assert [(each.value, each.title) for each in shown["colour"].options] == [("r", "Red"), ("g", "g")]
    assert [shown["reference"].title, shown["inner"].title, shown["note"].title] == ["Reference", "Inner", "note"]
    assert question.values == {"sizes": ["l"], "speed": "slow"}

    assert type(order).__name__ == "Order"
    assert (order.name, order.count, order.gift, order.extras) == ("Ada", 3, True, ["c", "a"])
    assert (order.size, order.sizes, order.speed) == (Size.LARGE, [Size.LARGE], "slow")
    assert isinstance(order.weight, float)
    assert order.note is None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("name", "A", "at least 2 characters"),
        ("name", "Ada Lovelace", "at most 9 characters"),
        ("name", "ada", "matches '^[A-Z]'"),
        ("mail", "ada", "an email address"),
        ("count", 2.5, "an integer"),
        ("count", True, "an integer"),
        ("count", 10, "at most 9"),
        ("weight", "2", "a number"),
        ("gift", 1, "true or false"),
        ("size", "m", "one of 's', 'l'"),
        ("extras", [], "at least 1 options"),
        ("extras", ["a", "b", "c"], "at most 2 options"),
        ("extras", ["x"], "a list of 'a', 'b', 'c'"),
        ("extras", "a", "a list of"),
    ],
)
def test_what_does_not_fit_is_named_on_both_sides(acp: Any, name: str, value: Any, reason: str) -> None:
    content = {**ENTERED, name: value}
    error = answer_by_hand(acp, every_kind(acp), content)
    assert isinstance(error, helpers_of(acp).FormError)
    assert error.flaws.keys() == {name}
    assert reason in error.flaws[name]
    assert f"{name}: " in str(error)

    order, questions = fill_in(acp, every_kind(acp), content, {name: ENTERED[name], **ENTERED})
    assert order.name == "Ada"
    assert [each.flaws for each in questions] == [{}, error.flaws]
    assert questions[1].values[name] == value


def test_a_required_field_has_to_be_there(acp: Any) -> None:
    content = {name: value for name, value in ENTERED.items() if name != "gift"}
    assert answer_by_hand(acp, every_kind(acp), content).flaws == {"gift": "a value is required"}
    assert [each.flaws for each in fill_in(acp, every_kind(acp), content)[1]] == [{}, {"gift": "a value is required"}]


@dataclass
class WithDict:
    inner: dict[str, str]


@dataclass
class WithNumbers:
    level: Literal[1, 2]


@dataclass
class WithTexts:
    names: list[str]


@dataclass
class WithWrongDefault:
    size: Literal["s", "l"] = "m"  # type: ignore[assignment]


@dataclass
class WithUnknownName:
    size: "Missing"  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("form", "named"),
    [
        (WithDict, "the field 'inner' of WithDict"),
        (WithNumbers, "the field 'level' of WithNumbers"),
        (WithTexts, "the field 'names' of WithTexts"),
        (WithWrongDefault, "the default of the field 'size'"),
        (WithUnknownName, "Missing"),
        (int, "a dataclass or a dict"),
        ({"properties": {"a": {"type": "string", "exclusiveMinimum": 3}}}, "$.properties.a.exclusiveMinimum: "),
        ({"properties": {"a": {"type": "string", "title": 3}}}, "$.properties.a.title"),
        ({"properties": {"a": {"type": "string", "minLength": "x"}}}, "minLength"),
        ({"properties": {"a": {"type": "object"}}}, "the field 'a'"),
        ({"properties": {"a": {"type": "array", "items": {"type": "integer"}}}}, "the field 'a'"),
        (
            {"properties": {"a": {"type": "string", "enum": ["x"], "oneOf": [{"const": "y", "title": "Y"}]}}},
            "the field 'a'",
        ),
        ({"properties": {"a": {"type": "string", "pattern": "(?=a)"}}}, "the pattern '(?=a)'"),
        ({"properties": {"a": {"type": "number", "minimum": 2, "maximum": 1}}}, "the field 'a'"),
        ({"properties": {}, "required": ["a"]}, "'a' is required"),
        (
            {"properties": {"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "default": ["x", 1]}}},
            "$",
        ),
    ],
)
def test_what_a_form_cannot_have_is_an_error_that_names_it(acp: Any, form: Any, named: str) -> None:
    error, questions = fill_in(acp, form)
    assert isinstance(error, (TypeError, ValueError))
    assert named in str(error)
    assert questions == []


def test_limits_are_for_the_fields_that_have_them(acp: Any) -> None:
    @dataclass
    class Wrong:
        count: Annotated[int, helpers_of(acp).FormInput(pattern="^1")]

    error, _ = fill_in(acp, Wrong)
    assert "$.properties.count.pattern: a form cannot have '^1' there" in str(error)


def test_a_schema_gives_a_dict_with_what_was_asked_for(acp: Any) -> None:
    form = {"title": "About you", "properties": {"age": {"type": "integer", "default": 7}, "name": {"type": "string"}}}
    values, (question,) = fill_in(acp, form, {"name": "Ada"})
    assert values == {"age": 7, "name": "Ada"}
    assert question.title == "About you"
    assert fill_in(acp, form, {"age": None})[0] == {}
    assert answer_by_hand(acp, form, {"name": "Ada", "more": "x"}) == {"name": "Ada"}
    assert answer_by_hand(acp, form, None) == {}
    assert fill_in(acp, acp.decode(acp.ElicitationSchema, {"type": "object", **form}), {})[0] == {"age": 7}


# --- No answer -------------------------------------------------------------------------------------------------------

FORM = {"properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_an_answer_that_is_none_is_false_and_says_why(acp: Any) -> None:
    for reply, reason in (("decline", "declined"), ("cancel", "cancelled")):
        answer, _ = fill_in(acp, FORM, reply)
        assert not answer
        assert answer.reason == reason
        assert answer.response.action == reply
    unknown = {"action": "_later", "content": {"name": "Ada"}}
    answer, _ = ask(acp, hand_client(acp, unknown), lambda stub: helpers_of(acp).ask_form(stub, "s", "?", FORM))
    assert answer.reason == "cancelled"
    assert answer.response.action == "_later"


@pytest.mark.parametrize("able", [{}, {"url": {}}])
def test_a_client_that_cannot_show_forms_is_not_asked(acp: Any, able: Any) -> None:
    def work(stub: Any) -> Any:
        return helpers_of(acp).ask_form(stub, "s", "?", FORM)

    answer, client = ask(acp, hand_client(acp), work, able)
    assert answer.reason == "unsupported"
    assert client.received == []


@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_was_not_awaited_decides_nothing(acp: Any) -> None:
    async def work(stub: Any) -> Any:
        return bool(helpers_of(acp).ask_form(stub, "s", "?", FORM))

    error, _ = ask(acp, form_client(acp), work)
    assert "was not awaited" in str(error)


def test_a_page_to_visit(acp: Any) -> None:
    helpers = helpers_of(acp)

    async def work(stub: Any) -> Any:
        visit = await helpers.ask_url(stub, "s", "Log in", "https://example.org/login")
        await visit.complete()
        return visit.elicitation_id, await helpers.ask_url(stub, "s", "Log in", "https://example.org/login")

    client = hand_client(acp, {"action": "accept"}, {"action": "decline"})
    (elicitation_id, refused), seen = ask(acp, client, work, {"url": {}})
    received = [each for each in seen.received if hasattr(each, "elicitation_id")]
    assert [each.elicitation_id for each in received[:2]] == [elicitation_id] * 2
    assert received[0].url == "https://example.org/login"
    assert received[2].elicitation_id != elicitation_id
    assert refused.reason == "declined"
    unable, _ = ask(acp, hand_client(acp), lambda stub: helpers.ask_url(stub, "s", "?", "https://x.org"), {})
    assert unable.reason == "unsupported"
    declined = ask(acp, form_client(acp), lambda stub: helpers.ask_url(stub, "s", "?", "https://x.org"), {"url": {}})
    assert declined[0].reason == "declined"


def test_the_state_of_the_session_while_the_user_is_asked(packages: Packages) -> None:
    """Only protocol 2 has states; questions of other kinds that are open count, too."""
    acp = packages(V2, parts=("forms", "turns", "permissions"))
    helpers = helpers_of(acp)

    async def main() -> list[Any]:
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def wait(question: Any) -> Any:
            asked.set()
            await go_on.wait()
            return {"name": "Ada"}

        async with talking(acp, form_client(acp, wait, "decline")) as both:
            first = asyncio.ensure_future(helpers.ask_form(both.client, "s", "?", FORM))
            await asked.wait()
            second = asyncio.ensure_future(helpers.ask_form(both.client, "s", "?", FORM))
            background = await helpers.ask_form(both.client, "other", "?", FORM, foreground=False)
            go_on.set()
            await asyncio.gather(first, second)
            assert not background
            return [each.state for each in both.client_handler.updates]

    assert run(main()) == ["requires_action", "requires_action", "running"]


# --- The client ------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", **FORM}


def request(schema: Any = SCHEMA, **other: Any) -> dict[str, Any]:
    return {"mode": "form", "message": "?", "requestedSchema": schema, **other}


def test_the_client_declines_what_it_cannot_show(acp: Any) -> None:
    def of(**properties: Any) -> Any:
        return request({"type": "object", "properties": properties})

    wide = {f"f{number}": {"type": "boolean"} for number in range(51)}
    many = {"type": "string", "enum": [f"option {number}" for number in range(10_000)]}
    hostile = [
        of(a={"type": "_slider"}),
        of(a={"type": "array", "items": {"type": "_colour"}}),
        of(a={"type": "string", "enum": ["x"], "oneOf": [{"const": "y", "title": "Y"}]}),
        of(a={"type": "string", "pattern": "(?<=a)b"}),
        of(**wide),
        of(a=many),
        of(a={"type": "string", "description": "x" * 300_000}),
        {**of(), "message": "x" * 300_000},
        request({"type": "object", "properties": {}, "required": ["a"]}),
        {"mode": "url", "message": "?", "elicitationId": "e", "url": "https://example.org"},
        {"mode": "_other", "message": "?"},
    ]

    async def main() -> None:
        async with hand_agent(acp, form_client(acp)) as agent:
            for each in hostile:
                assert await agent.call("elicitation/create", **each) == {"action": "decline"}, each
            assert agent.client.asked == []
            assert await agent.call("elicitation/create", **request()) == {"action": "decline"}
            assert len(agent.client.asked) == 1

    with acp_log(logging.CRITICAL):
        run(main())


def test_a_default_that_does_not_fit_is_none(acp: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3, "default": 4}}}

    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, {})) as agent:
            answer = await agent.call("elicitation/create", **request(schema))
            return answer, agent.client.asked[0].fields[0].default

    assert run(main()) == ({"action": "accept", "content": {}}, None)


def test_a_pattern_cannot_hold_up_the_client(acp: Any) -> None:
    """Each of these takes `re` years, or much memory; and the text to try them on is the agent's, too."""
    patterns = ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*)*x$", "(x+x+)+y", "^(a?){99999999}$", "(((a*)*)*)*b"]
    fields = {
        f"f{n}": {"type": "string", "pattern": each, "default": "a" * 4000 + "!"} for n, each in enumerate(patterns)
    }

    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, {})) as agent:
            return await agent.call("elicitation/create", **request({"type": "object", "properties": fields}))

    assert run(main()) == {"action": "accept", "content": {}}


def test_a_user_interface_that_never_fits_ends(acp: Any) -> None:
    """Otherwise the agent would wait for ever."""
    with acp_log() as records:
        answer, questions = fill_in(acp, FORM, *[{"name": 1}] * 1000)
    assert answer.reason == "cancelled"
    assert 1 < len(questions) < 100
    assert "does not fit" in texts(records)


@pytest.mark.parametrize("reply", [None, True, "accept", ["name"], {"other": 1}])
def test_what_is_no_reply_does_not_become_one(acp: Any, reply: Any) -> None:
    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, reply)) as agent:
            return await agent.call("elicitation/create", **request())

    with acp_log() as records:
        assert run(main()) == -32603
    assert "ask_form returned" in texts(records)


def test_a_session_has_one_form_at_a_time_and_a_cancelled_one_is_closed(acp: Any) -> None:
    async def main() -> None:
        opened: list[str] = []
        closed: list[str] = []

        async def wait(question: Any) -> Any:
            opened.append(question.message)
            try:
                await asyncio.sleep(3600)
            finally:
                closed.append(question.message)

        async with hand_agent(acp, form_client(acp, wait, {"name": "Ada"}, wait, wait)) as agent:
            first = await agent.ask("elicitation/create", **request(message="1"))
            second = await agent.ask("elicitation/create", **request(message="2"))
            await agent.peer.ping()
            assert opened == ["1"]
            await agent.peer.notify("$/cancel_request", {"requestId": first})
            assert await agent.answer(first) == {"action": "cancel"}
            assert await agent.answer(second) == {"action": "accept", "content": {"name": "Ada"}}
            third = await agent.ask("elicitation/create", **request(message="3"))
            fourth = await agent.ask("elicitation/create", **request(message="4", sessionId="other"))
            await agent.peer.ping()
            agent.client.cancel_forms("s")
            assert await agent.answer(third) == {"action": "cancel"}
            assert closed == ["1", "3"]
            agent.client.cancel_forms("other")
            assert await agent.answer(fourth) == {"action": "cancel"}

    run(main())


def test_a_request_that_belongs_to_no_session_is_answered(acp: Any) -> None:
    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, {"name": "Ada"})) as agent:
            await agent.peer.request("x", "elicitation/create", request(requestId=7))
            return (await agent.peer.receive())["result"]

    assert run(main()) == {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"type": "string"}, " as it is ", " as it is "),
        ({"type": "integer"}, "7", 7),
        ({"type": "integer"}, "7.5", ValueError),
        ({"type": "integer", "maximum": 5}, "7", ValueError),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "number"}, "nan", ValueError),
        ({"type": "number"}, "1e999", ValueError),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "boolean"}, "maybe", ValueError),
        ({"type": "string", "enum": ["x", "y"]}, "2", "y"),
        ({"type": "string", "enum": ["x", "y"]}, "3", ValueError),
        ({"type": "string", "enum": ["x", "y"]}, "1,2", ValueError),
        ({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}, "2, 1", ["y", "x"]),
        ({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}, "0", ValueError),
    ],
)
def test_a_line_becomes_a_value(acp: Any, schema: Any, line: str, value: Any) -> None:
    async def read(question: Any) -> Any:
        return {"a": helpers_of(acp).read_entry(question.fields[0], line)}

    async def main() -> Any:
        async with hand_agent(acp, form_client(acp, read)) as agent:
            return await agent.call("elicitation/create", **request({"type": "object", "properties": {"a": schema}}))

    with acp_log(logging.CRITICAL):
        assert run(main()) == (-32603 if value is ValueError else {"action": "accept", "content": {"a": value}})
