"""What is common to the protocols in which messages pass: exchanges, and connections that are followed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from acpgen.roles import Side

MAX_HEAD = 2**17
"""The most bytes of the headers of a message."""
MAX_OPEN = 1_000
"""The most exchanges of a connection at a time."""

Headers = Mapping[str, str]


class Exchange(Protocol):
    """What learns of a request and its response."""

    def sent(self, data: bytes) -> None:
        """Learn of a part of the request's body."""

    def sent_all(self) -> None:
        """Learn of the end of the request."""

    def answered(self, status: int, headers: Headers) -> None:
        """Learn of the start of the response."""

    def got(self, data: bytes) -> None:
        """Learn of a part of the response's body."""

    def got_all(self) -> None:
        """Learn of the end of the response."""

    def framed(self, side: Side, data: bytes, *, is_last: bool) -> None:
        """Learn of a part of a message on a WebSocket."""

    def end(self) -> None:
        """Learn that nothing more comes, on a WebSocket or of a connection that has broken."""


Begin = Callable[[str, Headers], Exchange]


class BrokenError(Exception):
    """The bytes cannot be followed any more."""


class Followed(ABC):
    """A connection: what its client has sent is passed on through it, and what it has received is shown to it."""

    @abstractmethod
    def sent(self, data: bytes) -> bytes:
        """What is to be passed on of the client's bytes. Raises `BrokenError` if nothing more can be passed on."""

    @abstractmethod
    def received(self, data: bytes) -> None:
        """Follow bytes of the remote; none are its end. After a `BrokenError` they are only passed on."""

    @abstractmethod
    def end(self) -> None:
        """Follow the end of the connection."""


class Hosts:
    """The names of the listener, each of which becomes that of the remote. Others are passed on: it may refuse them."""

    def __init__(self, own: Iterable[str], remote: str) -> None:
        self._own = {each.lower().encode() for each in own}
        self.remote = remote.encode()

    def of(self, stated: bytes) -> bytes:
        """The host that the remote gets."""
        return self.remote if stated.lower() in self._own else stated


def named(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by their names in lower case."""
    return {bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1") for name, value in headers}
