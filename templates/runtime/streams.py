"""What waits between a server and a remote client: bounded in bytes, in both directions."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from .limits import Budget

_CHUNK: Final = 2**16
MAX_BURST: Final = 32
"""After this many messages, the task that sends them yields."""
_OVERHEAD: Final = 512
"""The bytes that a waiting message takes beside its text."""
_COMMENT: Final = b":\n\n"


class Stream:
    """Messages that wait for the GET request of the client: as events, in their order.

    `put` waits while more than `limit` bytes are unread, or any if the budget is used up. `stuck_since` is the time of
    the event loop since which the client has taken nothing although something waits for it, such as the end; None if
    nothing does.
    """

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit = limit
        self._budget = budget
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._sending = 0  # bytes that `take` returned last
        self._burst = 0
        self._waiting = 0  # how many calls of `put` wait
        self._lock = asyncio.Lock()
        self._room = asyncio.Event()
        self._changed = asyncio.Event()
        self._needs_comment = False
        self.reader: asyncio.Task[None] | None = None
        self.is_ended = False
        self._is_dropped = False
        self.stuck_since: float | None = None

    @property
    def _is_full(self) -> bool:
        return self._bytes > self._limit or (self._bytes > 0 and self._budget.lacks())

    async def put(self, message: bytes) -> None:
        """Add a message; wait while the client is too slow."""
        if not self._is_full and not self._waiting:
            self._add(message)
            if self._burst >= MAX_BURST:
                self._burst = 0
                await asyncio.sleep(0)
            return
        self._waiting += 1
        try:
            async with self._lock:  # messages keep their order
                while self._is_full and not self.is_ended:
                    self._room.clear()
                    await self._room.wait()
                self._add(message)
        finally:
            self._waiting -= 1
            self._changed.set()  # the end may wait for this message

    def put_at_once(self, message: bytes) -> bool:
        """Add a message if that is possible without waiting; returns whether it was."""
        if self._is_full or self._waiting:
            return False
        self._add(message)
        return True

    def _add(self, message: bytes) -> None:
        if self._is_dropped:
            return
        self._messages.append(message)
        self._count(len(message))
        self._burst += 1
        self._stick()
        self._changed.set()

    def _stick(self) -> None:
        if self.stuck_since is None:
            self.stuck_since = asyncio.get_running_loop().time()

    def _count(self, size: int) -> None:
        self._bytes += size
        self._budget.held += size

    async def take(self) -> bytes | None:
        """Wait for messages; returns some of them as events, or a comment that is due; None at the end."""
        while not self._messages:
            if self.is_ended and not self._waiting:
                return None
            if self._needs_comment:
                self._needs_comment = False
                return _COMMENT
            self._changed.clear()
            await self._changed.wait()
        parts, size = list[bytes](), 0
        while self._messages and size < _CHUNK:
            message = self._messages.popleft()
            parts += (b"data: ", message, b"\n\n")
            size += len(message)
        self._bytes -= size
        self._sending = size
        self._room.set()
        return b"".join(parts)

    async def drained(self) -> None:
        """Wait until the client has taken all messages, or reads no longer."""
        while self._messages and self.reader is not None and not self.is_ended:
            self._room.clear()
            await self._room.wait()

    def leave(self) -> None:
        """The client reads no longer."""
        self.reader = None
        self.taken()  # or lost: what was being sent is not sent again
        if self.is_ended and not self._waiting:  # else the last one that waits moves all messages
            self.drop()
        self._room.set()

    def taken(self) -> None:
        """The client has taken what `take` returned."""
        self._budget.held -= self._sending
        self._sending = 0
        self.stuck_since = None
        if self._messages or self.is_ended:
            self._stick()

    def keep_alive(self) -> None:
        """Let an idle stream send a comment."""
        if self.reader is not None and not self._messages:
            self._needs_comment = True
            self._changed.set()

    def move_to(self, other: Stream) -> None:
        """Move all messages to another stream; nobody may read this one. Those that wait for room follow later."""
        messages, self._messages = self._messages, deque()
        self._count(-self._bytes)
        self.stuck_since = None
        for message in messages:
            other._add(message)

    def end(self) -> None:
        """End the stream after the messages that it has, and those that wait for room."""
        self.is_ended = True
        self._stick()
        self._changed.set()
        self._room.set()

    def drop(self) -> None:
        """End the stream without its messages: nobody can read them."""
        self._is_dropped = True
        self._count(-self._bytes)
        self._messages.clear()
        self.end()
        self.stuck_since = None


class Inbox:
    """Messages of the peer that wait to be read. They count in bytes from the first byte that is received."""

    def __init__(self, max_messages: int, max_bytes: int, budget: Budget) -> None:
        self._messages: deque[bytes] = deque()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._budget = budget
        self._bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self.turn = asyncio.Lock()  # of those that wait for room
        self.ended_at: float | None = None

    @property
    def is_ended(self) -> bool:
        """True if nothing more is received: since the time `ended_at` of the event loop."""
        return self.ended_at is not None

    @property
    def is_too_large(self) -> bool:
        """True if its messages, with those that are being received, have too many bytes."""
        return self._bytes > self._max_bytes

    @property
    def is_full(self) -> bool:
        """True if no more may be received."""
        return len(self._messages) >= self._max_messages or self.is_too_large

    def exceeds_budget(self, size: int = 0) -> bool:
        """True if so many more bytes exceed the budget. A few may wait in any case: a cancellation makes room."""
        return self._bytes + size > _CHUNK and self._budget.lacks(size)

    def count(self, size: int) -> None:
        """Count bytes that are being received, or no longer are."""
        self._bytes += size
        self._budget.held += size
        if size < 0:
            self._room.set()

    def put(self, message: bytes) -> None:
        """Add a message."""
        self.count(len(message) + _OVERHEAD)
        self._messages.append(message)
        self._changed.set()

    async def room(self) -> None:
        """Wait until the inbox is not full."""
        while self.is_full and not self.is_ended:
            self._room.clear()
            await self._room.wait()

    async def get(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._messages:
            if self.is_ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        message = self._messages.popleft()
        self.count(-len(message) - _OVERHEAD)
        return message

    def clear(self) -> None:
        """Drop all messages: nothing reads them any more."""
        while self._messages:
            self.count(-len(self._messages.popleft()) - _OVERHEAD)

    def end(self) -> None:
        """End the inbox after the messages that it has."""
        if self.ended_at is None:
            self.ended_at = asyncio.get_running_loop().time()
        self._changed.set()
        self._room.set()
