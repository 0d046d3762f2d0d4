"""What the protocol asks of a client with sessions, in its details, and how much a slow reader may leave unread."""

from __future__ import annotations

import asyncio
import base64
import importlib
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.options import Options
from acpgen.roles import Role
from tests.client_sessions import HELLO, HandAgent, Stage, helpers_of, stage, until
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
OPEN = Options(open=True)
"""As packages for clients are built where nothing else is said."""
SERVER = {"name": "files", "command": "/bin/files", "args": [], "env": []}


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,))


@pytest.fixture
def two(packages: Packages) -> ModuleType:
    return packages(V2, roles=(Role.CLIENT,))


async def settled() -> None:
    """Let everybody run who can."""
    for _ in range(50):
        await asyncio.sleep(0)


# --- Opening ---------------------------------------------------------------------------------------------------------


def test_the_answer_does_not_overwrite_what_was_reported_before_it(acp: ModuleType, version: int) -> None:
    """Options that an agent changes while it still opens the session are newer than those of the answer."""

    def options(value: bool) -> list[Any]:
        key = "id" if version == 1 else "configId"
        return [{key: "o", "name": "O", "type": "boolean", "currentValue": value}]

    async def main() -> None:
        async with stage(acp, version) as play:
            opening = asyncio.ensure_future(play.client.open("/work"))
            request = await play.agent.receive("session/new")
            await play.agent.update("config_option_update", configOptions=options(True))
            await play.agent.answer(request, {"sessionId": "s", "configOptions": options(False)})
            (option,) = (await opening).state.config_options
            assert option.current_value is True

    run(main())


def test_updates_of_sessions_that_are_not_open_are_ignored(acp: ModuleType, version: int) -> None:
    """They reach no handler and no other session, neither now nor when a session with this id is opened."""
    seen = list[Any]()

    def session_changed(self: Any, session: Any, change: Any) -> None:
        seen.append((session.id, change))

    async def main() -> None:
        async with stage(acp, version, session_changed=session_changed) as play:
            mine = await play.opened()
            await play.agent.say("lost", "other")
            await play.agent.tool("pending", session="other")
            await play.agent.say("kept")
            await play.barrier()
            assert {session for session, _ in seen} == {"s"}
            assert len(mine.state.entries) == 1
            assert (await play.opened("other")).state.entries == []

    run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_is_opened_again_by_one_call_at_a_time(acp: ModuleType, version: int, fails: bool) -> None:
    """The updates of two could not be told apart; afterwards, whatever came of the first, the next one may go on."""
    method = "session/load" if version == 1 else "session/resume"

    async def main() -> None:
        async with stage(acp, version) as play:
            first = asyncio.ensure_future(play.client.load("s", "/work"))
            request = await play.agent.receive(method)
            for again in (play.client.load, play.client.resume):
                with pytest.raises(RuntimeError, match="by another call"):
                    await again("s", "/work")
            await play.agent.say("once")
            await play.agent.answer(request, **({"code": -32603, "message": "no"} if fails else {}))
            if fails:
                with pytest.raises(play.acp.RequestError):
                    await first
            else:
                assert len((await first).state.entries) == 1
            second = asyncio.ensure_future(play.client.load("s", "/work"))
            await play.agent.answer(await play.agent.receive(method))
            assert (await second).state.entries == []

    run(main())


def test_a_session_that_cannot_be_made_may_be_opened_later(acp: ModuleType, version: int) -> None:
    """An override of `new_session` that fails leaves nothing behind."""
    failures = [OSError("no window")]

    def new_session(self: Any, session_id: str, cwd: str) -> Any:
        if failures:
            raise failures.pop()
        return helpers_of(acp).SessionClient.new_session(self, session_id, cwd)

    async def main() -> None:
        async with stage(acp, version, new_session=new_session) as play:
            with pytest.raises(OSError, match="no window"):
                await play.client.load("s", "/work")
            loading = asyncio.ensure_future(play.client.load("s", "/work"))
            method = "session/load" if version == 1 else "session/resume"
            await play.agent.answer(await play.agent.receive(method))
            assert (await loading).id == "s"

    run(main())


