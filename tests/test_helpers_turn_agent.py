"""`TurnAgent`: an agent that overrides `work` alone."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import Any

import pytest

from tests.runtime_support import acp_log, raw_peer, run, texts
from tests.support import Packages
from tests.turns_support import PROTOCOLS, Talk, is_v1, told

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def agent_of(acp: Any) -> type[Any]:
    """An agent that echoes text; it waits for ever at the word "wait", and cannot bear "fail"."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    options = {} if is_v1(acp) else {"message_id": "m"}

    class Echo(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def work(self, params: Any) -> Any:
            (block,) = params.prompt
            await self.client.session_update(helpers.agent_message(params.session_id, block, **options))
            match block.text:
                case "wait":
                    await asyncio.Event().wait()
                case "fail":
                    raise acp.InvalidParamsError("not this")
            return "refusal" if block.text == "refuse" else None

        async def session_close(self, params: Any) -> Any:
            await self.turns.close(params.session_id)
            return acp.CloseSessionResponse()

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

    return Echo


@pytest.mark.parametrize(("text", "end"), [("hello", "end_turn"), ("refuse", "refusal")])
def test_the_work_ends_the_turn(acp: Any, text: str, end: str) -> None:
    async def main() -> list[str]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            await client.prompt(1, text)
            return await client.until(told(acp, 1, end)[-1])

    assert run(main()) == told(acp, 1, end, text)


def test_work_that_fails_ends_the_turn(acp: Any) -> None:
    async def main() -> list[str]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            await client.prompt(1, "fail")
            return await client.until("1: -32602" if is_v1(acp) else "idle error")

    assert run(main())[-2] == "fail"


def test_a_cancel_is_for_the_prompts_before_it(acp: Any) -> None:
    async def main() -> tuple[list[str], list[str]]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            await client.prompt(1, "wait")
            await client.until("wait")
            await client.prompt(2, "wait")
            await client.cancel()
            waiting = "2: cancelled" if is_v1(acp) else "2: -32800"
            cancelled = await client.until(told(acp, 1, "cancelled")[-1], waiting)
            await client.prompt(3, "hello")
            return cancelled, await client.until(told(acp, 3, "end_turn")[-1])

    cancelled, after = run(main())
    assert len(cancelled) == 2
    assert after == told(acp, 3, "end_turn", "hello")


def test_a_session_is_closed_when_its_turns_have_ended(acp: Any) -> None:
    async def main() -> list[str]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            await client.prompt(1, "wait")
            await client.until("wait")
            await client.close(2)
            return await client.until("2: ok")

    assert run(main()) == [told(acp, 1, "cancelled")[-1], "2: ok"]


def asking_agent(acp: Any, ask: str) -> type[Any]:
    """An agent that waits for an answer of the client: to a question, in a task of the turn, or to another request."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    class Asking(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id="s")

        async def initialize(self, params: Any) -> Any:
            info = {} if is_v1(acp) else {"info": acp.Implementation(name="asks", version="1")}
            return acp.advertise(self, acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **info))

        async def work(self, params: Any) -> Any:
            if ask == "_other":
                await self.client.ext_method("_other", {})
            else:
                call = helpers.tool_call(self.client, params.session_id, "Edit", status="pending")
                self.asking = asyncio.create_task(self.ask(call))
                await asyncio.gather(self.asking, return_exceptions=True)

        async def ask(self, call: Any) -> None:
            async with call:
                await call.permission()

        async def ext_notification(self, method: str, params: Any) -> None:
            self.asking.cancel()  # it has waited enough

        async def session_close(self, params: Any) -> Any:
            await self.turns.close(params.session_id)
            return acp.CloseSessionResponse()

    return Asking


@pytest.mark.parametrize("end", ["session/cancel", "session/close", "$/cancel_request"])
@pytest.mark.parametrize("ask", ["session/request_permission", "_other", "in time"])
def test_a_question_of_a_cancelled_turn_is_not_withdrawn(acp: Any, ask: str, end: str) -> None:
    """In protocol 1, where the client has to answer it by itself; editors warn of a cancellation. All else is."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    async def main() -> list[str]:
        here, there = acp.memory_transports(100_000)
        serving = asyncio.create_task(acp.serve_agent(asking_agent(acp, ask), there))
        answers = dict.fromkeys(["session/request_permission", "_other"], lambda _: asyncio.Event().wait())
        async with helpers.ScriptedClient(answers=answers).connected(here) as editor:
            session = await editor.open("/work")
            prompting = asyncio.ensure_future(editor.prompt(session, "hello"))
            await editor.call("_other" if ask == "_other" else "session/request_permission")
            if ask == "in time":  # before anything is cancelled
                await editor.notify("_enough")
                await editor.call("$/cancel_request")
            elif end == "session/cancel":
                await editor.cancel(session)
            elif end == "$/cancel_request":
                await editor.notify("$/cancel_request", requestId=2)
            if end == "session/close" or not is_v1(acp):
                await editor.request("session/close", sessionId=session)
            await asyncio.gather(prompting, return_exceptions=True)
            await editor.open("/work")  # what was sent before has come
            found = [each["method"] for each in editor.received if "$/" in each.get("method", "")]
        await serving
        return found

    is_answered_anyway = is_v1(acp) and ask == "session/request_permission" and end == "session/cancel"
    assert run(main()) == ([] if is_answered_anyway else ["$/cancel_request"])


def test_no_task_outlives_the_connection(acp: Any) -> None:
    """`run` fails if a task is left."""

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            await client.prompt(1, "wait")
            await client.until("wait")
            await client.prompt(2, "hello")

    with acp_log(logging.WARNING) as records:
        run(main())
    assert texts(records) == ""


def test_an_agent_without_work_says_so(acp: Any) -> None:
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    async def main() -> str:
        async with raw_peer(acp, helpers.TurnAgent) as peer:
            client = Talk(peer)
            await client.prompt(1)
            return (await client.until("1: -32603" if is_v1(acp) else "idle error"))[-1]

    with acp_log(logging.ERROR) as records:
        assert run(main())
    assert "TurnAgent does not override `work`" in texts(records)


def _plain(self: Any, params: Any) -> Any:
    return "end_turn"


def _generator(self: Any, params: Any) -> Any:
    yield "an update"


async def _async_generator(self: Any, params: Any) -> Any:
    yield "an update"


@pytest.mark.parametrize(
    ("work", "found"), [(_plain, "str"), (_generator, "generator"), (_async_generator, "async_generator")]
)
def test_work_that_is_no_coroutine_says_so(acp: Any, work: Any, found: str) -> None:
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    kind = type("Plain", (helpers.TurnAgent,), {"work": work})

    async def main() -> str:
        async with raw_peer(acp, kind) as peer:
            client = Talk(peer)
            await client.prompt(1)
            return (await client.until("1: -32603"))[-1]

    with acp_log(logging.ERROR) as records:
        assert run(main())
    assert f"the work on a prompt must be a coroutine, found {found}: write `async def`" in texts(records)


@pytest.mark.parametrize(("name", "meant"), [("prompt", "session_prompt"), ("cancel", "session_cancel")])
def test_a_misnamed_handler_of_a_subclass(acp: Any, name: str, meant: str) -> None:
    """What `TurnAgent` overrides is no code of the user's: the method cannot be meant as a part of it."""

    async def handler(self: Any, params: Any) -> None:
        """Any."""

    async def main(kind: type[Any]) -> None:
        async with raw_peer(acp, kind) as peer:
            await peer.ping()

    with acp_log() as records:
        run(main(type("Misnaming", (agent_of(acp),), {name: handler})))
    assert f"Misnaming.{name} handles nothing: is it meant to be {meant}" in texts(records)
    with acp_log() as records:
        run(main(type("Overriding", (agent_of(acp),), {name: handler, meant: handler})))
    assert texts(records) == ""
