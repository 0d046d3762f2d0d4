"""A relay between clients and a server, which can stop forwarding, hold one direction, or cut its connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Literal

Direction = Literal["up", "down"]
"""To the server, or to the client."""


class Relay:
    """Forwards bytes in both directions while `is_open` is set."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.holds = asyncio.Event()  # something waits
        self.passed: Counter[Direction] = Counter()  # bytes
        self._held: Direction | None = None
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """The number of TCP connections."""
        return len(self._tasks)

    def freeze(self) -> None:
        """Forward nothing more, and close nothing: what a lost network looks like."""
        self.is_open.clear()

    def hold(self, direction: Direction) -> None:
        """Hold what goes in this direction until the connections are cut: it never arrives."""
        self._held = direction

    def cut(self) -> None:
        """Abort all connections."""
        self._held = None
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers |= {writer, far_writer}
            both = self._forward(reader, far_writer, "up"), self._forward(far_reader, writer, "down")
            await asyncio.gather(*both, return_exceptions=True)
            far_writer.close()
        writer.close()
        self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
        try:
            while data := await reader.read(2**16):
                await self.is_open.wait()
                if self._held == direction:
                    self.holds.set()
                    continue
                self.passed[direction] += len(data)
                writer.write(data)
                await writer.drain()
        finally:
            await self.is_open.wait()
            writer.close()

    async def end(self) -> None:
        """Cut everything, and wait until it is gone."""
        self.is_open.set()
        while self._tasks:
            self.cut()
            await asyncio.wait(self._tasks, timeout=0.05)


@contextlib.asynccontextmanager
async def relaying(port: int) -> AsyncGenerator[Relay, None]:
    """A relay to a port of 127.0.0.1 during the block."""
    relay = Relay(port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        await relay.end()
