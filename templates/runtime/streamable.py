"""The server's ends of remote connections: Streamable HTTP, whose messages take several streams, and WebSocket.

Over HTTP, each message to the client has its stream (RFD "Streamable HTTP & WebSocket Transport"):

* A response goes to the stream of the session that its request belongs to. For requests that open or take up a session,
  and for those of no session, that is the stream of the connection.
* A request or notification goes to the stream of the session that its params name.
* A session has a stream of its own from the request that opens it, or from the client's GET. Until then its messages
  go to the stream of the connection: some clients read no other when they take up a session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from .capabilities import is_open
from .envelope import as_object, is_id, method_of, object_of, parse, session_in
from .errors import InternalError, InvalidRequestError, RequestError
from .options import ConnectionOptions
from .protocol import Gate
from .sessions import SESSION_RULES
from .transport import MAX_START, MessageTooLarge

_CHUNK: Final = 2**16
_MAX_BURST: Final = 32
"""After this many messages, the task that sends them yields."""
_OVERHEAD: Final = 512
"""The bytes that a waiting message takes beside its text."""
_COMMENT: Final = b":\n\n"


class Stream:
    """Messages that wait for the GET request of the client: as events, in their order.

    `put` waits while more than `limit` bytes are unread. `stuck_since` is the time of the event loop since which the
    client has taken nothing although something waits for it; None if nothing does.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._burst = 0
        self._waiting = 0  # how many calls of `put` wait
        self._lock = asyncio.Lock()
        self._room = asyncio.Event()
        self._changed = asyncio.Event()
        self._needs_comment = False
        self.reader: asyncio.Task[None] | None = None
        self.is_ended = False
        self.stuck_since: float | None = None

    async def put(self, message: bytes) -> None:
        """Add a message; wait while the client is too slow."""
        if self._bytes <= self._limit and not self._waiting:
            self._add(message)
            if self._burst >= _MAX_BURST:
                self._burst = 0
                await asyncio.sleep(0)
            return
        self._waiting += 1
        try:
            async with self._lock:  # messages keep their order
                while self._bytes > self._limit and not self.is_ended:
                    self._room.clear()
                    await self._room.wait()
                self._add(message)
        finally:
            self._waiting -= 1

    def put_at_once(self, message: bytes) -> bool:
        """Add a message if that is possible without waiting; returns whether it was."""
        if self._bytes > self._limit or self._waiting:
            return False
        self._add(message)
        return True

    def _add(self, message: bytes) -> None:
        self._messages.append(message)
        self._bytes += len(message)
        self._burst += 1
        if self.stuck_since is None:
            self.stuck_since = asyncio.get_running_loop().time()
        self._changed.set()

    async def take(self) -> bytes | None:
        """Wait for messages; returns some of them as events, or a comment that is due; None at the end."""
        while not self._messages:
            if self.is_ended:
                return None
            if self._needs_comment:
                self._needs_comment = False
                return _COMMENT
            self._changed.clear()
            await self._changed.wait()
        parts, size = list[bytes](), 0
        while self._messages and size < _CHUNK:
            message = self._messages.popleft()
            parts += (b"data: ", message, b"\n\n")
            size += len(message)
        self._bytes -= size
        self._room.set()
        return b"".join(parts)

    async def drained(self) -> None:
        """Wait until the client has taken all messages, or reads no longer."""
        while self._messages and self.reader is not None and not self.is_ended:
            self._room.clear()
            await self._room.wait()

    def leave(self) -> None:
        """The client reads no longer."""
        self.reader = None
        self._room.set()

    def taken(self) -> None:
        """The client has taken what `take` returned."""
        self.stuck_since = asyncio.get_running_loop().time() if self._messages else None

    def keep_alive(self) -> None:
        """Let an idle stream send a comment."""
        if self.reader is not None and not self._messages:
            self._needs_comment = True
            self._changed.set()

    def end(self) -> None:
        """End the stream after the messages that it has."""
        self.is_ended = True
        self._changed.set()
        self._room.set()


