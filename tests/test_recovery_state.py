"""What a session has after its agent has ended: the choices of the user, the state that was shown, and its turns."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.options import Options
from acpgen.roles import Role
from tests.client_sessions import until
from tests.recovery_support import answered, playing, read, shown
from tests.runtime_support import V1, V2, pass_time, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
BACK = ["ConnectionLost", "Reconnecting", "SessionRecovered"]


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    base = replace(V1, extensions=("session-model",)) if version == 1 else V2
    return packages(base, roles=(Role.CLIENT,), options=Options(open=True))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,))


def settings(version: int, *, level: str, fast: bool, mode: str, model: str = "small") -> dict[str, Any]:
    """The part of an answer that has the settings: mode and model are options in protocol 2."""
    key = "id" if version == 1 else "configId"

    def select(name: str, value: str, *values: str) -> Any:
        listed = [{"value": each, "name": each} for each in values]
        return {key: name, "name": name, "type": "select", "category": name, "currentValue": value, "options": listed}

    plain = [
        select("level", level, "low", "high"),
        {key: "fast", "name": "Fast", "type": "boolean", "currentValue": fast},
    ]
    if version == 2:
        more = [select("model", model, "small", "big"), select("mode", mode, "ask", "plan")]
        return {"configOptions": [*plain, *more]}
    modes = [{"id": each, "name": each} for each in ("ask", "plan")]
    models = [{"modelId": each, "name": each} for each in ("small", "big")]
    return {
        "configOptions": plain,
        "modes": {"currentModeId": mode, "availableModes": modes},
        "models": {"currentModelId": model, "availableModels": models},
    }


def names_of(state: Any, version: int) -> list[Any]:
    """The settings in a state: level, fast, model and mode."""
    values = [option.current_value for option in state.config_options]
    return [*values, state.current_model_id, state.current_mode_id] if version == 1 else values


class Chooser:
    """An agent by hand with settings: it answers what sets one, and refuses some."""

    def __init__(self, agent: Any, version: int, *refused: str, **now: Any) -> None:
        self.agent, self.version, self.refused = agent, version, refused
        self.now: dict[str, Any] = {"level": "low", "fast": False, "mode": "ask", "model": "small", **now}
        self.asked: list[tuple[str, Any]] = []

    def result(self) -> dict[str, Any]:
        return settings(self.version, **self.now)

    async def take(self, count: int) -> None:
        """Answer so many requests that set something."""
        for _ in range(count):
            request = await self.agent.receive()
            params, method = request["params"], request["method"]
            if method == "session/set_config_option":
                name, value = params["configId"], params["value"]
            else:
                name = method.removeprefix("session/set_")
                value = params[f"{name}Id"]
            self.asked.append((name, value))
            if name in self.refused:
                await self.agent.answer(request, code=-32602, message="gone")
                continue
            self.now[name] = value
            options = {"configOptions": self.result()["configOptions"]} if "option" in method else {}
            await self.agent.answer(request, options)


async def choose(session: Any, chooser: Chooser) -> None:
    """The user chooses all four."""
    choosing = asyncio.ensure_future(chooser.take(4))
    await session.set_option("level", "high")
    await session.set_option("fast", True)
    await session.set_model("big")
    await session.set_mode("plan")
    await choosing


CHOSEN = ["high", True, "big", "plan"]


@pytest.mark.parametrize("by", ["resume", "load"])
def test_what_the_user_has_chosen_is_restored_before_a_prompt_goes_on(acp: ModuleType, version: int, by: str) -> None:
    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            await choose(session, first)
            assert names_of(session.state, version) == CHOSEN
            await play.agents[0].transport.close()
            await until(lambda: not session.is_open)
            waiting = asyncio.ensure_future(session.ask("hello"))
            second = Chooser(await play.agent(1), version)
            await second.agent.answer(await play.reopening(second.agent, by), second.result())
            await second.take(4)
            request = await second.agent.prompted()
            assert names_of(session.state, version) == CHOSEN
            await second.agent.end(request)
            await waiting
            assert second.asked == [("level", "high"), ("fast", True), ("model", "big"), ("mode", "plan")]
            assert not play.names([change for _, change in play.between if "Setting" in type(change).__name__])

    run(main())


@pytest.mark.parametrize("by", ["resume", "load"])
@pytest.mark.parametrize("dies", ["in the answer", "while it is restored"])
def test_the_default_of_a_failed_attempt_is_no_choice(acp: ModuleType, version: int, by: str, dies: str) -> None:
    """The agent ends again, after it has reported its defaults: what is shown stays, and the third gets the choices."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            await choose(session, first)
            await play.agents[0].transport.close()
            second = Chooser(await play.agent(1), version)
            request = await play.reopening(second.agent, by)
            await second.agent.say("never said")
            await second.agent.update("config_option_update", configOptions=second.result()["configOptions"])
            if dies == "while it is restored":
                await second.agent.answer(request, second.result())
                await second.take(1)
                await second.agent.receive()
            assert names_of(session.state, version) == CHOSEN
            await second.agent.transport.close()
            third = Chooser(await play.agent(2), version)
            request = await play.reopening(third.agent, by)
            assert names_of(session.state, version) == CHOSEN
            assert shown(session.state) == []
            await third.agent.answer(request, third.result())
            await third.take(4)
            asking = asyncio.ensure_future(session.ask("hello"))
            await third.agent.end(await third.agent.prompted())
            await asking
            assert third.asked == [("level", "high"), ("fast", True), ("model", "big"), ("mode", "plan")]

    run(main())