@pytest.mark.parametrize("method", ["open", "load", "resume"])
def test_servers_and_folders_are_sent_with_each_opening(acp: ModuleType, version: int, method: str) -> None:
    """All of them, as agents keep none; without folders, the property is absent."""
    wire = {"open": "session/new", "load": "session/load" if version == 1 else "session/resume"}
    start = () if method == "open" else ("s",)

    async def main() -> None:
        async with stage(acp, version) as play:
            server = acp.decode(acp.McpServer, SERVER if version == 1 else {"type": "stdio", **SERVER})
            call = getattr(play.client, method)
            opening = asyncio.ensure_future(call(*start, "/work", mcp_servers=[server], directories=["/more"]))
            request = await play.agent.receive(wire.get(method, "session/resume"))
            assert request["params"]["cwd"] == "/work"
            assert [each["name"] for each in request["params"]["mcpServers"]] == ["files"]
            assert request["params"]["additionalDirectories"] == ["/more"]
            await play.agent.answer(request, {"sessionId": "s"} if method == "open" else {})
            await opening
            opening = asyncio.ensure_future(call(*start, "/work"))
            request = await play.agent.receive(wire.get(method, "session/resume"))
            assert request["params"]["mcpServers"] == []
            assert "additionalDirectories" not in request["params"]
            await play.agent.answer(request, {"sessionId": "s"} if method == "open" else {})
            await opening

    run(main())


def test_null_answers_a_load(one: ModuleType) -> None:
    """So older agents do, which have neither modes nor options."""

    async def main() -> None:
        async with stage(one, 1) as play:
            loading = asyncio.ensure_future(play.client.load("s", "/work"))
            request = await play.agent.receive("session/load")
            await play.agent.say("as before")
            await play.agent.send(id=request["id"], result=None)
            assert [each.text for each in (await loading).state.entries] == ["as before"]

    run(main())


def test_a_session_is_not_loaded_into_its_own_turn(acp: ModuleType, version: int) -> None:
    """What the turn reports could not be told from what was said before. It goes on, and can be loaded afterwards."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            await play.barrier()
            with pytest.raises(RuntimeError, match="a turn of the session goes on"):
                await play.client.load("s", "/work")
            assert play.client.sessions["s"] is session
            await play.agent.say("Hello")
            await play.agent.end(request)
            assert await asking == "Hello"
            loading = asyncio.ensure_future(play.client.load("s", "/work"))
            await play.agent.answer(await play.agent.receive("session/load" if version == 1 else "session/resume"))
            assert (await loading).state.entries == []

    run(main())


def test_what_an_agent_lacks_is_refused_here(acp: ModuleType, version: int) -> None:
    """A method that was not advertised is not sent."""

    async def main() -> None:
        async with stage(acp, version, start=False) as play:
            starting = asyncio.ensure_future(play.client.start("tests", "1"))
            hello = {"protocolVersion": version, "info": {"name": "a", "version": "1"}}
            await play.agent.answer(await play.agent.receive(), hello)
            await starting
            call = play.client.load("s", "/work") if version == 1 else play.client.open("/work")
            with pytest.raises(acp.CapabilityError):
                await call
            assert play.client.sessions == {}
            await play.barrier()
            assert play.agent.read == []

    run(main())


def test_capabilities_are_known_where_the_handshake_has_chosen(packages: Packages, version: int) -> None:
    """In a package of both versions, the connection calls `initialize` before there is a client."""
    acp = packages(V1, V2, roles=(Role.CLIENT,))
    parts = {number: importlib.import_module(f"{acp.__name__}.v{number}") for number in (1, 2)}
    helpers = {number: helpers_of(part) for number, part in parts.items()}

    async def main() -> None:
        near, far = acp.memory_transports()
        agent = HandAgent(far, version)
        info = parts[2].Implementation(name="tests", version="1")
        params = {
            1: parts[1].InitializeRequest(protocol_version=1),
            2: parts[2].InitializeRequest(protocol_version=2, info=info),
        }
        kinds = {number: each.SessionClient for number, each in helpers.items()}
        connection = acp.connect(kinds, near, params=params)
        entering = asyncio.ensure_future(connection.__aenter__())
        await agent.answer(await agent.receive("initialize"), {"protocolVersion": version, **HELLO[version]})
        await entering
        play = Stage(acp, helpers[version], connection.handler, agent)
        session = await play.opened()
        session.prompt(play.helpers.image(b"png", mime_type="image/png"))
        with pytest.raises(ValueError, match="the agent takes no audio in prompts"):
            session.prompt(play.helpers.audio(b"wav", mime_type="audio/wav"))
        await connection.__aexit__(None, None, None)

    run(main())


# --- The end of a turn -----------------------------------------------------------------------------------------------


def test_a_reason_that_is_not_known_is_one(packages: Packages, version: int) -> None:
    acp = packages(BASES[version], roles=(Role.CLIENT,), options=OPEN)

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(turn)
            await play.agent.end(await play.agent.prompted(), "_tired")
            assert (await reading).stop_reason == "_tired"

    run(main())


def test_the_message_of_the_user_is_shown_once(acp: ModuleType, version: int) -> None:
    """In protocol 2 the agent reports it."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("?"))
            request = await play.agent.prompted()
            await play.agent.end(request)
            await asking
            assert [(type(each).__name__, each.text) for each in session.state.entries] == [("UserMessage", "?")]

    run(main())