class Inbox:
    """Messages of the client that wait for the agent. They count in bytes from the first byte that is received."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._messages: deque[bytes | None] = deque()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self.is_ended = False

    @property
    def is_full(self) -> bool:
        """True if no more may be received."""
        return len(self._messages) >= self._max_messages or self._bytes > self._max_bytes

    def count(self, size: int) -> None:
        """Count bytes that are being received, or no longer are."""
        self._bytes += size

    def put(self, message: bytes) -> None:
        """Add a message."""
        self._bytes += len(message) + _OVERHEAD
        self._messages.append(message)
        self._changed.set()

    async def room(self) -> None:
        """Wait until the inbox is not full."""
        while self.is_full and not self.is_ended:
            self._room.clear()
            await self._room.wait()

    async def get(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._messages:
            if self.is_ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        message = self._messages.popleft()
        if message is not None:
            self._bytes -= len(message) + _OVERHEAD
        self._room.set()
        return message

    def end(self) -> None:
        """End the inbox after the messages that it has."""
        self.is_ended = True
        self._changed.set()
        self._room.set()


@dataclass(slots=True)
class Session:
    """A session of a connection. Without a `stream`, its messages go to the one of the connection.

    `is_known` is false while only a GET request has named it; `is_over` is true once the agent has ended it.
    """

    stream: Stream | None
    is_known: bool
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    """A request of the client, and the session that it belongs to."""

    method: str
    session: str | None


class Place(NamedTuple):
    """Where a response goes: to the stream of `session`, or of the connection; messages of `after` come before it."""

    session: Session | None = None
    after: Session | None = None


class Sessions:
    """The sessions of a connection, and the requests of the client that decide about them.

    `make_stream` makes the stream of a session that a request has opened.
    """

    def __init__(self, limit: int, make_stream: Callable[[], Stream | None]) -> None:
        self._limit = limit
        self._make_stream = make_stream
        self._by_name: dict[str, Session] = {}
        self._calls: dict[object, _Call] = {}  # by the id of the request
        self._opening = 0  # how many of them open a session

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_name.values())

    def get(self, name: str | None) -> Session | None:
        """The session with this id."""
        return None if name is None else self._by_name.get(name)

    @property
    def are_too_many(self) -> bool:
        """True if one more session would exceed the limit."""
        return len(self._by_name) + self._opening >= self._limit

    def refusal(self, message: Mapping[str, Any], name: str | None) -> tuple[RequestError, object] | None:
        """The error for a request that must not reach the agent, and the id to respond with; None for all others."""
        number, method = message.get("id"), method_of(message)
        if method is not None and is_id(number) and number in self._calls:
            # which of the two opens a session could not be known, nor what the peer would take the response for
            return InvalidRequestError("Invalid request: a request with this id is running"), None
        attaches = method in SESSION_RULES.attach and self.get(name) is None
        if (attaches or method in SESSION_RULES.open) and self.are_too_many:
            return InternalError("Request refused: the connection has too many sessions"), number
        return None

    def open_stream(self, name: str, *, may_be_new: bool) -> Stream | None:
        """The stream of a session for a GET request. With `may_be_new`, the session may become known later."""
        session = self._by_name.get(name)
        if session is None:
            if not may_be_new or self.are_too_many:
                return None
            session = self._by_name[name] = Session(None, is_known=False)
        if session.stream is None:
            session.stream = self._make_stream()
        return session.stream

    def close_stream(self, name: str) -> None:
        """The GET request has ended: forget the session if nothing else has named it."""
        session = self._by_name.get(name)
        if session is not None and not session.is_known:
            del self._by_name[name]

    def called(self, message: Mapping[str, Any], name: str | None) -> None:
        """The client has sent a message for the session `name`."""
        number, method = message.get("id"), method_of(message)
        if method is None:
            return
        if method in SESSION_RULES.attach and name is not None:
            # without a GET before it, the client may read nothing but the stream of the connection
            self._by_name.setdefault(name, Session(None, is_known=True)).is_known = True
        if is_id(number) and number not in self._calls:
            self._calls[number] = _Call(method, name)
            self._opening += method in SESSION_RULES.open

    def answered(self, message: Mapping[str, Any]) -> Place:
        """The agent responds: returns where that goes. Raises `TooManySessions`."""
        number = message.get("id")
        call = self._calls.pop(number, None) if is_id(number) else None
        if call is None:
            return Place()
        session = self.get(call.session)
        if call.method in SESSION_RULES.open:
            self._opening -= 1
        if "result" in message:
            self._add_opened(session_in(message["result"]))
        if call.method in SESSION_RULES.attach:
            self._attached(call, session, succeeded="result" in message)
            return Place(after=session)
        if session is not None and call.method in SESSION_RULES.end and "result" in message:
            session.is_over = True
            self._by_name.pop(call.session or "", None)
        return Place() if call.method in SESSION_RULES.open else Place(session)

    def _add_opened(self, name: str | None) -> None:
        if name is None or name in self._by_name:
            return
        if self.are_too_many:  # opened by a method that the rules do not know
            raise TooManySessions("the agent has opened more sessions than the connection may have")
        self._by_name[name] = Session(self._make_stream(), is_known=True)

    def _attached(self, call: _Call, session: Session | None, *, succeeded: bool) -> None:
        if session is not None and not succeeded:
            session.is_known = False
            if session.stream is None or session.stream.reader is None:
                self._by_name.pop(call.session or "", None)


class TooManySessions(OSError):
    """The agent has opened more sessions than the connection may have."""


class ServerTransport:
    """What both transports share: an inbox that requests or frames fill, and the sessions."""

    def __init__(self, options: ConnectionOptions, max_sessions: int, make_stream: Callable[[], Stream | None]) -> None:
        self._options = options
        self.inbox = Inbox(options.max_requests, options.max_in_flight_bytes)
        self.sessions = Sessions(max_sessions, make_stream)
        self.last_used = asyncio.get_running_loop().time()

    async def read(self) -> bytes | None:
        """The next message of the client; None at the end. Raises `MessageTooLarge`."""
        message = await self.inbox.get()
        limit = self._options.max_message_bytes
        if message is not None and len(message) > limit:
            raise MessageTooLarge(f"more than {limit} bytes (max_message_bytes)", start=message[:MAX_START])
        return message

    def end(self) -> None:
        """End what the client sends; requests that are in flight may still be answered."""
        self.inbox.end()

    def refusal(self, message: Mapping[str, Any], name: str | None) -> bytes | None:
        """The response to a request that must not reach the agent; None for all others."""
        if (found := self.sessions.refusal(message, name)) is None:
            return None
        error, number = found
        return self._options.dumps({"jsonrpc": "2.0", "id": number, "error": error.to_json()})


class HttpTransport(ServerTransport):
    """The transport of a connection over Streamable HTTP."""

    def __init__(self, options: ConnectionOptions, max_sessions: int) -> None:
        super().__init__(options, max_sessions, self._new_stream)
        self._stream = self._new_stream()
        self._takes_up_sessions = False
        self._handshake: tuple[object, asyncio.Future[bytes]] | None = None

    def _new_stream(self) -> Stream:
        return Stream(self._options.max_write_buffer_bytes)

    @property
    def streams(self) -> Iterator[Stream]:
        """The streams of the connection and of its sessions."""
        yield self._stream
        yield from (session.stream for session in self.sessions if session.stream is not None)

    # --- From the client -----------------------------------------------------------------------------------------

    def shake_hands(self, line: bytes, number: object) -> asyncio.Future[bytes]:
        """Receive the first request; returns a future of the response to it, which goes to no stream."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._handshake = number, future
        self.inbox.put(line)
        return future

    @property
    def is_shaking_hands(self) -> bool:
        """True until the agent has responded to the first request."""
        return self._handshake is not None

    def receive(self, line: bytes, message: Mapping[str, Any], name: str | None) -> bool:
        """Receive a message that belongs to the session `name`; returns False if there is no room for its refusal."""
        if (refusal := self.refusal(message, name)) is not None:
            return self._stream.put_at_once(refusal)
        self.sessions.called(message, name)
        self.inbox.put(line)
        return True

    def open_stream(self, name: str | None) -> Stream | None:
        """The stream for a GET request; None if the session is not known, and cannot become known."""
        if name is None:
            return self._stream
        return self.sessions.open_stream(name, may_be_new=self._takes_up_sessions)

    def close_stream(self, name: str | None) -> None:
        """The GET request has ended."""
        self.last_used = asyncio.get_running_loop().time()
        if name is not None:
            self.sessions.close_stream(name)

    # --- To the client -------------------------------------------------------------------------------------------

    async def write(self, message: bytes) -> None:
        """Put a message on its stream; wait while the client is too slow. Raises `OSError`."""
        found = object_of(message)
        if self._answers_handshake(message, found):
            return
        if "method" in found:
            session = self.sessions.get(session_in(found.get("params")))
        else:
            session, after = self.sessions.answered(found)
            if after is not None and after.stream is not None:
                await after.stream.drained()  # what is replayed comes before the response
        if session is None or session.stream is None:
            await self._stream.put(message)
            return
        await session.stream.put(message)
        if session.is_over:
            session.stream.end()

    def _answers_handshake(self, line: bytes, message: Mapping[str, Any]) -> bool:
        if self._handshake is None or "method" in message:
            return False
        number, future = self._handshake
        if type(number) is not type(message.get("id")) or number != message.get("id"):
            return False
        self._handshake = None
        self._takes_up_sessions = "result" in message and any(
            not paths or is_open(Gate(None, paths, None), message["result"]) for paths in SESSION_RULES.attach.values()
        )
        if not future.done():
            future.set_result(line)
        return True

    async def close(self) -> None:
        """End all streams, after the messages that they have."""
        self.end()
        for stream in list(self.streams):
            stream.end()