@pytest.mark.parametrize("refused", [["level"], ["model"], ["level", "fast", "model", "mode"]])
@pytest.mark.parametrize("by", ["resume", "load"])
def test_each_choice_is_restored_by_itself(acp: ModuleType, version: int, by: str, refused: list[str]) -> None:
    """What the agent refuses is a change that says so, and the others are set."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            await choose(session, first)
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await play.agents[0].prompted()
            await play.agents[0].transport.close()
            second = Chooser(await play.agent(1), version, *refused)
            await second.agent.answer(await play.reopening(second.agent, by), second.result())
            await second.take(4)
            changes, _ = await reading
            assert play.names(changes) == [*BACK, *["SettingLost"] * len(refused)]
            lost = changes[-len(refused) :]
            kinds = {"mode": "mode", "model": "model"} if version == 1 else {}
            values = dict(zip(("level", "fast", "model", "mode"), CHOSEN, strict=True))
            now = {"level": "low", "fast": False, "model": "small", "mode": "ask"}
            assert [(each.kind, each.id or each.kind, each.value, each.now) for each in lost] == [
                (kinds.get(name, "option"), name, values[name], now[name]) for name in refused
            ]
            assert all(isinstance(each.error, acp.InvalidParamsError) for each in lost)
            expected = {**values, **{name: now[name] for name in refused}}
            assert names_of(session.state, version) == [*expected.values()]

    run(main())


def test_what_is_not_there_any_more_is_a_change(acp: ModuleType, version: int) -> None:
    """An option and a mode that the agent does not list now: nothing is asked for, and the user learns it."""

    async def main() -> None:
        async with playing(acp, version) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            await choose(session, first)
            await play.agents[0].transport.close()
            second = await play.agent(1)
            result = settings(version, level="high", fast=True, mode="plan", model="big")
            if version == 1:
                result["modes"] = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "ask"}]}
            result["configOptions"] = result["configOptions"][1:]
            await second.answer(await play.reopening(second, "resume"), result)
            await until(lambda: "SessionRecovered" in play.names([change for _, change in play.between]))
            lost = [change for _, change in play.between if type(change).__name__ == "SettingLost"]
            found = [(each.kind, each.id, each.value, each.now, each.error) for each in lost]
            gone: list[Any] = [("option", "level", "high", None, None)]
            assert found == ([*gone, ("mode", "", "plan", "ask", None)] if version == 1 else gone)

    run(main())


def test_a_choice_of_which_the_agent_says_nothing_is_set_again(acp: ModuleType, version: int) -> None:
    """What the user has chosen; what the agent had by itself is left alone, and so is what it has changed since."""

    async def main() -> None:
        async with playing(acp, version) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            choosing = asyncio.ensure_future(first.take(2))
            await session.set_option("level", "high")
            await session.set_option("fast", True)
            await choosing
            now = settings(version, level="low", fast=True, mode="ask")["configOptions"]
            await play.agents[0].update("config_option_update", configOptions=now)  # as after a command of the user
            await play.settled(play.agents[0])
            await play.agents[0].transport.close()
            second = Chooser(await play.agent(1), version)
            await second.agent.answer(await play.reopening(second.agent, "resume"))
            await second.take(1)
            asking = asyncio.ensure_future(session.ask("hello"))
            await second.agent.end(await second.agent.prompted())
            await asking
            assert second.asked == [("fast", True)]

    run(main())


def test_a_choice_waits_for_the_connection(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            first = Chooser(play.agents[0], version)
            session = await play.opened(**first.result())
            await play.agents[0].transport.close()
            await until(lambda: not session.is_open)
            choosing = asyncio.ensure_future(session.set_option("level", "high"))
            second = Chooser(await play.agent(1), version)
            await second.agent.answer(await play.reopening(second.agent, "resume"), second.result())
            await second.take(1)
            await choosing
            assert second.asked == [("level", "high")]
            assert names_of(session.state, version)[0] == "high"

    run(main())


# --- The state during an attempt -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["resume", "load"])
def test_an_attempt_that_fails_changes_nothing(acp: ModuleType, version: int, by: str) -> None:
    """Neither texts nor attributes, whatever the agent has reported until then."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}, max_state_bytes=100_000) as play:
            session = await play.opened(**settings(version, level="high", fast=True, mode="plan"))
            asking = asyncio.ensure_future(session.ask("one"))
            request = await play.agents[0].prompted()
            await play.agents[0].say("first")
            await play.agents[0].end(request)
            await asking
            before, known = shown(session.state), session.state
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, by)
            await second.update("session_info_update", title="another")
            await second.say("x" * 30_000)
            await second.say("y" * 30_000, message="m2")
            await second.tool("pending")
            await play.settled(second)
            assert (session.state, shown(session.state), session.state.title) == (known, before, None)
            await second.say("z" * 90_000, message="m3")  # more than a state may have
            await second.answer(request, code=-32002, message="Resource not found")
            await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
            assert (session.state, shown(session.state), session.state.title) == (known, before, None)
            assert not known.is_full
            assert names_of(known, version)[:2] == ["high", True]
            again = asyncio.ensure_future(play.keeper.reconnect())
            await second.answer(await play.reopening(second, by))
            await again
            asking = asyncio.ensure_future(session.ask("two"))
            await second.end(await second.prompted())
            await asking

    run(main())


