"""`ScriptedAgent` and `ScriptedClient`: the other side for tests, which does what it is told, sense or nonsense."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_agents import environment
from tests.runtime_support import acp_log, run, texts
from tests.stored_support import helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS, is_v1

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@asynccontextmanager
async def scripted(
    acp: Any, play: Any, *, agent: Any = None, **client: Any
) -> AsyncGenerator[tuple[Any, Any, str], None]:
    """A scripted agent and a scripted client that talk, and the session that is open."""
    here, there = acp.memory_transports(100_000)
    helpers = helpers_of(acp)
    agent = agent or helpers.ScriptedAgent(play)
    async with agent.connected(there), helpers.ScriptedClient(**client).connected(here) as editor:
        yield agent, editor, await editor.open()


async def everything(turn: Any) -> str | None:
    """A script of all that agents do."""
    await turn.think("hm")
    await turn.say("Hel", "lo ", turn.text)
    answer = await turn.ask("Edit?", "allow_once", "reject_always")
    call = await turn.tool("Edit", kind="edit")
    await turn.tool_update(call, "completed" if answer == "allow_once" else "failed")
    found = await turn.request("_more", at=7)
    await turn.say(f" {found['text']}")
    return "refusal" if answer is None else None


def test_all_that_agents_do(acp: Any) -> None:
    """Each end records what it got."""
    helpers = helpers_of(acp)

    async def main(answer: Any) -> tuple[Any, Any, Any]:
        answers = {"session/request_permission": answer, "_more": lambda params: {"text": f"at {params['at']}"}}
        async with scripted(acp, everything, answers=answers) as (agent, editor, session):
            ended = await editor.prompt(session, "you")
            return ended, agent.calls("session/prompt"), editor.calls("session/request_permission")

    for kinds, reason, status in [
        (["allow_once"], "end_turn", "completed"),
        (["reject_always"], "end_turn", "failed"),
        ([], "refusal", "failed"),
    ]:
        ended, prompts, questions = run(main(helpers.choose(*kinds)))
        assert (ended.stop_reason, ended.text) == (reason, "Hello you at 7")
        statuses = [each["status"] for each in ended.updates if each["sessionUpdate"].startswith("tool_call")]
        assert statuses == ["in_progress", status]
        assert [each["prompt"] for each in prompts] == [[{"type": "text", "text": "you"}]]
        assert [each["kind"] for each in questions[0]["options"]] == ["allow_once", "reject_always"]


def test_what_waits_can_be_cancelled_as_a_message_comes(acp: Any) -> None:
    """`wait_for` of Python 3.11 would go on."""

    async def main() -> None:
        async with scripted(acp, everything) as (agent, editor, _):

            def cancel() -> bool:
                return "_note" in editor.received[-1].values() and waiting.cancel()

            cancelling = asyncio.ensure_future(editor.until(cancel))
            waiting = asyncio.ensure_future(editor.until(lambda: False))
            await asyncio.sleep(0)
            await agent.notify("_note")
            await cancelling
            await asyncio.wait({waiting})
            assert waiting.cancelled()

    run(main())


def test_what_was_not_advertised_is_noted(acp: Any) -> None:
    """Methods and values, of both ends; not what was advertised."""
    helpers = helpers_of(acp)
    login = {"type": "terminal", "id": "t", "methodId": "t", "name": "T"}
    form = {"message": "a", "mode": "form", "requestedSchema": {"type": "object", "properties": {}}}

    async def play(turn: Any) -> None:
        await turn.request("elicitation/create", **form)

    async def main(able: dict[str, Any], open_: dict[str, Any]) -> tuple[list[str], list[str]]:
        agent = helpers.ScriptedAgent(play, capabilities=open_)
        agent.answers["initialize"] = lambda _: {**agent.hello(), "authMethods": [login]}
        answers = {"elicitation/create": {"action": "cancel"}}
        async with scripted(acp, play, agent=agent, capabilities=able, answers=answers) as (_, editor, session):
            await editor.prompt(session, "a", acp.ContentBlockImage(data="", mime_type="image/png"))
            return editor.not_advertised, agent.not_advertised

    root, prompt = (
        ("clientCapabilities", "agentCapabilities.promptCapabilities") if is_v1(acp) else ("capabilities",) * 2
    )
    prompt = prompt if is_v1(acp) else "capabilities.session.prompt"
    terminal = f"the result of initialize: $.authMethods[0] with the type 'terminal' needs {root}.auth.terminal"
    image = f"session/prompt: $.prompt[1] with the type 'image' needs {prompt}.image"
    of_method = f"elicitation/create needs {root}.elicitation.form or {root}.elicitation.url"
    assert run(main({}, {})) == ([terminal, of_method], [image])
    of_form = f"elicitation/create with the mode 'form' needs {root}.elicitation.form"
    assert run(main({"elicitation": {"url": {}}}, {})) == ([terminal, of_form], [image])
    able: dict[str, Any] = {"elicitation": {"form": {}}, "auth": {"terminal": True if is_v1(acp) else {}}}
    open_: dict[str, Any] = (
        {"promptCapabilities": {"image": True}} if is_v1(acp) else {"session": {"prompt": {"image": {}}}}
    )
    assert run(main(able, open_)) == ([], [])


def test_what_is_sent_fits_the_protocol(acp: Any) -> None:
    """Of both ends: typed peers get it, and drop nothing."""
    helpers = helpers_of(acp)
    heard: list[str] = []

    class Chat(helpers.SessionClient):  # type: ignore[name-defined, misc]
        async def answer_permission(self, session: Any, request: Any) -> Any:
            return helpers.select_permission(request, "allow_once")

        async def ext_method(self, method: str, params: Any) -> Any:
            return {"text": method}

    class Echo(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def initialize(self, params: Any) -> Any:
            given = {} if is_v1(acp) else {"info": acp.Implementation(name="echo", version="1")}
            return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **given)

        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id="s")

        async def work(self, params: Any) -> None:
            ids = {} if is_v1(acp) else {"message_id": "m"}
            await self.client.session_update(helpers.agent_message(params.session_id, params.prompt[0], **ids))

    async def main() -> tuple[str, Any]:
        options = acp.ConnectionOptions(check_sent=True, on_drop=lambda drop: heard.append(repr(drop)))
        here, there = acp.memory_transports()
        async with (
            helpers.ScriptedAgent(everything).connected(there),
            (connection := acp.connect(Chat, here, options=options)),
        ):
            await connection.handler.start("tests", "1")
            session = await connection.handler.open("/")
            said = await session.ask("you")
        here, there = acp.memory_transports()
        serving = asyncio.ensure_future(acp.serve_agent(Echo, there, options=options))
        async with helpers.ScriptedClient().connected(here) as editor:
            ended = await editor.prompt(await editor.open(), "Hi", acp.ContentBlockText(text="!"))
        await serving
        return said, ended

    said, ended = run(main())
    assert said == "Hello you _more"
    assert (ended.text, ended.stop_reason) == ("Hi", "end_turn")
    assert heard == []


async def odd(turn: Any) -> str | None:
    """A script of what goes wrong."""
    match turn.text:
        case "fail":
            raise helpers_of_error(turn)("Not today", code=-32603)
        case "hang":
            await turn.say("waiting")
            await turn.hang()
        case "stop":
            try:
                await turn.say("waiting")
                await turn.hang()
            except asyncio.CancelledError:
                await turn.say(" stopped")
        case "deaf":
            turn.is_deaf = True
            await turn.say("waiting")
            while not turn.is_cancelled:
                await asyncio.sleep(0)
            await turn.say(" still here")
        case "die":
            await turn.die(9)
        case "nonsense":
            await turn.agent.write(b"this is no JSON")
            await turn.agent.send(id=77, result=None)
            await turn.agent.send(jsonrpc="1.0", method=5)
            await turn.update({"sessionUpdate": "of_tomorrow"})
        case "bug":
            raise ZeroDivisionError
        case _:
            await turn.say("fine")
    return None


def helpers_of_error(turn: Any) -> Any:
    """The class of errors of the package."""
    return sys.modules[type(turn).__module__.rpartition(".helpers")[0]].RequestError


@pytest.mark.parametrize(("text", "said"), [("hang", "waiting"), ("stop", "waiting stopped"), ("deaf", None)])
def test_a_turn_is_cancelled(acp: Any, text: str, said: str | None) -> None:
    async def main() -> Any:
        async with scripted(acp, odd) as (agent, editor, session):
            turn = asyncio.ensure_future(editor.prompt(session, text))
            await editor.until(
                lambda: any(each["sessionUpdate"] == "agent_message_chunk" for each in editor.updates(session))
            )
            await editor.cancel(session)
            ended = await turn
            assert agent.turns == []
            assert (await editor.prompt(session, "next")).text == "fine"
            return ended

    ended = run(main())
    assert (ended.stop_reason, ended.text) == ("cancelled", said or "waiting still here")


def test_errors_of_a_script(acp: Any) -> None:
    """Meant, or a mistake in the script, which is in the log."""

    async def main() -> list[str]:
        found: list[str] = []
        async with scripted(acp, odd) as (_, editor, session):
            for text in ("fail", "bug"):
                try:
                    ended = await editor.prompt(session, text)
                    found.append(ended.updates[-1]["error"]["message"])
                except acp.RequestError as error:
                    found.append(error.message)
            for method in ("session/list", "_unknown"):
                with pytest.raises(acp.MethodNotFoundError):
                    await editor.request(method)
        return found

    with acp_log() as log:
        assert run(main()) == ["Not today", "Internal error: the script has failed: ZeroDivisionError()"]
    assert "a script has failed" in texts(log)


def test_nonsense_is_recorded(acp: Any) -> None:
    async def main() -> list[Any]:
        async with scripted(acp, odd) as (_, editor, session):
            assert (await editor.prompt(session, "nonsense")).stop_reason == "end_turn"
            return [*editor.received]

    received = run(main())
    assert "this is no JSON" in received
    assert {"jsonrpc": "2.0", "id": 77, "result": None} in received
    assert {"jsonrpc": "1.0", "method": 5} in received


def test_an_agent_that_dies_in_the_process_of_the_test(acp: Any) -> None:
    async def main() -> None:
        async with scripted(acp, odd) as (_, editor, session):
            with pytest.raises(ConnectionError):
                await editor.prompt(session, "die")
            with pytest.raises(ConnectionError):
                await editor.call("session/update", 100)

    run(main())


def test_answers_come_from_a_table_or_a_subclass(acp: Any) -> None:
    """Values, errors, functions, coroutines."""
    helpers = helpers_of(acp)

    class Mine(helpers.ScriptedAgent):  # type: ignore[name-defined, misc]
        async def handle(self, method: str, params: Any) -> Any:
            return "mine" if method == "_mine" else await super().handle(method, params)

    async def later(params: Any) -> Any:
        await asyncio.sleep(0)
        return params["at"]

    answers = {
        "_value": 1,
        "_error": acp.RequestError("no", code=-5),
        "_later": later,
        "session/new": {"sessionId": "x"},
    }

    async def main() -> None:
        async with scripted(acp, odd, agent=Mine(odd, answers=answers)) as (_, editor, session):
            assert session == "x"
            assert [await editor.request(f"_{name}", at=3) for name in ("value", "later", "mine")] == [1, 3, "mine"]
            with pytest.raises(acp.RequestError, match="no") as caught:
                await editor.request("_error")
            assert caught.value.code == -5

    run(main())


SCRIPT = """
import importlib, os
helpers = importlib.import_module(os.environ["ACP_PACKAGE"] + ".helpers")

