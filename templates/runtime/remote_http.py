"""The client's end of Streamable HTTP: a POST for each message, and streams of events that bring those of the agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from .dispatch import ConnectionClosed
from .envelope import CONNECTION_HEADER, SESSION_HEADER, is_id, object_of, session_in
from .errors import InternalError
from .log import logger
from .options import ConnectionOptions
from .sessions import SESSION_RULES
from .transport import memory_transports

_JSON: Final = {"content-type": "application/json"}
_EVENTS: Final = {"accept": "text/event-stream"}
_MAX_STREAMS: Final = 90
"""httpx2 has at most 100 requests at a time on a connection of HTTP/2, and would wait forever with the next one."""
_NO_FRAME: Final = bytes((0, 0, 0, 0xFE, 0, 0, 0, 0, 0))
"""A frame of HTTP/2 without content, of a type that no receiver knows: it is ignored."""
_FRAME_HEAD: Final = len(_NO_FRAME)
_HTTP1: Final = b"HTTP/1."
_CLOSED: Final = "this side has closed the connection"
_MAX_EXCERPT: Final = 200
_CLOSE_SECONDS: Final = 5.0
_NO_STREAMABLE_HTTP: Final = frozenset({404, 405, 426, 501, 505})
_CONNECTION_LOST: Final = frozenset({401, 403, 410})


class WebSocketOnly(ConnectionClosed):
    """The server does not take the first message over Streamable HTTP."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A request of this side that waits for its response."""

    method: str
    session: str | None


class _EventStream:
    """The stream of the connection, or of one session: a task that reads it, and the status of the response."""

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None


