"""The requests of this side that have no response yet, and what waits for their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ..errors import InternalError, RequestError
from ._decode import excerpt
from .dispatch import ConnectionClosed
from .log import log_mistake, logger
from .message import Message, Unreadable

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

    def resolve(self, response: Message) -> tuple[bool, Awaitable[None] | None]:
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

    def reject(self, found: Unreadable) -> tuple[bool, bool, Awaitable[None] | None]:
        """Reject the request that an unreadable response is for.

        The first value is false if there is none, the second true if something waits for it; and what is left to await.
        """
        request_id = found.id
        if found.kind == "request" or type(request_id) is not int:
            return False, False, None
        future, listener = self._futures.get(request_id), self._listeners.pop(request_id, None)
        if future is None and listener is None:
            return False, False, None
        if future is not None and future.done():
            return False, False, None
        error = _unusable(found)
        if future is not None:
            _reject(future, error)
        return True, future is not None, None if listener is None else listener(error)

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
