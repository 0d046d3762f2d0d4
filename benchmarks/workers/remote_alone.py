"""Round trips of the libraries that clients of acpgen use, with no SDK on either side: it prints JSON.

Usage: python remote_alone.py URL ROUND-TRIPS WARM-UP
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable

URL, TRIPS, WARM_UP = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SECONDS = 300
PROMPT = {"sessionId": "9f86d081884c7d65", "prompt": [{"type": "text", "text": "trip 0"}]}
LINE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": PROMPT}, separators=(",", ":"))


async def measure(trip: Callable[[], Awaitable[object]]) -> None:
    """Print how long one trip takes, in microseconds."""
    for _ in range(WARM_UP):
        await trip()
    start = time.perf_counter()
    for _ in range(TRIPS):
        await trip()
    print(json.dumps({"trip": (time.perf_counter() - start) / TRIPS * 1e6}))


async def over_websocket() -> None:
    """A frame comes back as it was sent."""
    from websockets.asyncio.client import connect

    async with connect(URL, compression=None) as socket:

        async def trip() -> None:
            await socket.send(LINE)
            await socket.recv()

        await measure(trip)


async def over_http() -> None:
    """The body of a POST comes back as an event, on another connection."""
    import httpx2

    def client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(http1=False, http2=True, timeout=None)

    arrived: asyncio.Queue[object] = asyncio.Queue()

    async def read() -> None:
        async with client() as own, own.stream("GET", URL) as response:
            async for chunk in response.aiter_raw():
                arrived.put_nowait(chunk)

    reading = asyncio.create_task(read())
    await arrived.get()  # the stream has begun
    async with client() as posting:
        headers = {"content-type": "application/json", "acp-connection-id": "0" * 32, "acp-session-id": "0" * 16}

        async def trip() -> None:
            async with posting.stream("POST", URL, content=LINE, headers=headers):
                pass
            await arrived.get()

        await measure(trip)
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading


asyncio.run(asyncio.wait_for(over_websocket() if URL.startswith("ws") else over_http(), SECONDS))
