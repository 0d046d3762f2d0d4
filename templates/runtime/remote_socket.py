"""The client's end of a WebSocket. Needs `websockets`: Streamable HTTP does without it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from email.message import Message
from http.cookiejar import CookieJar
from typing import Any, Final
from urllib.request import Request

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed as SocketClosed
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.http11 import Response

from .dispatch import ConnectionClosed
from .options import ConnectionOptions

_QUEUE: Final = 64
_GOING_WELL: Final = 1000


class SocketClientTransport:
    """Messages as text frames; other frames are ignored."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def read(self) -> bytes | None:
        """The next message; None if the server has closed the socket. Raises `ConnectionClosed`."""
        while True:
            try:
                frame = await self._socket.recv()
            except SocketClosed as error:
                if error.rcvd is not None and error.rcvd.code == _GOING_WELL:
                    return None
                raise ConnectionClosed(f"the socket is closed: {error}") from error
            if isinstance(frame, str):
                return frame.encode()

    async def write(self, message: bytes) -> None:
        """Send a message; wait if the server reads too slowly. Raises `ConnectionClosed`."""
        try:
            await self._socket.send(message.decode())
        except SocketClosed as error:
            raise ConnectionClosed(f"the socket is closed: {error}") from error

    async def close(self) -> None:
        """Close the socket."""
        await self._socket.close()


@contextlib.asynccontextmanager
async def open_socket(
    url: str, cookies: CookieJar, settings: Mapping[str, Any], options: ConnectionOptions
) -> AsyncGenerator[SocketClientTransport, None]:
    """Open a socket; `settings` are arguments for `websockets.connect`. Raises `ConnectionClosed`."""
    http_url = url.replace("ws", "http", 1) if url.startswith("ws") else url
    arguments: dict[str, Any] = {
        "compression": None,
        "close_timeout": options.cleanup_seconds / 2,
        "max_size": options.max_message_bytes,
        "max_queue": _QUEUE,
        **settings,
    }
    arguments["additional_headers"] = _with_cookies(http_url, cookies, settings.get("additional_headers"))
    try:
        socket = await connect(http_url.replace("http", "ws", 1), **arguments)
    except InvalidStatus as error:
        _keep_cookies(http_url, cookies, error.response)
        raise ConnectionClosed(f"cannot connect: the server answered {error.response.status_code}") from error
    except (WebSocketException, OSError, TimeoutError) as error:
        raise ConnectionClosed(f"cannot connect: {error or type(error).__name__}") from error
    if socket.response is not None:
        _keep_cookies(http_url, cookies, socket.response)
    try:
        yield SocketClientTransport(socket)
    finally:
        await socket.close()


def _with_cookies(url: str, cookies: CookieJar, headers: Any) -> list[tuple[str, str]]:
    """The headers of the caller, and the cookies for `url`."""
    given: Any = headers.items() if hasattr(headers, "items") else headers or ()
    pairs: list[tuple[str, str]] = [*given]
    request = Request(url)
    cookies.add_cookie_header(request)
    value = request.get_header("Cookie")
    return pairs if value is None else [*pairs, ("Cookie", value)]


def _keep_cookies(url: str, cookies: CookieJar, response: Response) -> None:
    cookies.extract_cookies(_Answer(response), Request(url))  # type: ignore[arg-type]


class _Answer:
    """A response, as `CookieJar` reads it."""

    def __init__(self, response: Response) -> None:
        self._message = Message()
        for name, value in response.headers.raw_items():
            self._message[name] = value

    def info(self) -> Message:
        """The headers."""
        return self._message
