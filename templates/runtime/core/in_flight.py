"""The requests of the peer: each is started or refused, may be cancelled, and gets one response."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from time import perf_counter
from typing import Any, Final, TypeAlias

from ..errors import ERROR_CLASSES, InternalError, InvalidRequestError, RequestError
from ._decode import excerpt
from .dispatch import ConnectionClosed, UnfitParams
from .log import PROGRAM_ENDS, log_handler_failure, log_mistake, log_program_end, logger
from .message import Message
from .options import ConnectionOptions, call_hook
from .state import Handshake, Lifecycle
from .tasks import check_outcome, is_running

Rest: TypeAlias = "Awaitable[None] | None"
"""What is left to await of something that is done but for a slow peer; None if nothing is."""

_MAX_SHOWN: Final = 80
"""The bytes that are logged of a message that cannot be read."""
_MAX_UNADDRESSED: Final = 100
"""After so many errors in a row without an id, no more are sent: a flood of junk causes no flood of errors."""
_CANCELLED: Final = -32800
"""The code of a request that was cancelled; not each release of the protocol has it."""


class Sent:
    """The result of a request which its callback has sent itself; `rest` is what is left to await."""

    __slots__ = ("rest",)

    def __init__(self, rest: Rest) -> None:
        self.rest = rest


class TextInFlight:
    """The bytes of text that are in flight, and their limit. A transport may have another count: its `budget`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    def exceeded(self, message: Message) -> str:
        """The limit that one more message would exceed; empty if none."""
        if self._bytes + message.size <= self._limit:
            return ""
        beside = f"{message.size} bytes beside {self._bytes} of others"
        return f"{beside}; the limit is {self._limit} bytes (max_in_flight_bytes)"

    def add(self, message: Message) -> None:
        """Count a message."""
        self._bytes += message.size

    def remove(self, message: Message) -> None:
        """Count a message no longer."""
        self._bytes -= message.size

    def free(self, message: Message) -> None:
        """Give up the value of a message, which counts until its response is sent."""
        message.value = None


