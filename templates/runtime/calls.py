"""The state of a connection, its tasks, its output, and the requests of the peer in flight."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias

from ._decode import excerpt
from .dispatch import ConnectionClosed, UnfitParams, dispatch_request
from .errors import ERROR_CLASSES, InternalError, InvalidRequestError, RequestError
from .handshake import LocalSide
from .message import Message, MessageTooLarge, Unsendable
from .options import (
    PROGRAM_ENDS,
    Budget,
    ConnectionOptions,
    Held,
    call_hook,
    log_failure,
    log_handler_failure,
    log_program_end,
    logger,
)
from .transport import Transport

_TASK_BYTES: Final = 2**13
"""The memory of a request in flight beside its message."""
_CANCELLED: Final = -32800
"""The code of a request that was cancelled; not each release of the protocol has it."""

# --- State -----------------------------------------------------------------------------------------------------------


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


class Life:
    """The state of a connection, and the reason for its end: that of the first event which ends it."""

    def __init__(self, on_end: Callable[[ConnectionClosed], None]) -> None:
        self.state = State.OPEN
        self.reason: ConnectionClosed | None = None
        self.passed = 0
        """The number of requests of the peer that were passed on, and are answered by another connection."""
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

    def on(self, event: Event, reason: ConnectionClosed | None = None) -> None:
        """Change the state as an event says."""
        following = TRANSITIONS.get((self.state, event))
        if following is None or (event == "finished" and self.passed):
            return
        was_open, self.state = self.is_open, following
        if was_open:
            self.reason = reason or ConnectionClosed("this side has closed the connection")
            self._left[State.OPEN].set()
            self._on_end(self.reason)
        if self.is_closing:
            self._left[State.DRAINING].set()

    async def leaves(self, state: Literal[State.OPEN, State.DRAINING]) -> None:
        """Wait until the connection has left `state`."""
        await self._left[state].wait()


# --- Tasks -----------------------------------------------------------------------------------------------------------


def is_running(task: asyncio.Task[Any] | None) -> bool:
    """True if `task` is the current one; False while its coroutine is closed before it has finished."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Tasks:
    """Tasks that end together; each has `seconds` to clean up, and is abandoned after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[asyncio.Task[None], Callable[[asyncio.Task[None]], object] | None] = {}

    def start(
        self, coroutine: Coroutine[Any, Any, None], at_end: Callable[[asyncio.Task[None]], object] | None = None
    ) -> asyncio.Task[None]:
        """Run a coroutine as a task, and then `at_end`. What it raises is logged, except `ConnectionClosed`."""
        task = asyncio.Task(coroutine)  # an eager task factory would run it at once
        self._running[task] = at_end
        task.add_done_callback(self._done)
        return task

    def at_end(self, task: asyncio.Task[None], call: Callable[[asyncio.Task[None]], object]) -> None:
        """Call `call` when a task that was started here ends."""
        self._running[task] = call

    def _done(self, task: asyncio.Task[None]) -> None:
        if (at_end := self._running.pop(task)) is not None:
            at_end(task)
        error = None if task.cancelled() else task.exception()
        # asyncio itself raises an interrupt (Ctrl-C on Python 3.10)
        if error is not None and not isinstance(error, (ConnectionClosed, *PROGRAM_ENDS)):
            log_failure("a task of the connection", error)

    async def end(self, name: Callable[[asyncio.Task[None]], str]) -> None:
        """Cancel all tasks, and wait for them. `name` says what one is for, in the log."""
        for task in self._running:
            task.cancel()
        if self._running:
            _, left = await asyncio.wait([*self._running], timeout=self._seconds)
            for task in left:
                from .on_demand.mistakes import waits_at

                text = "%s ignores that it was cancelled: it did not finish during clean-up and was abandoned%s"
                logger.warning(text, name(task), waits_at(task))

    async def run_step(self, what: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a step of the clean-up; a step that fails or hangs does not prevent the next one."""
        step = asyncio.create_task(coroutine)
        try:
            for _ in range(2):
                await asyncio.wait({step}, timeout=self._seconds)
                if step.done():
                    break
                step.cancel()
        finally:
            step.cancel()
        if not step.done():
            logger.warning("%s did not finish during clean-up and was abandoned", what)
        elif step.cancelled():
            logger.error("%s failed: it was cancelled", what)
        elif (error := step.exception()) is not None:
            log_failure(what, error)


# --- What this side sends --------------------------------------------------------------------------------------------


