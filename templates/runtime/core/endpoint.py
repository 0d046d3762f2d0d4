"""One end of a connection over any transport: both sides send requests, and messages are handled in order.

`ReadLoop.take` in `read_loop` is the one place that takes a message. That module also has the requests of this side
that wait for responses; `in_flight` has those of the peer. What to do with a message say the callbacks with which the
endpoint is made; it knows no types, roles or versions. `state` has the states, and the reasons for the order.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import _get_running_loop, get_running_loop  # pyright: ignore[reportPrivateUsage]
from collections.abc import Callable, Coroutine, Iterable, Mapping
from time import perf_counter
from typing import Any

from ._decode import excerpt
from .dispatch import ConnectionClosed
from .in_flight import InFlight, Rest, TextInFlight
from .log import logger
from .message import Message
from .options import ConnectionOptions
from .peer_kind import PeerKind, current_peer_kind, peer_kind_of
from .read_loop import Listener, ReadLoop, answered_anyway, current_handling
from .records import Cancellation
from .state import Lifecycle, ReadingState
from .tasks import Tasks, check_loop, running_loop
from .transport import Sender, Transport


class Endpoint:
    """One end of a connection: callbacks in, `send` out.

    `on_request` gets the method and the params of a request, in a task of its own, and returns the result. It raises
    `RequestError` for an error of its own; what else it raises is logged, and the peer gets no details. Requests whose
    method is in `routes` go there instead, as the message; such a callback may send the result itself, and return
    `Sent`. `on_notification` is awaited before the next message is taken, but for `hand_over_reading`. `serve` changes
    these.

    `intercept` gets each request and notification in place of these callbacks, and returns what is left to await. It
    may leave one to them, by `in_flight.accept` or `accept_notification`. Messages are strictly taken in order then.

    `before_send` may check or replace what is sent. `explain` makes the error for a message that cannot be written, or
    for a `RequestError` that cannot be one. `on_refused` gets the method of a request whose callback has raised a
    `RequestError`. `on_arrived_end` is called when the transport has all that the peer sends, `on_end` when nothing
    more is read, with the reason. `closing` has the last steps of the clean-up.
    """

    def __init__(
        self,
        transport: Transport,
        options: ConnectionOptions,
        *,
        on_request: Callable[[str, Any], Coroutine[Any, Any, Any]],
        on_notification: Callable[[str, Any], Coroutine[Any, Any, None]],
        intercept: Callable[[Message], Rest] | None = None,
        before_send: Callable[[Message], Message] | None = None,
        explain: Callable[[Message, Exception], Exception] = lambda _, error: error,
        on_refused: Callable[[str], None] | None = None,
        on_arrived_end: Callable[[], None] | None = None,
        on_end: Callable[[ConnectionClosed], None] | None = None,
        closing: Callable[[ConnectionClosed], Iterable[Coroutine[Any, Any, None]]] = lambda _: (),
    ) -> None:
        self.options = options
        self.loop: asyncio.AbstractEventLoop | None = running_loop()
        """The event loop in which it runs; None until `start` if it was made outside of one."""
        self.peer_kind: PeerKind = peer_kind_of(transport)
        self._transport = transport
        self._on_end = on_end
        self._closing = closing

        self._life = Lifecycle(self._reject_pending)
        self.send = Sender(transport, self._life, before_send=before_send, explain=explain).send
        self._tasks = Tasks(options.cleanup_seconds)
        self._closed: asyncio.Task[None] | None = None
        self.in_flight = self._requests_of_peer(explain, on_refused)
        self.handshake = self.in_flight.handshake
        self._loop = ReadLoop(
            transport,
            self._life,
            self._tasks,
            self.in_flight,
            take_request=intercept or self.in_flight.accept,
            take_notification=intercept or self.accept_notification,
            on_end=self.end_reading,
            on_arrived_end=on_arrived_end,
            is_intercepted=intercept is not None,
        )
        self._reading = self._loop.reading
        self.pending = self._loop.pending
        """The requests of this side."""
        self.hand_over_reading = self._loop.hand_over
        self.serve(on_request, on_notification)

    def _requests_of_peer(
        self, explain: Callable[[Message, Exception], Exception], on_refused: Callable[[str], None] | None
    ) -> InFlight:
        """What is kept of the requests of the peer, counted by the transport if its connections share memory."""
        budget: Any = getattr(self._transport, "budget", None)
        limit = self.options.max_in_flight_bytes
        return InFlight(
            self.options,
            self._life,
            send=self.send,
            flush=getattr(self._transport, "flush", None),
            count=TextInFlight(limit) if budget is None else budget.in_flight(limit),
            explain=explain,
            on_refused=on_refused,
        )

    def serve(
        self,
        on_request: Callable[[str, Any], Coroutine[Any, Any, Any]],
        on_notification: Callable[[str, Any], Coroutine[Any, Any, None]],
        *,
        routes: Mapping[str, Callable[[Message], Coroutine[Any, Any, Any]]] | None = None,
        cancellation: Cancellation | None = None,
        null_ids: bool = True,
    ) -> None:
        """Set the callbacks for messages, and how the protocol cancels requests, and whether their ids may be null."""
        self._on_notification = on_notification
        self.cancellation = cancellation
        self.in_flight.serve(on_request, routes or {}, null_ids=null_ids)

    # --- Start and end -------------------------------------------------------------------------------------------

    @property
    def reason(self) -> ConnectionClosed | None:
        """Why nothing more is read; None while it is."""
        return self._life.reason

    @property
    def is_open(self) -> bool:
        """True as long as messages are read."""
        return self._life.is_open

    @property
    def reading(self) -> ReadingState:
        """What the read loop does."""
        return self._reading.state

    def start(self) -> None:
        """Start to read messages."""
        self.loop = get_running_loop()
        token = current_peer_kind.set(self.peer_kind)  # tasks inherit it
        try:
            self._loop.start()
            self._closed = asyncio.create_task(self._close_at_end())
        finally:
            current_peer_kind.reset(token)
        self._loop.attach()

    async def wait_ended(self) -> None:
        """Wait until nothing more is read."""
        await self._life.wait_until_left("open")

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and all handlers have finished."""
        if self._closed is not None and not self._closed.done():
            self.check_loop()
            await asyncio.shield(self._closed)

    def stop(self, reason: ConnectionClosed | None = None) -> None:
        """Close the connection from this side; `wait_closed` waits until that is done."""
        self._life.handle("stop", reason)

    async def close(self) -> None:
        """Close the connection from this side, and wait until that is done."""
        if self._life.state != "closed":
            self.check_loop()
        self.stop()
        if self._closed is None:
            await self._transport.close()
        await self.wait_closed()

    def end_reading(self, reason: ConnectionClosed) -> None:
        """Read no more; what is in flight may still be answered."""
        self._life.handle("read end", reason)
        self.in_flight.finish_if_idle()

    async def _close_at_end(self) -> None:
        life = self._life
        try:
            await life.wait_until_left("open")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(life.wait_until_left("draining"), self.options.finish_seconds)
        finally:  # also if the event loop is shut down, which cancels all tasks
            life.handle("stop")
            await self._clean_up(life.reason or ConnectionClosed("this side has closed the connection"))

    async def _clean_up(self, reason: ConnectionClosed) -> None:
        tasks = self._tasks
        try:
            await asyncio.sleep(0)  # pending requests raise the reason before their tasks are cancelled
            await tasks.end(self.in_flight.tasks, self._name)
            for step in self._closing(reason):
                await tasks.run_step("connection_closed", step)
        finally:
            await tasks.run_step("closing the transport", self._transport.close())
            self._life.handle("cleaned up")

    def _reject_pending(self, reason: ConnectionClosed) -> None:
        self.pending.reject_all(reason)
        if self._on_end is not None:
            self._on_end(reason)
        self.pending.lose_all(reason)

    def _name(self, task: asyncio.Task[None]) -> str:
        """What a task is for, in the log."""
        message = self.in_flight.tasks.get(task)
        return "a task of the connection" if message is None else f"the handler of {excerpt(message.method)}"

    def start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task that ends with the connection."""
        self._tasks.start(coroutine)

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that runs. Raises `RuntimeError` if it is not that of the connection."""
        return check_loop(self.loop)

    # --- What this side sends ------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any, *, listener: Listener | None = None) -> Any:
        """Send a request, and wait for its result. If the protocol allows it, cancelling the task cancels the request.

        The read loop calls `listener` with the response, and awaits what it returns before it takes the next message.
        Raises what `send` raises, the `RequestError` that the peer responds with, and `RuntimeError` in another event
        loop than that of the connection, or in the handler of a notification if too much is in flight.
        """
        life = self._life
        if (loop := _get_running_loop()) is None or loop is not self.loop:
            loop = self.check_loop()
        if life.reason is not None:
            raise life.reason.again()
        handled = None if self._reading.message is None else self._loop.handing_over()
        future = loop.create_future()
        request_id, start = self.pending.add(future, listener), perf_counter()
        try:
            rest = self.send(Message("request", params, method, request_id))
            if handled is not None:
                self._loop.leave_to(handled)
            if rest is not None:
                await rest
            result = await future
        except asyncio.CancelledError:
            if life.is_open and (future.cancelled() or not future.done()):
                self.pending.ignore(request_id)
                if (how := self.cancellation) is not None and not answered_anyway.get()(method):
                    self._tasks.start(self._notify(Message("notification", {how.key: request_id}, how.method)))
            raise
        finally:
            self.pending.remove(request_id)
            if future.done() and not future.cancelled():
                future.exception()  # marks it as retrieved: a failure to write may have come first
            logger.debug("%s, request %d, took %.1f ms", method, request_id, (perf_counter() - start) * 1000)
        return result

    async def _notify(self, message: Message) -> None:
        if (rest := self.send(message)) is not None:
            await rest

    # --- Messages of the peer ------------------------------------------------------------------------------------

    async def accept_notification(self, message: Message) -> None:
        """Await the callback for a notification, unless the handshake comes first."""
        self.in_flight.unaddressed = 0
        method, reading = message.method, self._reading
        if (how := self.cancellation) is not None and method == how.method:
            self.in_flight.cancel(message.value, how.key)
        if self.handshake.step == "awaited":
            logger.debug("the notification %.200r is ignored: it came before %s", method, self.handshake.method)
            return
        task, mark = reading.task, reading.begin(message)
        current_handling.set(mark)  # never reset: it has no effect once the loop has left this handler
        try:
            await self._on_notification(method, message.value)
        except BaseException as error:
            self.in_flight.note_failure(message, error, task)
        finally:
            reading.end(mark)