class InFlight:
    """The requests of the peer that have no response yet, and the notifications whose handlers wait for the peer.

    `count` is what they take together. `unaddressed` counts the errors without an id that were due since the last valid
    message.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        life: Lifecycle,
        *,
        send: Callable[[Message], Rest],
        flush: Callable[[], object] | None,
        count: TextInFlight,
        explain: Callable[[Message, Exception], Exception],
        on_refused: Callable[[str], None] | None,
    ) -> None:
        self.handshake = Handshake()
        self.starting: set[Message] = set()  # those whose handlers have not begun, but will
        self.unaddressed = 0
        self.null_ids = True
        self._options = options
        self._life = life
        self._send = send
        self._flush = flush
        self._count = count
        self._explain = explain
        self._on_refused = on_refused
        self.tasks: dict[asyncio.Task[None], Message] = {}
        self._requests: dict[object, asyncio.Task[None]] = {}  # by id
        self._cancelled: set[object] = set()  # ids
        self._deferred: set[object] = set()  # ids of those that `answer` answers
        self._unanswered = 0  # of these, those whose responses are not sent

    @staticmethod
    def responds(task: asyncio.Task[Any] | None) -> bool:
        """True for the task that runs the handler of a request, and sends the response before it ends."""
        return task is not None and getattr(task.get_coro(), "cr_code", None) is InFlight._respond.__code__

    def serve(
        self,
        on_request: Callable[[str, Any], Coroutine[Any, Any, Any]],
        routes: Mapping[str, Callable[[Message], Coroutine[Any, Any, Any]]],
        *,
        null_ids: bool,
    ) -> None:
        """Set the callbacks."""
        self._on_request, self._routes, self.null_ids = on_request, routes, null_ids

    def finish_if_idle(self) -> None:
        """End the connection if nothing is read any more, and all is answered."""
        if not (self._life.is_open or self.tasks or self._unanswered):
            self._life.handle("finished")

    # --- Start ---------------------------------------------------------------------------------------------------

    def accept(self, message: Message) -> Rest:
        """Start a task for a request, or refuse it."""
        if (error := self.refusal(message)) is not None:
            return self.refuse(error, message)
        self.unaddressed = 0
        if message.method == self.handshake.method:
            self.handshake.begins(message.method)
        self.starting.add(message)
        key = object() if message.id is None else message.id
        task = self._requests[key] = asyncio.Task(self._respond(key, message))  # an eager factory would run it at once
        self.tasks[task] = message
        self._count.add(message)
        task.add_done_callback(self._ended)
        return None

    def adopt(self, task: asyncio.Task[None], message: Message) -> None:
        """Count a notification whose handler has handed the reading over; `task` is that of the handler."""
        self.tasks[task] = message
        self._count.add(message)
        task.add_done_callback(self._remove)

    async def _respond(self, key: object, message: Message) -> None:
        """Run the callback for a request, and send what it returns or raises."""
        self.starting.discard(message)
        task, start, succeeded, life, method = self._requests[key], perf_counter(), False, self._life, message.method
        try:
            if life.reason is not None and life.is_closing:  # a request that arrived with this one has stopped it
                raise life.reason.again()
            route = self._routes.get(method)
            result = await (self._on_request(method, message.value) if route is None else route(message))
            sent = result.__class__ is Sent
            rest = result.rest if sent else self._send(Message("result", result, method, message.id))
            succeeded = True
        except BaseException as error:
            rest = self._fail(message, error, task)
        finally:
            self._is_over(key, method, succeeded=succeeded)
        if logger.isEnabledFor(logging.DEBUG):
            took = (perf_counter() - start) * 1000
            logger.debug("%s, request %s of the peer, took %.1f ms", excerpt(method), excerpt(message.id), took)
        if rest is not None:
            self._count.free(message)  # while the peer reads
            await rest
        del self.tasks[task]  # not only when it is done: until then it counts, and the next one may be refused
        self._count.remove(message)
        if life.reason is not None:
            self.finish_if_idle()
        if not self._requests and self._flush is not None:
            self._flush()  # nothing more is about to be written in this turn of the event loop

    def _is_over(self, key: object, method: str, *, succeeded: bool) -> None:
        if method == self.handshake.method:
            self.handshake.ends(method, succeeded=succeeded)
        del self._requests[key]
        if self._cancelled:
            self._cancelled.discard(key)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if (message := self.tasks.get(task)) is not None:
            if message in self.starting:
                self._never_began(task, message)
            self._remove(task)
        if task.cancelled() or task.exception() is not None:
            check_outcome(task)

    def _never_began(self, task: asyncio.Task[None], message: Message) -> None:
        """Respond to a request whose task was cancelled before it began, by other code than the connection's."""
        key = next(key for key, each in self._requests.items() if each is task)
        self._is_over(key, message.method, succeeded=False)
        if not self._life.is_closing and (rest := self._fail(message, asyncio.CancelledError(), task)) is not None:
            asyncio.ensure_future(rest).add_done_callback(check_outcome)

    def _remove(self, task: asyncio.Task[None]) -> None:
        if (message := self.tasks.pop(task, None)) is None:
            return
        self.starting.discard(message)
        self._count.remove(message)
        if self._life.reason is not None:
            self.finish_if_idle()

    def cancel(self, params: Any, key: str) -> None:
        """Cancel the request whose id is the property `key` of `params`, if it is running; once only."""
        found: Any = params
        request_id = found.get(key) if isinstance(params, dict) else None
        if type(request_id) in (int, str) and request_id in self._requests and request_id not in self._cancelled:
            self._cancelled.add(request_id)
            self._requests[request_id].cancel()

    # --- Requests that are answered by others --------------------------------------------------------------------

    def defer(self, key: object) -> None:
        """Note that the request with the id `key`, which was intercepted, is answered later, by `answer`."""
        self._deferred.add(key)
        self._unanswered += 1
        self.unaddressed = 0

    def answer(self, key: object, message: Message) -> Coroutine[Any, Any, None] | None:
        """Send the response to a request that was deferred; returns what is left to await."""
        self._deferred.discard(key)
        rest: Rest = None
        with contextlib.suppress(ConnectionClosed):
            rest = self._send(message)
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
        self.finish_if_idle()

    # --- Refusals ------------------------------------------------------------------------------------------------

    def refusal(self, message: Message) -> RequestError | None:
        """The error for a request that cannot be started; None if it can."""
        if message.id is None and not self.null_ids:
            return InvalidRequestError("`id` must be a string or an integer")
        if message.id in self._requests or (self._deferred and self.is_taken(message)):
            return InvalidRequestError("a request with this id is running")
        if limit := self.exceeded(message):
            return InternalError(limit)
        return None if self.handshake.step == "done" else self.handshake.refusal(message.method)

    def exceeded(self, message: Message) -> str:
        """The limit that one more message would exceed; empty if none."""
        if len(self.tasks) >= self._options.max_requests:
            return f"too many at the same time; the limit is {self._options.max_requests} requests (max_requests)"
        return self._count.exceeded(message)

    def is_taken(self, message: Message) -> bool:
        """True if another request with this id has no response yet."""
        return message.id in self._requests or message.id in self._deferred

    def refuse(self, error: RequestError, message: Message) -> Rest:
        """Respond to a request with an error, but not if the peer would take that for the response to another one."""
        return self.report(error, None if self.is_taken(message) else message.id)

    def report(self, error: RequestError, request_id: int | str | None = None, *, start: bytes = b"") -> Rest:
        """Respond to a message that cannot be handled; `start` has the first bytes of one that was not parsed."""
        if start:
            text = "the peer sent a message that cannot be handled: %s; it starts with: %s"
            log_mistake(text, error, start[:_MAX_SHOWN])
        else:
            log_mistake("the peer sent a message that cannot be handled: %s", error)
        self.unaddressed += request_id is None
        if request_id is None and self.unaddressed > _MAX_UNADDRESSED:
            return None
        try:
            return self._send(Message("error", error.to_json(), id=request_id))
        except ConnectionClosed:
            return None
        except Exception:
            logger.exception("the error for a message of the peer cannot be sent")
        failed = Message("error", InternalError().to_json(), id=request_id)
        return None if request_id is None else self._send(failed)

    # --- Failures of handlers ------------------------------------------------------------------------------------

    def note_failure(self, message: Message, error: BaseException, task: asyncio.Task[None] | None) -> None:
        """Log what a handler has raised in `task`, or raise it again if it is not the handler's doing."""
        is_request, name = message.kind == "request", excerpt(message.method)
        what = name if is_request else f"the notification {name}"
        if isinstance(error, UnfitParams):
            if not is_request:  # there is no response
                log_mistake("the params of the notification %s do not fit: %s", message.method, error.reason)
            if (hook := self._options.on_invalid) is not None:
                call_hook("on_invalid", hook, message.method, message.value, error.reason)
        elif isinstance(error, asyncio.CancelledError):
            if self._life.is_closing:
                raise error
            if not is_request or message.id not in self._cancelled:
                by_whom = ", and not by the peer" if is_request else ""
                logger.warning("the handler of %s was cancelled%s", what, by_whom)
        elif isinstance(error, PROGRAM_ENDS):
            log_program_end(f"the handler of {what}", error)
            raise error
        elif not (is_request and isinstance(error, RequestError)):
            if not is_running(task) or (isinstance(error, ConnectionClosed) and self._life.is_closing):
                raise error
            log_handler_failure(what, error, is_closed=self._life.reason is not None)

    def _fail(self, message: Message, error: BaseException, task: asyncio.Task[None]) -> Rest:
        """Send the error for what the handler of a request has raised. The peer gets no details of a failure."""
        self.note_failure(message, error, task)
        if isinstance(error, RequestError):
            if self._on_refused is not None:
                self._on_refused(message.method)
            return self._send_error(message, error)
        if isinstance(error, asyncio.CancelledError):
            return self._send_error(message, ERROR_CLASSES.get(_CANCELLED, InternalError)())
        return self._send_error(message, self._error_for(message.method, error))

    def _send_error(self, message: Message, error: RequestError) -> Rest:
        try:
            raw = error.to_json()
            if not isinstance(raw["message"], str) or not isinstance(raw["code"], int) or isinstance(raw["code"], bool):
                raise self._explain(message, error)
            return self._send(Message("error", raw, message.method, message.id))
        except ConnectionClosed:
            raise
        except Exception:
            logger.exception("the error from the handler of %s cannot be sent", excerpt(message.method))
            return self._send(Message("error", InternalError().to_json(), id=message.id))

    def _error_for(self, method: str, failure: BaseException) -> RequestError:
        """The error for a handler that has failed: what the hook `on_error` makes of it, or one without details."""
        hook = self._options.on_error
        found: object = None if hook is None else call_hook("on_error", hook, method, failure)
        if isinstance(found, RequestError):
            return found
        if found is not None:
            logger.error("on_error returned %s, which is no RequestError", excerpt(found))
        return InternalError()
