"""The read loop, which takes the messages of the peer one after the other, and the requests that wait for responses.

`ReadLoop.take` is the one place that takes a message. `state` says why messages are taken in this order.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from typing import Final, TypeAlias

from ..errors import InternalError, InvalidRequestError, RequestError
from ._decode import excerpt
from .dispatch import ConnectionClosed
from .in_flight import InFlight, Rest
from .log import PROGRAM_ENDS, log_mistake, logger
from .message import Message, Unreadable
from .state import Lifecycle, Reading
from .tasks import Tasks, is_running
from .transport import Transport

current_handling: Final[ContextVar[object]] = ContextVar("current_handling", default=None)
"""The mark of the notification in whose handler the code runs; tasks that the handler starts inherit it."""
answered_anyway: Final[ContextVar[Callable[[str], bool]]] = ContextVar("answered_anyway", default=lambda _: False)
"""Tells whether the peer has to answer a request of this method, though nobody waits for that any more.

Such a request is not cancelled on the wire: the peer has asked for the end itself, and some warn of a cancellation that
they need not get. Tasks inherit it.
"""


class ReadLoop:
    """Reads from a transport, and takes each message; awaits what is left of that before it takes the next one.

    `on_end` is called when nothing more is read, with the reason, and `on_arrived_end` when the transport has all that
    the peer sends. With `is_intercepted`, messages are strictly taken in order.
    """

    def __init__(
        self,
        transport: Transport,
        life: Lifecycle,
        tasks: Tasks,
        in_flight: InFlight,
        *,
        take_request: Callable[[Message], Rest],
        take_notification: Callable[[Message], Rest],
        on_end: Callable[[ConnectionClosed], None],
        on_arrived_end: Callable[[], None] | None,
        is_intercepted: bool,
    ) -> None:
        self.reading = Reading()
        self.pending = Pending()
        self._transport = transport
        self._ready: Callable[[], Message | Unreadable | None] | None = getattr(transport, "ready", None)
        self._life = life
        self._tasks = tasks
        self._in_flight = in_flight
        self._take_request = take_request
        self._take_notification = take_notification
        self._on_end = on_end
        self._on_arrived_end = on_arrived_end
        self._is_intercepted = is_intercepted
        self._received: list[Message | Unreadable] = []  # at most one: was read, and is not taken yet
        self._rest: Rest = None  # of what was taken while the loop was idle
        self._base = self._context = copy_context()  # of each task of the loop at its start, and of an idle one
        self._is_attached = self._at_end = False
        self._must_yield = False  # other tasks have to run before the next message is taken

    def start(self) -> None:
        """Start to read messages."""
        self._base = copy_context()
        self._start()

    def attach(self) -> None:
        """Let the transport tell when something arrives, if it can."""
        if (attach := getattr(self._transport, "attach", None)) is not None:
            attach(self._arrived)
            self._is_attached = True

    def _start(self) -> None:
        self.reading.task = self._base.run(self._tasks.start, self._run())

    def hand_over(self) -> None:
        """Let another task run the read loop, if this one runs it and handles a notification.

        For example, a client asks its agent for a file whenever the agent says that the file has changed:

            agent → client   notification _changed        the loop, in task 1, calls its handler
            client → agent   request _read, id 0          sent by the handler, which waits for the response
            agent → client   result of id 0               in the loop: if task 1 had it still, nobody would read this

        So once the request is sent, task 2 gets the loop. Task 1 is the handler's alone from then on, and ends with
        it. What comes next, such as a request, is handled at once, although that handler has not returned.
        """
        if (handled := self.handing_over()) is not None:
            self.leave_to(handled)

    def handing_over(self) -> Message | None:
        """The notification whose handler runs this, in the loop. Raises `RuntimeError` if too much is in flight."""
        message = self.reading.message
        if message is None or current_handling.get() is not self.reading.handling:
            return None
        if limit := self._in_flight.exceeded(message):
            raise RuntimeError(f"the handler of a notification cannot send a request: {limit}")
        return message

    def leave_to(self, message: Message) -> None:
        """Leave the task to the handler of a notification, which `handing_over` has returned."""
        task = self.reading.task
        assert task is not None
        self.reading.hand_over()
        self._in_flight.adopt(task, message)
        self._start()

    async def _run(self) -> None:
        me, life, reading = asyncio.current_task(), self._life, self.reading
        received, ready, starting = self._received, self._ready, self._in_flight.starting
        try:
            while reading.task is me and life.state == "open":  # until a handler has handed the reading over
                message = received.pop() if received else (ready and ready()) or await self._read()
                if message is None:
                    rest, self._rest = self._rest, None
                elif (self._must_yield or starting) and self._has_to_wait(message):
                    received.append(message)
                    rest = asyncio.sleep(0)
                else:
                    rest = self.take(message)
                message = None  # frees memory while this waits
                if rest is not None:
                    try:  # `suppress` takes longer, and each notification comes here
                        await rest
                    except ConnectionClosed:
                        pass
        except asyncio.CancelledError:
            with contextlib.suppress(asyncio.CancelledError):  # once more
                await asyncio.sleep(0)  # if all are cancelled, as at the end of the program, the clean-up starts now
            if life.is_closing or reading.task is not me:
                raise
            logger.warning("the handler of a notification has cancelled the read loop")
            self._start()
        except Exception as error:
            self._on_end(ConnectionClosed(f"cannot read: {error}"))
            raise

    async def _read(self) -> Message | Unreadable | None:
        """Wait for the next message; None if it is in `_received`, or there is none."""
        try:
            if self._is_attached and not self._at_end:
                self._context = copy_context()
                await self.reading.wait()
                return None
            message = await self._transport.read()
            if message is None:
                self._on_end(ConnectionClosed("the peer has closed the connection"))
            return message
        except ConnectionClosed as reason:
            self._on_end(reason)
        except (asyncio.CancelledError, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not is_running(self.reading.task):
                raise
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            self._on_end(ConnectionClosed(f"cannot read: {error}"))
        return None

    def _arrived(self, is_end: bool) -> None:
        """Take what has arrived while the read loop is idle; what cannot be taken here wakes it."""
        self._at_end = self._at_end or is_end
        if self.reading.is_idle and self._life.is_open:
            self._context.run(self._take_arrived)  # its tasks inherit that of the loop
            if self._received or self._rest is not None or self._at_end:
                self.reading.wake()
        if is_end and self._on_arrived_end is not None:
            self._on_arrived_end()

    def _take_arrived(self) -> None:
        while not self._received and self._rest is None and self._ready and (message := self._ready()) is not None:
            if self._may_be_taken_now(message):
                self._rest = self.take(message)
            else:
                self._received.append(message)

    def _may_be_taken_now(self, message: Message | Unreadable) -> bool:
        """True if nothing comes before a message, and nothing has to wait for it: it starts a task, or resolves one."""
        if isinstance(message, Unreadable) or self._is_intercepted or self._has_to_wait(message):
            return False
        if message.kind == "request":
            return self._in_flight.refusal(message) is None
        return message.kind != "notification"

    def _has_to_wait(self, message: Message | Unreadable) -> bool:
        """True if other tasks have to run before a message is taken.

        Requests start together, for their handlers begin in order. A request waits only if those before it may decide
        whether it is refused: the handshake, or what ends at once. For example, from a client that waits for nothing:

            request session/prompt, id 1             a task starts
            request session/prompt, id 2             another task starts, before the first one has begun
            notification $/cancel_request, id 1      waits until both have begun: there is something to cancel
        """
        if self._must_yield or not self._in_flight.starting:
            return self._must_yield
        if self._is_intercepted or isinstance(message, Unreadable) or message.kind != "request":
            return True
        return self._in_flight.handshake.step != "done" or self._in_flight.refusal(message) is not None

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

    # --- A message -----------------------------------------------------------------------------------------------

    def take(self, message: Message | Unreadable) -> Rest:
        """Take a message; returns what has to be awaited before the next one."""
        if not isinstance(message, Message):
            return self._take_unreadable(message)
        match message.kind:
            case "notification":
                return self._take_notification(message)
            case "request":
                return self._take_request(message)
            case "result" | "error":
                return self._take_response(message)

    def _take_response(self, message: Message) -> Rest:
        is_waiting, rest = self.pending.resolve(message)
        if is_waiting:
            self._in_flight.unaddressed = 0
            self._yield_to_tasks()
        return rest

    def _take_unreadable(self, found: Unreadable) -> Rest:
        """Reject the pending request that an unreadable response is for; respond to other messages with the error."""
        report = self._in_flight.report
        if (rejected := self.pending.reject(found)) is not None:
            is_waiting, rest = rejected
            if is_waiting:
                self._yield_to_tasks()
            return rest
        if found.kind != "response":
            return report(found.error, found.id if found.kind == "request" else None, start=found.start)
        if found.start:  # it was not parsed, so its id may be wrong, and a request pending
            return report(InvalidRequestError(*found.error.args), start=found.start)
        log_mistake("no request is pending for a response: its id is %s: %s", excerpt(found.id), found.error)
        return None


# --- The requests of this side ---------------------------------------------------------------------------------------

Response: TypeAlias = "Message | RequestError | ConnectionClosed"
"""What answers a request of this side: its response, the error of one that cannot be read, or why none will come."""
Listener: TypeAlias = "Callable[[Response], Awaitable[None] | None]"
"""The read loop calls it with what answers a request, and awaits what it returns before it takes the next message."""


class Pending:
    """For each request, by its id, the future that its response resolves, a listener that gets it first, or both."""

    def __init__(self) -> None:
        self._next_id = 0
        self._futures: dict[int, asyncio.Future[object]] = {}
        self._listeners: dict[int, Listener] = {}

    def add(self, future: asyncio.Future[object] | None, listener: Listener | None = None) -> int:
        """The id of a new request."""
        request_id = self._next_id
        self._next_id += 1
        if future is not None:
            self._futures[request_id] = future
        if listener is not None:
            self._listeners[request_id] = listener
        return request_id

    def remove(self, request_id: int) -> None:
        """Wait no longer: a response that comes now is late."""
        self._futures.pop(request_id, None)
        self._listeners.pop(request_id, None)

    def ignore(self, request_id: int) -> None:
        """Tell the listener of a request nothing, as this side has given it up."""
        self._listeners.pop(request_id, None)

    def resolve(self, response: Message) -> tuple[bool, Rest]:
        """Resolve the request that a response is for. True if something waits for it; and what is left to await."""
        request_id = response.id
        future = self._futures.get(request_id) if type(request_id) is int else None
        listener = self._listeners.pop(request_id, None) if type(request_id) is int else None
        is_waiting = future is not None and not future.done()
        if future is not None and is_waiting:
            if response.kind == "result":
                future.set_result(response.value)
            else:
                _reject(future, RequestError.from_json(response.value))
        elif future is not None or listener is None:
            self._log_late(response)
        return is_waiting, None if listener is None else listener(response)

    def _log_late(self, response: Message) -> None:
        if type(response.id) is int and 0 <= response.id < self._next_id:
            logger.debug("a response came too late: its id is %d", response.id)
        else:
            text = "no request is pending for a response: its id is %s, it has: %s"
            log_mistake(text, excerpt(response.id), response.kind)

    def reject(self, found: Unreadable) -> tuple[bool, Rest] | None:
        """Reject the request that an unreadable response is for; None if there is none, else what `resolve` returns."""
        request_id = found.id
        if found.kind == "request" or type(request_id) is not int:
            return None
        future, listener = self._futures.get(request_id), self._listeners.pop(request_id, None)
        if listener is None if future is None else future.done():
            return None
        error = _unusable(found)
        if future is not None:
            _reject(future, error)
        return future is not None, None if listener is None else listener(error)

    def reject_all(self, reason: ConnectionClosed) -> None:
        """Reject what waits: no response will come."""
        for future in self._futures.values():
            if not future.done():
                future.set_exception(reason.again())

    def lose_all(self, reason: ConnectionClosed) -> None:
        """Tell all listeners that no response will come."""
        for request_id in [*self._listeners]:
            self.lose(request_id, reason)

    def lose(self, request_id: int, reason: ConnectionClosed) -> None:
        """Tell the listener of a request that no response will come. It has nothing to await: the read loop may end."""
        self._listeners.pop(request_id)(reason)


def _reject(future: asyncio.Future[object], error: RequestError) -> None:
    """Reject a pending request with an error of the peer."""
    error.is_from_peer = True
    future.set_exception(error)


def _unusable(found: Unreadable) -> RequestError:
    """The error of a request whose response cannot be read; logs it."""
    malformed = InternalError("the peer sent a malformed response", data=found.value)
    error = found.error if found.kind == "response" else malformed
    log_mistake("the response to request %s cannot be used: %s", found.id, error)
    return error