def test_a_prompt_that_never_began_is_cancelled_by_an_error(acp: ModuleType, version: int) -> None:
    """Protocol 2 ends those so that wait for another turn. Without a cancellation, it is an error."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            async with turn:
                request = await play.agent.receive("session/prompt")
                await turn.cancel()
                await play.agent.answer(request, code=-32800, message="cancelled")
                await until(lambda: turn.has_ended)
            assert turn.result.stop_reason == "cancelled"
            asking = asyncio.ensure_future(session.ask("again"))
            await play.agent.answer(await play.agent.receive("session/prompt"), code=-32800, message="cancelled")
            with pytest.raises(acp.RequestError):
                await asking

    run(main())


def test_many_messages_before_the_confirmation_hide_no_end(two: ModuleType) -> None:
    async def main() -> None:
        async with stage(two, 2) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.receive("session/prompt")
            await play.agent.insert("u")
            await play.agent.state("idle", stopReason="end_turn")
            for number in range(100):
                await play.agent.insert(f"other {number}")
            await play.agent.answer(request, {"messageId": "u"})
            await until(asking.done)
            assert asking.result() == ""

    run(main())


def test_an_answer_to_a_question_changes_no_state(two: ModuleType) -> None:
    """The agent says when it goes on."""

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        return two.RequestPermissionResponse(outcome=two.RequestPermissionOutcomeSelected(option_id="yes"))

    async def main() -> None:
        async with stage(two, 2, answer_permission=answer_permission) as play:
            session = await play.opened()
            await play.agent.state("requires_action")
            await play.agent.ask()
            assert "result" in await play.agent.receive()
            await play.barrier()
            assert session.state.state.state == "requires_action"

    run(main())


def test_who_stays_in_the_loop_has_patience(acp: ModuleType, version: int) -> None:
    """A turn that was cancelled, and is still read, may take longer than one that was left."""

    async def main() -> None:
        async with stage(acp, version, cancel_seconds=0.01) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(turn)
            request = await play.agent.prompted()
            await play.barrier()
            await turn.cancel()
            await play.agent.receive("session/cancel")
            await asyncio.sleep(0.05)
            await play.agent.say("cleaned up")
            await play.agent.end(request, "cancelled")
            result = await reading
            assert (result.stop_reason, result.text) == ("cancelled", "cleaned up")

    run(main())


# --- A slow reader ---------------------------------------------------------------------------------------------------


async def unread(play: Stage, session: Any, *steps: Any) -> list[Any]:
    """The changes of a turn that is read when all is said."""
    async with session.prompt("Hi") as turn:
        request = await play.agent.prompted()
        for step in steps:
            await step
        await play.agent.end(request)
        await play.barrier()
        await settled()
        return [change async for change in turn]


def test_output_of_a_terminal_that_waits_is_joined(two: ModuleType) -> None:
    """A command that prints ten thousands of lines is no reason to cancel a turn."""

    async def main() -> None:
        async with stage(two, 2, max_pending=10) as play:
            session = await play.opened()
            lines = [base64.b64encode(f"{number}\n".encode()).decode() for number in range(500)]
            chunks = [play.agent.update("terminal_output_chunk", terminalId="t", data=each) for each in lines]
            end = play.agent.update("terminal_update", terminalId="t", exitStatus={"exitCode": 0})
            found = await unread(play, session, *chunks, end)
            (change,) = (each for each in found if isinstance(each, play.helpers.TerminalChange))
            assert (change.output, change.is_whole) == ("".join(f"{at}\n" for at in range(500)).encode(), True)
            assert change.terminal.exit_status.exit_code == 0

    run(main())


def test_what_was_replaced_does_not_wait(two: ModuleType) -> None:
    """Of a message and an output that are sent whole again and again, the last ones are read, and what follows."""

    async def main() -> None:
        async with stage(two, 2, max_pending=10) as play:
            session = await play.opened()
            agent = play.agent
            texts = [[{"type": "text", "text": f"{number}"}] for number in range(100)]
            messages = [agent.update("agent_message", messageId="m", content=each) for each in texts]
            data = [{"data": base64.b64encode(f"{number}".encode()).decode()} for number in range(100)]
            outputs = [agent.update("terminal_update", terminalId="t", output=each) for each in data]
            more = agent.update("terminal_output_chunk", terminalId="t", data=base64.b64encode(b"!").decode())
            found = await unread(play, session, *messages, agent.say("!"), *outputs, more)
            (message,) = (each for each in found if getattr(each, "entry", None) is session.state.entries[-1])
            (output,) = (each for each in found if isinstance(each, play.helpers.TerminalChange))
            assert (message.text, message.is_whole) == ("99!", True)
            assert (output.output, output.is_whole) == (b"99!", True)

    run(main())
