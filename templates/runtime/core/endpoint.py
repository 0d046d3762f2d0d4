"""One end of a connection over any transport: both sides send requests, and messages are handled in order.

`Endpoint._take` is the one place that takes a message. What to do with it say the callbacks with which the endpoint is
made; it knows no types, roles or versions. `state` has the states, and the reasons for the order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio import _get_running_loop, get_running_loop  # pyright: ignore[reportPrivateUsage]
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar, copy_context
from time import perf_counter
from typing import Any, Final, TypeAlias

from ..errors import InternalError, InvalidRequestError, RequestError
from ._base import Cancellation
from ._decode import excerpt
from .answers import Answers
from .dispatch import ConnectionClosed, PeerKind
from .log import PROGRAM_ENDS, log_mistake, logger
from .message import Budget, Held, Message, MessageTooLarge, Unreadable, Unsendable
from .options import ConnectionOptions
from .pending import Listener, Pending
from .state import READING, Handshake, Lifecycle, Reading, State, Step
from .tasks import Tasks, check_loop, check_outcome, is_running, running_loop
from .transport import Transport, current_peer_kind, peer_kind_of

_TASK_BYTES: Final = 2**13
"""The memory of a request in flight beside its message."""

Rest: TypeAlias = "Awaitable[None] | None"
"""What is left to await of something that is done but for a slow peer; None if nothing is."""


class Sent:
    """The result of a request which its callback has sent itself; `rest` is what is left to await."""

    __slots__ = ("rest",)

    def __init__(self, rest: Rest) -> None:
        self.rest = rest


class _Notification:
    """A notification whose handler runs; None afterwards."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message: Message | None = message


# what each message asks for: to get a member of an enumeration from its class takes long
_OPEN, _AWAITED, _DONE = State.OPEN, Step.AWAITED, Step.DONE
_NOTIFICATION, _HANDLED = READING["notification"], READING["handled"]

_notification: ContextVar[_Notification | None] = ContextVar("_notification", default=None)
"""The one in whose handler the code runs; tasks that the handler starts inherit it."""


