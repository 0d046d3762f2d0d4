"""The memory of messages that many clients share: estimated before a text is parsed, and counted while it is held.

A line of JSON takes many times its bytes once it is parsed. A process that serves one client bounds the text alone; one
that serves many of them counts here what each identity makes it keep, and refuses what is too much.
"""

from __future__ import annotations

from math import inf
from sys import getsizeof
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ..message import Message, Unreadable, outside_strings, too_large
from ..options import ConnectionOptions
from ..transport import Wire, wire_for

_MAX_EXPANSION: Final = 64
"""The most bytes of memory for a byte of JSON: for `{"":{"":…` on Python 3.10."""
_COST: Final = {b"{": 232, b"{}": -168, b"[": 96, b":": 100, b",": 64}
"""The bytes of an object, an array, a property and an item: measured, and rounded up. An empty object takes less."""
_WIDER: Final = {**_COST, b":": 128, b",": 80}
"""The same if strings may not be ASCII: each of these takes at least 24 bytes more."""
_NO_SIGN: Final = bytes(byte for byte in range(256) if byte not in b'{}[]:,"')
_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""First bytes of characters that make a string take four bytes for each of its characters."""

_ENVELOPE: Final = 512
"""The most memory of a message beside its value."""
_TASK: Final = 2**13
"""The memory of a request in flight beside its message."""
_SMALL: Final = 2**10
"""Messages up to this size are not measured: the bound is close enough, even for 1024 of them in flight."""


# --- Before it is parsed ---------------------------------------------------------------------------------------------


def estimating_wire(options: ConnectionOptions) -> Wire:
    """The `Wire` of a connection, which does not parse a text whose estimate is above `max_in_flight_bytes`."""
    limit, wire = options.max_in_flight_bytes, wire_for(options)

    def check(line: bytes) -> Unreadable | None:
        if len(line) * _MAX_EXPANSION <= limit or (estimate := estimate_memory(line)) <= limit:
            return None
        return too_large(f"estimated at {estimate} bytes of memory; the limit is {limit} (max_in_flight_bytes)", line)

    wire.check = check
    return wire


def estimate_memory(line: bytes) -> int:
    """An upper bound of the memory for parsing `line`, in bytes; a close one for all but short lines."""
    width = _width(line)
    costs = _COST if width == 1 else _WIDER
    signs = outside_strings(line, _NO_SIGN)
    return len(line) * width + sum(part.count(sign) * cost for part in signs for sign, cost in costs.items())


def _width(line: bytes) -> int:
    """The bytes for each character of the strings in `line`: one wide character makes a whole string wide."""
    escaped, is_ascii = b"\\u" in line, line.isascii()
    is_wide = escaped and (b"\\ud" in line or b"\\uD" in line)
    if is_wide or not (is_ascii or all(lead not in line for lead in _WIDE)):
        return 4
    return 1 if is_ascii and not escaped else 2


# --- While it is held ------------------------------------------------------------------------------------------------


def memory_of(value: Any) -> int:
    """The memory of a JSON value, in bytes."""
    total, names = 0, set[str]()
    rest: list[Any] = [value]
    while rest:
        each: Any = rest.pop()
        inner: Any = each
        total += getsizeof(each)
        if isinstance(each, dict):
            names.update(inner)  # equal names are one string
            rest.extend(inner.values())
        elif isinstance(each, list):
            rest.extend(inner)
    return total + sum(map(getsizeof, names))


_measured: Final[WeakKeyDictionary[Message, int]] = WeakKeyDictionary()
"""The memory of messages: to measure one visits all of its value."""


def memory_of_message(message: Message) -> int:
    """The memory of a message, in bytes, with the text that a proxy keeps of it; measured once."""
    found = _measured.get(message)
    if found is None:
        text: str = getattr(message, "text", "")
        if 0 < message.size <= _SMALL:
            found = message.size * _MAX_EXPANSION
        else:
            found = _ENVELOPE + getsizeof(message.method) + memory_of(message.value)
        found = _measured[message] = found + (getsizeof(text) if text else 0)
    return found


def _bound_of(message: Message) -> int:
    """The most memory that a text of this size can take, in bytes; what it takes if the size is not known."""
    return message.size * _MAX_EXPANSION or memory_of_message(message)


class SharedMemory:
    """The memory that the connections of one client hold, in bytes, and its limit."""

    def __init__(self, limit: float = inf) -> None:
        self.limit = limit
        self.bytes = 0
        self.parts: WeakSet[MemoryInUse] = WeakSet()

    def in_flight(self, limit: int) -> MemoryInUse:
        """Count the requests in flight of one connection, which has a limit of its own, too."""
        return MemoryInUse(self, limit=limit, overhead=_TASK)

    def lacks(self, size: int = 0) -> bool:
        """True if so many more bytes would exceed the limit."""
        if self.bytes + size <= self.limit:
            return False
        for part in self.parts:
            part.measure()
        return self.bytes + size > self.limit


class MemoryInUse:
    """Messages that are held, and their memory, in bytes.

    Each counts with its bound, which costs nothing. Only if that exceeds a limit, messages are measured, once each.
    `overhead` is what a message takes of the shared memory beside its own.
    """

    def __init__(self, shared: SharedMemory, *, limit: float = inf, overhead: int = 0) -> None:
        self.bytes = 0
        self._shared = shared
        self._limit = limit
        self._overhead = overhead
        self._counted: dict[Message, int] = {}
        self._bounds: set[Message] = set()  # those among them that are counted with their bound
        shared.parts.add(self)

    def add(self, message: Message) -> None:
        """Hold a message."""
        size = self._counted[message] = _bound_of(message)
        self._bounds.add(message)
        self.bytes += size
        self._shared.bytes += size + self._overhead

    def remove(self, message: Message) -> None:
        """Hold a message no longer."""
        size = self._counted.pop(message)
        self._bounds.discard(message)
        self.bytes -= size
        self._shared.bytes -= size + self._overhead

    def free(self, message: Message) -> None:
        """Give up the value of a message, which counts as before: its response waits to be read, and takes memory."""
        if self.bytes > self._limit // 2:
            self.measure()
        message.value = None

    def measure(self) -> None:
        """Count each message with its memory in place of its bound."""
        for message in self._bounds:
            less = self._counted[message] - memory_of_message(message)
            self._counted[message] -= less
            self.bytes -= less
            self._shared.bytes -= less
        self._bounds.clear()

    def exceeded(self, message: Message) -> str:
        """The limit that one more message would exceed; empty if none."""
        bound, shared = _bound_of(message), self._shared
        if self.bytes + bound <= self._limit and shared.bytes + bound + self._overhead <= shared.limit:
            return ""
        self.measure()
        if self.bytes + (size := memory_of_message(message)) > self._limit:
            beside = f"{size} bytes of memory beside {self.bytes} of others"
            return f"{beside}; the limit is {self._limit} bytes (max_in_flight_bytes)"
        if not self.exceeds_shared(message):
            return ""
        return f"too much for the connections of one client; the limit is {shared.limit} bytes (max_bytes_per_identity)"

    def exceeds_shared(self, message: Message) -> bool:
        """True if one more message would exceed the limit of the shared memory."""
        lacks, overhead = self._shared.lacks, self._overhead
        return lacks(_bound_of(message) + overhead) and lacks(memory_of_message(message) + overhead)