def test_what_a_resumed_session_reports_is_in_its_state(acp: ModuleType, version: int) -> None:
    """Once it is resumed: attributes are followed, and reported as a change; the transcript stays."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(**settings(version, level="high", fast=True, mode="plan"))
            await play.settled(play.agents[0])
            play.between.clear()
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, "resume")
            await second.update("session_info_update", title="the title")
            await second.say("said before")
            await play.settled(second)
            assert session.state.title is None
            await second.answer(request, settings(version, level="high", fast=True, mode="plan"))
            await until(lambda: play.names([change for _, change in play.between]) == BACK)
            assert session.state.title == "the title"
            changes = [each for _, each in play.between if isinstance(each, play.helpers.AttributesChange)]
            assert [each for each in changes if {"title", "config_options"} <= each.names]
            assert shown(session.state) == []
            await second.update("session_info_update", title="another")
            await play.settled(second)
            assert session.state.title == "another"

    run(main())


@pytest.mark.parametrize(
    ("first", "arrived", "known"),
    [
        ("keeper.open", True, True),
        ("keeper.open", False, False),
        ("keeper.resume", True, None),
        ("keeper.resume", False, None),
    ],
)
def test_a_prompt_is_in_a_replay_only_if_the_agent_has_it(
    acp: ModuleType, version: int, *, first: str, arrived: bool, known: bool | None
) -> None:
    """A session that was resumed lacks what was said before: an equal text at the end may be an earlier one."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}) as play:
            if first == "keeper.open":
                session = await play.opened()
            else:
                opening = asyncio.ensure_future(play.keeper.resume("s", "/work", directories=["/more"]))
                await play.agents[0].answer(await play.agents[0].receive("session/resume"))
                session = await opening
            earlier = [] if first == "keeper.open" else ["go on"]
            reading = asyncio.ensure_future(read(session.prompt("go on")))
            await play.agents[0].prompted()
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, "load")
            for number, words in enumerate([*earlier, *(["go on"] if arrived else [])]):
                block = {"type": "text", "text": words}
                await second.update("user_message_chunk", messageId=f"r{number}", content=block)
                await second.say("yes", message=f"a{number}")
            await second.answer(request)
            _, error = await reading
            assert error.in_replay is known

    run(main())


