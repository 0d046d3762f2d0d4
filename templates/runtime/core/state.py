"""The states of a connection, of its reading, and of the handshake: what can change a state is here, and nowhere else.

A connection is both directions of one conversation. It has three machines, each a table below; `endpoint.Endpoint`
drives them, and asks nothing else to know where it is.

The connection (`State`). It is open until nothing more is read: the peer has closed its end, or this side has stopped.
If the peer has closed, requests that run may still be answered, for a while: it drains. Then nothing more is written,
all tasks are cancelled, and once they have cleaned up it is closed. The first event that ends it is the reason which
every later call gets.

The reading (`Reading`). One task at a time runs the read loop, which takes one message after the other, in the order of
arrival. Three rules follow from what peers rely on; `endpoint` says at each place how it keeps them:

* A notification is handled to its end before the next message is taken, so the loop calls its handler itself. But if
  that handler sends a request and waits for the response, nobody would read the response. So before the request is
  sent, the loop is handed over: another task runs it from then on, and the handler goes on in the task that it has,
  which counts as in flight as that of a request does.
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
from enum import Enum, auto
from typing import Final, Literal, TypeAlias

from ..errors import InvalidRequestError, RequestError
from .dispatch import ConnectionClosed

# --- The connection --------------------------------------------------------------------------------------------------


class State(Enum):
    """The state of a connection."""

    OPEN = auto()
    DRAINING = auto()  # nothing more is read; handlers of requests may still respond, for `finish_seconds`
    CLOSING = auto()  # nothing more is written; all tasks are cancelled
    CLOSED = auto()


Event: TypeAlias = Literal["read end", "finished", "stop", "cleaned up"]

TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    (State.OPEN, "read end"): State.DRAINING,
    (State.OPEN, "stop"): State.CLOSING,
    (State.DRAINING, "finished"): State.CLOSING,
    (State.DRAINING, "stop"): State.CLOSING,
    (State.CLOSING, "cleaned up"): State.CLOSED,
}
"""All other pairs change nothing."""


class Lifecycle:
    """The state of a connection, and the reason for its end: that of the first event which ends it."""

    def __init__(self, on_end: Callable[[ConnectionClosed], None]) -> None:
        self.state = State.OPEN
        self.reason: ConnectionClosed | None = None
        self._on_end = on_end
        self._left = {State.OPEN: asyncio.Event(), State.DRAINING: asyncio.Event()}

    @property
    def is_open(self) -> bool:
        """True as long as messages are read."""
        return self.state is State.OPEN

    @property
    def is_closing(self) -> bool:
        """True once nothing more may be written."""
        return self.state in (State.CLOSING, State.CLOSED)

    def handle(self, event: Event, reason: ConnectionClosed | None = None) -> None:
        """Change the state as an event says."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            return
        was_open, self.state = self.is_open, following
        if was_open:
            self.reason = reason or ConnectionClosed("this side has closed the connection")
            self._left[State.OPEN].set()
            self._on_end(self.reason)
        if self.is_closing:
            self._left[State.DRAINING].set()

    async def wait_until_left(self, state: Literal[State.OPEN, State.DRAINING]) -> None:
        """Wait until the connection has left `state`."""
        await self._left[state].wait()


# --- The reading -----------------------------------------------------------------------------------------------------

Reading: TypeAlias = Literal["taking", "idle", "handling"]
"""What the read loop does.

* `taking`: it takes messages, or waits for those that were taken before.
* `idle`: nothing has arrived, and the transport tells when something does. Requests and responses are taken without it.
* `handling`: it calls the handler of a notification. A request of that handler hands it over to another task.
"""

ReadingEvent: TypeAlias = Literal["nothing left", "woken", "notification", "handled", "handed over"]

READING: Final[dict[ReadingEvent, dict[Reading, Reading]]] = {
    "nothing left": {"taking": "idle"},
    "woken": {"idle": "taking"},
    "notification": {"taking": "handling"},
    "handled": {"handling": "taking"},
    "handed over": {"handling": "taking"},  # by the task that has the loop from now on
}
"""All other pairs are errors of the connection, and raise `KeyError`."""


# --- The handshake ---------------------------------------------------------------------------------------------------


class Step(Enum):
    """The progress of the request that the peer has to send first."""

    AWAITED = auto()  # other requests are refused, notifications ignored
    RUNNING = auto()
    DONE = auto()  # or none is needed


STEPS: Final[dict[tuple[Step, Literal["begins", "succeeds", "fails"]], Step]] = {
    (Step.AWAITED, "begins"): Step.RUNNING,
    (Step.RUNNING, "succeeds"): Step.DONE,
    (Step.RUNNING, "fails"): Step.AWAITED,
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
        self.step = Step.DONE
        self._running = 0

    def require(self, method: str | None, *, is_sent: bool = False, is_alone: bool = False) -> None:
        """Refuse all other requests until this one has succeeded; None requires nothing."""
        self.method, self.is_sent, self.is_alone = method, is_sent, is_alone
        self.step = Step.DONE if method is None else Step.AWAITED

    def refusal(self, method: str) -> RequestError | None:
        """The error for a request that must not be started now; None if it may."""
        if self.step is Step.AWAITED and (method != self.method or self.is_sent):
            return InvalidRequestError(f"{self.method} must come first")
        if self.step is Step.RUNNING and method == self.method and self.is_alone:
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
