"""Hooks, handlers and transports that fail or hang when a connection ends: it still ends, and in time."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, agent_of, raw_peer, run, started, texts
from tests.support import Packages
from tests.test_runtime_end import ENDS, bring_about

pytestmark = pytest.mark.every_python


@ENDS
@pytest.mark.parametrize("fault", [ValueError("closing failed"), asyncio.CancelledError("closing failed")])
def test_a_connection_closed_that_fails(packages: Packages, end: str, fault: BaseException) -> None:
    acp = packages(V1)

    async def connection_closed(self: Any, reason: Any) -> None:
        raise fault

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp, connection_closed=connection_closed)) as peer:
            await bring_about(end, peer)
            return await peer.receive()

    with acp_log() as records:
        assert run(main()) is None  # the transport was closed all the same
    assert "connection_closed failed" in texts(records)


def test_a_connection_closed_that_does_not_end(packages: Packages) -> None:
    acp = packages(V1)

    async def connection_closed(self: Any, reason: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> Any:
        options = acp.ConnectionOptions(cleanup_seconds=0.02)
        async with raw_peer(acp, agent_of(acp, connection_closed=connection_closed), options=options) as peer:
            await peer.connection.close()
            return await peer.receive()

    with acp_log() as records:
        assert run(main()) is None
    assert "connection_closed" in texts(records)


@ENDS
def test_a_handler_that_does_not_end_is_left_behind(packages: Packages, end: str) -> None:
    acp = packages(V1)

    async def main() -> None:
        enough, begun = asyncio.Event(), asyncio.Event()
        left: list[Any] = []

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            left.append(asyncio.current_task())
            while not enough.is_set():
                begun.set()
                with contextlib.suppress(asyncio.CancelledError):  # what nobody should do
                    await enough.wait()
            return "late"

        options = acp.ConnectionOptions(cleanup_seconds=0.02, finish_seconds=0.02)
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options) as peer:
            await peer.request(1, "_stubborn")
            await begun.wait()
            await bring_about(end, peer)
            assert await peer.receive() is None
        enough.set()
        await asyncio.wait(left)

    with acp_log() as records:
        run(main())
    logged = texts(records)
    assert "the handler of '_stubborn' ignores that it was cancelled" in logged
    assert re.search(r"was abandoned; it waits at .*ext_method in line \d+ of .*test_runtime_cleanup\.py", logged)


def test_a_transport_that_does_not_close_is_left_behind(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        near, far = acp.memory_transports()
        near.close = asyncio.Event().wait
        connection, _ = started(acp, agent_of(acp), near, acp.ConnectionOptions(cleanup_seconds=0.02))
        await connection.close()
        await far.close()

    run(main())
