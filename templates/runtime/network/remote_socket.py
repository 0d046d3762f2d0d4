"""The client's end of a WebSocket. Needs `websockets`: Streamable HTTP does without it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Mapping
from email.message import Message as HeaderBlock
from http.cookiejar import CookieJar
from typing import Any, Final
from urllib.request import Request

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed as SocketClosed
from websockets.exceptions import InvalidProxyStatus, InvalidStatus, WebSocketException
from websockets.http11 import Response

from ..dispatch import ConnectionClosed
from ..log import one_line
from ..message import Message, Unreadable
from ..options import ConnectionOptions
from .remote_failures import LOST, NO_PROXY_ACCESS, TOO_LARGE, address, failure, refusal
from .shared_memory import SharedMemory, estimating_wire

_QUEUE: Final = 4
"""The most frames that wait, each of up to `max_message_bytes`; more would make no client faster."""
_NORMAL_CLOSURE: Final = 1000
_ENDS: Final = {
    1000: "this side has closed the connection",
    1009: TOO_LARGE,
    1011: "no answer to a ping arrived in time",
}
"""Why this side has closed a socket, by the code that it has sent."""


class _Connect(connect):
    """Follows no redirect: headers and cookies are for one server."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Called by `websockets`."""
        return exc


class SocketClientTransport:
    """Messages as text frames; other frames are ignored."""

    def __init__(self, socket: ClientConnection, options: ConnectionOptions) -> None:
        self._socket = socket
        self._wire = estimating_wire(options)
        self.budget = SharedMemory()

    async def read(self) -> Message | Unreadable | None:
        """The next message; None if the server has closed the socket. Raises `ConnectionClosed`."""
        while True:
            try:
                frame = await self._socket.recv()
            except SocketClosed as error:
                if error.rcvd is not None and error.rcvd.code == _NORMAL_CLOSURE:
                    return None
                raise _end(error) from error
            if isinstance(frame, str):
                return self._wire.read(frame.encode())

    def send(self, message: Message) -> Awaitable[None]:
        """Send a message; returns what is left to await."""
        return self.send_line(self._wire.write(message), message)

    async def send_line(self, line: bytes, _message: Message) -> None:
        """Send the text of a message; wait if the server reads too slowly. Raises `ConnectionClosed`."""
        try:
            await self._socket.send(line.decode())
        except SocketClosed as error:
            raise _end(error) from error

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
        socket = await _Connect(http_url.replace("http", "ws", 1), **arguments)
    except InvalidStatus as error:
        _keep_cookies(http_url, cookies, error.response)
        raise _refusal(error.response) from error
    except (WebSocketException, OSError, asyncio.TimeoutError) as error:
        raise _failure(error, f"cannot connect to {address(url)}") from error
    if socket.response is not None:
        _keep_cookies(http_url, cookies, socket.response)
    try:
        yield SocketClientTransport(socket, options)
    finally:
        await socket.close()


def _refusal(response: Response) -> ConnectionClosed:
    locations = response.headers.get_all("Location")
    return refusal(
        response.status_code, bytes(response.body or b""), locations[0] if locations else None, is_first=True
    )


def _failure(error: BaseException, what: str) -> ConnectionClosed:
    if isinstance(error, InvalidProxyStatus):
        status = error.response.status_code
        return ConnectionClosed(f"{what}: the proxy answered {status}", is_permanent=status == NO_PROXY_ACCESS)
    return failure(error, what, "no valid response over WebSocket")


def _end(error: SocketClosed) -> ConnectionClosed:
    """The error for a socket that was closed: the first close frame tells why."""
    if error.rcvd is not None and error.rcvd_then_sent is not False:
        return ConnectionClosed(f"the server has closed the connection: {one_line(error.rcvd)}")
    if error.sent is not None:
        return ConnectionClosed(_ENDS.get(error.sent.code, f"the server has sent invalid data: {one_line(error.sent)}"))
    return failure(error, LOST)


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
        self._message = HeaderBlock()
        for name, value in response.headers.raw_items():
            self._message[name] = value

    def info(self) -> HeaderBlock:
        """The headers."""
        return self._message
