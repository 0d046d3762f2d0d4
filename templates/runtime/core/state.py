"""The states of a connection, of its reading, and of the handshake: what can change a state is here, and nowhere else.

A connection is both directions of one conversation. It has three machines, each a table below. `endpoint.Endpoint`
drives the first one, `read_loop.ReadLoop` the second, `in_flight.InFlight` the third.

The connection (`State`). It is open until nothing more is read: the peer has closed its end, or this side has stopped.
If the peer has closed, requests that run may still be answered, for a while: it drains. Then nothing more is written,
all tasks are cancelled, and once they have cleaned up it is closed. The first event that ends it is the reason which
every later call gets.

The reading (`Reading`). One task at a time runs the read loop, which takes one message after the other, in the order of
arrival. Three rules follow from what peers rely on; `read_loop` says at each place how it keeps them:

* A notification is handled to its end before the next message is taken, so the loop calls its handler itself. But if
  that handler sends a request and waits for the response, nobody would read the response. So once the request is sent,
  the loop is handed over: another task runs it from then on, and the handler goes on in the task that it has, which
  counts as in flight as that of a request does. What arrives meanwhile no longer waits for this handler: a request is
  started and answered, and the next notification handled, while it waits. `ReadLoop.hand_over` has an example. The new
  task has the context in which the connection was started, as what the handler has set in its own is its own.
* Requests run side by side, each in a task of its own, but their handlers begin in the order of arrival. A task begins
  only when the event loop comes to it. So a message of another kind, which may cancel the request or depend on what
  its handler has begun with, waits until all requests before it have begun. Requests themselves do not wait for each
  other, so that several which arrive together start together: the event loop keeps their order.
* A response resolves a request of this side. What waited for it goes on before the next message is taken: the peer has
  sent that one after the response, and the code may have to know the result to make sense of it. So the loop lets other
  tasks run first. The same holds in the other direction: what a handler sends before it returns is written before its
  response.

While nothing has arrived, the loop is idle. Transports that tell when something arrives need no task switch then: a
request or a response is taken at once, in the loop's place; for all else the loop is woken.

The handshake (`Step`). One request of the peer may have to succeed before any other: it agrees on the version of the
protocol. The peer need not wait for its response before it sends more. So what follows it is let in as soon as it runs,
and if it fails, others are refused again until one succeeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from ..errors import InvalidRequestError, RequestError
from .dispatch import ConnectionClosed
from .message import Message

# --- The connection --------------------------------------------------------------------------------------------------


State: TypeAlias = Literal["open", "draining", "closing", "closed"]
"""The state of a connection.

* `open`: messages are read.
* `draining`: nothing more is read; handlers of requests may still respond, for `finish_seconds`.
* `closing`: nothing more is written; all tasks are cancelled.
* `closed`: they have cleaned up.
"""

Event: TypeAlias = Literal["read end", "finished", "stop", "cleaned up"]

TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    ("open", "read end"): "draining",
    ("open", "stop"): "closing",
    ("draining", "finished"): "closing",
    ("draining", "stop"): "closing",
    ("closing", "cleaned up"): "closed",
}
"""All other pairs change nothing."""


class Lifecycle:
    """The state of a connection, and the reason for its end: that of the first event which ends it."""

    def __init__(self, on_end: Callable[[ConnectionClosed], None]) -> None:
        self.state: State = "open"
        self.reason: ConnectionClosed | None = None
        self._on_end = on_end
        self._left = {"open": asyncio.Event(), "draining": asyncio.Event()}

    @property
    def is_open(self) -> bool:
        """True as long as messages are read."""
        return self.state == "open"

    @property
    def is_closing(self) -> bool:
        """True once nothing more may be written."""
        return self.state in ("closing", "closed")

    def handle(self, event: Event, reason: ConnectionClosed | None = None) -> None:
        """Change the state as an event says."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            return
        was_open, self.state = self.is_open, following
        if was_open:
            self.reason = reason or ConnectionClosed("this side has closed the connection")
            self._left["open"].set()
            self._on_end(self.reason)
        if self.is_closing:
            self._left["draining"].set()

    async def wait_until_left(self, state: Literal["open", "draining"]) -> None:
        """Wait until the connection has left `state`."""
        await self._left[state].wait()


# --- The reading -----------------------------------------------------------------------------------------------------

