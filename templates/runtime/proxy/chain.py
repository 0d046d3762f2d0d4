"""Between the components of a chain: pairs of transports in memory, and a conductor's two neighbours on one transport.

A conductor and a proxy that it has started share one transport: what goes to the predecessor of the proxy, or comes
from it, is plain; what goes to the successor, or comes from it, is wrapped in another message. So both are transports
here. Source: RFD "Agent Extensions via ACP Proxies".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from ...errors import InvalidRequestError
from .._base import Record
from ..dispatch import ConnectionClosed
from ..log import logger
from ..message import Message, Unreadable, dumps_json
from ..options import ConnectionOptions
from ..peer_kind import PeerKind, peer_kind_of
from ..records import Cancellation, value_at
from ..transport import Transport
from .passing import OF_WRAPPER, Passed, PassingWire, marked, name_text, renamed, unwrap, with_text, written

_MAX_WAITING: Final = 64
_MAX_BYTES: Final = 2**20
_OVERHEAD: Final = 2**9  # the bytes that a message takes beside its text, roughly


class Form(Record):
    """How a conductor and its proxies write to each other.

    A proxy is opened by the request `initialize` in place of the one that opens an agent, or by `mark`: the path of a
    property of its params that is true, also in its result. `request` and `notification` wrap messages of the
    successor. `cancels` says how a wrapped request is cancelled by the proxy, if it can be.
    """

    request: str
    notification: str
    cancels: Literal["plain", "wrapped", "never"]
    initialize: str = ""
    mark: tuple[str, ...] = ()


def form_of(message: Message, forms: tuple[Form, ...], opening: str) -> Form | None:
    """The form in which a first message opens a proxy; None if it opens an agent. `opening` is the request for that."""
    for form in forms:
        if form.initialize and message.method == form.initialize:
            return form
        if form.mark and message.method == opening and value_at(message.value, form.mark) is True:
            return form
    return None


# --- In memory -------------------------------------------------------------------------------------------------------


class MessageQueue:
    """Messages that have arrived and are not read yet; senders wait if there are too many.

    `room` is set when there is room again.
    """

    def __init__(self, room: asyncio.Event | None = None) -> None:
        self.is_full = False
        self.bytes = 0
        self._messages: deque[Message | Unreadable] = deque()
        self._arrived = asyncio.Event()
        self._room = room or asyncio.Event()
        self._is_closed = False

    def put(self, message: Message | Unreadable) -> Awaitable[None] | None:
        """Add a message; returns what is left to await. Raises `BrokenPipeError` once it is closed."""
        self.add(message)
        return self._wait() if self.is_full else None

    def add(self, message: Message | Unreadable) -> None:
        """Add a message, and do not wait. Raises `BrokenPipeError` once it is closed."""
        if self._is_closed:
            raise BrokenPipeError("the other end is closed")
        self._messages.append(message)
        self.bytes += _size(message)
        self._arrived.set()
        self.is_full = self.is_full or len(self._messages) > _MAX_WAITING or self.bytes > _MAX_BYTES

    async def _wait(self) -> None:
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    def next(self) -> Message | Unreadable | None:
        """The next message if there is one."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self.bytes -= _size(message)
        if len(self._messages) <= _MAX_WAITING // 2 and self.bytes <= _MAX_BYTES // 2:
            self._make_room()
        return message

    def _make_room(self) -> None:
        self.is_full = False
        self._room.set()

    async def get(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        while (message := self.next()) is None and not self._is_closed:
            self._arrived.clear()
            await self._arrived.wait()
        return message

    def close(self) -> None:
        """Take no more messages."""
        self._is_closed = True
        self._arrived.set()
        self._make_room()


def _size(message: Message | Unreadable) -> int:
    return _OVERHEAD + (message.size if isinstance(message, Message) else 0)


class Port:
    """A transport within the process, of messages that keep their text."""

    def __init__(self, inbox: MessageQueue, peer_kind: PeerKind) -> None:
        self.peer_kind: PeerKind = peer_kind
        self._inbox = inbox
        self.ready = inbox.next

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        return await self._inbox.get()

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close this end; what has arrived is read no more."""
        self._inbox.close()
        while self._inbox.next() is not None:
            pass


class _PairEnd(Port):
    def __init__(self, inbox: MessageQueue, outbox: MessageQueue, wire: PassingWire, peer_kind: PeerKind) -> None:
        super().__init__(inbox, peer_kind)
        self._outbox = outbox
        self._wire = wire

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message. One that is passed on is not written: the other end gets the same object."""
        return self._outbox.put(message if isinstance(message, Passed) else self._wire.read(self._wire.write(message)))

    async def close(self) -> None:
        """Close both directions; the other end may still read what was sent before."""
        self._outbox.close()
        await super().close()


def passing_pair(options: ConnectionOptions, client_kind: PeerKind) -> tuple[Port, Port]:
    """The two ends of a connection between proxies in one process: no wire, so that `on_message` is not called.

    The second one leads to the client, which is `client_kind` whatever is between.
    """
    from dataclasses import replace

    one, other, wire = MessageQueue(), MessageQueue(), PassingWire(replace(options, on_message=None))
    return _PairEnd(one, other, wire, "process"), _PairEnd(other, one, wire, client_kind)


class Begun:
    """A transport whose first message was read already."""

    def __init__(self, transport: Transport, first: Message) -> None:
        self._transport = transport
        self._first: Message | None = first
        self.peer_kind: PeerKind = peer_kind_of(transport)
        self.send = transport.send
        self.close = transport.close
        self.budget: Any = getattr(transport, "budget", None)
        self.flush: Callable[[], object] = getattr(transport, "flush", _nothing)
        self._ready: Callable[[], Message | Unreadable | None] = getattr(transport, "ready", _nothing)
        if (attach := getattr(transport, "attach", None)) is not None:
            self.attach: Callable[[Callable[[bool], None]], None] = attach

    def ready(self) -> Message | Unreadable | None:
        """The next message if it has arrived."""
        first, self._first = self._first, None
        return first or self._ready()

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await self._transport.read()


def _nothing() -> None:
    return None


# --- Two neighbours on one transport ---------------------------------------------------------------------------------


class Junction:
    """Two connections that share `transport`: `plain` with the predecessor of a proxy, `wrapped` with its successor.

    Both ends of the transport have a junction: that of the conductor writes the request that opens an agent, `opening`,
    as `form` says, and that of the proxy reads it back. Requests get even ids on `plain`, odd ones on `wrapped`.
    `client_kind` is what the client of the conductor is; the proxy does not know that.

    Only the envelopes of `form` are opened here, from the other end of the transport. All others are passed on as they
    are, within envelopes, too: the next `Hop` refuses them.

    It reads no further while too many messages of one neighbour wait. But what waits may do so because the other end of
    the transport reads nothing before it has written: so if this end cannot write either, it reads on, up to `limit`.
    """

    def __init__(
        self,
        transport: Transport,
        form: Form,
        *,
        is_conductor: bool,
        opening: str,
        cancellation: Cancellation | None,
        client_kind: PeerKind = "conductor",
        limit: int = _MAX_BYTES,
    ) -> None:
        self._transport = transport
        self._form = form
        self._is_conductor = is_conductor
        self._opening = opening
        self._cancellation = cancellation
        self._limit = limit
        self._changed = asyncio.Event()  # an inbox has room, or this end cannot write
        self._inboxes = (MessageQueue(self._changed), MessageQueue(self._changed))
        self._writing = 0  # the messages that wait for the other end of the transport
        self._open_ends = 2
        self._is_ending = False
        self.plain = _JunctionEnd(self, self._inboxes[0], 0, "process" if is_conductor else "conductor")
        self.wrapped = _JunctionEnd(self, self._inboxes[1], 1, client_kind)
        self._marked: object = None  # the id of the request whose result gets the mark
        self._reading = asyncio.ensure_future(self._read())

    # --- In ------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while (message := await self._transport.read()) is not None:
                for port, found in self._sorted(message):
                    with contextlib.suppress(BrokenPipeError):
                        self._inboxes[port].add(found)
                        await self._room_in(self._inboxes[port])
        except OSError as error:
            self.plain.failure = self.wrapped.failure = error
        except Exception as error:
            logger.exception("the transport failed")
            self.plain.failure = self.wrapped.failure = ConnectionClosed(f"cannot read: {error}")
        finally:
            for inbox in self._inboxes:
                inbox.close()

    async def _room_in(self, inbox: MessageQueue) -> None:
        while inbox.is_full and not (self._writing and inbox.bytes <= self._limit):
            self._changed.clear()
            await self._changed.wait()

    def _sorted(self, message: Message | Unreadable) -> list[tuple[int, Message | Unreadable]]:
        """The ports that get a message, as they get it."""
        if isinstance(message, Unreadable):
            if message.kind != "request" and type(message.id) is int:
                port, message.id = message.id % 2, message.id // 2
                return [(port, message)]
            return [(0, message)]
        message = with_text(message)
        if message.is_response:
            if type(message.id) is not int:
                return [(0, message)]
            return [(message.id % 2, message.with_id(message.id // 2, str(message.id // 2)))]
        if self._cancellation is not None and message.method == self._cancellation.method:
            return [(0, message), (1, message)]  # the message does not tell which one has the request
        if message.method in (self._form.request, self._form.notification):
            return self._unwrapped(message)
        return [(0, self._opened(message))]

    def _unwrapped(self, message: Passed) -> list[tuple[int, Message | Unreadable]]:
        if (inner := unwrap(message)) is not None:
            return [(1, inner)]
        error = InvalidRequestError("a wrapped message has one method, and no member twice")
        return [(1, Unreadable(error, kind="request" if message.kind == "request" else None, id=message.id))]

    def _opened(self, message: Passed) -> Passed:
        """Turn the request that opens a proxy into the one that opens an agent."""
        form = self._form
        if self._is_conductor or message.kind != "request":
            return message
        if form.initialize and message.method == form.initialize:
            return renamed(message, self._opening)
        if form.mark and message.method == self._opening:
            self._marked = message.id
        return message

    # --- Out -----------------------------------------------------------------------------------------------------

    def send(self, message: Message, port: int) -> Awaitable[None] | None:
        """Send a message of one of the ports; returns what is left to await."""
        found = None if self._is_ending else self._as_sent(with_text(message), port)
        rest = None if found is None else self._transport.send(found)
        return None if rest is None else self._finish(rest)

    async def _finish(self, rest: Awaitable[None]) -> None:
        self._writing += 1
        self._changed.set()
        try:
            await rest
        finally:
            self._writing -= 1

    def _as_sent(self, message: Passed, port: int) -> Passed | None:
        form, cancellation = self._form, self._cancellation
        if message.is_response:
            return self._with_mark(message)
        if cancellation is not None and message.method == cancellation.method:
            return self._as_cancelled(message, cancellation, port)
        if message.kind == "request" and type(message.id) is int:
            number = message.id * 2 + port
            message = message.with_id(number, str(number))
        if port == 1:
            return self._wrap(message)
        if self._is_conductor and message.kind == "request" and message.method == self._opening:
            return renamed(message, form.initialize) if form.initialize else marked(message, form.mark)
        return message

    def _as_cancelled(self, message: Passed, how: Cancellation, port: int) -> Passed | None:
        number = value_at(message.value, (how.key,))
        if type(number) is not int or self._form.cancels == "never":
            return None
        message = with_text(Message("notification", {how.key: number * 2 + port}, method=how.method))
        is_wrapped = port == 1 and self._form.cancels == "wrapped" and not self._is_conductor
        return self._wrap(message) if is_wrapped else message

    def _wrap(self, message: Passed) -> Passed:
        method = self._form.request if message.kind == "request" else self._form.notification
        members = [(name, message.text_of(name)) for name in message.spans if name not in OF_WRAPPER]
        inner = "{" + ",".join(f"{name_text(name)}:{text}" for name, text in members) + "}"
        return written(message, id=message.text_of("id"), method=dumps_json(method).decode(), params=inner)

    def _with_mark(self, message: Passed) -> Passed:
        if self._marked is None or message.id != self._marked or message.kind != "result":
            return message
        self._marked = None
        return marked(message, self._form.mark)

    async def close_end(self) -> None:
        """Close the transport once both ports are closed.

        A conductor does so when the first one is: a proxy without one of its neighbours has to end. What it still says
        is read; nothing more is sent to it.
        """
        self._open_ends -= 1
        if self._open_ends and not self._is_conductor:
            return
        is_first, self._is_ending = not self._is_ending, True
        if not self._open_ends:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        if is_first:
            await self._transport.close()


class _JunctionEnd(Port):
    def __init__(self, junction: Junction, inbox: MessageQueue, number: int, peer_kind: PeerKind) -> None:
        super().__init__(inbox, peer_kind)
        self._junction = junction
        self._number = number
        self.failure: OSError | None = None

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end. Raises the error with which the transport has failed."""
        message = await super().read()
        if message is None and self.failure is not None:
            raise self.failure.again() if isinstance(self.failure, ConnectionClosed) else self.failure
        return message

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await."""
        return self._junction.send(message, self._number)

    async def close(self) -> None:
        """Close this end; the transport stays open for the other one."""
        await super().close()
        await self._junction.close_end()
