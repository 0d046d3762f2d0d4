"""What is common to the protocols in which messages pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_HEAD = 2**17
"""The most bytes of the headers of a message."""
MAX_OPEN = 1_000
"""The most exchanges of a connection at a time."""

Headers = Mapping[str, str]


class BrokenError(Exception):
    """The bytes cannot be followed any more."""


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
