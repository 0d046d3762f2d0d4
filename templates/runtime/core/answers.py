"""The errors that the peer gets: for messages that cannot be handled, and for requests whose handlers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ..errors import ERROR_CLASSES, InternalError, RequestError
from ._decode import excerpt
from .dispatch import ConnectionClosed, UnfitParams
from .log import PROGRAM_ENDS, log_handler_failure, log_mistake, log_program_end, logger
from .message import Message
from .options import ConnectionOptions, call_hook
from .state import Lifecycle
from .tasks import is_running

_MAX_SHOWN: Final = 80
"""The bytes that are logged of a message that cannot be read."""
_MAX_UNADDRESSED: Final = 100
"""After so many errors in a row without an id, no more are sent: a flood of junk causes no flood of errors."""
_CANCELLED: Final = -32800
"""The code of a request that was cancelled; not each release of the protocol has it."""


class Answers:
    """Sends errors by `send`. `explain` makes the exception for a `RequestError` that cannot be sent.

    `unaddressed` counts the errors without an id that were due since the last valid message.
    """

    def __init__(
        self,
        send: Callable[[Message], Awaitable[None] | None],
        options: ConnectionOptions,
        life: Lifecycle,
        *,
        explain: Callable[[Message, Exception], Exception],
        on_refused: Callable[[str], None] | None,
    ) -> None:
        self.unaddressed = 0
        self._send = send
        self._options = options
        self._life = life
        self._explain = explain
        self._on_refused = on_refused

    def refuse(
        self, error: RequestError, request_id: int | str | None = None, *, start: bytes = b""
    ) -> Awaitable[None] | None:
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

    def fail(
        self, message: Message, error: BaseException, *, task: asyncio.Task[None], is_cancelled: bool
    ) -> Awaitable[None] | None:
        """Send the error for what the handler of a request has raised in `task`, or raise it again.

        `is_cancelled` says that the peer has cancelled the request. It gets no details of a failure.
        """
        method, life = message.method, self._life
        if isinstance(error, RequestError):
            if isinstance(error, UnfitParams):
                self.report_invalid(message, error)
            if self._on_refused is not None:
                self._on_refused(method)
            return self._send_error(message, error)
        if isinstance(error, asyncio.CancelledError):
            if life.is_closing:
                raise error
            if not is_cancelled:
                logger.warning("the handler of %s was cancelled, and not by the peer", excerpt(method))
            return self._send_error(message, ERROR_CLASSES.get(_CANCELLED, InternalError)())
        if isinstance(error, PROGRAM_ENDS):
            log_program_end(f"the handler of {excerpt(method)}", error)
            raise error
        if not is_running(task) or (isinstance(error, ConnectionClosed) and life.is_closing):
            raise error
        log_handler_failure(excerpt(method), error, is_closed=life.reason is not None)
        return self._send_error(message, self._error_for(method, error))

    def _send_error(self, message: Message, error: RequestError) -> Awaitable[None] | None:
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

    def fail_notification(self, message: Message, error: BaseException, *, task: asyncio.Task[None] | None) -> None:
        """Log what the handler of a notification has raised in `task`, or raise it again: there is no response."""
        method, life = message.method, self._life
        if isinstance(error, UnfitParams):
            log_mistake("the params of the notification %s do not fit: %s", method, error.reason)
            self.report_invalid(message, error)
        elif isinstance(error, asyncio.CancelledError):
            if life.is_closing:
                raise error
            logger.warning("the handler of the notification %s was cancelled", excerpt(method))
        elif isinstance(error, PROGRAM_ENDS):
            log_program_end(f"the handler of the notification {excerpt(method)}", error)
            raise error
        elif not is_running(task):
            raise error
        else:
            log_handler_failure(f"the notification {excerpt(method)}", error, is_closed=life.reason is not None)

    def report_invalid(self, message: Message, error: UnfitParams) -> None:
        """Call the hook `on_invalid`."""
        if (hook := self._options.on_invalid) is not None:
            call_hook("on_invalid", hook, message.method, message.value, error.reason)