class _Turns:
    """Reads of a connection of HTTP/2: whole frames, and then as many empty ones as `count` returns.

    httpx2 reads for one of its requests at a time, and then lets the next one read, in the order in which they came:
    also one that got nothing, while another one does not see what it got. The empty frames let each have its turn.
    """

    def __init__(self, stream: Any, count: Callable[[], int]) -> None:
        self._read: Callable[[int, float | None], Awaitable[bytes]] = stream.read
        self._count = count
        self._left = 0
        self._rest = b""
        self._is_http1 = False

    async def __call__(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes; none at the end."""
        if self._left:
            self._left -= 1
            return _NO_FRAME
        while chunk := await self._read(max_bytes, timeout):
            self._is_http1 = self._is_http1 or chunk.startswith(_HTTP1)
            if self._is_http1:
                return chunk
            data = self._rest + chunk
            end = _end_of_frames(data)
            self._rest = data[end:]
            if end:
                self._left = self._count()
                return data[:end]
        return b""


def _end_of_frames(data: bytes) -> int:
    """The number of bytes that are whole frames. A frame has a head, which starts with the length of the rest."""
    end, following = 0, 0
    while following <= len(data):
        end = following
        following += _FRAME_HEAD + int.from_bytes(data[end : end + 3], "big") if end + 3 <= len(data) else _FRAME_HEAD
    return end


class HttpClientTransport:
    """Messages over Streamable HTTP. One POST follows the other, so that messages keep their order.

    `see` has to be called with each message of the agent: sessions that it names get a stream. `client` is set before
    the first message.
    """

    client: httpx2.AsyncClient

    def __init__(self, url: str, options: ConnectionOptions, silence_seconds: float | None) -> None:
        self._url = url
        self._options = options
        self._silence_seconds = silence_seconds
        self._arriving, self._arrived = memory_transports()
        self._lock = asyncio.Lock()
        self._connection: str | None = None
        self._streams: dict[str | None, _EventStream] = {}
        self._calls: dict[object, _Call] = {}  # of this side, by id
        self._asked: dict[object, str] = {}  # the sessions of requests of the agent, by id
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: ConnectionClosed | None = None
        self._is_closed = False
        self._extensions = {"trace": self._trace}

    async def read(self) -> bytes | None:
        """The next message; None at the end. Raises `ConnectionClosed`."""
        line = await self._arrived.read()
        if line is None and self._failure is not None:
            raise self._failure.again()
        return line

    async def write(self, message: bytes) -> None:
        """Send a message; it is sent as a whole, even if the task is cancelled. Raises `OSError`."""
        task = self._start(self._write(message))
        await asyncio.wait({task})
        if task.cancelled():
            raise ConnectionResetError(_CLOSED)
        task.result()

    async def close(self) -> None:
        """End the connection at the server, too. Messages that wait are not sent."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._arriving.close()
        if self._connection is not None:
            key, self._connection = self._connection, None
            with contextlib.suppress(httpx2.HTTPError, asyncio.TimeoutError):
                deletion = self.client.delete(self._url, headers={CONNECTION_HEADER: key}, extensions=self._extensions)
                await asyncio.wait_for(deletion, _CLOSE_SECONDS)

    # --- To the agent --------------------------------------------------------------------------------------------

    async def _write(self, line: bytes) -> None:
        async with self._lock:
            if self._is_closed:
                raise ConnectionResetError(_CLOSED)
            try:
                if self._connection is None:
                    await self._initialize(line)
                else:
                    await self._send(line, self._connection)
            except httpx2.HTTPError as error:
                raise ConnectionResetError(_reason(error)) from error

    async def _initialize(self, line: bytes) -> None:
        try:
            async with self._post(line, _JSON) as response:
                body = await self._body(response)
        except (httpx2.RemoteProtocolError, httpx2.ReadError) as error:  # such as HTTP/1.1 where HTTP/2 is spoken
            raise WebSocketOnly(f"the server has no Streamable HTTP: {_reason(error)}") from error
        key = response.headers.get(CONNECTION_HEADER)
        if response.status_code != 200 or key is None:
            kind = WebSocketOnly if response.status_code in _NO_STREAMABLE_HTTP else ConnectionClosed
            raise kind(f"the server answered {_status(response, body)}")
        self._connection = key
        status = await self._open_stream(None)
        if status != 200:
            raise ConnectionClosed(f"the server answered {status} to the GET for the stream of the connection")
        await self._arriving.write(body)

    async def _send(self, line: bytes, key: str) -> None:
        message = object_of(line)
        method, number = message.get("method"), message.get("id")
        is_call = isinstance(method, str) and is_id(number)
        name = session_in(message.get("params")) if "method" in message else self._asked.pop(number, None)
        if name is not None:
            status = await self._open_stream(name)
            if status == 404 and method in SESSION_RULES.attach:
                name = None  # the server makes a stream when it knows the session
            elif status not in (200, 404):
                self._refused(f"{status} to the GET of a session", status, name, number if is_call else None)
                return
        if is_call:
            self._calls[number] = _Call(str(method), name)
        headers = {**_JSON, CONNECTION_HEADER: key, **({} if name is None else {SESSION_HEADER: name})}
        async with self._post(line, headers) as response:
            body = await self._body(response)
        if response.status_code == 200 and body:
            self._start(self._arriving.write(body))
        elif not response.is_success:
            self._refused(_status(response, body), response.status_code, name, number if is_call else None)

    def _refused(self, text: str, status: int, name: str | None, number: object) -> None:
        """The server has refused a message: a request gets an error, anything else ends the connection."""
        if status in _CONNECTION_LOST or (status == 404 and name is None):
            raise ConnectionClosed(f"the server answered {text}")
        if number is not None:
            error = InternalError(f"the server answered {text}", data={"status": status})
            line = self._options.dumps({"jsonrpc": "2.0", "id": number, "error": error.to_json()})
            self._start(self._arriving.write(line))  # not awaited: the peer of the queue may wait for this POST
        elif status == 404:
            logger.warning("a message for a session that the server does not know is lost")
        else:
            raise ConnectionClosed(f"the server answered {text}")

    def _post(self, line: bytes, headers: Mapping[str, str]) -> AbstractAsyncContextManager[httpx2.Response]:
        return self.client.stream("POST", self._url, content=line, headers=headers, extensions=self._extensions)

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Let the streams of a connection take turns, once it is open and before anything is read from it."""
        if event == "connection.connect_tcp.complete" or event.endswith(".start_tls.complete"):
            stream: Any = info["return_value"]
            stream.read = _Turns(stream, lambda: len(self._streams) + 1)  # with the POST

    async def _body(self, response: httpx2.Response) -> bytes:
        chunks, size = list[bytes](), 0
        async for chunk in response.aiter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._options.max_message_bytes:
                raise ConnectionClosed("the body of a response is larger than max_message_bytes")
        return b"".join(chunks)

    # --- From the agent ------------------------------------------------------------------------------------------

    def see(self, message: Any) -> None:
        """Follow a message of the agent: the streams of sessions begin and end with it."""
        if not isinstance(message, dict):
            return
        found: dict[str, Any] = message
        number = found.get("id")
        if "method" in found:
            name = session_in(found.get("params"))
            if name is not None and is_id(number):
                self._asked[number] = name
        else:
            call = self._calls.pop(number, None) if is_id(number) else None
            name = session_in(found.get("result"))
            if call is not None and "result" in found and call.method in SESSION_RULES.end:
                self._end_stream(call.session)
            elif call is not None and call.method in SESSION_RULES.attach:
                name = name or call.session
        if name is not None and name not in self._streams:
            self._start(self._try_stream(name))

    async def _try_stream(self, name: str) -> None:
        await self._open_stream(name)

    async def _open_stream(self, name: str | None) -> int:
        """Open a stream unless it is open; returns the status of the response."""
        stream = self._streams.get(name)
        if stream is None:
            if len(self._streams) >= _MAX_STREAMS:
                logger.warning("more than %d sessions need several connections, or a WebSocket", _MAX_STREAMS)
                return 429
            stream = self._streams[name] = _EventStream()
            stream.task = self._start(self._read_stream(stream, name))
        return await asyncio.shield(stream.status)

    def _end_stream(self, name: str | None) -> None:
        stream = self._streams.pop(name, None)
        if stream is not None and stream.task is not None:
            stream.task.cancel()

    async def _read_stream(self, stream: _EventStream, name: str | None) -> None:
        headers = {**_EVENTS, CONNECTION_HEADER: self._connection or "", **({SESSION_HEADER: name} if name else {})}
        try:
            async with self.client.stream(
                "GET", self._url, headers=headers, timeout=self._timeout(), extensions=self._extensions
            ) as response:
                if response.status_code != 200:
                    self._streams.pop(name, None)
                    stream.status.set_result(response.status_code)
                    return
                stream.status.set_result(200)
                events = httpx2.EventSource(response, max_event_size=self._options.max_message_bytes)
                async for event in events:
                    await self._arriving.write(event.data.encode("utf-8", "surrogatepass"))
            await self._lose("the server has ended a stream")
        except (httpx2.HTTPError, OSError) as error:
            await self._lose(_reason(error))
        finally:
            if not stream.status.done():
                stream.status.set_result(0)

    def _timeout(self) -> httpx2.Timeout:
        own = self.client.timeout
        return httpx2.Timeout(connect=own.connect, read=self._silence_seconds, write=own.write, pool=own.pool)

    async def _lose(self, reason: str) -> None:
        """End the connection: what was under way on this stream is lost."""
        if self._failure is None:
            self._failure = ConnectionClosed(reason)
            await self._arriving.close()

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, OSError):
            logger.error("reading from the server has failed", exc_info=error)


def _status(response: httpx2.Response, body: bytes) -> str:
    text = body[:_MAX_EXCERPT].decode("utf-8", "replace")
    return f"{response.status_code}: {text!r}"


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