ReadingState: TypeAlias = Literal["taking", "idle", "handling"]
"""What the read loop does.

* `taking`: it takes messages, or waits for those that were taken before.
* `idle`: nothing has arrived, and the transport tells when something does. Requests and responses are taken without it.
* `handling`: it calls the handler of a notification. A request of that handler hands it over to another task.
"""

ReadingEvent: TypeAlias = Literal["nothing left", "woken", "notification", "handled", "handed over"]

READING: Final[dict[ReadingEvent, dict[ReadingState, ReadingState]]] = {
    "nothing left": {"taking": "idle"},
    "woken": {"idle": "taking"},
    "notification": {"taking": "handling"},
    "handled": {"handling": "taking"},
    "handed over": {"handling": "taking"},  # by the task that has the loop from now on
}
"""All other pairs are errors of the connection, and raise `KeyError`."""
_NOTIFICATION: Final = READING["notification"]  # each one asks for these
_HANDLED: Final = READING["handled"]


class Reading:
    """The read loop: what it does, the `task` that runs it, and the `message` whose handler it calls, if it does.

    `handling` is the mark of that call.
    """

    def __init__(self) -> None:
        self.state: ReadingState = "taking"
        self.task: asyncio.Task[None] | None = None
        self.handling: object = None
        self.message: Message | None = None
        self._arrival: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True while it waits for `wake`."""
        return self.state == "idle" and self._arrival is not None and not self._arrival.done()

    async def wait(self) -> None:
        """Be idle until `wake`."""
        self.state = READING["nothing left"][self.state]
        self._arrival = asyncio.get_running_loop().create_future()
        try:
            await self._arrival
        finally:
            if self.state == "idle":  # it was cancelled
                self.state = READING["woken"][self.state]

    def wake(self) -> None:
        """End `wait`."""
        self.state = READING["woken"][self.state]
        if self._arrival is not None:
            self._arrival.set_result(None)

    def begin(self, message: Message) -> object:
        """Note that the handler of a notification is called. Returns the mark of this call."""
        self.state = _NOTIFICATION[self.state]
        self.message = message
        self.handling = mark = object()
        return mark

    def end(self, mark: object) -> None:
        """Note that a handler has returned. If it has handed the loop over, that is of no effect on the loop."""
        if self.handling is mark:
            self.state = _HANDLED[self.state]
            self.handling = self.message = None

    def hand_over(self) -> None:
        """Leave the handler to its task; another one runs the loop."""
        self.state = READING["handed over"][self.state]
        self.handling = self.message = None


# --- The handshake ---------------------------------------------------------------------------------------------------


Step: TypeAlias = Literal["awaited", "running", "done"]
"""The progress of the request that the peer has to send first.

* `awaited`: other requests are refused, notifications ignored.
* `running`: they are let in.
* `done`: it has succeeded, or none is needed.
"""

STEPS: Final[dict[tuple[Step, Literal["begins", "succeeds", "fails"]], Step]] = {
    ("awaited", "begins"): "running",
    ("running", "succeeds"): "done",
    ("running", "fails"): "awaited",
}
"""All other pairs change nothing."""


class Handshake:
    """The request `method`, which has to succeed first. Messages may follow it without waiting for its response.

    With `is_alone`, a second one is refused while one runs: it decides about the version. With `is_sent`, this side
    sends it, and refuses all requests.
    """

    def __init__(self) -> None:
        self.method: str | None = None
        self.is_alone = self.is_sent = False
        self.step: Step = "done"
        self._running = 0

    def require(self, method: str | None, *, is_sent: bool = False, is_alone: bool = False) -> None:
        """Refuse all other requests until this one has succeeded; None requires nothing."""
        self.method, self.is_sent, self.is_alone = method, is_sent, is_alone
        self.step = "done" if method is None else "awaited"

    def refusal(self, method: str) -> RequestError | None:
        """The error for a request that must not be started now; None if it may."""
        if self.step == "awaited" and (method != self.method or self.is_sent):
            return InvalidRequestError(f"{self.method} must come first")
        if self.step == "running" and method == self.method and self.is_alone:
            return InvalidRequestError(f"{self.method} is running")
        return None

    def begins(self, method: str) -> None:
        """Note that a request has been started."""
        if method == self.method:
            self._running += 1
            self.step = STEPS.get((self.step, "begins"), self.step)

    def ends(self, method: str, *, succeeded: bool) -> None:
        """Note that a request has been answered."""
        if method == self.method:
            self._running -= 1
            if succeeded or not self._running:
                self.step = STEPS.get((self.step, "succeeds" if succeeded else "fails"), self.step)