async def play(turn):
    await turn.say("from a process")
    if turn.text == "die":
        await turn.die(9)
    if turn.text == "hang up":
        await turn.agent.hang_up()
        await turn.hang()

helpers.ScriptedAgent(play).run()
"""


def test_it_runs_as_a_process(acp: Any, tmp_path: Path) -> None:
    """And dies as one."""
    script = tmp_path / "agent.py"
    script.write_text(SCRIPT)
    helpers = helpers_of(acp)

    async def main() -> tuple[str, int | None]:
        command = [sys.executable, str(script)]
        async with (spawned := acp.spawn_agent(helpers.SessionClient, command, env=environment(acp))):
            await spawned.handler.start("tests", "1")
            session = await spawned.handler.open("/")
            said = await session.ask("hello")
            with pytest.raises(acp.ConnectionClosed) as caught:
                await session.ask("die")
            return said, caught.value.exit_code

    assert run(main()) == ("from a process", 9)


def test_a_process_hangs_up(acp: Any, tmp_path: Path) -> None:
    """The client sees the end of its stdout, although the process still runs."""
    script = tmp_path / "agent.py"
    script.write_text(SCRIPT)
    helpers = helpers_of(acp)

    async def main() -> None:
        command = [sys.executable, str(script)]
        async with (spawned := acp.spawn_agent(helpers.SessionClient, command, env=environment(acp))):
            await spawned.handler.start("tests", "1")
            session = await spawned.handler.open("/")
            with pytest.raises(acp.ConnectionClosed, match="closed its stdin or stdout"):
                await asyncio.wait_for(session.ask("hang up"), 30)

    run(main())


def test_a_client_loads_a_session(acp: Any, tmp_path: Path) -> None:
    """In a new process, too: it agrees on the protocol before, if the test has not."""

    class Kept(teller(acp, helpers_of(acp).SqliteStore(tmp_path / "sessions.db"))):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            given = {} if is_v1(acp) else {"info": acp.Implementation(name="kept", version="1")}
            return acp.advertise(self, acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **given))

    async def main(*, is_later: bool, session: str) -> tuple[str, list[Any]]:
        here, there = acp.memory_transports(1000)
        options = acp.ConnectionOptions(check_sent=True)
        serving = asyncio.ensure_future(acp.serve_agent(Kept, there, options=options))
        async with helpers_of(acp).ScriptedClient().connected(here) as editor:
            if not is_later:
                session = await editor.open("/project")
                await editor.prompt(session, "Hello there")
            found = await editor.load(session, "/project", additionalDirectories=["/more"])
            assert (await editor.prompt(session, "again")).stop_reason == "end_turn"
        await serving
        return session, found

    session, found = run(main(is_later=False, session=""))
    kinds = [each["sessionUpdate"] for each in found]
    assert kinds[0] == ("user_message_chunk" if is_v1(acp) else "user_message")
    assert [each for each in kinds if each.startswith("agent")] != []
    again, later = run(main(is_later=True, session=session))
    assert again == session
    assert [each["sessionUpdate"] for each in later][: len(kinds) - 1] == kinds[:-1]


def test_a_handshake_of_ones_own(acp: Any) -> None:
    """The test gives the params, and gets what the agent answers, once."""

    async def main() -> None:
        here, there = acp.memory_transports()
        helpers = helpers_of(acp)
        async with (
            helpers.ScriptedAgent(everything).connected(there) as agent,
            helpers.ScriptedClient(capabilities={"session": {}}).connected(here) as editor,
        ):
            result = await editor.initialize(protocolVersion=7, _meta={"by": "a test"})
            assert result["protocolVersion"] == acp.PROTOCOL_VERSION
            await editor.open()
            (hello,) = agent.calls("initialize")
            assert (hello["protocolVersion"], hello["_meta"]) == (7, {"by": "a test"})
            assert {"session": {}} in hello.values()
            agent.answers["initialize"] = acp.InvalidRequestError("not again")
            with pytest.raises(acp.InvalidRequestError, match="not again"):
                await editor.initialize()

    run(main())


def test_what_was_received_can_be_awaited(acp: Any) -> None:
    async def main() -> None:
        async with scripted(acp, odd) as (agent, editor, _):
            await editor.notify("_note", at=1)
            await editor.notify("_note", at=2)
            assert await agent.call("_note", 2) == {"at": 2}
            assert json.dumps(agent.calls("_note")) == '[{"at": 1}, {"at": 2}]'

    run(main())
