"""Requests of the peer that are in flight: their handlers, the limits on them, their cancellation and responses."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import Any

from ._decode import excerpt
from .dispatch import UnfitParams, dispatch_request
from .errors import ERROR_CLASSES, InternalError, InvalidRequestError, RequestError
from .limits import TASK_BYTES
from .link import Link, call_hook
from .log import PROGRAM_ENDS, log_handler_failure, logger
from .negotiation import LocalSide
from .outgoing import Outgoing
from .tasks import is_running


class InFlight:
    """Tasks that handle messages of the peer, and may finish after the peer has closed the connection.

    Each has a weight, the size of its message in memory. `handshake` is the request that must succeed first, until it
    has succeeded. Messages may follow it without waiting for its response: `awaits_handshake` is true while it does not
    run.
    """

    def __init__(self, link: Link, side: LocalSide, outgoing: Outgoing) -> None:
        self._link = link
        self._side = side
        self._outgoing = outgoing
        self._weights: dict[asyncio.Task[None], int] = {}
        self._total = 0
        self._requests: dict[object, asyncio.Task[None]] = {}  # by id
        self._cancelled: set[object] = set()  # ids among these
        self.handshake: str | None = None
        self.awaits_handshake = False
        self._handshakes = 0  # how many of them run

    def require(self, handshake: str | None) -> None:
        """Refuse all other requests until the request `handshake` has succeeded."""
        self.handshake = handshake
        self.awaits_handshake = handshake is not None

    def __len__(self) -> int:
        return len(self._weights)

    def __contains__(self, number: object) -> bool:
        return number in self._requests

    def add(self, task: asyncio.Task[None], weight: int) -> asyncio.Task[None]:
        """Count a task until it ends."""
        self._weights[task] = weight
        self._total += weight
        self._link.budget.held += weight + TASK_BYTES
        task.add_done_callback(self._remove)
        return task

    def _remove(self, task: asyncio.Task[None]) -> None:
        weight = self._weights.pop(task)
        self._total -= weight
        self._link.budget.held -= weight + TASK_BYTES
        if self._link.read_ended.is_set() and not self._weights:
            self._link.write_ended.set()

    def exceeded(self, weight: int) -> str:
        """The limit that one more message of this weight would exceed; empty if none."""
        options = self._link.options
        if len(self._weights) >= options.max_requests:
            return f"too many at the same time; the limit is {options.max_requests} requests (max_requests)"
        if self._total + weight > options.max_in_flight_bytes:
            return (
                f"{weight} bytes of memory beside {self._total} of others; "
                f"the limit is {options.max_in_flight_bytes} bytes (max_in_flight_bytes)"
            )
        if self._link.budget.lacks(weight + TASK_BYTES):
            limit = f"{self._link.budget.limit} bytes (max_bytes_per_identity)"
            return f"too much for the connections of one client; the limit is {limit}"
        return ""

    def refusal(self, number: object, method: str, weight: int) -> RequestError | None:
        """The error for a request that cannot be started; None if it can."""
        if number in self._requests:
            return InvalidRequestError("Invalid request: a request with this id is running")
        if limit := self.exceeded(weight):
            return InternalError(f"Request refused: {limit}")
        if self.awaits_handshake and (method != self.handshake or method != self._side.handshake):
            return InvalidRequestError(f"Invalid request: {self.handshake} must come first")
        if method == self.handshake and self._handshakes and self._side.candidates is not None:
            return InvalidRequestError(f"Invalid request: {self.handshake} is running")
        return None

    def start(self, number: Any, method: str, params: Any, weight: int) -> None:
        """Start the handler of a request."""
        if method == self.handshake:
            self._handshakes += 1
            self.awaits_handshake = False
        key = object() if number is None else number
        self._requests[key] = self.add(self._link.tasks.start(self._respond(key, number, method, params)), weight)

    def cancel(self, params: Any, key: str) -> None:
        """Cancel the request whose id is the property `key` of `params`, if it is running; once only."""
        found: Any = params
        number = found.get(key) if isinstance(params, dict) else None
        if type(number) in (int, str) and number in self._requests and number not in self._cancelled:
            self._cancelled.add(number)
            self._requests[number].cancel()

    async def _respond(self, key: object, number: Any, method: str, params: Any) -> None:
        start, is_handshake = perf_counter(), method == self.handshake
        succeeded = False
        try:
            line, succeeded = await self._answer(number, method, params)
        finally:
            if is_handshake:
                self._end_handshake(succeeded=succeeded)
            del self._requests[key]
            self._cancelled.discard(key)
        if logger.isEnabledFor(logging.DEBUG):
            took = (perf_counter() - start) * 1000
            logger.debug("%s, request %s of the peer, took %.1f ms", excerpt(method), excerpt(number), took)
        del params  # frees memory while the peer reads
        await self._link.write(line)
        if not self._requests:
            self._link.flush()  # nothing more is about to be written in this turn of the event loop

    def _end_handshake(self, *, succeeded: bool) -> None:
        self._handshakes -= 1
        if succeeded:
            self.handshake = None
            self._side.settle()
        self.awaits_handshake = self.handshake is not None and self._handshakes == 0

    async def _answer(self, number: Any, method: str, params: Any) -> tuple[bytes, bool]:
        """Call the handler; returns the line of the response, and true for a result. It hides how a handler failed."""
        task = asyncio.current_task()
        try:
            if method == self.handshake:
                self._side.choose(params, has_null_id=number is None)
            return await self._result(number, method, params), True
        except RequestError as error:
            if isinstance(error, UnfitParams):
                self.report_invalid(method, params, error)
            self._side.log_refused(method)
            return self._error_line(number, method, error), False
        except asyncio.CancelledError:
            if self._link.write_ended.is_set():
                raise
            return self._error_line(number, method, ERROR_CLASSES.get(-32800, InternalError)()), False
        except PROGRAM_ENDS:
            raise
        except BaseException as error:
            if not is_running(task):
                raise
            log_handler_failure(excerpt(method), error, is_closed=self._link.reason is not None)
            return self._error_line(number, method, self._error_for(method, error)), False

    async def _result(self, number: Any, method: str, params: Any) -> bytes:
        """The line with the result. Both sides are held to what it advertises only if it can be sent."""
        side, capabilities, succeeded = self._side, self._side.capabilities, False
        trial = capabilities.begin(method, params)
        try:
            result = await dispatch_request(side.handler, method, params, on_drop=self._link.options.on_drop)
            side.check_version(method, result)
            line = self._outgoing.result(number, method, result)
            capabilities.sent(method, "result", result)
            succeeded = True
        finally:
            if trial is not None:
                capabilities.end(trial, keep=succeeded)
        return line

    def _error_line(self, number: Any, method: str, error: RequestError) -> bytes:
        try:
            return self._outgoing.error(number, method, error)
        except Exception:
            logger.exception("the error from the handler of %s cannot be sent", excerpt(method))
            return self._link.encode_failure(number)

    def _error_for(self, method: str, failure: BaseException) -> RequestError:
        """The error for a handler that has failed: what the hook `on_error` makes of it, or one without details."""
        hook = self._link.options.on_error
        return InternalError() if hook is None else _mapped(call_hook("on_error", hook, method, failure))

    def report_invalid(self, method: str, params: Any, error: UnfitParams) -> None:
        """Call the hook `on_invalid`."""
        if (hook := self._link.options.on_invalid) is not None:
            call_hook("on_invalid", hook, method, params, error.reason)


def _mapped(found: object) -> RequestError:
    """What the hook `on_error` has returned, or an error without details."""
    if isinstance(found, RequestError):
        return found
    if found is not None:
        logger.error("on_error returned %s, which is no RequestError", excerpt(found))
    return InternalError()
