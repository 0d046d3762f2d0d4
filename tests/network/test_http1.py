"""Streamable HTTP over HTTP/1.1, which the official SDKs speak: with each server, several streams, and their end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.network.load import connecting, initialize, open_session, prompt
from tests.network.processes import serving

HTTP1 = {"http1": True, "http2": False}


@pytest.mark.parametrize("kind", ["hypercorn", "uvicorn", "granian"])
def test_sessions_over_http_1(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        with serving(kind, tmp_path) as server:
            before = await server.state()
            connection = connecting("http", server.port, settings=HTTP1)
            async with connection as agent:
                await initialize(agent)
                names = ["/1", "/2", "/3"]
                for name in names:
                    await open_session(agent, name)
                for _ in range(2):
                    await asyncio.gather(*(prompt(agent, name, "count 20") for name in names))
                assert connection.handler.texts == {name: [*map(str, range(20))] * 2 for name in names}
            await server.settled(before)

    asyncio.run(main())
