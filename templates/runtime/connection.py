"""A JSON-RPC 2.0 connection over any transport: both sides send requests, and messages are handled in order.

The read loop takes one message after the other:

* A notification is handled to its end before the next message is dispatched.
* A request starts a task. Its handler has begun before that of a later request, and when a later message of another
  kind, which may cancel it, is dispatched.
* A response resolves a pending request. The task that waited for it continues first.

One task at a time runs the loop, and calls the handlers of notifications. While such a handler waits for the response
to a request of its own, its task cannot read it. So `request` first starts another task for the loop. The task of the
handler counts as in flight from then on, and ends with the handler. While the loop waits, requests and responses are
dispatched as they arrive, without it, if the transport allows that.

`calls.State` has the states of a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio import _get_running_loop, get_running_loop  # pyright: ignore[reportPrivateUsage]
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from time import perf_counter
from typing import Any, ClassVar, Final, Literal

from ._decode import excerpt
from .calls import InFlight, Life, Output, State, Tasks, is_running, running_loop
from .dispatch import ConnectionClosed, Handler, UnfitParams, call_handler, dispatch_notification
from .errors import InternalError, InvalidRequestError, RequestError
from .handshake import Capabilities, Choice, LocalSide, Step
from .message import Message, Unreadable
from .options import (
    PROGRAM_ENDS,
    Budget,
    ConnectionOptions,
    log_handler_failure,
    log_mistake,
    log_program_end,
    logger,
    options_or_default,
)
from .transport import ByteTransport, PeerKind, Transport, carrying_messages, current_peer_kind, peer_kind_of

_MAX_SHOWN: Final = 80
"""The bytes that are logged of a message that cannot be read."""
_MAX_UNADDRESSED: Final = 100
"""After so many errors in a row without an id, no more are sent: a flood of junk causes no flood of errors."""


class _Notification:
    """A notification that is being handled: by the task `reader`, which is None afterwards."""

    __slots__ = ("message", "reader")

    def __init__(self, message: Message) -> None:
        self.reader = asyncio.current_task()
        self.message: Message | None = message


_notification: ContextVar[_Notification | None] = ContextVar("_notification", default=None)
"""The one in whose handler the code runs; tasks that the handler starts inherit it."""


class Connection:
    """Both directions of a connection; it is the `Peer` of the stubs.

    Messages wait for the handlers of earlier notifications: keep these short, and let them start a task for anything
    that waits for the peer, such as a lock. When such a handler sends a request, later messages no longer wait for it.
    These handlers share one context: a `ContextVar` that one of them sets stays set. `peer` is what a trace calls the
    other side, and `peer_kind` what it is.
    """

    OUTPUT: ClassVar[type[Output]] = Output

    def __init__(
        self,
        transport: Transport | ByteTransport,
        options: ConnectionOptions | None = None,
        *,
        peer: Literal["agent", "client", ""] = "",
    ) -> None:
        self.options = options_or_default(options)
        self.loop: asyncio.AbstractEventLoop | None = running_loop()
        """The event loop in which it runs; None until `start` if it was made outside of one."""
        self._transport = carrying_messages(transport, self.options)
        if path := self.options.trace or os.environ.get("ACP_TRACE"):
            from .on_demand.trace import traced

            self._transport = traced(self._transport, self.options, path, peer)
        self.peer_kind: PeerKind = peer_kind_of(self._transport)
        self._ready: Callable[[], Message | Unreadable | None] = getattr(self._transport, "ready", _nothing)
        self._next_id = 0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._unaddressed = 0  # errors without an id that were due since the last valid message
        self._reader: asyncio.Task[None] | None = None  # runs the read loop
        self._received: list[Message | Unreadable] = []  # at most one: was read, and is not dispatched yet
        self._idle: asyncio.Future[None] | None = None  # the read loop waits for it
        self._context = copy_context()  # that of the read loop while it waits
        self._is_attached = self._at_end = False
        self._must_yield = False  # other tasks have to run before the next message is dispatched
        self._closed: asyncio.Task[None] | None = None
        self._life = Life(self._reject_pending)
        self._side = LocalSide(is_checked=self.options.check_capabilities)
        self._tasks = Tasks(self.options.cleanup_seconds)
        self._output = self.OUTPUT(self._transport, self.options, self._life, self._side)
        budget: Budget = getattr(self._transport, "budget", None) or Budget()
        self._in_flight = InFlight(
            self.options, life=self._life, side=self._side, output=self._output, tasks=self._tasks, budget=budget
        )

    # --- Start and end -------------------------------------------------------------------------------------------

    def start(self, handler: Handler | Choice) -> None:
        """Start to read messages; `handler` gets those of the peer, or the one of several that the peer chooses."""
        if isinstance(handler, Handler):
            self._side.start(handler)
        else:
            self._side.let_peer_choose(handler)
        self._start()

    def _start(self) -> None:
        self.loop = get_running_loop()
        token = current_peer_kind.set(self.peer_kind)  # tasks inherit it
        try:
            self._start_reading()
            self._closed = asyncio.create_task(self._close_at_end())
        finally:
            current_peer_kind.reset(token)
        if (attach := getattr(self._transport, "attach", None)) is not None:
            attach(self._arrived)
            self._is_attached = True

    async def start_with(
        self, method: str, params: Any, choose: Callable[[Any], Handler]
    ) -> tuple[Handler, Capabilities, Any]:
        """Start with the request by which the peer chooses one of several handlers, instead of `start`.

        `choose` returns the handler for the result. Returns it, its capabilities, and the result. Raises what `request`
        and `choose` raise; `ConnectionClosed` of the latter ends the connection.
        """
        self._side.handshake.require(method, is_sent=True)
        self._start()
        result = await self.request(method, params)
        try:
            handler = choose(result)
        except ConnectionClosed as reason:
            self._life.on("stop", reason)
            raise
        self._side.use(handler)
        self._side.handshake.require(None)
        return handler, self._side.capabilities, result

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and all handlers have finished."""
        if self._closed is not None and not self._closed.done():
            self.check_loop()
            await asyncio.shield(self._closed)

    def stop(self) -> None:
        """Close the connection from this side; `wait_closed` waits until that is done."""
        self._life.on("stop")

    async def close(self) -> None:
        """Close the connection from this side, and wait until that is done."""
        if self._life.state is not State.CLOSED:
            self.check_loop()
        self.stop()
        if self._closed is None:
            await self._transport.close()
        await self.wait_closed()

    async def _close_at_end(self) -> None:
        life = self._life
        try:
            await life.leaves(State.OPEN)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(life.leaves(State.DRAINING), self.options.finish_seconds)
        finally:  # also if the event loop is shut down, which cancels all tasks
            life.on("stop")
            await self._clean_up(life.reason or ConnectionClosed("this side has closed the connection"))

    async def _clean_up(self, reason: ConnectionClosed) -> None:
        tasks = self._tasks
        try:
            await asyncio.sleep(0)  # pending requests raise the reason before their tasks are cancelled
            await tasks.end(self._in_flight.name)
            for handler in self._side.handlers:
                await tasks.run_step("connection_closed", call_handler(handler, "connection_closed", reason))
        finally:
            await tasks.run_step("closing the transport", self._transport.close())
            self._life.on("cleaned up")

    def _end_reading(self, reason: ConnectionClosed) -> None:
        self._life.on("read end", reason)
        if not self._in_flight:
            self._life.on("finished")

    def _reject_pending(self, reason: ConnectionClosed) -> None:
        for future in self._pending.values():
            if not future.done():
                future.set_exception(reason.again())

    # --- Requests and notifications of this side -----------------------------------------------------------------

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result. If the protocol allows it, cancelling the task cancels the request.

        Raises the `RequestError` that the peer responds with, `CapabilityError` and `ConnectionClosed`, `TypeError` for
        params that cannot be sent, and `RuntimeError` in another event loop than that of the connection.
        """
        life, capabilities = self._life, self._side.capabilities
        if (loop := _get_running_loop()) is None or loop is not self.loop:
            loop = self.check_loop()
        capabilities.check_request(method)
        if life.reason is not None:
            raise life.reason.again()
        self._hand_over_reading()
        capabilities.sent(method, "params", params)
        request_id = self._next_id
        self._next_id += 1
        future = self._pending[request_id] = loop.create_future()
        start = perf_counter()
        try:
            if (rest := self._output.send(Message("request", params, method, request_id))) is not None:
                await rest
            result = await future
        except asyncio.CancelledError:
            if life.is_open and (future.cancelled() or not future.done()):
                self._cancel_at_peer(request_id)
            raise
        finally:
            del self._pending[request_id]
            if future.done() and not future.cancelled():
                future.exception()  # marks it as retrieved: a failure to write may have come first
            logger.debug("%s, request %d, took %.1f ms", method, request_id, (perf_counter() - start) * 1000)
        capabilities.received_result(method, result)
        return result

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Raises what `request` raises, but for a `RequestError`."""
        if _get_running_loop() is not self.loop:
            self.check_loop()
        self._side.capabilities.check_notification(method)
        if (rest := self._output.send(Message("notification", params, method))) is not None:
            await rest

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that runs. Raises `RuntimeError` if it is not that of the connection.

        No response could wake what waits in another one.
        """
        loop = running_loop()
        if loop is None or self.loop not in (None, loop):
            from .on_demand.mistakes import caller

            where = caller()
            raise RuntimeError(
                f"a stub{where} is used outside of the event loop of its connection, where it would wait for ever: "
                "await it in that loop, or call blocking(stub) from another thread"
            )
        return loop

    @property
    def version(self) -> int:
        """The version of the protocol that the handler in effect is for."""
        return self._side.handler.PROTOCOL.version

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        return self._side.capabilities.supports(method)

    def _cancel_at_peer(self, request_id: int) -> None:
        if (how := self._side.cancellation) is not None:
            self._tasks.start(self._send(Message("notification", {how.key: request_id}, how.method)))

    async def _send(self, message: Message) -> None:
        if (rest := self._output.send(message)) is not None:
            await rest

    # --- The read loop -------------------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        self._reader = self._tasks.start(self._read_loop())

    def _hand_over_reading(self) -> None:
        """Let another task run the read loop, if this one runs it and handles a notification."""
        handled = _notification.get()
        if handled is None or handled.message is None or handled.reader is not self._reader:
            return
        if limit := self._in_flight.exceeded(handled.message):
            raise RuntimeError(f"the handler of a notification cannot send a request: {limit}")
        if handled.reader is not None:
            self._in_flight.add(handled.reader, handled.message)
        self._start_reading()

    async def _read_loop(self) -> None:
        me, life = asyncio.current_task(), self._life
        try:
            while self._reader is me and life.state is State.OPEN:
                message = self._received.pop() if self._received else self._ready() or await self._read()
                if message is not None and self._has_to_wait(message):
                    self._received.append(message)
                    message = None
                    await asyncio.sleep(0)
                elif isinstance(message, Message) and message.kind == "notification":
                    await self._handle_notification(message)
                elif message is not None and (rest := self._dispatch(message)) is not None:
                    message = None  # frees memory while the peer reads
                    with contextlib.suppress(ConnectionClosed):
                        await rest
                message = None  # frees memory while this waits for the next one
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # if all tasks are cancelled, as at the end of the program, the clean-up starts now
            if life.is_closing or self._reader is not me:
                raise
            logger.warning("the handler of a notification has cancelled the read loop")
            self._start_reading()
        except Exception as error:
            self._end_reading(ConnectionClosed(f"cannot read: {error}"))
            raise

    async def _read(self) -> Message | Unreadable | None:
        """Wait for the next message; None if it is in `_received`, or there is none."""
        try:
            if self._is_attached and not self._at_end:
                self._context = copy_context()
                self._idle = get_running_loop().create_future()
                await self._idle
                return None
            message = await self._transport.read()
            if message is None:
                self._end_reading(ConnectionClosed("the peer has closed the connection"))
            return message
        except ConnectionClosed as reason:
            self._end_reading(reason)
        except (asyncio.CancelledError, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not is_running(self._reader):
                raise
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            self._end_reading(ConnectionClosed(f"cannot read: {error}"))
        finally:
            self._idle = None
        return None

    def _arrived(self, is_end: bool) -> None:
        """Dispatch what has arrived while the read loop waits; what cannot be dispatched here wakes it."""
        self._at_end = self._at_end or is_end
        if self._idle is None or self._idle.done() or not self._life.is_open:
            return
        self._context.run(self._dispatch_arrived)  # its tasks inherit that of the loop
        if self._received or self._at_end:
            self._idle.set_result(None)

    def _dispatch_arrived(self) -> None:
        while not self._received and (message := self._ready()) is not None:
            if not self._dispatch_now(message):
                self._received.append(message)

    def _dispatch_now(self, message: Message | Unreadable) -> bool:
        """Dispatch a message outside of the read loop, if nothing comes before it and nothing has to wait for it."""
        if isinstance(message, Unreadable) or self._has_to_wait(message):
            return False
        if message.kind == "notification" or (message.kind == "request" and self._refusal(message) is not None):
            return False
        if message.kind == "request":
            self._unaddressed = 0
            self._in_flight.start(message)
        else:
            self._dispatch(message)
        return True

    def _has_to_wait(self, message: Message | Unreadable) -> bool:
        """True if other tasks have to run first. Requests start together, for their handlers begin in order.

        A request waits only if those before it may decide whether it is refused: the handshake, or what ends at once.
        """
        if self._must_yield or not self._in_flight.starting:
            return self._must_yield
        if isinstance(message, Unreadable) or message.kind != "request":
            return True
        return self._side.handshake.step is not Step.DONE or self._refusal(message) is not None

    def _yield_to_tasks(self) -> None:
        """Let tasks that are ready run before the next message is dispatched; while it is read, they run anyway."""
        self._must_yield = True
        get_running_loop().call_soon(self._has_yielded)

    def _has_yielded(self) -> None:
        self._must_yield = False

    # --- Messages of the peer ------------------------------------------------------------------------------------

    def _dispatch(self, message: Message | Unreadable) -> Awaitable[None] | None:
        """Handle a message other than a notification; returns what is left to await if it is refused."""
        if isinstance(message, Unreadable):
            return self._refuse_unreadable(message)
        if message.kind == "request":
            return self._start_or_refuse(message)
        try:
            self._resolve(message)
        except Exception:
            logger.exception("a message could not be handled")
        return None

    def _start_or_refuse(self, message: Message) -> Awaitable[None] | None:
        if (error := self._refusal(message)) is not None:
            return self._refuse(error, None if self._is_taken(message) else message.id)
        self._unaddressed = 0
        self._in_flight.start(message)
        return None

    def _is_taken(self, message: Message) -> bool:
        """True if the peer would take the refusal of a request for the response to another one."""
        return message.id in self._in_flight

    def _refusal(self, message: Message) -> RequestError | None:
        if message.id is None and not self._side.null_ids:
            return InvalidRequestError("`id` must be a string or an integer")
        return self._in_flight.refusal(message)

    def _refuse_unreadable(self, found: Unreadable) -> Awaitable[None] | None:
        """Reject the pending request that an unreadable response is for; respond to other messages with the error."""
        future = self._pending.get(found.id) if found.kind != "request" and type(found.id) is int else None
        if future is not None and not future.done():
            _reject(future, self._unusable(found))
            self._yield_to_tasks()
            return None
        if found.kind != "response":
            return self._refuse(found.error, found.id if found.kind == "request" else None, start=found.start)
        if found.start:  # it was not parsed, so its id may be wrong, and a request pending
            return self._refuse(InvalidRequestError(*found.error.args), start=found.start)
        log_mistake("no request is pending for a response: its id is %s: %s", excerpt(found.id), found.error)
        return None

    def _unusable(self, found: Unreadable) -> RequestError:
        """The error of a request whose response cannot be read; logs it."""
        malformed = InternalError("the peer sent a malformed response", data=found.value)
        error = found.error if found.kind == "response" else malformed
        log_mistake("the response to request %s cannot be used: %s", found.id, error)
        return error

    def _refuse(
        self, error: RequestError, request_id: int | str | None = None, *, start: bytes = b""
    ) -> Awaitable[None] | None:
        """Respond to a message that cannot be handled; `start` has the first bytes of one that was not parsed."""
        if start:
            text = "the peer sent a message that cannot be handled: %s; it starts with: %s"
            log_mistake(text, error, start[:_MAX_SHOWN])
        else:
            log_mistake("the peer sent a message that cannot be handled: %s", error)
        self._unaddressed += request_id is None
        if request_id is None and self._unaddressed > _MAX_UNADDRESSED:
            return None
        try:
            return self._output.send(Message("error", error.to_json(), id=request_id))
        except ConnectionClosed:
            return None
        except Exception:
            logger.exception("the error for a message of the peer cannot be sent")
        failed = Message("error", InternalError().to_json(), id=request_id)
        return None if request_id is None else self._output.send(failed)

    def _resolve(self, message: Message) -> None:
        """Resolve the pending request that a message answers."""
        request_id = message.id
        future = self._pending.get(request_id) if type(request_id) is int else None
        if future is None or future.done():
            if type(request_id) is int and 0 <= request_id < self._next_id:
                logger.debug("a response came too late: its id is %d", request_id)
            else:
                text = "no request is pending for a response: its id is %s, it has: %s"
                log_mistake(text, excerpt(request_id), message.kind)
            return
        self._unaddressed = 0
        if message.kind == "result":
            future.set_result(message.value)
        else:
            _reject(future, RequestError.from_json(message.value))
        self._yield_to_tasks()

    async def _handle_notification(self, message: Message) -> None:
        self._unaddressed = 0
        method, side = message.method, self._side
        if side.cancellation is not None and method == side.cancellation.method:
            self._in_flight.cancel(message.value, side.cancellation.key)
        if side.handshake.step is Step.AWAITED:
            logger.debug("the notification %.200r is ignored: it came before %s", method, side.handshake.method)
            return
        handled = _Notification(message)
        _notification.set(handled)  # never reset: without a reader it has no effect
        try:
            await dispatch_notification(side.handler, method, message.value, on_drop=self.options.on_drop)
        except UnfitParams as error:
            log_mistake("the params of the notification %s do not fit: %s", method, error.reason)
            self._in_flight.report_invalid(message, error)
        except asyncio.CancelledError:
            if self._life.is_closing:
                raise
            logger.warning("the handler of the notification %s was cancelled", excerpt(method))
        except PROGRAM_ENDS as error:
            log_program_end(f"the handler of the notification {excerpt(method)}", error)
            raise
        except BaseException as error:
            if not is_running(handled.reader):
                raise
            is_closed = self._life.reason is not None
            log_handler_failure(f"the notification {excerpt(method)}", error, is_closed=is_closed)
        finally:
            handled.reader = handled.message = None


def _nothing() -> None:
    return None


def _reject(future: asyncio.Future[Any], error: RequestError) -> None:
    """Reject a pending request with an error of the peer."""
    error.is_from_peer = True
    future.set_exception(error)
