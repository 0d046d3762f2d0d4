"""Hooks and logs: the transcript, the losses, the time that requests take, and JSON from another library."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import EVERY_BASE, V1, acp_log, agent_of, client_of, pair, raw_peer, run, streams, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


# --- on_message -----------------------------------------------------------------------------------------------------


@EVERY_BASE
def test_on_message_sees_every_message_as_it_is_on_the_wire(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    transcript: list[tuple[str, bytes]] = []
    sent = [
        b'{"jsonrpc":  "2.0", "id": 1, "method": "_a", "params": "\xc3\xa9"}',
        b"no JSON",
        b"\xff",
        b'{"jsonrpc": "2.0", "method": "_n"}',
        b'{"jsonrpc": "2.0", "id": 77, "result": null}',
    ]

    async def main() -> list[bytes]:
        options = acp.ConnectionOptions(on_message=lambda direction, line: transcript.append((direction, line)))
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            for line in sent:
                await peer.send_line(line)
            received = [await peer.transport.read() for _ in range(3)]
            await peer.stub.ext_notification("_out", {"a": 1})
            return [*received, await peer.transport.read()]

    received = run(main())
    assert [line for direction, line in transcript if direction == "in"] == sent
    assert [line for direction, line in transcript if direction == "out"] == received
    assert {type(line) for _, line in transcript} == {bytes}


def test_both_sides_have_the_same_transcript(packages: Packages) -> None:
    acp = packages(V1)
    agent_log: list[tuple[str, bytes]] = []
    client_log: list[tuple[str, bytes]] = []

    def keeping(log: list[tuple[str, bytes]]) -> Any:
        return acp.ConnectionOptions(on_message=lambda direction, line: log.append((direction, line)))

    async def main() -> None:
        near, far = await streams()
        async with pair(
            acp,
            agent_of(acp, ext_method=echo),
            client_of(acp),
            agent_options=keeping(agent_log),
            client_options=keeping(client_log),
            transports=(acp.StreamTransport(*near), acp.StreamTransport(*far)),
        ) as both:
            for number in range(3):
                await both.agent.ext_method("_a", {"text": "line\nbreak", "number": number})

    run(main())
    assert len(agent_log) == 6
    turned = {"in": "out", "out": "in"}
    assert [(turned[direction], line) for direction, line in client_log] == agent_log
    assert all(b"\n" not in line for _, line in agent_log)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_an_on_message_that_fails_is_for_the_log(packages: Packages, direction: str) -> None:
    acp = packages(V1)

    def on_message(which: str, line: bytes) -> None:
        if which == direction:
            raise ValueError("no space left for transcripts")

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(on_message=on_message)
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            await peer.notify("_n")
            return [await peer.ask(1, "_a", "answer"), *await peer.ping()]

    with acp_log() as records:
        assert [answer["result"] for answer in run(main())] == ["answer"]
    assert "no space left for transcripts" in texts(records)


# --- on_drop --------------------------------------------------------------------------------------------------------


def test_on_drop_sees_what_is_left_out_of_params(packages: Packages) -> None:
    acp = packages(V1)
    drops: list[Any] = []

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> Any:
        options = acp.ConnectionOptions(on_drop=drops.append)
        async with raw_peer(acp, agent_of(acp, initialize=initialize), options=options) as peer:
            return await peer.ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": "none"})

    assert "result" in run(main())
    assert [drop.path for drop in drops] == [("clientCapabilities",)]


def test_on_drop_sees_what_is_left_out_of_results(packages: Packages) -> None:
    """Through the stub that `connect` makes, as users have it."""
    acp = packages(V1)
    drops: list[Any] = []

    async def main() -> Any:
        near, far = acp.memory_transports()
        options = acp.ConnectionOptions(on_drop=drops.append)
        async with acp.connect(client_of(acp), near, options=options) as agent:
            waiter = asyncio.create_task(agent.initialize(acp.InitializeRequest(protocol_version=1)))
            number = json.loads(await far.read())["id"]
            result = {"protocolVersion": 1, "agentCapabilities": "none"}
            await far.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())
            answer = await waiter
        await far.close()
        return answer

    assert run(main()).protocol_version == 1
    assert [drop.path for drop in drops] == [("agentCapabilities",)]


def test_losses_of_one_message_are_reported_up_to_a_limit(packages: Packages) -> None:
    """A record takes a thousand times as much memory as an item."""
    acp = packages(V1)
    drops: list[Any] = []
    update = {"sessionUpdate": "available_commands_update", "availableCommands": [1] * 5_000}
    found = acp.decode(acp.SessionNotification, {"sessionId": "s", "update": update}, on_drop=drops.append)
    assert found.update.available_commands == []
    assert len(drops) == 1_000


# --- on_invalid -----------------------------------------------------------------------------------------------------


def test_on_invalid_sees_params_that_do_not_fit(packages: Packages) -> None:
    """Those of a notification, which is lost otherwise, and those of a request, which is also answered."""
    acp = packages(V1)
    seen: list[Any] = []

    def on_invalid(method: str, raw: Any, error: Exception) -> None:
        seen.append((method, raw, error))

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp), options=acp.ConnectionOptions(on_invalid=on_invalid)) as peer:
            await peer.notify("session/cancel", {"sessionId": 5})
            await peer.notify("session/cancel", {"sessionId": "s"})
            await peer.notify("session/unknown", {"sessionId": 5})
            return [await peer.ask(1, "session/new", "text"), *await peer.ping()]

    (answer,) = run(main())
    assert answer["error"]["code"] == -32602
    assert [(method, raw) for method, raw, _ in seen] == [("session/cancel", {"sessionId": 5}), ("session/new", "text")]
    assert [error.path for _, _, error in seen] == [("sessionId",), ()]
    assert all(error.raw == raw and isinstance(error, acp.DecodeError) for _, raw, error in seen)


@pytest.mark.parametrize("fault", [ValueError("no space left"), GeneratorExit("no space left")])
def test_an_on_invalid_that_fails_is_for_the_log(packages: Packages, fault: BaseException) -> None:
    acp = packages(V1)

    def on_invalid(method: str, raw: Any, error: Exception) -> None:
        raise fault

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp), options=acp.ConnectionOptions(on_invalid=on_invalid)) as peer:
            await peer.notify("session/cancel", {"sessionId": 5})
            return [await peer.ask(1, "session/new", "text"), *await peer.ping()]

    with acp_log() as records:
        (answer,) = run(main())
    assert answer["error"]["code"] == -32602
    assert texts(records, logging.ERROR).count("on_invalid failed") == 2


# --- on_error -------------------------------------------------------------------------------------------------------


def test_on_error_maps_the_failure_of_a_handler(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[tuple[str, BaseException]] = []

    async def fail(self: Any, method: str, params: Any) -> Any:
        if method == "_refused":
            raise acp.InvalidParamsError("no such thing")
        raise TimeoutError("no answer") if method == "_slow" else KeyError("secret")

    def on_error(method: str, error: BaseException) -> Any:
        seen.append((method, error))
        return acp.RequestError("the model does not answer", code=-32050) if isinstance(error, TimeoutError) else None

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(on_error=on_error)
        async with raw_peer(acp, agent_of(acp, ext_method=fail, ext_notification=fail), options=options) as peer:
            await peer.notify("_slow")
            return [(await peer.ask(1, method))["error"] for method in ("_slow", "_other", "_refused")]

    with acp_log() as records:
        slow, other, refused = run(main())
    assert slow == {"code": -32050, "message": "the model does not answer"}
    assert other == {"code": -32603, "message": "Internal error"}
    assert refused["code"] == -32602
    assert [(method, type(error)) for method, error in seen] == [("_slow", TimeoutError), ("_other", KeyError)]
    assert "the handler of '_slow' failed: no answer" in texts(records, logging.ERROR)


@pytest.mark.parametrize("answer", [ValueError("full"), GeneratorExit("full"), "no error", {"code": 1}])
def test_an_on_error_that_fails_gives_no_details(packages: Packages, answer: Any) -> None:
    acp = packages(V1)

    async def fail(self: Any, method: str, params: Any) -> Any:
        raise KeyError("secret")

    def on_error(method: str, error: BaseException) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def main() -> Any:
        options = acp.ConnectionOptions(on_error=on_error)
        async with raw_peer(acp, agent_of(acp, ext_method=fail), options=options) as peer:
            return (await peer.ask(1, "_a"))["error"]

    with acp_log() as records:
        assert run(main()) == {"code": -32603, "message": "Internal error"}
    assert "on_error " in texts(records, logging.ERROR)


# --- The log --------------------------------------------------------------------------------------------------------


def test_the_debug_log_has_method_id_and_duration(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_method=echo)) as peer:
            await peer.ask("number-5", "_asked")
            waiter = asyncio.create_task(peer.stub.ext_method("_asking", None))
            await peer.answer((await peer.receive())["id"], result=None)
            await waiter

    with acp_log() as records:
        run(main())
    lines = texts(records, logging.DEBUG).splitlines()
    (asked,) = [line for line in lines if "_asked" in line]
    assert "'number-5'" in asked
    assert re.search(r"\d+\.\d ms", asked)
    (asking,) = [line for line in lines if "_asking" in line]
    assert re.search(r"\b0\b", asking)
    assert re.search(r"\d+\.\d ms", asking)


def test_a_good_conversation_is_not_worth_a_warning(packages: Packages, capfd: pytest.CaptureFixture[str]) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with pair(acp, agent_of(acp, ext_method=echo), client_of(acp)) as both:
            for number in range(5):
                await both.agent.ext_method("_a", number)
                await both.client.ext_notification("_n", number)

    with acp_log() as records:
        run(main())
    assert texts(records, logging.INFO) == ""
    assert capfd.readouterr() == ("", "")


def test_text_of_the_peer_is_shortened_and_escaped_in_the_log(packages: Packages) -> None:
    """Nobody forges lines of the log, or fills the disk with it."""
    acp = packages(V1)
    forged = "_x\nERROR root all is lost\x1b[2J" + "x" * 10_000

    async def fail(self: Any, method: str, params: Any) -> Any:
        raise acp.InvalidParamsError

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_method=fail)) as peer:
            await peer.request(1, forged)
            await peer.notify(forged)
            await peer.request(2, "x\n" + forged)
            await peer.send_line(forged.replace("\n", "").encode())
            await peer.send({"jsonrpc": "2.0", "id": 99, "result": forged})
            await peer.send({"jsonrpc": forged, "id": 3, "method": forged})
            await peer.ping()

    with acp_log() as records:
        run(main())
    messages = [record.getMessage() for record in records]
    assert max(len(message) for message in messages) < 1_000
    assert not [message for message in messages if "\n" in message or "\x1b" in message]


# --- JSON from another library --------------------------------------------------------------------------------------


def test_other_readers_and_writers_of_json(packages: Packages) -> None:
    """As orjson's: `loads` takes bytes, `dumps` gives UTF-8."""
    acp = packages(V1)
    read: list[bytes] = []
    written: list[Any] = []

    def loads(line: bytes) -> Any:
        read.append(line)
        return json.loads(line)

    def dumps(message: Any) -> bytes:
        written.append(message)
        return json.dumps(message, ensure_ascii=False).encode()

    async def main() -> bytes:
        options = acp.ConnectionOptions(loads=loads, dumps=dumps)
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            await peer.send_line('{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": "é"}'.encode())
            answer = await peer.transport.read()
            await peer.send_line(b"no JSON")
            assert (await peer.receive())["error"]["code"] == -32700
            return answer

    assert run(main()) == '{"jsonrpc": "2.0", "id": 1, "result": "é"}'.encode()
    assert len(read) == 2
    assert [message["id"] for message in written] == [1, None]


def test_a_writer_of_json_that_fails(packages: Packages) -> None:
    acp = packages(V1)

    def dumps(message: Any) -> bytes:
        if message.get("result") == "too hard":
            raise TypeError("cannot write this")
        return json.dumps(message).encode()

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(dumps=dumps)
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            return [await peer.ask(1, "_a", "too hard"), *await peer.ping()]

    (answer,) = run(main())
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


@pytest.mark.parametrize("fault", [OverflowError("reader"), KeyError("reader"), UnicodeError("reader")])
def test_a_reader_of_json_that_fails(packages: Packages, fault: Exception) -> None:
    """Whatever it raises, it did not read the message."""
    acp = packages(V1)

    def loads(line: bytes) -> Any:
        if line == b'"fail"':
            raise fault
        return json.loads(line)

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(loads=loads)
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            await peer.send_line(b'"fail"')
            return await peer.ping()

    (answer,) = run(main())
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