@pytest.mark.parametrize("when", ["open", "lost", "waiting"])
def test_a_session_that_is_loaded_as_another_object_is_not_kept(acp: ModuleType, version: int, when: str) -> None:
    """Its prompts raise, and those that wait in it end: nobody would open it again."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            agent = play.agents[0]
            waiting = None
            if when != "open":
                await answered(play, agent, session)  # otherwise it would be opened anew
                await agent.transport.close()
                agent = await play.agent(1)
                request = await play.reopening(agent, "resume")
                await agent.answer(request, code=-32002, message="Resource not found")
                await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
            loading = asyncio.ensure_future(play.keeper.load("s", "/work"))
            loaded = await agent.receive("session/load" if version == 1 else "session/resume")
            if when == "waiting":
                again = asyncio.ensure_future(play.keeper.reconnect())
                waiting = asyncio.ensure_future(session.ask("waits"))
                for _ in range(20):
                    await asyncio.sleep(0)
            await agent.answer(loaded)
            other = await loading
            assert other is not session
            assert not session.is_kept
            assert other.is_kept
            with pytest.raises(play.helpers.SessionClosedError, match="opened again"):
                await session.ask("?")
            if waiting is not None:
                found = await asyncio.gather(waiting, again, return_exceptions=True)
                assert isinstance(found[0], (play.helpers.SessionClosedError, play.helpers.RecoveryError))
            asking = asyncio.ensure_future(other.ask("hello"))
            await agent.end(await agent.prompted())
            await asking

    run(main())


# --- Turns that the agent cancels before it ends ---------------------------------------------------------------------


def test_a_turn_that_is_cancelled_before_the_end_is_interrupted(acp: ModuleType, version: int) -> None:
    """Not the next one, which waits meanwhile and is sent to the next agent."""

    async def main() -> None:
        async with playing(acp, version, ending_seconds=1000.0) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            request = await play.agents[0].prompted()
            await play.agents[0].say("half an ")
            await play.agents[0].end(request, "cancelled")
            await play.settled(play.agents[0])
            following = asyncio.ensure_future(read(session.prompt("two")))
            await play.settled(play.agents[0])
            assert not reading.done()
            assert [each for each in play.agents[0].read if each.get("method") == "session/prompt"] == []
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            changes, error = await reading
            assert play.names(changes) == BACK
            assert isinstance(error, play.helpers.TurnInterruptedError)
            assert [block.text for block in error.prompt.prompt] == ["one"]
            assert [block.text for block in changes[-3].prompts[0].prompt] == ["one"]
            request = await second.prompted()
            assert request["params"]["prompt"][0]["text"] == "two"
            await second.end(request)
            assert (await following)[1] is None

    run(main())


def test_a_turn_that_is_cancelled_by_an_agent_that_stays_has_a_result(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version, ending_seconds=1000.0) as play:
            session = await play.opened()
            turn = session.prompt("one")
            reading = asyncio.ensure_future(read(turn))
            request = await play.agents[0].prompted()
            await play.agents[0].end(request, "cancelled")
            await play.settled(play.agents[0])
            assert not reading.done()
            pass_time(1001)
            assert (await reading)[1] is None
            assert (turn.result.stop_reason, turn.result.is_unasked) == ("cancelled", True)
            asking = asyncio.ensure_future(session.ask("two"))
            await play.agents[0].end(await play.agents[0].prompted(), "cancelled")
            await play.settled(play.agents[0])
            pass_time(1001)
            with pytest.raises(play.helpers.NoAnswerError):
                await asking

    run(main(), seconds=10_000)


@pytest.mark.parametrize("why", ["asked", "no"])
def test_an_end_that_was_asked_for_does_not_wait(acp: ModuleType, version: int, why: str) -> None:
    """By this side, or by the user's "no"."""

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        return play_of[0].helpers.permission_cancelled()

    play_of: list[Any] = []

    async def main() -> None:
        attributes = {"ending_seconds": 1000.0, "answer_permission": answer_permission}
        async with playing(acp, version, **attributes) as play:
            play_of.append(play)
            session = await play.opened()
            turn = session.prompt("one")
            reading = asyncio.ensure_future(read(turn))
            agent = play.agents[0]
            request = await agent.prompted()
            if why == "asked":
                await turn.cancel()
                await agent.receive("session/cancel")
            else:
                await agent.ask("q")
                while (message := await agent.receive()).get("id") != "q":
                    agent.read.append(message)
            await agent.end(request, "cancelled")
            assert (await reading)[1] is None
            assert (turn.result.stop_reason, turn.result.is_unasked) == ("cancelled", False)

    run(main())


