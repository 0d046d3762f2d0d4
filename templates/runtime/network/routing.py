"""The server's end of a connection, which routes messages to the streams of a client over HTTP.

RFD "Streamable HTTP & WebSocket Transport":

* A response goes to the stream of the session that its request belongs to. For requests that open or take up a session,
  and for those of no session, that is the stream of the connection.
* A request or notification goes to the stream of the session that its params name.
* A session has a stream of its own from the request that opens it, or from the client's GET. Until then its messages
  go to the stream of the connection: some clients read no other when they take up a session. If nobody reads the
  stream when the session ends, its messages go there, too.
* The cancellation of a request goes to the stream of the request, which it must not overtake.
* A session whose id no header can hold has no stream of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...errors import InternalError, InvalidRequestError, RequestError
from ...methods import PROTOCOLS
from ..message import Message, MessageTooLarge, Unreadable, is_id
from ..options import ConnectionOptions
from ..records import Gate, is_open
from .sessions import SESSION_RULES
from .shared_memory import SharedMemory, estimating_wire
from .streams import Inbox, Stream, fits_header, member, session_in

_CANCELLATIONS: Final = {how.method: how.key for info in PROTOCOLS.values() if (how := info.cancellation) is not None}
"""Notifications that name a request and no session, each with the property for its id."""

# --- Sessions --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RoutedSession:
    """A session of a connection. Without a `stream`, its messages go to the one of the connection.

    `is_known` is false while only a GET request has named it; `is_over` is true once the agent has ended it.
    """

    stream: Stream | None
    is_known: bool
    is_over: bool = False


@dataclass(slots=True)
class _RoutedRequest:
    """A request of the client, and the session that it belongs to. `made_known` is true if it has made that known."""

    method: str
    session: str | None
    made_known: bool


class Place(NamedTuple):
    """Where a response goes: to the stream of `session`, or of the connection; messages of `after` come before it."""

    session: RoutedSession | None = None
    after: RoutedSession | None = None


def _refusal(error: RequestError, request_id: int | str | None = None) -> Message:
    return Message("error", error.to_json(), id=request_id)


class Sessions:
    """The sessions of a connection, and the requests of the client that decide about them.

    `make_stream` makes the stream of a session that a request has opened.
    """

    def __init__(self, limit: int, make_stream: Callable[[], Stream | None]) -> None:
        self._limit = limit
        self._make_stream = make_stream
        self._by_name: dict[str, RoutedSession] = {}
        self._calls: dict[object, _RoutedRequest] = {}  # by the id of the request
        self._opening = 0  # how many of them open a session
        self._asked: dict[object, str] = {}  # sessions of requests of the agent, by their ids
        self._ended: dict[str, None] = {}  # a set in order: clients may still ask for the streams of these

    def __iter__(self) -> Iterator[RoutedSession]:
        return iter(self._by_name.values())

    def get(self, name: str | None) -> RoutedSession | None:
        """The session with this id."""
        return None if name is None else self._by_name.get(name)

    @property
    def are_too_many(self) -> bool:
        """True if one more session would exceed the limit."""
        return len(self._by_name) + self._opening >= self._limit

    def refusal(self, message: Message, name: str | None) -> Message | None:
        """The error response to a request that must not reach the agent; None for all other messages."""
        request_id, method = message.id, message.method
        if message.is_response:
            return None
        if request_id in self._calls:
            # which of the two opens a session could not be known, nor what the peer would take the response for
            return _refusal(InvalidRequestError("a request with this id is running"))
        attaches = method in SESSION_RULES.attach and self.get(name) is None
        if (attaches or method in SESSION_RULES.open) and self.are_too_many:
            return _refusal(InternalError("the connection has too many sessions"), request_id)
        return None

    def open_stream(self, name: str, *, may_be_new: bool) -> Stream | None:
        """The stream of a session for a GET request. With `may_be_new`, the session may become known later."""
        session = self._by_name.get(name)
        if not fits_header(name):
            return None
        if session is None:
            if not may_be_new or self.are_too_many or name in self._ended:
                return None
            session = self._by_name[name] = RoutedSession(None, is_known=False)
        if session.stream is None:
            session.stream = self._make_stream()
        return session.stream

    def close_stream(self, name: str) -> None:
        """Note that a GET request has ended. A session that nothing else has named is forgotten."""
        session = self._by_name.get(name)
        if session is not None and not session.is_known:
            self._forget_unread(name, session)

    def _forget_unread(self, name: str, session: RoutedSession) -> None:
        """Forget a session unless its stream is read."""
        if session.stream is not None and session.stream.reader is not None:
            return
        self._by_name.pop(name, None)
        if session.stream is not None:
            session.stream.drop()

    def called(self, message: Message, name: str | None) -> None:
        """Note that the client has sent a message for the session `name`."""
        request_id, method = message.id, message.method
        if message.is_response:
            self._asked.pop(request_id, None)
            return
        made_known = method in SESSION_RULES.attach and name is not None and self._make_known(name)
        if request_id is not None and request_id not in self._calls:
            self._calls[request_id] = _RoutedRequest(method, name, made_known)
            self._opening += method in SESSION_RULES.open

    def _make_known(self, name: str) -> bool:
        """Make a session known; returns False if it was."""
        self._ended.pop(name, None)
        # without a GET before it, the client may read nothing but the stream of the connection
        session = self._by_name.setdefault(name, RoutedSession(None, is_known=False))
        was_known, session.is_known = session.is_known, True
        return not was_known

    def session_of(self, message: Message) -> RoutedSession | None:
        """The session of a request or notification of the agent."""
        if (key := _CANCELLATIONS.get(message.method)) is not None:
            cancelled = member(message.value, key)
            return self.get(self._asked.pop(cancelled, None) if is_id(cancelled) else None)
        session = self.get(name := session_in(message.value))
        if session is not None and session.stream is not None and name is not None and message.id is not None:
            self._asked[message.id] = name
        return session

    def answered(self, message: Message) -> Place:
        """Note that the agent responds; returns where the response goes."""
        call = None if message.id is None else self._calls.pop(message.id, None)
        if call is None:
            return Place()
        session, succeeded = self.get(call.session), message.kind == "result"
        if call.method in SESSION_RULES.open:
            self._opening -= 1
        if succeeded:
            self._add_opened(session_in(message.value))
        if call.method in SESSION_RULES.attach:
            self._attached(call, session, succeeded=succeeded)
            return Place(after=session)
        if call.session is not None and call.method in SESSION_RULES.end and succeeded:
            self._end(call.session)
        return Place() if call.method in SESSION_RULES.open else Place(session)

    def _add_opened(self, name: str | None) -> None:
        # a method that the rules do not know may open more than the limit: these have no stream of their own
        if name is not None and name not in self._by_name and not self.are_too_many:
            self._ended.pop(name, None)
            self._by_name[name] = RoutedSession(self._make_stream() if fits_header(name) else None, is_known=True)

    def _end(self, name: str) -> None:
        if (session := self._by_name.pop(name, None)) is not None:
            session.is_over = True
            if session.stream is not None:
                session.stream.end()  # after the response, which is about to be put on it
        self._ended[name] = None
        if len(self._ended) > self._limit:
            del self._ended[next(iter(self._ended))]

    def _attached(self, call: _RoutedRequest, session: RoutedSession | None, *, succeeded: bool) -> None:
        """Undo a request to take up a session that has failed, unless another one has succeeded, or still may."""
        others = [
            each
            for each in self._calls.values()
            if each.session == call.session and each.method in SESSION_RULES.attach
        ]
        if succeeded:
            for each in others:
                each.made_known = False
        elif call.made_known and others:
            others[0].made_known = True
        elif call.made_known and session is not None:
            session.is_known = False
            self._forget_unread(call.session or "", session)


# --- Transports ------------------------------------------------------------------------------------------------------


class ServerTransport:
    """The base of both transports: an inbox that requests or frames fill, and the sessions."""

    def __init__(
        self,
        options: ConnectionOptions,
        max_sessions: int,
        budget: SharedMemory,
        make_stream: Callable[[], Stream | None],
    ) -> None:
        self.wire = estimating_wire(options)
        self.budget = budget
        self.inbox = Inbox(options.max_requests, options.max_in_flight_bytes, budget)
        self.ready = self.inbox.take
        self.sessions = Sessions(max_sessions, make_stream)
        self.last_used = asyncio.get_running_loop().time()

    async def read(self) -> Message | Unreadable | None:
        """The next message of the client; None at the end."""
        return await self.inbox.get()

    def attach(self, arrived: Callable[[bool], None]) -> None:
        """Call `arrived` when messages have arrived, and at the end, with True."""
        self.inbox.attach(arrived)

    def written(self, refusal: Message) -> bytes:
        """The text of a refusal; of a shorter one if it exceeds the limit."""
        try:
            return self.wire.write(refusal)
        except MessageTooLarge:
            return self.wire.write(_refusal(InternalError(), refusal.id))

    def end(self) -> None:
        """Receive nothing more; requests in flight may still be answered."""
        self.inbox.end()

    def go_away(self) -> None:
        """End the connection because the server is closing."""
        self.end()

    def unread_since(self) -> float | None:
        """The time of the event loop since which the client takes nothing although something waits for it."""
        raise NotImplementedError

    def is_unused(self) -> bool:
        """True if the client may have gone: it neither reads nor waits for anything."""
        raise NotImplementedError


class HttpTransport(ServerTransport):
    """The transport of a connection over Streamable HTTP."""

    def __init__(self, options: ConnectionOptions, max_sessions: int, budget: SharedMemory) -> None:
        super().__init__(options, max_sessions, budget, self._new_stream)
        self._most_unread = options.max_write_buffer_bytes
        self._stream = self._new_stream()
        self._takes_up_sessions = False
        self._handshake: tuple[object, asyncio.Future[bytes]] | None = None

    def _new_stream(self) -> Stream:
        return Stream(self._most_unread, self.budget)

    @property
    def streams(self) -> Iterator[Stream]:
        """The streams of the connection and of its sessions."""
        yield self._stream
        yield from (session.stream for session in self.sessions if session.stream is not None)

    def unread_since(self) -> float | None:
        """The time since which the client takes nothing from a stream."""
        return min((stream.stuck_since for stream in self.streams if stream.stuck_since is not None), default=None)

    def is_unused(self) -> bool:
        """True if no stream is read, and the first request has been answered."""
        return self._handshake is None and not any(stream.reader for stream in self.streams)

    # --- From the client -----------------------------------------------------------------------------------------

    def shake_hands(self, message: Message | Unreadable) -> asyncio.Future[bytes]:
        """Receive the first request; returns a future of the response to it, which goes to no stream."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._handshake = message.id, future
        self.inbox.put(message)
        return future

    def receive(self, message: Message | Unreadable, name: str | None) -> bool:
        """Receive a message that belongs to the session `name`; returns False if there is no room for its refusal."""
        if isinstance(message, Message):
            if (refusal := self.sessions.refusal(message, name)) is not None:
                return self._stream.put_at_once(self.written(refusal))
            self.sessions.called(message, name)
        self.inbox.put(message)
        return True

    def open_stream(self, name: str | None) -> Stream | None:
        """The stream for a GET request; None if the session is not known, and cannot become known."""
        if name is None:
            return self._stream
        return self.sessions.open_stream(name, may_be_new=self._takes_up_sessions)

    def close_stream(self, name: str | None) -> None:
        """Note that a GET request has ended."""
        self.last_used = asyncio.get_running_loop().time()
        if name is not None:
            self.sessions.close_stream(name)

    # --- To the client -------------------------------------------------------------------------------------------

    def send(self, message: Message) -> Awaitable[None] | None:
        """Put a message on its stream; returns what is left to await, such as a client that is too slow."""
        line = self.wire.write(message)
        if not message.is_response:
            return self._put(line, self.sessions.session_of(message))
        if self._answers_handshake(line, message):
            return None
        session, after = self.sessions.answered(message)
        if after is not None and after.stream is not None:
            return self._put_after(after.stream, line, session)
        return self._put(line, session)

    async def _put_after(self, other: Stream, line: bytes, session: RoutedSession | None) -> None:
        await other.drained()  # what is replayed comes before the response
        if (rest := self._put(line, session)) is not None:
            await rest

    def _put(self, line: bytes, session: RoutedSession | None) -> Awaitable[None] | None:
        stream = self._stream if session is None or session.stream is None else session.stream
        rest = stream.put(line)
        if rest is not None:
            return self._finish(rest, stream)
        self._move_unreadable(stream)
        return None

    async def _finish(self, rest: Awaitable[None], stream: Stream) -> None:
        try:
            await rest
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

    def _answers_handshake(self, line: bytes, message: Message) -> bool:
        if self._handshake is None:
            return False
        request_id, future = self._handshake
        if type(request_id) is not type(message.id) or request_id != message.id:
            return False
        self._handshake = None
        self.last_used = asyncio.get_running_loop().time()
        self._takes_up_sessions = message.kind == "result" and any(
            not paths or is_open(Gate(None, paths, None), message.value) for paths in SESSION_RULES.attach.values()
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
