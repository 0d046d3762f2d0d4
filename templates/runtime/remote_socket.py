"""The client's end of a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import anyio
import httpx2
from httpx2.websockets import (
    AsyncWebSocketSession,
    HTTPXWSException,
    WebSocketDisconnect,
    WebSocketUpgradeError,
)
from wsproto.events import TextMessage
from wsproto.utilities import LocalProtocolError

from .dispatch import ConnectionClosed
from .options import ConnectionOptions

_GONE = (HTTPXWSException, LocalProtocolError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


class SocketClientTransport:
    """Messages as text frames; other frames are ignored. `client` is set before the socket is opened.

    A task of its own owns the socket: when its ping fails, httpx2 cancels the task that has opened it.
    """

    client: httpx2.AsyncClient

    def __init__(
        self,
        url: str,
        subprotocols: Sequence[str],
        ping_seconds: float | None,
        options: ConnectionOptions,
    ) -> None:
        self._url = url
        self._subprotocols = list(subprotocols)
        self._ping_seconds = ping_seconds
        self._max_bytes = options.max_message_bytes
        self._closing = asyncio.Event()
        self._opened = asyncio.Event()
        self._session: AsyncWebSocketSession | None = None
        self._owner: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the socket. Raises `ConnectionClosed`."""
        self._owner = asyncio.create_task(self._own())
        opened = asyncio.create_task(self._opened.wait())
        try:
            await asyncio.wait({self._owner, opened}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
        if not self._opened.is_set():
            error = self._owner.exception()
            raise ConnectionClosed(f"cannot connect: {_reason(error)}") from error

    async def _own(self) -> None:
        async with self.client.websocket(
            self._url,
            max_message_size_bytes=self._max_bytes,
            keepalive_ping_interval_seconds=self._ping_seconds,
            keepalive_ping_timeout_seconds=self._ping_seconds,
            subprotocols=self._subprotocols or None,
        ) as session:
            self._session = session
            self._opened.set()
            await self._closing.wait()

    def _socket(self) -> AsyncWebSocketSession:
        if self._session is None:
            raise ConnectionClosed("the socket is not open")
        return self._session

    async def read(self) -> bytes | None:
        """The next message; None if the server has closed the socket. Raises `OSError`."""
        socket = self._socket()
        while True:
            try:
                event = await socket.receive()
            except WebSocketDisconnect as error:
                if error.code == 1000:
                    return None
                raise ConnectionResetError(f"the server has closed the socket: {error.code} {error.reason}") from error
            except _GONE as error:
                raise ConnectionResetError("the socket is lost") from error
            if isinstance(event, TextMessage):
                return event.data.encode("utf-8", "surrogatepass")

    async def write(self, message: bytes) -> None:
        """Send a message; it is sent as a whole, even if the task is cancelled. Raises `OSError`."""
        await asyncio.shield(asyncio.ensure_future(self._send(message.decode())))

    async def _send(self, text: str) -> None:
        try:
            await self._socket().send_text(text)
        except _GONE as error:
            raise ConnectionResetError("the socket is lost") from error

    async def close(self) -> None:
        """Close the socket."""
        self._closing.set()
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)


def _reason(error: BaseException | None) -> str:
    while inner := getattr(error, "exceptions", ()):  # anyio groups them
        error = inner[0]
    if isinstance(error, WebSocketUpgradeError):
        return f"the server answered {error.response.status_code}"
    return str(error) or type(error).__name__
