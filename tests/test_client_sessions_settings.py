"""The state of a session follows what this side does: mode, model, options, and prompts that the agent repeats."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.options import Options
from acpgen.roles import Role
from tests.client_sessions import Stage, stage
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
MODES = {"currentModeId": "ask", "availableModes": [{"id": each, "name": each} for each in ("ask", "plan")]}
MODELS = {"currentModelId": "small", "availableModels": [{"modelId": each, "name": each} for each in ("small", "big")]}


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,), options=Options(open=True))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,), options=Options(open=True))


def options(version: int, **values: Any) -> list[Any]:
    """Options with these values; those that are texts are lists, of a category of their name."""
    key = "id" if version == 1 else "configId"
    return [
        (
            {key: f"o-{name}", "name": name, "type": "boolean", "currentValue": value}
            if isinstance(value, bool)
            else {
                key: f"o-{name}",
                "name": name,
                "type": "select",
                "category": name,
                "currentValue": value,
                "options": [{"value": each, "name": each} for each in ("low", "high")],
            }
        )
        for name, value in values.items()
    ]


def values_of(session: Any) -> list[Any]:
    return [option.current_value for option in session.state.config_options]


async def opened(play: Stage, **result: Any) -> tuple[Any, list[set[str]]]:
    """A session, and the names of the attributes that change from now on."""
    names: list[set[str]] = []
    session = await play.opened(**result)

    def changed(_: Any, change: Any) -> None:
        if isinstance(change, play.helpers.AttributesChange):
            names.append({*change.names})

    play.client.session_changed = changed
    return session, names


def test_a_mode_that_was_set_is_in_the_state(one: ModuleType) -> None:
    """qwen sends no update after it; the answer is empty."""

    async def main() -> None:
        async with stage(one, 1) as play:
            session, names = await opened(play, modes=MODES)
            setting = asyncio.ensure_future(session.set_mode("plan"))
            request = await play.agent.receive("session/set_mode")
            assert request["params"] == {"sessionId": "s", "modeId": "plan"}
            assert session.state.current_mode_id == "ask"
            await play.agent.answer(request)
            await setting
            assert (session.state.current_mode_id, names) == ("plan", [{"current_mode_id"}])

    run(main())


def test_what_the_agent_refuses_is_not_in_the_state(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session, names = await opened(play, configOptions=options(version, mode="low"))
            setting = asyncio.ensure_future(session.set_option("o-mode", "high"))
            request = await play.agent.receive("session/set_config_option")
            await play.agent.answer(request, code=-32602, message="not now")
            with pytest.raises(acp.InvalidParamsError):
                await setting
            assert (values_of(session), names, session.chosen) == (["low"], [], {})

    run(main())


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize(("option", "value"), [("o-level", "high"), ("o-fast", True)])
def test_an_option_that_was_set_is_in_the_state(
    acp: ModuleType, version: int, *, option: str, value: Any, tells: bool
) -> None:
    """As the answer tells, which may have others changed with it; an answer without options changes that one alone."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session, names = await opened(play, configOptions=options(version, level="low", fast=False))
            setting = asyncio.ensure_future(session.set_option(option, value))
            request = await play.agent.receive("session/set_config_option")
            kind = "boolean" if value is True else {1: None, 2: "id"}[version]
            assert (request["params"]["configId"], request["params"]["value"]) == (option, value)
            assert request["params"].get("type") == kind
            now = options(version, level="high", fast=True) if tells else []
            await play.agent.answer(request, {"configOptions": now})
            await setting
            expected = ["high", True] if tells else [value if option == "o-level" else "low", value is True]
            assert (values_of(session), names) == (expected, [{"config_options"}])

    run(main())


