"""When messages are written: the first in a turn of the event loop at once, those that follow in it together."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import V1, agent_of, client_of, raw_peer, run, started
from tests.support import Packages

pytestmark = pytest.mark.every_python


def numbers(data: bytes) -> list[int]:
    return [json.loads(line)["params"] for line in data.splitlines()]


async def opened(
    acp: Any, kind: type[Any], writes: list[bytes] | None = None
) -> tuple[Any, Any, socket.socket, list[bytes]]:
    """A connection over a socket, its handler, the other end, and all that is written, write by write."""
    near, far = socket.socketpair()
    far.settimeout(120)
    reader, writer = await asyncio.open_connection(sock=near)
    kept = [] if writes is None else writes
    write = writer.write
    writer.write = lambda data: (kept.append(bytes(data)), write(data))  # type: ignore[assignment, func-returns-value]
    connection, handler = started(acp, kind, acp.StreamTransport(reader, writer))
    return connection, handler, far, kept


def test_a_message_is_on_its_way_before_its_sender_blocks_the_loop(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> bytes:
        connection, agent, far, _ = await opened(acp, agent_of(acp))
        await agent.client.ext_notification("_n", 1)
        received = far.recv(2**16)  # blocks: nothing else in this process gets its turn
        await connection.close()
        far.close()
        return received

    assert numbers(run(main())) == [1]


def test_messages_of_one_turn_are_written_together(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[bytes]:
        connection, agent, far, writes = await opened(acp, agent_of(acp))
        for number in range(10):
            await agent.client.ext_notification("_n", number)
        await asyncio.sleep(0)
        for number in range(10, 13):
            await agent.client.ext_notification("_n", number)
            await asyncio.sleep(0.001)
        await connection.close()
        far.close()
        return writes

    writes = run(main())
    assert [numbers(each) for each in writes] == [[0], list(range(1, 10)), [10], [11], [12]]


def test_the_answer_of_the_last_request_takes_all_before_it_along(packages: Packages) -> None:
    """It is written while its handler still has the turn: a peer on another processor goes on meanwhile."""
    acp = packages(V1)
    writes: list[bytes] = []
    seen_next: list[list[bytes]] = []

    async def ext_method(self: Any, method: str, params: Any) -> None:
        asyncio.get_running_loop().call_soon(lambda: seen_next.append(list(writes)))
        for number in range(3):
            await self.client.ext_notification("_n", number)

    async def main() -> None:
        connection, _, far, _ = await opened(acp, agent_of(acp, ext_method=ext_method), writes)
        far.sendall(b'{"jsonrpc":"2.0","id":7,"method":"_a"}\n')
        while not seen_next:
            await asyncio.sleep(0)
        await connection.close()
        far.close()

    run(main())
    lines = [[json.loads(line) for line in each.splitlines()] for each in seen_next[0]]
    assert [[line.get("params", line.get("id")) for line in each] for each in lines] == [[0], [1, 2, 7]]


@pytest.mark.parametrize("count", [1, 2, 50])
def test_what_was_written_is_delivered_when_the_connection_is_closed_in_that_turn(
    packages: Packages, count: int
) -> None:
    acp = packages(V1)

    async def main() -> bytes:
        connection, agent, far, _ = await opened(acp, agent_of(acp))
        for number in range(count):
            await agent.client.ext_notification("_n", number)
        connection.stop()
        await connection.wait_closed()
        received = b""
        while chunk := far.recv(2**16):
            received += chunk
        far.close()
        return received

    assert numbers(run(main())) == list(range(count))


COUNT_LINES = """
import sys
from pathlib import Path
Path(sys.argv[1]).write_text(str(len(sys.stdin.readlines())))
"""


def test_a_process_gets_all_before_the_end_of_its_input(packages: Packages, tmp_path: Path) -> None:
    acp = packages(V1)
    counted = tmp_path / "counted"

    async def main() -> None:
        command = [sys.executable, "-c", COUNT_LINES, str(counted)]
        async with acp.spawn_agent(client_of(acp), command) as agent:
            for number in range(7):
                await agent.ext_notification("_n", number)

    run(main())
    assert counted.read_text() == "7"


def test_those_who_wait_to_write_keep_their_order(packages: Packages) -> None:
    """Tasks that write while the peer does not read, and one that comes when the first of them may go on."""
    acp = packages(V1)

    async def main() -> list[int]:
        connection, agent, far, _ = await opened(acp, agent_of(acp))
        large = ["x" * 200_000]
        started_all = [
            asyncio.create_task(agent.client.ext_notification("_n", [number, *large])) for number in range(20)
        ]
        received = b""
        loop = asyncio.get_running_loop()
        number = len(started_all)
        while received.count(b"\n") < number:
            received += await loop.run_in_executor(None, far.recv, 2**18)
            if number < 40:
                started_all.append(asyncio.create_task(agent.client.ext_notification("_n", [number, *large])))
                number += 1
        await asyncio.gather(*started_all)
        await connection.close()
        far.close()
        return [json.loads(line)["params"][0] for line in received.splitlines()]

    assert run(main()) == list(range(40))


def test_a_request_does_not_wait_for_a_peer_that_went_in_the_turn_of_its_write(packages: Packages) -> None:
    """The notification goes out at once, the request at the end of the turn, when nobody is there to read it."""
    acp = packages(V1)

    async def main() -> None:
        theirs, ours = os.pipe()
        loop = asyncio.get_running_loop()
        pipe, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(ours, "wb", buffering=0)
        )
        nothing_comes = asyncio.StreamReader()
        writer = asyncio.StreamWriter(pipe, protocol, None, loop)
        connection, agent = started(acp, agent_of(acp), acp.StreamTransport(nothing_comes, writer))
        await agent.client.ext_notification("_n", 1)
        os.close(theirs)
        with pytest.raises(acp.ConnectionClosed):
            await agent.client.ext_method("_a", 2)
        await connection.close()

    run(main())


def test_a_message_that_is_no_bytes_spoils_no_other(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> bytes:
        near, far = socket.socketpair()
        transport = acp.StreamTransport(*await asyncio.open_connection(sock=near))
        await transport.write(b"1")
        with pytest.raises(TypeError):
            await transport.write("2")
        await transport.write(b"3")
        await asyncio.sleep(0.01)
        await transport.write(b"4")
        await transport.close()
        with far:
            return far.recv(100)

    assert run(main()) == b"1\n3\n4\n"


def test_a_handler_that_streams_lets_a_cancel_in(packages: Packages) -> None:
    """The cancel is in the pipe after the first update; nothing in the handler waits for anything but its updates."""
    acp = packages(V1)
    sent: list[int] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        self.cancelled = False
        for number in range(500):
            if self.cancelled:
                return acp.PromptResponse(stop_reason="cancelled")
            update = acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text=str(number)))
            await self.client.session_update(acp.SessionNotification(session_id="s", update=update))
            sent.append(number)
            if number == 0:
                self.far.sendall(b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}\n')
        return acp.PromptResponse(stop_reason="end_turn")

    async def session_cancel(self: Any, params: Any) -> None:
        self.cancelled = True

    async def main() -> Any:
        kind = agent_of(acp, session_prompt=session_prompt, session_cancel=session_cancel)
        connection, agent, far, _ = await opened(acp, kind)
        agent.far = far
        far.sendall(b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}\n')
        received = b""
        while b'"id":1' not in received:
            received += await asyncio.get_running_loop().run_in_executor(None, far.recv, 2**16)
        await connection.close()
        far.close()
        return json.loads(received.splitlines()[-1])

    assert run(main())["result"]["stopReason"] == "cancelled"
    assert len(sent) < 250


def test_a_handler_that_streams_within_the_process_lets_a_cancel_in(packages: Packages) -> None:
    acp = packages(V1)
    sent: list[int] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        self.is_cancelled = method == "_ping"
        while not self.is_cancelled and len(sent) < 500:
            await self.client.ext_notification("_n", None)
            sent.append(len(sent))

    async def session_cancel(self: Any, params: Any) -> None:
        self.is_cancelled = True

    async def main() -> None:
        kind = agent_of(acp, ext_method=ext_method, session_cancel=session_cancel)
        async with raw_peer(acp, kind, max_messages=1_000) as peer:
            await peer.request(1, "_stream")
            await peer.notify("session/cancel", {"sessionId": "s"})
            await peer.ping()

    run(main())
    assert len(sent) < 250


def test_a_burst_is_written_in_few_pieces(packages: Packages) -> None:
    """What lets others run costs two writes for 32 messages."""
    acp = packages(V1)

    async def main() -> list[bytes]:
        connection, agent, far, writes = await opened(acp, agent_of(acp))
        for number in range(320):
            await agent.client.ext_notification("_n", number)
        await connection.close()
        far.close()
        return writes

    writes = run(main())
    assert [number for each in writes for number in numbers(each)] == list(range(320))
    assert len(writes) == 20
