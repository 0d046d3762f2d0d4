"""What a peer says of itself in the request that negotiates the version: kept as text, and not without limit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Generic, Literal, TypeVar

from ._base import Introduction, ProtocolInfo
from .log import logger
from .message import loads_json

T = TypeVar("T")

MAX_INTRODUCTION_BYTES: Final = 2**16
"""The most text that is kept of what a peer says of itself. Known ones say less than 2 KiB."""


class Provisional(Generic[T]):
    """What the requests of a peer bring: it counts while one is handled, and after it if it is the first to succeed."""

    __slots__ = ("_handled", "_kept")

    def __init__(self) -> None:
        self._handled: list[T] = []
        self._kept: list[T] = []

    @property
    def latest(self) -> T | None:
        """What counts; None if nothing was brought yet."""
        found = self._kept or self._handled
        return found[-1] if found else None

    def begin(self, brought: T) -> None:
        """Take what a request brings that is handled now."""
        self._handled.append(brought)

    def end(self, brought: T, *, keep: bool) -> None:
        """Keep what a request has brought that has succeeded, unless an earlier one has; forget that of others."""
        if keep and not self._kept:
            self._kept = [brought]
        self._handled.remove(brought)

    def replace(self, brought: T) -> None:
        """Keep what a result has brought."""
        self._kept = [brought]


def introduction_text(raw: Any, names: Collection[str], dumps: Callable[[Any], bytes]) -> bytes | None:
    """The text of those properties of params or a result by which a peer introduces itself; None if it is too large."""
    found: Any = raw
    said = {name: found[name] for name in names if name in found} if isinstance(raw, dict) else {}
    try:
        text = dumps(said)
    except (TypeError, ValueError, RecursionError) as error:
        logger.warning("what the peer says of itself is not kept: %s", error)
        return None
    if len(text) > MAX_INTRODUCTION_BYTES:
        reason = f"it has {len(text):,} bytes, and the limit is {MAX_INTRODUCTION_BYTES:,}"
        logger.warning("what the peer says of itself is not kept: %s", reason)
        return None
    return text


def introduced(text: bytes | None) -> dict[str, Any] | None:
    """The properties in such a text, read anew: whoever gets them may change them."""
    return None if text is None else loads_json(text)


def names_in(protocol: ProtocolInfo, part: Literal["params", "result"]) -> list[str]:
    """The names of these properties in the params or in the result of the request that negotiates the version."""
    how = protocol.negotiation
    said = Introduction() if how is None else how.params if part == "params" else how.result
    return [name for name in (said.capabilities, said.info) if name is not None]