class SocketTransport(ServerTransport):
    """The transport of a connection over a WebSocket; `send` is that of ASGI.

    `close_code` is what the socket is closed with. `stuck_since` is the time of the event loop since which a message is
    being sent.
    """

    def __init__(
        self, options: ConnectionOptions, max_sessions: int, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        super().__init__(options, max_sessions, lambda: None)
        self._send = send
        self._lock = asyncio.Lock()
        self._burst = 0
        self.has_received = False
        self.is_gone = False
        self.close_code = 1000
        self.stuck_since: float | None = None

    async def receive(self, text: str) -> None:
        """Receive a message; wait while the agent is too slow."""
        self.has_received = True
        line = text.encode("utf-8", "surrogatepass")
        found = None
        with contextlib.suppress(Exception):  # the connection answers what cannot be parsed
            found = as_object(parse(line, self._options))
        if found is not None:
            name = session_in(found.get("params"))
            if (refusal := self.refusal(found, name)) is not None:
                await self.write(refusal)
                return
            self.sessions.called(found, name)
        self.inbox.put(line)
        await self.inbox.room()

    async def write(self, message: bytes) -> None:
        """Send a message. Raises `OSError`."""
        found = object_of(message)
        if "method" not in found:
            self.sessions.answered(found)
        text = message.decode()
        async with self._lock:
            if self.is_gone:
                raise ConnectionResetError("the client has gone")
            self.stuck_since = asyncio.get_running_loop().time()
            try:
                await self._send({"type": "websocket.send", "text": text})
            except Exception as error:  # each server has its own
                self.is_gone = True
                raise ConnectionResetError("the client has gone") from error
            finally:
                self.stuck_since = None
            self._burst += 1
            if self._burst >= _MAX_BURST:
                self._burst = 0
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Close the socket."""
        self.end()
        if not self.is_gone:
            self.is_gone = True
            with contextlib.suppress(Exception):
                await self._send({"type": "websocket.close", "code": self.close_code})
