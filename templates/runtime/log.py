"""The log of a connection: mistakes of the peer, and failures on this side."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from .dispatch import ConnectionClosed

logger: Final = logging.getLogger("acp")
"""Gets every failure in full; the peer learns no details."""

PROGRAM_ENDS: Final = (KeyboardInterrupt, SystemExit)
"""Never caught. Whatever else a handler or a hook raises ends neither the connection nor its tasks."""

_MAX_LINES: Final = 10
_SECONDS: Final = 30.0
_MAX_TEXT: Final = 200


@dataclass
class _Quota:
    """The number of lines of one kind that may still be logged until `end`, and the number of omitted ones."""

    end: float = 0.0
    left: int = 0
    omitted: int = 0


class PeerLog:
    """The log of one connection. Mistakes of the peer are one line each, and at most 10 of a kind in 30 seconds."""

    def __init__(self) -> None:
        self._quotas: dict[str, _Quota] = {}

    def warn(self, text: str, *values: object) -> None:
        """Log a mistake of the peer: `text % values`, within the limit for this `text`."""
        quota = self._quotas.setdefault(text, _Quota())
        now = asyncio.get_running_loop().time()
        if now >= quota.end:
            quota.end, quota.left = now + _SECONDS, _MAX_LINES
        if quota.left == 0:
            quota.omitted += 1
            return
        quota.left -= 1
        self._report_omitted(text, quota)
        logger.warning(text, *map(one_line, values))

    def failed(self, what: str, error: BaseException) -> None:
        """Log that `what` has failed: in full, but for an error that the peer has sent."""
        if getattr(error, "is_from_peer", False):
            self.warn("an error from the peer made %s fail: %s", what, error)
            logger.debug("%s failed", what, exc_info=error)
        else:
            logger.error("%s failed: %s", what, one_line(error), exc_info=error)

    def handler_failed(self, method: str, error: BaseException, *, is_closed: bool) -> None:
        """Log that a handler has failed, unless that is a consequence of the connection being closed."""
        what = f"the handler of {method}"
        if is_closed and isinstance(error, ConnectionClosed):
            logger.debug("%s failed", what, exc_info=error)
        else:
            self.failed(what, error)

    def close(self) -> None:
        """Log how many lines were omitted."""
        for text, quota in self._quotas.items():
            self._report_omitted(text, quota)

    def _report_omitted(self, text: str, quota: _Quota) -> None:
        if quota.omitted:
            logger.warning("left out %d lines that begin: %s", quota.omitted, text.partition("%")[0].rstrip(" :"))
            quota.omitted = 0


def one_line(value: object, max_characters: int = _MAX_TEXT) -> str:
    """The start of a text, as one line without control characters."""
    try:
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    except PROGRAM_ENDS:
        raise
    except BaseException:  # of an exception class from elsewhere
        return type(value).__name__
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:max_characters])
    return shown if len(text) <= max_characters else f"{shown}..."