class Output:
    """Sends messages by a transport, and closes the connection if that fails.

    With the option `check_sent`, what has a type is decoded before it is sent.
    """

    def __init__(self, transport: Transport, options: ConnectionOptions, life: Life, side: LocalSide) -> None:
        self._send = transport.send
        self.flush: Callable[[], None] = getattr(transport, "flush", _nothing_to_flush)
        self._options = options
        self._checks = options.check_sent
        self._life = life
        self._side = side

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await, or None.

        Raises `ConnectionClosed`, `MessageTooLarge`, and `TypeError` for values that are no JSON, or do not fit their
        type.
        """
        if self._life.reason is not None and self._life.is_closing:
            raise self._life.reason.again()
        if self._checks:
            self._check(message)
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
        self._life.on("stop", failure)
        return failure

    def _check(self, message: Message) -> None:
        from .on_demand.sent import misfit_in

        if (misfit := misfit_in(message, self._side.handler, self._options.dumps)) is not None:
            raise misfit

    def _explained(self, message: Message, error: Unsendable) -> Exception:
        """The error for a value that `dumps` refuses."""
        from .on_demand.sent import unsendable

        cause = error.__cause__
        if isinstance(cause, (TypeError, ValueError, RecursionError)):
            return unsendable(message, self._side.handler, cause)
        return cause if isinstance(cause, Exception) else RuntimeError("dumps failed")


def _nothing_to_flush() -> None:
    pass


# --- Requests of the peer --------------------------------------------------------------------------------------------


class InFlight:
    """Tasks that handle messages of the peer, and may finish after the peer has closed the connection.

    `starting` has the requests whose handlers have not begun, but will.
    """

    def __init__(
        self, options: ConnectionOptions, *, life: Life, side: LocalSide, output: Output, tasks: Tasks, budget: Budget
    ) -> None:
        self._options = options
        self._life = life
        self._side = side
        self._output = output
        self._tasks = tasks
        self._held = Held(budget, overhead=_TASK_BYTES)
        self._messages: dict[asyncio.Task[None], Message] = {}
        self._requests: dict[object, asyncio.Task[None]] = {}  # by id
        self._cancelled: set[object] = set()  # ids among these
        self.starting: set[Message] = set()

    def __len__(self) -> int:
        return len(self._messages)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._requests

    def add(self, task: asyncio.Task[None], message: Message) -> None:
        """Count a task of the connection, with the message that it handles, until it ends."""
        self._messages[task] = message
        self._held.add(message)
        self._tasks.at_end(task, self._remove)

    def _remove(self, task: asyncio.Task[None]) -> None:
        if (message := self._messages.pop(task, None)) is None:
            return
        self.starting.discard(message)  # if its task was cancelled before it began
        self._held.remove(message)
        if not self._messages:
            self._life.on("finished")

    def name(self, task: asyncio.Task[None]) -> str:
        """What a task of the connection is for."""
        message = self._messages.get(task)
        return "a task of the connection" if message is None else f"the handler of {excerpt(message.method)}"

    def exceeded(self, message: Message) -> str:
        """The limit that one more message would exceed; empty if none."""
        options, held = self._options, self._held
        if len(self._messages) >= options.max_requests:
            return f"too many at the same time; the limit is {options.max_requests} requests (max_requests)"
        if held.exceeds(options.max_in_flight_bytes, message):
            return (
                f"{message.weight} bytes of memory beside {held.bytes} of others; "
                f"the limit is {options.max_in_flight_bytes} bytes (max_in_flight_bytes)"
            )
        if held.exceeds_budget(message):
            limit = f"{held.budget.limit} bytes (max_bytes_per_identity)"
            return f"too much for the connections of one client; the limit is {limit}"
        return ""

    def refusal(self, message: Message) -> RequestError | None:
        """The error for a request that cannot be started; None if it can."""
        if message.id in self._requests:
            return InvalidRequestError("a request with this id is running")
        if limit := self.exceeded(message):
            return InternalError(limit)
        return self._side.handshake.refusal(message.method)

    def start(self, message: Message) -> None:
        """Start the handler of a request."""
        self._side.handshake.begins(message.method)
        self.starting.add(message)
        key = object() if message.id is None else message.id
        task = self._requests[key] = self._tasks.start(self._respond(key, message))
        self.add(task, message)

    def cancel(self, params: Any, key: str) -> None:
        """Cancel the request whose id is the property `key` of `params`, if it is running; once only."""
        found: Any = params
        request_id = found.get(key) if isinstance(params, dict) else None
        if type(request_id) in (int, str) and request_id in self._requests and request_id not in self._cancelled:
            self._cancelled.add(request_id)
            self._requests[request_id].cancel()

    async def _respond(self, key: object, message: Message) -> None:
        self.starting.discard(message)
        task, start, succeeded = self._requests[key], perf_counter(), False
        try:
            rest, succeeded = await self._answer(task, message)
        finally:
            self._side.handshake.ends(message.method, succeeded=succeeded)
            del self._requests[key]
            self._cancelled.discard(key)
        if logger.isEnabledFor(logging.DEBUG):
            took = (perf_counter() - start) * 1000
            logger.debug("%s, request %s of the peer, took %.1f ms", excerpt(message.method), excerpt(message.id), took)
        if rest is not None and self._held.bytes > self._options.max_in_flight_bytes // 2:
            self._held.measure()  # what is freed now counts as much until the response is sent: that takes memory, too
        message.value = None  # frees memory while the peer reads
        if rest is not None:
            await rest
        self._remove(task)  # not only when it is done: until then it counts, and the next request may be refused
        if not self._requests:
            self._output.flush()  # nothing more is about to be written in this turn of the event loop

    async def _answer(self, task: asyncio.Task[None], message: Message) -> tuple[Awaitable[None] | None, bool]:
        """Call the handler, and send its result or an error; returns what is left to await, and true for a result.

        The peer gets no details of a failure.
        """
        method, life = message.method, self._life
        try:
            if life.reason is not None and life.is_closing:  # a request that arrived with this one has stopped it
                raise life.reason.again()
            self._side.choose(message)
            return await self._result(message), True
        except RequestError as error:
            if isinstance(error, UnfitParams):
                self.report_invalid(message, error)
            self._side.log_refused(method)
            return self._error(message, error), False
        except asyncio.CancelledError:
            if life.is_closing:
                raise
            if message.id not in self._cancelled:
                logger.warning("the handler of %s was cancelled, and not by the peer", excerpt(method))
            return self._error(message, ERROR_CLASSES.get(_CANCELLED, InternalError)()), False
        except PROGRAM_ENDS as error:
            log_program_end(f"the handler of {excerpt(method)}", error)
            raise
        except BaseException as error:
            if not is_running(task) or (isinstance(error, ConnectionClosed) and life.is_closing):
                raise
            log_handler_failure(excerpt(method), error, is_closed=life.reason is not None)
            return self._error(message, self._error_for(method, error)), False

    async def _result(self, message: Message) -> Awaitable[None] | None:
        """Send the result. Both sides are held to what it advertises only if it can be sent."""
        side, capabilities, succeeded = self._side, self._side.capabilities, False
        trial = capabilities.begin(message.method, message.value)
        try:
            result = await dispatch_request(side.handler, message.method, message.value, on_drop=self._options.on_drop)
            side.check_version(message.method, result)
            rest = self._output.send(Message("result", result, message.method, message.id))
            capabilities.sent(message.method, "result", result)
            succeeded = True
        finally:
            if trial is not None:
                capabilities.end(trial, keep=succeeded)
        return rest

    def _error(self, message: Message, error: RequestError) -> Awaitable[None] | None:
        try:
            raw = error.to_json()
            if not isinstance(raw["message"], str) or not isinstance(raw["code"], int) or isinstance(raw["code"], bool):
                from .on_demand.sent import unsendable_error

                raise unsendable_error(message, self._side.handler, error)
            return self._output.send(Message("error", raw, message.method, message.id))
        except ConnectionClosed:
            raise
        except Exception:
            logger.exception("the error from the handler of %s cannot be sent", excerpt(message.method))
            return self._output.send(Message("error", InternalError().to_json(), id=message.id))

    def _error_for(self, method: str, failure: BaseException) -> RequestError:
        """The error for a handler that has failed: what the hook `on_error` makes of it, or one without details."""
        hook = self._options.on_error
        found: object = None if hook is None else call_hook("on_error", hook, method, failure)
        if isinstance(found, RequestError):
            return found
        if found is not None:
            logger.error("on_error returned %s, which is no RequestError", excerpt(found))
        return InternalError()

    def report_invalid(self, message: Message, error: UnfitParams) -> None:
        """Call the hook `on_invalid`."""
        if (hook := self._options.on_invalid) is not None:
            call_hook("on_invalid", hook, message.method, message.value, error.reason)