class Endpoint:
    """One end of a connection: callbacks in, `send` out.

    `on_request` gets the method and the params of a request, in a task of its own, and returns the result. It raises
    `RequestError` for an error of its own; what else it raises is logged, and the peer gets no details. Requests whose
    method is in `routes` go there instead, as the message; such a callback may send the result itself, and return
    `Sent`. `on_notification` is awaited before the next message is taken, but for `hand_over_reading`. `serve` changes
    these.

    `intercept` gets each request and notification in place of these callbacks, and returns what is left to await. It
    may leave one to them, by `accept_request` or `accept_notification`. With it, messages are strictly taken in order.

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
        self.handshake = Handshake()
        self._transport = transport
        self._send = transport.send
        self._ready: Callable[[], Message | Unreadable | None] | None = getattr(transport, "ready", None)
        self._flush: Callable[[], object] | None = getattr(transport, "flush", None)
        self._is_intercepted = intercept is not None
        self._take_request = intercept or self.accept_request
        self._take_notification = intercept or self.accept_notification
        self._before_send = before_send
        self._explain = explain
        self._on_arrived_end = on_arrived_end
        self._on_end = on_end
        self._closing = closing
        self.serve(on_request, on_notification)

        self._life = Lifecycle(self._reject_pending)
        self._tasks = Tasks(options.cleanup_seconds)
        self._closed: asyncio.Task[None] | None = None
        self._answers = Answers(self.send, options, self._life, explain=explain, on_refused=on_refused)
        self._pending = Pending()  # requests of this side
        # the reading
        self.reading: Reading = "taking"
        self._reader: asyncio.Task[None] | None = None  # runs the read loop
        self._received: list[Message | Unreadable] = []  # at most one: was read, and is not taken yet
        self._idle: asyncio.Future[None] | None = None  # the read loop waits for it while nothing has arrived
        self._handled: _Notification | None = None  # its handler runs in the read loop
        self._context = copy_context()  # that of the read loop while it waits
        self._is_attached = self._at_end = False
        self._must_yield = False  # other tasks have to run before the next message is taken
        # requests of the peer
        self._in_flight: dict[asyncio.Task[None], Message] = {}  # and notifications that have handed the reading over
        self._requests: dict[object, asyncio.Task[None]] = {}  # by id
        self._starting: set[Message] = set()  # those whose handlers have not begun, but will
        self._cancelled: set[object] = set()  # ids
        self._deferred: set[object] = set()  # ids of those that `answer` answers
        self._unanswered = 0  # of these, those whose responses are not sent
        budget: Budget = getattr(transport, "budget", None) or Budget()
        self._held = Held(budget, overhead=_TASK_BYTES)

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
        self._on_request = on_request
        self._on_notification = on_notification
        self._routes = routes or {}
        self.cancellation = cancellation
        self.null_ids = null_ids

    # --- Start and end -------------------------------------------------------------------------------------------

    @property
    def reason(self) -> ConnectionClosed | None:
        """Why nothing more is read; None while it is."""
        return self._life.reason

    @property
    def is_open(self) -> bool:
        """True as long as messages are read."""
        return self._life.is_open

    def start(self) -> None:
        """Start to read messages."""
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

    async def wait_ended(self) -> None:
        """Wait until nothing more is read."""
        await self._life.wait_until_left(State.OPEN)

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
        if self._life.state is not State.CLOSED:
            self.check_loop()
        self.stop()
        if self._closed is None:
            await self._transport.close()
        await self.wait_closed()

    def end_reading(self, reason: ConnectionClosed) -> None:
        """Read no more; what is in flight may still be answered."""
        self._life.handle("read end", reason)
        self._finish_if_idle()

    def _finish_if_idle(self) -> None:
        if not (self._life.is_open or self._in_flight or self._unanswered):
            self._life.handle("finished")

    async def _close_at_end(self) -> None:
        life = self._life
        try:
            await life.wait_until_left(State.OPEN)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(life.wait_until_left(State.DRAINING), self.options.finish_seconds)
        finally:  # also if the event loop is shut down, which cancels all tasks
            life.handle("stop")
            await self._clean_up(life.reason or ConnectionClosed("this side has closed the connection"))

    async def _clean_up(self, reason: ConnectionClosed) -> None:
        tasks = self._tasks
        try:
            await asyncio.sleep(0)  # pending requests raise the reason before their tasks are cancelled
            await tasks.end(self._in_flight, self._name)
            for step in self._closing(reason):
                await tasks.run_step("connection_closed", step)
        finally:
            await tasks.run_step("closing the transport", self._transport.close())
            self._life.handle("cleaned up")

    def _reject_pending(self, reason: ConnectionClosed) -> None:
        self._pending.reject_all(reason)
        if self._on_end is not None:
            self._on_end(reason)
        self._pending.lose_all(reason)

    def _name(self, task: asyncio.Task[None]) -> str:
        """What a task is for, in the log."""
        message = self._in_flight.get(task)
        return "a task of the connection" if message is None else f"the handler of {excerpt(message.method)}"

    def start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task that ends with the connection."""
        self._tasks.start(coroutine)

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that runs. Raises `RuntimeError` if it is not that of the connection."""
        return check_loop(self.loop)

    # --- What this side sends ------------------------------------------------------------------------------------

    def send(self, message: Message) -> Rest:
        """Send a message; returns what is left to await, or None. A failure to write closes the connection.

        Raises `ConnectionClosed`, `MessageTooLarge`, and `TypeError` for values that are no JSON, or do not fit their
        type.
        """
        if self._life.reason is not None and self._life.is_closing:
            raise self._life.reason.again()
        if self._before_send is not None:
            message = self._before_send(message)
        try:
            rest = self._send(message)
        except MessageTooLarge:
            raise
        except Unsendable as error:
            explained, cause = self._explained(message, error), error.__cause__
            raise explained from (None if explained is cause else cause)
        except BaseException as error:
            if (failure := self._failed(error)) is error:
                raise
            raise failure from error
        return None if rest is None else self._finish(rest)

    async def _finish(self, rest: Awaitable[None]) -> None:
        try:
            await rest
        except (ConnectionClosed, asyncio.CancelledError, GeneratorExit, *PROGRAM_ENDS) as error:
            self._failed(error)
            raise
        except BaseException as error:
            raise self._failed(error) from error

    def _failed(self, error: BaseException) -> BaseException:
        """Close the connection after a failure to write; returns what to raise."""
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, *PROGRAM_ENDS)):
            return error
        failure = error if isinstance(error, ConnectionClosed) else ConnectionClosed(f"cannot write: {error}")
        if not isinstance(error, OSError):
            logger.error("the transport failed", exc_info=error)
        self.stop(failure)
        return failure

    def _explained(self, message: Message, error: Unsendable) -> Exception:
        cause = error.__cause__
        if isinstance(cause, (TypeError, ValueError, RecursionError)):
            return self._explain(message, cause)
        return cause if isinstance(cause, Exception) else RuntimeError("dumps failed")

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
        self.hand_over_reading()
        future = loop.create_future()
        request_id, start = self._pending.add(future, listener), perf_counter()
        try:
            if (rest := self.send(Message("request", params, method, request_id))) is not None:
                await rest
            result = await future
        except asyncio.CancelledError:
            if life.is_open and (future.cancelled() or not future.done()):
                self._pending.ignore(request_id)
                self._cancel_at_peer(request_id)
            raise
        finally:
            self._pending.remove(request_id)
            if future.done() and not future.cancelled():
                future.exception()  # marks it as retrieved: a failure to write may have come first
            logger.debug("%s, request %d, took %.1f ms", method, request_id, (perf_counter() - start) * 1000)
        return result

    def _cancel_at_peer(self, request_id: int) -> None:
        if (how := self.cancellation) is not None:
            self._tasks.start(self._send_all(Message("notification", {how.key: request_id}, how.method)))

    async def _send_all(self, message: Message) -> None:
        if (rest := self.send(message)) is not None:
            await rest

    def reserve_id(self, listener: Listener) -> int:
        """The id of a request that the caller sends itself; `listener` gets its response."""
        return self._pending.add(None, listener)

    def lose(self, request_id: int, reason: ConnectionClosed) -> None:
        """Tell the listener of such a request that no response will come."""
        self._pending.lose(request_id, reason)

    # --- The read loop -------------------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        self._reader = self._tasks.start(self._read_loop())

    def hand_over_reading(self) -> None:
        """Let another task run the read loop, if this one runs it and handles a notification.

        For example, a client asks its agent for a file whenever the agent says that the file has changed:

            agent → client   notification _changed        the loop, in task 1, calls its handler
            client → agent   request _read, id 0          sent by the handler, which waits for the response
            agent → client   result of id 0               in the loop: if task 1 had it still, nobody would read this

        So before the request is sent, task 2 gets the loop. Task 1 is the handler's alone from then on, and ends with
        it. What comes next, such as a request, is handled at once, although that handler has not returned.
        """
        handled = self._handled
        if handled is None or _notification.get() is not handled:
            return
        message, task = handled.message, self._reader
        assert message is not None and task is not None
        if limit := self._exceeded(message):
            raise RuntimeError(f"the handler of a notification cannot send a request: {limit}")
        self.reading, self._handled = READING["handed over"][self.reading], None
        self._in_flight[task] = message
        self._held.add(message)
        task.add_done_callback(self._remove)
        self._start_reading()

    async def _read_loop(self) -> None:
        me, life, received, ready = asyncio.current_task(), self._life, self._received, self._ready
        try:
            while self._reader is me and life.state is _OPEN:  # until a handler has handed the reading over
                message = received.pop() if received else (ready and ready()) or await self._read()
                if message is None:
                    continue
                if (self._must_yield or self._starting) and self._has_to_wait(message):
                    received.append(message)
                    message = None
                    await asyncio.sleep(0)
                    continue
                rest = self._take(message)
                message = None  # frees memory while this waits
                if rest is not None:
                    try:  # noqa: SIM105 - `suppress` takes longer, and each notification comes here
                        await rest
                    except ConnectionClosed:
                        pass
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # if all tasks are cancelled, as at the end of the program, the clean-up starts now
            if life.is_closing or self._reader is not me:
                raise
            logger.warning("the handler of a notification has cancelled the read loop")
            self._start_reading()
        except Exception as error:
            self.end_reading(ConnectionClosed(f"cannot read: {error}"))
            raise

    async def _read(self) -> Message | Unreadable | None:
        """Wait for the next message; None if it is in `_received`, or there is none."""
        try:
            if self._is_attached and not self._at_end:
                self._context = copy_context()
                self._idle = get_running_loop().create_future()
                self.reading = READING["nothing left"][self.reading]
                await self._idle
                return None
            message = await self._transport.read()
            if message is None:
                self.end_reading(ConnectionClosed("the peer has closed the connection"))
            return message
        except ConnectionClosed as reason:
            self.end_reading(reason)
        except (asyncio.CancelledError, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not is_running(self._reader):
                raise
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            self.end_reading(ConnectionClosed(f"cannot read: {error}"))
        finally:
            self._idle = None
            if self.reading == "idle":  # it was cancelled
                self.reading = READING["woken"]["idle"]
        return None

    def _arrived(self, is_end: bool) -> None:
        """Take what has arrived while the read loop is idle; what cannot be taken here wakes it."""
        self._at_end = self._at_end or is_end
        if self.reading == "idle" and self._idle is not None and not self._idle.done() and self._life.is_open:
            self._context.run(self._take_arrived)  # its tasks inherit that of the loop
            if self._received or self._at_end:
                self.reading = READING["woken"][self.reading]
                self._idle.set_result(None)
        if is_end and self._on_arrived_end is not None:
            self._on_arrived_end()

    def _take_arrived(self) -> None:
        while not self._received and self._ready is not None and (message := self._ready()) is not None:
            if self._may_be_taken_now(message):
                self._take(message)
            else:
                self._received.append(message)

    def _may_be_taken_now(self, message: Message | Unreadable) -> bool:
        """True if nothing comes before a message, and nothing has to wait for it: it starts a task, or resolves one."""
        if isinstance(message, Unreadable) or self._is_intercepted or self._has_to_wait(message):
            return False
        return message.kind != "notification" and (message.kind != "request" or self.refusal(message) is None)

    def _has_to_wait(self, message: Message | Unreadable) -> bool:
        """True if other tasks have to run before a message is taken.

        Requests start together, for their handlers begin in order. A request waits only if those before it may decide
        whether it is refused: the handshake, or what ends at once. For example, from a client that waits for nothing:

            request session/prompt, id 1             a task starts
            request session/prompt, id 2             another task starts, before the first one has begun
            notification $/cancel_request, id 1      waits until both have begun: there is something to cancel
        """
        if self._must_yield or not self._starting:
            return self._must_yield
        if self._is_intercepted or isinstance(message, Unreadable) or message.kind != "request":
            return True
        return self.handshake.step is not _DONE or self.refusal(message) is not None

    def _yield_to_tasks(self) -> None:
        """Let tasks that are ready run before the next message is taken: what waited for a response goes on first.

        For example, a client that asks for a session and shows what happens in it:

            client → agent   request session/new, id 0
            agent → client   result of id 0: session s       resolves the future for which the client waits
            agent → client   notification about session s    taken after the client has learned of s

        While the loop waits for the transport, tasks run anyway.
        """
        self._must_yield = True
        get_running_loop().call_soon(self._has_yielded)

    def _has_yielded(self) -> None:
        self._must_yield = False

    # --- Messages of the peer ------------------------------------------------------------------------------------

    def _take(self, message: Message | Unreadable) -> Rest:
        """Take a message; returns what the read loop has to await before the next one."""
        if not isinstance(message, Message):
            return self._take_unreadable(message)
        match message.kind:
            case "notification":
                return self._take_notification(message)
            case "request":
                return self._take_request(message)
            case "result" | "error":
                return self._take_response(message)

    def accept_request(self, message: Message) -> Rest:
        """Start a task for a request, or refuse it."""
        if (error := self.refusal(message)) is not None:
            return self.refuse(error, message)
        self._answers.unaddressed = 0
        if message.method == self.handshake.method:
            self.handshake.begins(message.method)
        self._starting.add(message)
        key = object() if message.id is None else message.id
        task = self._requests[key] = asyncio.Task(self._respond(key, message))  # an eager factory would run it at once
        self._in_flight[task] = message
        self._held.add(message)
        task.add_done_callback(self._ended)
        return None

    def _take_response(self, message: Message) -> Rest:
        is_waiting, rest = self._pending.resolve(message)
        if is_waiting:
            self._answers.unaddressed = 0
            self._yield_to_tasks()
        return rest

    def _take_unreadable(self, found: Unreadable) -> Rest:
        """Reject the pending request that an unreadable response is for; respond to other messages with the error."""
        is_found, is_waiting, rest = self._pending.reject(found)
        if is_waiting:
            self._yield_to_tasks()
        if is_found:
            return rest
        if found.kind != "response":
            return self._answers.refuse(found.error, found.id if found.kind == "request" else None, start=found.start)
        if found.start:  # it was not parsed, so its id may be wrong, and a request pending
            return self._answers.refuse(InvalidRequestError(*found.error.args), start=found.start)
        log_mistake("no request is pending for a response: its id is %s: %s", excerpt(found.id), found.error)
        return None

    # --- Requests that are refused -------------------------------------------------------------------------------

    def refusal(self, message: Message) -> RequestError | None:
        """The error for a request that cannot be started; None if it can."""
        if message.id is None and not self.null_ids:
            return InvalidRequestError("`id` must be a string or an integer")
        if message.id in self._requests or (self._deferred and self.is_taken(message)):
            return InvalidRequestError("a request with this id is running")
        is_full = len(self._in_flight) >= self.options.max_requests
        is_quick = not is_full and self._held.fits(message, self.options.max_in_flight_bytes)
        if not is_quick and (limit := self._exceeded(message)):
            return InternalError(limit)
        return None if self.handshake.step is _DONE else self.handshake.refusal(message.method)

    def _exceeded(self, message: Message) -> str:
        """The limit that one more message would exceed; empty if none."""
        options, held = self.options, self._held
        if len(self._in_flight) >= options.max_requests:
            return f"too many at the same time; the limit is {options.max_requests} requests (max_requests)"
        if held.exceeds(options.max_in_flight_bytes, message):
            return (
                f"{message.weight} bytes of memory beside {held.bytes} of others; "
                f"the limit is {options.max_in_flight_bytes} bytes (max_in_flight_bytes)"
            )
        return held.budget.text if held.exceeds_budget(message) else ""

    def refuse(self, error: RequestError, message: Message) -> Rest:
        """Respond to a request with an error, but not if the peer would take that for the response to another one."""
        return self._answers.refuse(error, None if self.is_taken(message) else message.id)

    def is_taken(self, message: Message) -> bool:
        """True if another request with this id has no response yet."""
        return message.id in self._requests or message.id in self._deferred

    # --- Requests in flight --------------------------------------------------------------------------------------

    async def _respond(self, key: object, message: Message) -> None:
        """Run the callback for a request, and send what it returns or raises."""
        self._starting.discard(message)
        task, start, succeeded, life, method = self._requests[key], perf_counter(), False, self._life, message.method
        try:
            if life.reason is not None and life.is_closing:  # a request that arrived with this one has stopped it
                raise life.reason.again()
            route = self._routes.get(method)
            result = await (self._on_request(method, message.value) if route is None else route(message))
            sent = result.__class__ is Sent
            rest = result.rest if sent else self.send(Message("result", result, method, message.id))
            succeeded = True
        except BaseException as error:
            rest = self._answers.fail(message, error, task=task, is_cancelled=message.id in self._cancelled)
        finally:
            if method == self.handshake.method:
                self.handshake.ends(method, succeeded=succeeded)
            del self._requests[key]
            if self._cancelled:
                self._cancelled.discard(key)
        if logger.isEnabledFor(logging.DEBUG):
            took = (perf_counter() - start) * 1000
            logger.debug("%s, request %s of the peer, took %.1f ms", excerpt(method), excerpt(message.id), took)
        if rest is not None and self._held.bytes > self.options.max_in_flight_bytes // 2:
            self._held.measure()  # what is freed now counts as much until the response is sent: that takes memory, too
        message.value = None  # frees memory while the peer reads
        if rest is not None:
            await rest
        del self._in_flight[task]  # not only when it is done: until then it counts, and the next one may be refused
        self._held.remove(message)
        if life.reason is not None:
            self._finish_if_idle()
        if not self._requests and self._flush is not None:
            self._flush()  # nothing more is about to be written in this turn of the event loop

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task in self._in_flight:
            self._remove(task)
        if task.cancelled() or task.exception() is not None:
            check_outcome(task)

    def _remove(self, task: asyncio.Task[None]) -> None:
        if (message := self._in_flight.pop(task, None)) is None:
            return
        self._starting.discard(message)  # if its task was cancelled before it began
        self._held.remove(message)
        if self._life.reason is not None:
            self._finish_if_idle()

    def cancel(self, params: Any, key: str) -> None:
        """Cancel the request whose id is the property `key` of `params`, if it is running; once only."""
        found: Any = params
        request_id = found.get(key) if isinstance(params, dict) else None
        if type(request_id) in (int, str) and request_id in self._requests and request_id not in self._cancelled:
            self._cancelled.add(request_id)
            self._requests[request_id].cancel()

    def defer(self, key: object) -> None:
        """Note that the request with the id `key`, which was intercepted, is answered later, by `answer`."""
        self._deferred.add(key)
        self._unanswered += 1
        self._answers.unaddressed = 0

    def answer(self, key: object, message: Message) -> Rest:
        """Send the response to a request that was deferred; returns what is left to await."""
        self._deferred.discard(key)
        rest: Rest = None
        with contextlib.suppress(ConnectionClosed):
            rest = self.send(message)
        if rest is not None:
            return self._answer(rest)
        self._answered()
        return None

    async def _answer(self, rest: Awaitable[None]) -> None:
        try:
            await rest
        finally:
            self._answered()  # not before: until then, the end of the connection waits for it

    def _answered(self) -> None:
        self._unanswered -= 1
        self._finish_if_idle()

    # --- Notifications -------------------------------------------------------------------------------------------

    async def accept_notification(self, message: Message) -> None:
        """Await the callback for a notification, unless the handshake comes first."""
        self._answers.unaddressed = 0
        method, task = message.method, self._reader
        if (how := self.cancellation) is not None and method == how.method:
            self.cancel(message.value, how.key)
        if self.handshake.step is _AWAITED:
            logger.debug("the notification %.200r is ignored: it came before %s", method, self.handshake.method)
            return
        self._handled = handled = _Notification(message)
        self.reading = _NOTIFICATION[self.reading]
        _notification.set(handled)  # never reset: without the reading it has no effect
        try:
            await self._on_notification(method, message.value)
        except BaseException as error:
            self._answers.fail_notification(message, error, task=task)
        finally:
            if self._handled is handled:
                self._handled = None
                self.reading = _HANDLED[self.reading]
            handled.message = None
