"""Routes messages to the streams of a client over HTTP (RFD "Streamable HTTP & WebSocket Transport").

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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from .envelope import as_object, fits_header, method_of, session_in
from .errors import InternalError, InvalidRequestError, RequestError
from .limits import is_id
from .methods import PROTOCOLS
from .sessions import SESSION_RULES
from .streams import Stream

_CANCELLATIONS: Final = {how.method: how.key for info in PROTOCOLS.values() if (how := info.cancellation) is not None}
"""Notifications that name a request and no session, each with the property for its id."""


@dataclass(slots=True)
class Session:
    """A session of a connection. Without a `stream`, its messages go to the one of the connection.

    `is_known` is false while only a GET request has named it; `is_over` is true once the agent has ended it.
    """

    stream: Stream | None
    is_known: bool
    is_over: bool = False


@dataclass(slots=True)
class _Call:
    """A request of the client, and the session that it belongs to. `made_known`: without it, the session is not."""

    method: str
    session: str | None
    made_known: bool


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
        self._asked: dict[object, str] = {}  # sessions of requests of the agent, by their ids
        self._ended: dict[str, None] = {}  # a set in order: clients may still ask for the streams of these

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
        if method is None or not (number is None or is_id(number)):
            return None  # a response, or what the connection refuses
        if number in self._calls:
            # which of the two opens a session could not be known, nor what the peer would take the response for
            return InvalidRequestError("Invalid request: a request with this id is running"), None
        attaches = method in SESSION_RULES.attach and self.get(name) is None
        if (attaches or method in SESSION_RULES.open) and self.are_too_many:
            return InternalError("Request refused: the connection has too many sessions"), number
        return None

    def open_stream(self, name: str, *, may_be_new: bool) -> Stream | None:
        """The stream of a session for a GET request. With `may_be_new`, the session may become known later."""
        session = self._by_name.get(name)
        if not fits_header(name):
            return None
        if session is None:
            if not may_be_new or self.are_too_many or name in self._ended:
                return None
            session = self._by_name[name] = Session(None, is_known=False)
        if session.stream is None:
            session.stream = self._make_stream()
        return session.stream

    def close_stream(self, name: str) -> None:
        """A GET request has ended: forget the session if nothing else names it, as another one might."""
        session = self._by_name.get(name)
        if session is not None and not session.is_known:
            self._forget_unread(name, session)

    def _forget_unread(self, name: str, session: Session) -> None:
        """Forget a session unless its stream is read."""
        if session.stream is not None and session.stream.reader is not None:
            return
        self._by_name.pop(name, None)
        if session.stream is not None:
            session.stream.drop()

    def called(self, message: Mapping[str, Any], name: str | None) -> None:
        """The client has sent a message for the session `name`."""
        number, method = message.get("id"), method_of(message)
        if method is None:
            if is_id(number):
                self._asked.pop(number, None)
            return
        made_known = method in SESSION_RULES.attach and name is not None and self._make_known(name)
        if is_id(number) and number not in self._calls:
            self._calls[number] = _Call(method, name, made_known)
            self._opening += method in SESSION_RULES.open

    def _make_known(self, name: str) -> bool:
        """Make a session known; returns False if it was."""
        self._ended.pop(name, None)
        # without a GET before it, the client may read nothing but the stream of the connection
        session = self._by_name.setdefault(name, Session(None, is_known=False))
        was_known, session.is_known = session.is_known, True
        return not was_known

    def session_of(self, message: Mapping[str, Any]) -> Session | None:
        """The session of a request or notification of the agent."""
        number, method, params = message.get("id"), method_of(message), message.get("params")
        if method in _CANCELLATIONS:
            cancelled = (as_object(params) or {}).get(_CANCELLATIONS[method])
            return self.get(self._asked.pop(cancelled, None) if is_id(cancelled) else None)
        session = self.get(name := session_in(params))
        if session is not None and session.stream is not None and name is not None and is_id(number):
            self._asked[number] = name
        return session

    def answered(self, message: Mapping[str, Any]) -> Place:
        """The agent responds: returns where that goes."""
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
        if call.session is not None and call.method in SESSION_RULES.end and "result" in message:
            self._end(call.session)
        return Place() if call.method in SESSION_RULES.open else Place(session)

    def _add_opened(self, name: str | None) -> None:
        # a method that the rules do not know may open more than the limit: these have no stream of their own
        if name is not None and name not in self._by_name and not self.are_too_many:
            self._ended.pop(name, None)
            self._by_name[name] = Session(self._make_stream() if fits_header(name) else None, is_known=True)

    def _end(self, name: str) -> None:
        if (session := self._by_name.pop(name, None)) is not None:
            session.is_over = True
            if session.stream is not None:
                session.stream.end()  # after the response, which is about to be put on it
        self._ended[name] = None
        if len(self._ended) > self._limit:
            del self._ended[next(iter(self._ended))]

    def _attached(self, call: _Call, session: Session | None, *, succeeded: bool) -> None:
        """Undo what the request has done to the session, unless another one has taken it up, or still may."""
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
