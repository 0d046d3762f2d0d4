"""What the peer does wrong: one line each in the log, not too many of them, and not too many answers."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, client_of, raw_peer, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

FORGED = "x\nERROR all is lost\x1b[2J" + "\u2028" + "y" * 10_000


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


MISTAKES: dict[str, bytes] = {
    "no JSON": b"Welcome to this agent!\x1b[2J" + b"x" * 10_000,
    "no UTF-8": b"\xff\xfe\x00",
    "no object": b"[1, 2]",
    "no method": b'{"jsonrpc": "2.0"}',
    "a wrong id": b'{"jsonrpc": "2.0", "id": {}, "method": "_a"}',
    "another jsonrpc": json.dumps({"jsonrpc": FORGED, "id": 1, "method": FORGED}).encode(),
    "params of a notification": json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": FORGED}).encode(),
    "an answer to nothing": json.dumps({"jsonrpc": "2.0", "id": FORGED, "result": FORGED, FORGED: FORGED}).encode(),
}


@pytest.mark.parametrize("line", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_of_the_peer_is_one_warning(packages: Packages, line: bytes) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp, ext_method=echo)) as peer:
            await peer.send_line(line)
            await peer.ping()

    with acp_log(logging.INFO) as records:
        run(main())
    (record,) = records
    assert record.levelno == logging.WARNING
    assert record.exc_info is None
    assert len(record.getMessage()) < 600
    assert all(character.isprintable() for character in record.getMessage())


def test_a_malformed_answer_is_one_warning(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            await peer.answer((await peer.receive())["id"], result=FORGED, error=FORGED)
            with pytest.raises(acp.InternalError):
                await waiter

    with acp_log(logging.INFO) as records:
        run(main())
    assert [record.levelno for record in records] == [logging.WARNING]


def test_the_log_shows_the_start_of_a_line_that_is_no_json(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            await peer.send_line(b"\x1b[1mThis agent is no longer maintained, install another one")
            await peer.ping()

    with acp_log() as records:
        run(main())
    assert "\\x1b[1mThis agent is no longer maintained" in texts(records)


def test_an_error_that_a_handler_raises_keeps_its_traceback(packages: Packages) -> None:
    """It has the class of those for params that do not fit, and is the handler's own."""
    acp = packages(V1)

    async def session_update(self: Any, params: Any) -> None:
        raise acp.InvalidParamsError("from the handler")

    async def main() -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}}
        async with raw_peer(acp, client_of(acp, session_update=session_update)) as peer:
            await peer.notify("session/update", {"sessionId": "s", "update": update})
            await peer.ping()

    with acp_log(logging.INFO) as records:
        run(main())
    (record,) = records
    assert record.levelno == logging.ERROR
    assert "Traceback" in texts(records)


UNFIT = {
    "error": {"error": {"code": -32000, "message": FORGED}},
    "no error": {"error": FORGED},
    "no result": {"result": FORGED},
}


@pytest.mark.parametrize("outcome", UNFIT.values(), ids=UNFIT.keys())
@pytest.mark.parametrize("kind", ["request", "notification", "end"])
def test_an_answer_that_a_handler_lets_through_is_one_warning(packages: Packages, kind: str, outcome: Any) -> None:
    """It has text of the peer; its traceback is for those that look for it."""
    acp = packages(V1)

    async def ask(self: Any) -> None:
        await self.agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_ask":
            await ask(self)

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        self.failed = asyncio.get_running_loop().create_future()
        try:
            await ask(self)
        except Exception as error:
            self.failed.set_result(error)
            if kind == "notification":
                raise

    async def connection_closed(self: Any, reason: Any) -> None:
        if kind == "end":
            raise self.failed.result()

    async def main() -> None:
        handlers = {"ext_method": ext_method, "ext_notification": ext_notification}
        async with raw_peer(acp, client_of(acp, **handlers, connection_closed=connection_closed)) as peer:
            await (peer.request("a", "_ask") if kind == "request" else peer.notify("_ask"))
            await peer.answer((await peer.receive())["id"], **outcome)
            await peer.ping()

    with acp_log() as records:
        run(main())
    shown = [record for record in records if record.levelno > logging.DEBUG]
    assert len(shown) == (0 if kind == "request" and "error" in outcome else 1)
    for record in shown:
        assert record.levelno == logging.WARNING
        assert record.exc_info is None
        assert len(record.getMessage()) < 600
        assert all(character.isprintable() for character in record.getMessage())
        assert any(other.exc_info for other in records if other.levelno == logging.DEBUG)


JUNK = 100_000


@pytest.mark.parametrize("line", [b"junk", MISTAKES["no method"]], ids=["no JSON", "no method"])
def test_a_flood_of_junk_draws_few_lines_and_answers(packages: Packages, line: bytes) -> None:
    acp = packages(V1)
    answers: list[Any] = []

    async def main() -> None:
        near, far = acp.memory_transports(1_000)
        connection = acp.Connection(near)
        connection.start(client_of(acp, ext_method=echo)(acp.RemoteAgent(connection)))
        reading = asyncio.create_task(read(far))
        for _ in range(JUNK):
            await far.write(line)
        await far.write(b'{"jsonrpc": "2.0", "id": 1, "method": "_a"}')
        await far.write(line)
        await far.write(b'{"jsonrpc": "2.0", "id": "last", "method": "_a"}')
        await reading
        await connection.close()
        await far.close()

    async def read(far: Any) -> None:
        while not answers or answers[-1]["id"] != "last":
            answers.append(json.loads(await far.read()))

    with acp_log(logging.INFO) as records:
        asyncio.run(asyncio.wait_for(main(), 600))
    assert 1 < len(records) <= 200
    assert len(answers) < 110
    assert [answer["id"] for answer in answers[-3:]] == [1, None, "last"]
    left_out = [record.args[0] for record in records if "left out" in record.msg]
    assert sum(left_out) + len(records) - len(left_out) == JUNK + 1


def test_requests_are_always_answered(packages: Packages) -> None:
    """A wrong one has an id, and so an answer, in the midst of a flood."""
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp, ext_method=echo)) as peer:
            for number in range(300):
                await peer.send({"jsonrpc": "1.0", "id": number, "method": "_a"})
                assert (await peer.receive())["id"] == number

    with acp_log():
        run(main())


def test_a_flood_of_notifications_that_do_not_fit(packages: Packages) -> None:
    """Neither does it write a traceback for each, nor lose the line that says how many there were."""
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            for _ in range(2_000):
                await peer.notify("session/update", {"sessionId": 5})
            assert await peer.ping() == []

    with acp_log(logging.INFO) as records:
        run(main())
    assert len(records) <= 200
    assert "Traceback" not in texts(records)
    assert "left out" in texts(records)


def test_the_quota_is_by_time(packages: Packages) -> None:
    """Once it is over, lines are logged again, and the first of them says how many were left out."""
    acp = packages(V1)
    now = 1000.0

    async def main() -> None:
        nonlocal now
        loop = asyncio.get_running_loop()
        log = __import__(f"{acp.__name__}.tasks", fromlist=["PeerLog"]).PeerLog()
        loop.time = lambda: now  # type: ignore[method-assign]
        for _ in range(25):
            log.warn("it said %s", "a")
        log.warn("another %s", "b")
        now += 100
        log.warn("it said %s", "c")
        del loop.time

    with acp_log() as records:
        asyncio.run(main())
    messages = [record.getMessage() for record in records]
    assert messages[:10] == ["it said a"] * 10
    assert messages[10] == "another b"
    assert messages[11] == "left out 15 lines that begin: it said"
    assert messages[12:] == ["it said c"]
