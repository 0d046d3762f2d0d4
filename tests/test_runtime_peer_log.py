"""The log of what peers cause: one line for each mistake, not too many of them, and no control characters."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
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
    assert 10 <= len(records) <= 200
    assert len(answers) < 110
    assert [answer["id"] for answer in answers[-3:]] == [1, None, "last"]
    assert "more of this kind are left out" in records[9].getMessage()


def test_answers_to_nothing_do_not_make_junk_worth_an_answer(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp), max_messages=1_000) as peer:
            for _ in range(150):
                await peer.send({"jsonrpc": "2.0", "id": 999, "result": 1})
                await peer.send_line(b"junk")
            return await peer.ping()

    with acp_log():
        assert len(run(main())) == 100


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
    """It writes no traceback for each, and the log says that there were more."""
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


def test_the_limit_is_by_time(packages: Packages) -> None:
    """The last record says that more are left out, and the next one how many were. Each `acp_log` is another time."""
    acp = packages(V1)
    noted: list[list[str]] = []

    async def main() -> None:
        async with raw_peer(acp, client_of(acp, ext_method=echo)) as peer:
            for count in (25, 1, 12):
                with acp_log(logging.INFO) as records:
                    for _ in range(count):
                        await peer.send_line(b"junk")
                    await peer.ping()
                noted.append([record.getMessage() for record in records])

    run(main())
    junk = noted[0][1]
    more = f"{junk} (more of this kind are left out for 30 seconds)"
    before = f"{junk} (15 records of this kind were left out before)"
    assert noted[0][1:] == [*[junk] * 8, more]  # the first record may tell of another test
    assert noted[1:] == [[before], [*[junk] * 9, more]]


def test_the_limit_is_by_kind(packages: Packages) -> None:
    """A flood of one kind hides neither another mistake nor a handler that fails elsewhere."""
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_often":
            raise ValueError("often")
        if method == "_once":
            raise ValueError("once")

    async def main() -> None:
        async with raw_peer(acp, client_of(acp, ext_method=ext_method)) as peer:
            for number in range(50):
                await peer.request(number, "_often")
            await peer.request("last", "_once")
            await peer.send_line(b"junk")
            await peer.send({"jsonrpc": "2.0", "id": {}, "method": "_a"})
            while (await peer.receive())["id"] != "last":
                pass
            await peer.ping()

    with acp_log(logging.INFO) as records:
        run(main())
    shown = [record.getMessage() for record in records]
    assert len(shown) == 13
    assert [text for text in shown if "often" in text] == shown[:10]
    assert "the handler of '_once' failed: once" in shown


# --- Tracebacks -------------------------------------------------------------------------------------------------------


def fail_after(text: str) -> None:
    try:
        raise KeyError(text)
    except KeyError as error:
        raise ValueError(text) from error


def fail_while(text: str) -> None:
    try:
        raise KeyError(text)
    except KeyError:
        raise ValueError(text)  # noqa: B904


def fail_with_note(text: str) -> None:
    error = ValueError(text)
    error.add_note(text)
    raise error


def fail_together(text: str) -> None:
    try:
        fail_after(text)
    except ValueError as error:
        raise ExceptionGroup(text, [error, KeyError(text)]) from None  # noqa: F821


def fail_to_parse(text: str) -> None:
    compile(text, "<string>", "exec")


NEW = sys.version_info >= (3, 11)
FAILING = [fail_after, fail_while, fail_to_parse, *([fail_with_note, fail_together] if NEW else [])]


@pytest.mark.parametrize("fail", FAILING)
@pytest.mark.parametrize("kind", ["request", "notification"])
def test_text_of_the_peer_in_a_traceback(packages: Packages, kind: str, fail: Callable[[str], None]) -> None:
    """It is neither a line of its own, nor does it act on a terminal. The lines of the handler are there."""
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        fail(params["text"])

    async def main() -> None:
        handlers = {"ext_method": ext_method, "ext_notification": ext_method}
        async with raw_peer(acp, client_of(acp, **handlers)) as peer:
            params = {"text": FORGED}
            await (peer.request(1, "_fail", params) if kind == "request" else peer.notify("_fail", params))
            await peer.ping()

    with acp_log(logging.INFO) as records:
        run(main())
    text = texts(records)
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not [line for line in lines if line.lstrip(" |").startswith(("ERROR all is lost", "y"))]
    assert len(text) < 12_000
    assert f'File "{__file__}", line' in text
    assert 'fail(params["text"])' in text
    if fail is not fail_to_parse:
        assert "ValueError: x\\nERROR all is lost\\x1b[2J" in text
    if fail in (fail_after, fail_while, fail_together):
        assert "raise KeyError(text)" in text
        assert text.index("raise KeyError(text)") < text.index("raise ValueError(text)")
    if fail is fail_together:
        assert "ExceptionGroup: x\\nERROR" in text


@pytest.mark.needs("Python 3.11")
def test_a_group_of_any_depth_can_be_logged(packages: Packages) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        error: Exception = ValueError("the innermost")
        for _ in range(500):
            error = ExceptionGroup("groups within groups", [error])  # noqa: F821
        raise error

    async def main() -> Any:
        async with raw_peer(acp, client_of(acp, ext_method=ext_method)) as peer:
            return await peer.ask(1, "_fail")

    with acp_log() as records:
        assert run(main())["error"]["code"] == -32603
    assert "groups within groups" in texts(records)
    assert len(texts(records)) < 500_000
