"""The link to the peer, which the parts of a connection share: JSON in and out, pending requests, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from .dispatch import ConnectionClosed
from .errors import InternalError, ParseError, RequestError
from .limits import MAX_DEPTH, Budget, is_light, is_too_deep, measure, weigh
from .log import PROGRAM_ENDS, log_mistake, logger, one_line
from .options import ConnectionOptions
from .tasks import Tasks
from .transport import MAX_START, MessageTooLarge, Transport

T = TypeVar("T")

_MAX_UNADDRESSED: Final = 100
"""After so many errors in a row without an id, no more are sent: a flood of junk causes no flood of errors."""


class Link:
    """A transport, and the state of the connection over it.

    `pending` has the requests of this side that wait for a response. `reason` says why nothing more is read: it is set
    with `read_ended`, and pending requests are rejected with it. After `write_ended`, nothing more is written either.
    """

    def __init__(self, transport: Transport, options: ConnectionOptions) -> None:
        self.options = options
        self.transport = transport
        self.flush: Callable[[], None] = getattr(transport, "flush", _nothing_to_flush)
        self.budget: Budget = getattr(transport, "budget", None) or Budget()
        self.tasks = Tasks(options.cleanup_seconds)
        self.pending: dict[int, asyncio.Future[Any]] = {}
        self.reason: ConnectionClosed | None = None
        self.read_ended = asyncio.Event()
        self.write_ended = asyncio.Event()
        self.unaddressed = 0  # errors without an id that were due since the last valid message

    def stop_reading(self, reason: ConnectionClosed) -> None:
        """Reject all pending requests; those of the peer may still be answered."""
        if self.reason is None:
            self.reason = reason
            for future in self.pending.values():
                if not future.done():
                    future.set_exception(reason.again())
        self.read_ended.set()

    def stop_writing(self, reason: ConnectionClosed) -> None:
        """End both directions."""
        self.write_ended.set()
        self.stop_reading(reason)

    # --- In ------------------------------------------------------------------------------------------------------

    def parse(self, line: bytes) -> tuple[Any, int]:
        """Parse a message; returns it with its size in memory. Raises `MessageTooLarge` and `ParseError`."""
        self.show("in", line)
        limit = self.options.max_in_flight_bytes
        if not is_light(line, limit) and (weight := weigh(line)) > limit:
            text = f"estimated at {weight} bytes of memory; the limit is {limit} (max_in_flight_bytes)"
            raise MessageTooLarge(text, start=line[:MAX_START])
        if is_too_deep(line):
            raise MessageTooLarge(f"nested more than {MAX_DEPTH} deep", start=line[:MAX_START])
        try:
            message = self.options.loads(line)
            return message, measure(line, message)
        except PROGRAM_ENDS:
            raise
        except ValueError as error:
            failure = ParseError(f"Parse error: {one_line(error)}")
        except BaseException:  # `loads` may be from elsewhere
            failure = ParseError()
        raise failure  # not in a handler: its exception may hold the whole text

    # --- Out -----------------------------------------------------------------------------------------------------

    def encode(self, message: dict[str, Any]) -> bytes:
        """The line for a message. Raises `MessageTooLarge`, and what `dumps` raises."""
        try:
            line = self.options.dumps(message)
        except (Exception, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            raise RuntimeError("dumps failed") from error
        limit = self.options.max_message_bytes
        if len(line) > limit:
            raise MessageTooLarge(f"a message of {len(line)} bytes; the limit is {limit} (max_message_bytes)")
        return line

    def encode_error(self, error: RequestError, number: object) -> bytes:
        """The line for an error response. Raises what `encode` raises."""
        return self.encode({"jsonrpc": "2.0", "id": number, "error": error.to_json()})

    def encode_failure(self, number: object) -> bytes:
        """The line for an internal error. It is short, so that no limit holds for it: each request gets a response."""
        return self.options.dumps({"jsonrpc": "2.0", "id": number, "error": InternalError().to_json()})

    async def refuse(self, error: RequestError, number: object = None, *, start: bytes = b"") -> None:
        """Respond to a message that cannot be handled; `start` is the start of a line that was not parsed."""
        if start:
            log_mistake("the peer sent a line that cannot be handled: %s; it starts with: %s", error, start)
        else:
            log_mistake("the peer sent a message that cannot be handled: %s", error)
        if number is None:
            self.unaddressed += 1
            if self.unaddressed > _MAX_UNADDRESSED:
                return
        try:
            line = self.encode_error(error, number)
        except Exception:
            logger.exception("the error for a message of the peer cannot be sent")
            if number is None:
                return
            line = self.encode_failure(number)
        await self.write(line)

    async def write(self, line: bytes) -> None:
        """Send a line. Raises `ConnectionClosed`."""
        if self.write_ended.is_set() and self.reason is not None:
            raise self.reason.again()
        self.show("out", line)
        try:
            await self.transport.write(line)
        except ConnectionClosed as reason:
            self.stop_writing(reason)
            raise
        except (asyncio.CancelledError, GeneratorExit, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            failure = ConnectionClosed(f"cannot write: {error}")
            self.stop_writing(failure)
            raise failure from error

    def show(self, direction: Literal["in", "out"], line: bytes) -> None:
        """Call the hook `on_message`."""
        if self.options.on_message is not None:
            call_hook("on_message", self.options.on_message, direction, line)


def _nothing_to_flush() -> None:
    pass


def call_hook(name: str, hook: Callable[..., T], *values: Any) -> T | None:
    """Call a hook of the user's, and return what it returns. What it raises is logged."""
    try:
        return hook(*values)
    except PROGRAM_ENDS:
        raise
    except BaseException:
        logger.exception("%s failed", name)
        return None
