"""The server's ends of remote connections: Streamable HTTP, whose messages take several streams, and WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from ._base import Gate
from .capabilities import is_open
from .envelope import as_object, object_of, parse, session_in
from .limits import Budget
from .options import ConnectionOptions
from .routing import Place, Sessions
from .sessions import SESSION_RULES
from .streams import MAX_BURST, Inbox, Stream
from .transport import MAX_START, MessageTooLarge

_FAILED: Final = 1011
_TRY_AGAIN_LATER: Final = 1013


class ServerTransport:
    """What both transports share: an inbox that requests or frames fill, and the sessions."""

    def __init__(
        self, options: ConnectionOptions, max_sessions: int, budget: Budget, make_stream: Callable[[], Stream | None]
    ) -> None:
        self._options = options
        self.budget = budget
        self.inbox = Inbox(options.max_requests, options.max_in_flight_bytes, budget)
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

    def __init__(self, options: ConnectionOptions, max_sessions: int, budget: Budget) -> None:
        super().__init__(options, max_sessions, budget, self._new_stream)
        self._stream = self._new_stream()
        self._takes_up_sessions = False
        self._handshake: tuple[object, asyncio.Future[bytes]] | None = None

    def _new_stream(self) -> Stream:
        return Stream(self._options.max_write_buffer_bytes, self.budget)

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
        place = self._place(message)
        if place is None:
            return
        session, after = place
        if after is not None and after.stream is not None:
            await after.stream.drained()  # what is replayed comes before the response
        stream = self._stream if session is None or session.stream is None else session.stream
        try:
            await stream.put(message)
        finally:
            self._move_unreadable(stream)

    def _move_unreadable(self, stream: Stream) -> None:
        """Move the messages of a stream that nobody reads any more to that of the connection, unless that has ended."""
        if stream.is_ended and stream.reader is None:
            if stream is not self._stream:
                stream.move_to(self._stream)
                self._move_unreadable(self._stream)
            else:
                stream.drop()

    def _place(self, line: bytes) -> Place | None:
        """Where a message goes; None for the response to the first request, which goes to no stream."""
        message = object_of(line)
        if self._answers_handshake(line, message):
            return None
        return Place(self.sessions.session_of(message)) if "method" in message else self.sessions.answered(message)

    def _answers_handshake(self, line: bytes, message: Mapping[str, Any]) -> bool:
        if self._handshake is None or "method" in message:
            return False
        number, future = self._handshake
        if type(number) is not type(message.get("id")) or number != message.get("id"):
            return False
        self._handshake = None
        self.last_used = asyncio.get_running_loop().time()
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
            if stream.reader is None:
                stream.drop()
            else:
                stream.end()


class SocketTransport(ServerTransport):
    """The transport of a connection over a WebSocket; `send` is that of ASGI.

    `close_code` is what the socket is closed with: an error unless the agent has begun to read. `has_answered` is true
    once a request had a result. `stuck_since` is the time of the event loop since which a message is being sent.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        max_sessions: int,
        budget: Budget,
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        super().__init__(options, max_sessions, budget, lambda: None)
        self._send = send
        self._lock = asyncio.Lock()
        self._burst = 0
        self.has_answered = False
        self.is_gone = False
        self.close_code = _FAILED
        self.stuck_since: float | None = None

    async def read(self) -> bytes | None:
        """The next message of the client; None at the end. Raises `MessageTooLarge`."""
        if self.close_code == _FAILED:
            self.close_code = 1000
        return await super().read()

    def receive(self, text: str) -> bytes | None:
        """Receive a message; returns the response if it must not reach the agent. Raises `MessageTooLarge`."""
        line = text.encode("utf-8", "surrogatepass")
        if self.inbox.exceeds_budget(len(line)):
            self.close_code = _TRY_AGAIN_LATER
            raise MessageTooLarge("too much for the connections of one client (max_bytes_per_identity)")
        found = None
        with contextlib.suppress(Exception):  # the connection answers what cannot be parsed
            found = as_object(parse(line, self._options))
        if found is not None:
            name = session_in(found.get("params"))
            if (refusal := self.refusal(found, name)) is not None:
                return refusal
            self.sessions.called(found, name)
        self.inbox.put(line)
        return None

    async def write(self, message: bytes) -> None:
        """Send a message. Raises `OSError`."""
        self._answered(object_of(message))
        async with self._lock:
            if self.is_gone:
                raise ConnectionResetError("the client has gone")
            self.stuck_since = asyncio.get_running_loop().time()
            try:
                await self._send({"type": "websocket.send", "text": message.decode()})
            except Exception as error:  # each server has its own
                self.is_gone = True
                raise ConnectionResetError("the client has gone") from error
            finally:
                self.stuck_since = None
            self._burst += 1
            if self._burst >= MAX_BURST:
                self._burst = 0
                await asyncio.sleep(0)

    def _answered(self, message: Mapping[str, Any]) -> None:
        if "method" not in message:
            self.sessions.answered(message)
            self.has_answered = self.has_answered or "result" in message

    async def close(self) -> None:
        """Close the socket."""
        self.end()
        if not self.is_gone:
            self.is_gone = True
            with contextlib.suppress(Exception):
                await self._send({"type": "websocket.close", "code": self.close_code})