@pytest.mark.parametrize("name", ["mode", "model"])
def test_mode_and_model_may_be_options(acp: ModuleType, version: int, name: str) -> None:
    """In protocol 2 always, and in protocol 1 where the agent has one of that category."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session, _ = await opened(play, configOptions=options(version, **{"thought_level": "low", name: "low"}))
            setting = asyncio.ensure_future(getattr(session, f"set_{name}")("high"))
            request = await play.agent.receive("session/set_config_option")
            assert (request["params"]["configId"], request["params"]["value"]) == (f"o-{name}", "high")
            await play.agent.answer(
                request, {"configOptions": options(version, **{"thought_level": "low", name: "high"})}
            )
            await setting
            assert values_of(session) == ["low", "high"]

    run(main())


def test_what_the_agent_does_not_offer_cannot_be_set(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session, _ = await opened(play)
            with pytest.raises(ValueError, match="model"):
                await session.set_model("big")
            if version == 2:
                with pytest.raises(ValueError, match="mode"):
                    await session.set_mode("plan")
            await play.barrier()
            assert play.agent.read == []

    run(main())


def test_a_model_of_the_extension_is_set(packages: Packages) -> None:
    acp = packages(replace(V1, extensions=("session-model",)), roles=(Role.CLIENT,))

    async def main() -> None:
        async with stage(acp, 1) as play:
            session, names = await opened(play, models=MODELS)
            setting = asyncio.ensure_future(session.set_model("big"))
            request = await play.agent.receive("session/set_model")
            assert request["params"] == {"sessionId": "s", "modelId": "big"}
            await play.agent.answer(request)
            await setting
            assert (session.state.current_model_id, names) == ("big", [{"current_model_id"}])

    run(main())


def test_a_choice_in_a_turn_is_a_change_of_it(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session, names = await opened(play, configOptions=options(version, level="low"))
            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(_read(turn))
            request = await play.agent.prompted()
            setting = asyncio.ensure_future(session.set_option("o-level", "high"))
            chosen = await play.agent.receive("session/set_config_option")
            await play.agent.answer(chosen, {"configOptions": options(version, level="high")})
            await setting
            await play.agent.end(request)
            found = [each.names for each in await reading if isinstance(each, play.helpers.AttributesChange)]
            assert frozenset({"config_options"}) in found
            assert names == []

    run(main())


async def _read(turn: Any) -> list[Any]:
    return [change async for change in turn]


# --- Prompts that the agent repeats, in protocol 1 -------------------------------------------------------------------


async def echoed(one: ModuleType, *chunks: Any, before: Any = None) -> list[tuple[str, str, str]]:
    """The transcript after a turn whose prompt the agent has repeated in these pieces, with their ids."""
    async with stage(one, 1) as play:
        session = await play.opened()
        image = one.ContentBlockImage(data="aGk=", mime_type="image/png")
        reading = asyncio.ensure_future(_read(session.prompt("Hello, ", image, "world")))
        request = await play.agent.prompted()
        if before is not None:
            await play.agent.say(before)
        for content, message in chunks:
            block = {"type": "text", "text": content} if isinstance(content, str) else content
            ids = {} if message is None else {"messageId": message}
            await play.agent.update("user_message_chunk", content=block, **ids)
        await play.agent.say("Hi")
        await play.agent.end(request)
        changes = [each for each in await reading if isinstance(each, play.helpers.MessageChange)]
        shown: dict[Any, str] = {}
        for change in changes:
            shown[change.entry] = change.text if change.is_whole else shown[change.entry] + change.text
        assert [*shown.values()] == [entry.text for entry in session.state.entries]
        return [(type(each).__name__, each.text, each.id) for each in session.state.entries]


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
ANSWER = ("AgentMessage", "Hi", "m")


@pytest.mark.parametrize("message", [None, "u1"])
@pytest.mark.parametrize("pieces", [["Hello, ", IMAGE, "world"], ["Hel", "lo, ", IMAGE, "wor", "ld"], ["Hello, "]])
def test_a_prompt_that_is_repeated_is_one_message(one: ModuleType, pieces: list[Any], message: Any) -> None:
    """Whole or in part, in any pieces. It gets the id that the agent gives it."""
    found = run(echoed(one, *((piece, message) for piece in pieces)))
    assert found == [("UserMessage", "Hello, world", message or ""), ANSWER]


@pytest.mark.parametrize("message", [None, "u1"])
@pytest.mark.parametrize("words", ["Bye", "hello", "<context/>Hello, "])
def test_other_words_are_another_message(one: ModuleType, words: str, message: Any) -> None:
    found = run(echoed(one, (words, message)))
    assert found == [("UserMessage", "Hello, world", ""), ("UserMessage", words, message or ""), ANSWER]


def test_what_is_more_than_the_prompt_is_another_message(one: ModuleType) -> None:
    found = run(echoed(one, ("Hello, ", None), (IMAGE, None), ("world", None), ("world", None)))
    assert found == [("UserMessage", "Hello, world", ""), ("UserMessage", "world", ""), ANSWER]


def test_the_same_words_after_an_answer_are_said_anew(one: ModuleType) -> None:
    found = run(echoed(one, ("Hello, ", None), before="Well"))
    assert [each[:2] for each in found] == [
        ("UserMessage", "Hello, world"),
        ("AgentMessage", "WellHi"),
        ("UserMessage", "Hello, "),
    ]


def test_an_equal_prompt_that_follows_is_its_own(one: ModuleType) -> None:
    """Each turn has one message, though all have the same words."""

    async def main() -> None:
        async with stage(one, 1) as play:
            session = await play.opened()
            for number in range(3):
                asking = asyncio.ensure_future(session.ask("again"))
                request = await play.agent.prompted()
                await play.agent.update("user_message_chunk", content={"type": "text", "text": "again"})
                await play.agent.say("yes", message=f"m{number}")
                await play.agent.end(request)
                await asking
            assert [each.text for each in session.state.entries] == ["again", "yes"] * 3

    run(main())
