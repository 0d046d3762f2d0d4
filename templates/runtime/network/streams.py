"""Bounded queues between a server and a remote client: `Stream` of events to send, `Inbox` of messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

from ..message import Message, Unreadable, is_short
from .sessions import SESSION_RULES
from .shared_memory import MemoryInUse, SharedMemory, memory_of, memory_of_message

CONNECTION_HEADER: Final = "acp-connection-id"
SESSION_HEADER: Final = "acp-session-id"
MAX_BURST: Final = 32
"""After this many messages, the task that sends them yields."""
_CHUNK: Final = 2**16
_SMALL: Final = 4 * _CHUNK
"""The most memory of a message that is let through above the budget; a text of `_CHUNK` takes no more."""
_OVERHEAD: Final = 512
"""The bytes that a waiting message takes beside its own."""
_COMMENT: Final = b":\n\n"


# --- Sessions --------------------------------------------------------------------------------------------------------


def member(value: Any, name: str) -> Any:
    """A property of a JSON object; None for any other value."""
    found: Any = value
    return found.get(name) if isinstance(value, dict) else None


def session_in(value: Any) -> str | None:
    """The name of the session in params or a result, as `session_name` returns it; None if there is none."""
    name = member(value, SESSION_RULES.key)
    return session_name(name) if isinstance(name, str) else None


def session_name(text: str) -> str:
    """The id of a session as it is kept here: a long one is replaced by a digest, which fits no header."""
    return text if is_short(text) else f"\0{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def fits_header(name: str) -> bool:
    """True if a header can hold this id of a session. Otherwise the session has no stream of its own."""
    return name.isascii() and name.isprintable() and name == name.strip()  # HTTP drops the blanks around a value


# --- Events to send --------------------------------------------------------------------------------------------------


class Stream:
    """Messages that wait for the GET request of the client: as events, in their order.

    `put` waits while more than `limit` bytes are unread, or any if the budget is used up. `stuck_since` is the time of
    the event loop since which the client has taken nothing although something waits for it, such as the end; None if
    nothing does.
    """

    def __init__(self, limit: int, budget: SharedMemory) -> None:
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

    def put(self, message: bytes) -> Awaitable[None] | None:
        """Add a message; returns what is left to await, such as a client that is too slow, or None."""
        if not self.put_at_once(message):
            return self._put_when_possible(message)
        if self._burst < MAX_BURST:
            return None
        self._burst = 0
        return asyncio.sleep(0)

    async def _put_when_possible(self, message: bytes) -> None:
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
        """Add a message if that is possible without waiting; returns whether it is."""
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
        self._budget.bytes += size

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
        """Note that the client reads no longer."""
        self.reader = None
        self.taken()  # or lost: what was being sent is not sent again
        if self.is_ended and not self._waiting:  # else the last one that waits moves all messages
            self.drop()
        self._room.set()

    def taken(self) -> None:
        """Note that the client has received what `take` returned."""
        self._budget.bytes -= self._sending
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


# --- Messages that arrived -------------------------------------------------------------------------------------------


class Inbox:
    """Messages of the peer that wait to be read.

    Text counts in bytes from the first byte that is received until it is parsed, and a message with its memory until it
    is taken; both share the budget. `max_bytes` is the most text that may wait, or have become messages that wait.
    """

    def __init__(self, max_messages: int, max_bytes: int, budget: SharedMemory) -> None:
        self._messages: deque[tuple[Message | Unreadable, int | None]] = deque()  # with the bytes that each counts
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._budget = budget
        self._held = MemoryInUse(budget, overhead=_OVERHEAD)
        self._bytes = 0
        self._arrived: Callable[[bool], None] | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self.turn = asyncio.Lock()  # of those that wait for room
        self.ended_at: float | None = None

    def attach(self, arrived: Callable[[bool], None]) -> None:
        """Call `arrived` when messages have arrived, and at the end, with True."""
        self._arrived = arrived
        if self.is_ended:
            arrived(True)

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

    def lacks_room_for_text(self, size: int = 0) -> bool:
        """True if so many more bytes exceed the budget. A few may wait in any case: a cancellation makes room."""
        return self._bytes + size > _CHUNK and self._budget.lacks(size)

    def lacks_room_for(self, message: Message | Unreadable) -> bool:
        """True if a message exceeds the budget. A small one may wait in any case if it is the only one."""
        if isinstance(message, Unreadable) or not self._held.exceeds_shared(message):
            return False
        return len(self._messages) > 0 or memory_of_message(message) > _SMALL

    def count(self, size: int) -> None:
        """Count text that is being received, or no longer is."""
        self._bytes += size
        self._budget.bytes += size
        if size < 0:
            self._room.set()

    def put(self, message: Message | Unreadable) -> None:
        """Add a message. It counts if it waits, and is not taken at once."""
        self._messages.append((message, None))
        if self._arrived is not None:
            self._arrived(False)
        if self._messages:
            self._messages[-1] = message, self._hold(message)
            self._changed.set()

    def _hold(self, message: Message | Unreadable) -> int:
        if isinstance(message, Message):
            size = message.size
            self._held.add(message)
        else:
            size = 2 * _OVERHEAD + memory_of([message.value, message.error.data])  # what the peer sent
            self._budget.bytes += size
        self._bytes += size
        return size

    async def room(self) -> None:
        """Wait until the inbox is not full."""
        while self.is_full and not self.is_ended:
            self._room.clear()
            await self._room.wait()

    def take(self) -> Message | Unreadable | None:
        """The next message if there is one."""
        if not self._messages:
            return None
        message, size = self._messages.popleft()
        if size is not None:
            self._bytes -= size
            if isinstance(message, Message):
                self._held.remove(message)
            else:
                self._budget.bytes -= size
            self._room.set()
        return message

    async def get(self) -> Message | Unreadable | None:
        """Wait for the next message; None at the end."""
        while (message := self.take()) is None and not self.is_ended:
            self._changed.clear()
            await self._changed.wait()
        return message

    def clear(self) -> None:
        """Drop all messages: nothing reads them any more."""
        while self.take() is not None:
            pass

    def end(self) -> None:
        """End the inbox after the messages that it has."""
        if self.is_ended:
            return
        self.ended_at = asyncio.get_running_loop().time()
        self._changed.set()
        self._room.set()
        if self._arrived is not None:
            self._arrived(True)