AGENT = """
import json, os, signal, sys, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

running = None

def end(*_):
    if running is not None:
        send(id=running, result={"stopReason": "cancelled"})
    time.sleep(0.05)
    os._exit(0)

signal.signal(signal.SIGTERM, end)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        able = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
        send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": able})
    elif method == "session/prompt":
        running, words = message["id"], message["params"]["prompt"][0]["text"]
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "half"}}
        send(method="session/update", params={"sessionId": "s", "update": update})
        if words != "die":
            send(id=running, result={"stopReason": "end_turn"})
            running = None
    elif "id" in message:
        send(id=message["id"], result={"sessionId": "s"})
"""


@pytest.mark.needs("posix")
def test_an_agent_that_is_told_to_end_interrupts_its_turn(one: ModuleType, tmp_path: Path) -> None:
    """As claude and qwen do: they answer the prompt with `cancelled`, and exit a moment later."""
    import importlib
    import os
    import signal

    helpers = importlib.import_module(f"{one.__name__}.helpers")
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")

    async def main() -> None:
        spawned: list[Any] = []

        def connect() -> Any:
            spawned.append(one.spawn_agent(Patient, [sys.executable, str(tmp_path / "agent.py")]))
            return spawned[-1]

        class Patient(helpers.KeptClient):  # type: ignore[misc]
            ending_seconds = 100.0

        async def start(client: Any) -> None:
            await client.start("tests", "1")

        async with helpers.SessionKeeper(connect, start) as keeper:
            session = await keeper.open("/work")
            asking = asyncio.ensure_future(session.ask("die"))
            while not any(entry.text == "half" for entry in session.state.entries):
                await asyncio.sleep(0.01)
            os.kill(spawned[0].pid, signal.SIGTERM)
            with pytest.raises(helpers.TurnInterruptedError) as caught:
                await asking
            assert caught.value.prompt.prompt[0].text == "die"
            assert await session.ask("live") == "half"

    run(main())
