"""The client's end of Streamable HTTP: a POST for each message to the agent, and streams of events from it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from ...errors import InternalError, InvalidParamsError, RequestError
from .._decode import excerpt
from ..dispatch import ConnectionClosed
from ..log import logger, one_line
from ..message import Message, Unreadable
from ..options import ConnectionOptions
from .remote_failures import NO_PROXY_ACCESS, address, failure, refusal
from .remote_post import BROKEN, Poster
from .sessions import SESSION_RULES
from .shared_memory import SharedMemory, estimating_wire
from .streams import CONNECTION_HEADER, SESSION_HEADER, Inbox, fits_header, session_in

_JSON: Final = {"content-type": "application/json"}
_EVENTS: Final = {"accept": "text/event-stream"}
_MAX_STREAMS: Final = 90
"""Each of them has a connection."""
_TURNS: Final = 8
"""Turns of the event loop that a message on the stream of the connection waits for those of sessions that came before
it: the response to a request that takes up a session must not overtake what is replayed."""
_CLOSED: Final = "this side has closed the connection"
_MAX_ARRIVED: Final = 1024
"""So many messages of the agent wait at most; streams are read no further then."""
_CLOSE_SECONDS: Final = 1.5
_NO_STREAMABLE_HTTP: Final = frozenset({404, 405, 426, 501, 505})
_CONNECTION_LOST: Final = frozenset({401, 403, 410})
_NOT_FOUND: Final = 404


class WebSocketOnly(ConnectionClosed):
    """The server does not take the first message over Streamable HTTP."""


@dataclass(frozen=True, slots=True)
class _SentRequest:
    """A request of this side that waits for its response."""

    method: str
    session: str | None


class _EventStream:
    """The stream of the connection, or of one session: a task that reads it, and the status of the response."""

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None


class HttpClientTransport:
    """Messages over Streamable HTTP. One POST follows the other, so that messages keep their order.

    Each stream has a client, and so a connection, of its own. Several requests on one connection of httpx2 read in
    turn: one may wait for bytes while another one does not see those that have arrived.

    Sessions that messages of the agent name get a stream. `use` has to be called before the first message.
    """

    _make_client: Callable[[], httpx2.AsyncClient]
    poster: Poster

    def __init__(self, url: str, options: ConnectionOptions, silence_seconds: float | None) -> None:
        self._url = httpx2.URL(url)  # is parsed once
        self._max_bytes = options.max_message_bytes
        self.silence_seconds = silence_seconds
        self._wire = estimating_wire(options)
        self.budget = SharedMemory()
        self._arrived = Inbox(_MAX_ARRIVED, options.max_write_buffer_bytes, SharedMemory())
        self.ready, self.attach = self._arrived.take, self._arrived.attach
        self._lock = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None  # holds the lock
        self._connection: str | None = None
        self._sessions: set[str] = set()  # of this connection
        self._streams: dict[str | None, _EventStream] = {}
        self._calls: dict[object, _SentRequest] = {}  # of this side, by id
        self._asked: dict[object, str] = {}  # the sessions of requests of the agent, by id
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: ConnectionClosed | None = None
        self._is_closed = False

    def use(self, make_client: Callable[[], httpx2.AsyncClient]) -> None:
        """Send messages with `poster`, which the caller closes, and read streams with clients of their own."""
        self._make_client = make_client
        self.poster = Poster(self._url, make_client, self._max_bytes)

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end. Raises `ConnectionClosed`."""
        message = await self._arrived.get()
        if message is None and self._failure is not None:
            raise self._failure.again()
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """Send a message; returns what is left to await."""
        return self.send_line(self._wire.write(message), message)

    async def send_line(self, line: bytes, message: Message) -> None:
        """Send the text of a message; as a whole or not at all if the task is cancelled. Raises `OSError`."""
        task = self._start(self._write(line, message))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if task is not self._sending:  # it waits for its turn
                task.cancel()
            raise
        if task.cancelled():
            raise ConnectionClosed(_CLOSED) if self._failure is None else self._failure.again()
        task.result()

    async def close(self) -> None:
        """End the connection at the server, too. Messages that wait are not sent."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._arrived.end()
        if self._connection is not None and not self.poster.is_closed:  # the clean-up may have taken too long
            key, self._connection = self._connection, None
            # RuntimeError: closed in the meantime
            with contextlib.suppress(httpx2.HTTPError, asyncio.TimeoutError, RuntimeError):
                await asyncio.wait_for(self.poster.delete({CONNECTION_HEADER: key}), _CLOSE_SECONDS)

    # --- To the agent --------------------------------------------------------------------------------------------

    async def _write(self, line: bytes, message: Message) -> None:
        async with self._lock:
            if self._is_closed:
                raise ConnectionClosed(_CLOSED)
            self._sending = asyncio.current_task()
            try:
                if self._connection is None:
                    await self._initialize(line)
                else:
                    await self._post(line, message, self._connection)
            except ConnectionClosed:
                raise
            except Exception as error:  # httpx2 passes on what h2 raises
                raise failure(error) from error
            finally:
                self._sending = None

    async def _initialize(self, line: bytes) -> None:
        try:
            response, body = await self.poster.post(line, _JSON)
        except ConnectionClosed:
            raise
        except Exception as error:  # httpx2 passes on what h2 raises
            raise self._cannot_connect(error) from error
        key = response.headers.get(CONNECTION_HEADER)
        if response.status_code != 200 or key is None:
            kind = WebSocketOnly if response.status_code in _NO_STREAMABLE_HTTP else ConnectionClosed
            raise refusal(response.status_code, body, response.headers.get("location"), is_first=True, kind=kind)
        self._connection = key
        status = await self._open_stream(None)
        if status != 200:
            raise refusal(status, is_first=False)
        self._take(self._wire.read(body))

    def _cannot_connect(self, error: BaseException) -> ConnectionClosed:
        what = f"cannot connect to {address(str(self._url))}"
        if isinstance(error, httpx2.ProxyError):
            text = f"{what}: the proxy answered {one_line(error)}"
            return ConnectionClosed(text, is_permanent=str(error).startswith(f"{NO_PROXY_ACCESS:d}"))
        # such as HTTP/1.1 where HTTP/2 is spoken
        kind = WebSocketOnly if isinstance(error, BROKEN) else ConnectionClosed
        return failure(error, what, "no valid response over HTTP/2", kind=kind)

    async def _post(self, line: bytes, message: Message, key: str) -> None:
        method, request_id, is_call = message.method, message.id, message.kind == "request"
        name = self._asked.pop(request_id, None) if message.is_response else session_in(message.value)
        header = name if name is not None and fits_header(name) else None
        if is_call:
            self._calls[request_id] = _SentRequest(method, name)
        if header is not None and (is_call or header in self._sessions):
            status = await self._open_stream(header)  # the response comes on it
            if status == _NOT_FOUND and method in SESSION_RULES.attach:
                header = None  # the server makes a stream when it knows the session
            elif status in _CONNECTION_LOST:
                raise refusal(status, is_first=False)
            elif is_call and status not in (200, _NOT_FOUND):
                self._reject(request_id, refusal(status, is_first=False))
                return
        headers = {**_JSON, CONNECTION_HEADER: key, **({} if header is None else {SESSION_HEADER: header})}
        response, body = await self.poster.post_when_possible(line, headers)
        if response.status_code == 200 and body:
            self._take(self._wire.read(body))
        elif not response.is_success:
            refused = refusal(response.status_code, body, is_first=False)
            self._refused(refused, header, request_id if is_call else None)

    def _refused(self, refused: ConnectionClosed, name: str | None, request_id: int | str | None) -> None:
        """The server has refused a message: a request gets an error, anything else ends the connection."""
        is_unknown = refused.status == _NOT_FOUND  # the session or, without one, the connection
        if refused.status in _CONNECTION_LOST or (is_unknown and name is None):
            raise refused
        if request_id is not None:
            self._reject(request_id, refused, name if is_unknown else None)
        elif is_unknown:
            logger.warning("a message for a session that the server does not know is lost")
        else:
            raise refused

    def _reject(self, request_id: int | str | None, refused: ConnectionClosed, unknown: str | None = None) -> None:
        """Reject a request of this side: as an agent does if the session is `unknown` to the server."""
        data = {"status": refused.status}
        error: RequestError = InternalError(str(refused), data=data)
        if unknown is not None:
            error = InvalidParamsError(f"the connection has no session {excerpt(unknown)}", data=data)
        self._take(Message("error", error.to_json(), id=request_id))

    # --- From the agent ------------------------------------------------------------------------------------------

    def _take(self, message: Message | Unreadable) -> None:
        """Receive a message of the agent: the streams of sessions begin and end with it."""
        request_id, is_response = message.id, message.kind in ("result", "error", "response")
        if is_response and (call := self._calls.pop(request_id, None)) is not None:
            if isinstance(message, Message) and message.kind == "result":
                self._succeeded(call, session_in(message.value))
            self._end_unused(call.session)
        elif isinstance(message, Message) and message.kind == "request" and request_id is not None:
            self._follow_request(request_id, message.value)
        self._arrived.put(message)

    def _follow_request(self, request_id: int | str, params: Any) -> None:
        if (name := session_in(params)) is not None:
            self._asked[request_id] = name

    def _succeeded(self, call: _SentRequest, opened: str | None) -> None:
        if call.method in SESSION_RULES.end:
            self._sessions.discard(call.session or "")
            return
        attached = call.session if call.method in SESSION_RULES.attach else None
        for name in (opened, attached):
            if name is not None:
                self._sessions.add(name)
                if fits_header(name) and name not in self._streams:
                    self._start(self._try_stream(name))

    def _end_unused(self, name: str | None) -> None:
        """End the stream of a session that this connection does not have, unless a response is due on it."""
        if name is None or name in self._sessions or any(call.session == name for call in self._calls.values()):
            return
        stream = self._streams.pop(name, None)
        if stream is not None and stream.task is not None:
            stream.task.cancel()

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
        status = await asyncio.shield(stream.status)
        if self._failure is not None:
            raise self._failure.again()
        return status

    async def _read_stream(self, stream: _EventStream, name: str | None) -> None:
        headers = {**_EVENTS, CONNECTION_HEADER: self._connection or "", **({SESSION_HEADER: name} if name else {})}
        try:
            client = self._make_client()
            request = client.stream("GET", self._url, headers=headers, timeout=self._timeout())
            async with client, request as response:
                if response.status_code != 200:
                    stream.status.set_result(response.status_code)
                    return
                stream.status.set_result(200)
                events = httpx2.EventSource(response, max_event_size=self._max_bytes)
                async for event in events:
                    await self._arrive(event, name)
            if name is None or self._is_open(name):
                self._lose(ConnectionClosed("the server has ended a stream"))
        except httpx2.ReadTimeout:
            self._lose(ConnectionClosed(f"nothing has arrived for {self.silence_seconds:g} seconds"))
        except httpx2.SSEError as error:
            self._lose(ConnectionClosed(f"the server has sent an invalid stream: {one_line(error)}"))
        except Exception as error:  # httpx2 passes on what h2 raises, such as for a ping after the end of a connection
            logger.debug("reading from the server has failed", exc_info=error)
            self._lose(failure(error))
        finally:
            if self._streams.get(name) is stream:
                del self._streams[name]
            if not stream.status.done():
                stream.status.set_result(0)

    def _timeout(self) -> httpx2.Timeout:
        own = self.poster.timeout
        return httpx2.Timeout(connect=own.connect, read=self.silence_seconds, write=own.write, pool=own.pool)

    async def _arrive(self, event: httpx2.ServerSentEvent, name: str | None) -> None:
        if event.event != "message" or not event.data:
            return
        for _ in range(_TURNS if name is None else 0):
            await asyncio.sleep(0)
        await self._arrived.room()
        self._take(self._wire.read(event.data.encode("utf-8", "surrogatepass")))

    def _is_open(self, name: str) -> bool:
        """True if this connection has the session, and is not about to end it."""
        ending = (call.session == name and call.method in SESSION_RULES.end for call in self._calls.values())
        return name in self._sessions and not any(ending)

    def _lose(self, reason: ConnectionClosed) -> None:
        """End the connection. Messages under way on this stream are lost, and so is the one that is being sent."""
        if self._failure is None:
            self._failure = reason
            self._arrived.end()
            if self._sending is not None:
                self._sending.cancel()

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
