"""The tasks of a connection, and its log: no task outlives it unnoticed, and none fails in silence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from .dispatch import ConnectionClosed

logger: Final = logging.getLogger("acp")
"""Gets all that goes wrong, in full: the peer learns no more than it must."""

PROGRAM_ENDS: Final = (KeyboardInterrupt, SystemExit)
"""What is never caught. Whatever else a handler or a hook raises ends neither the connection nor its tasks."""

_MAX_LINES: Final = 10
_SECONDS: Final = 30.0
_MAX_TEXT: Final = 200


@dataclass
class _Quota:
    """How many lines of one kind may still be logged until `end`, and how many were left out."""

    end: float = 0.0
    left: int = 0
    omitted: int = 0


class PeerLog:
    """Warnings about what the peer does wrong: one line for each, and at most 10 of a kind in 30 seconds."""

    def __init__(self) -> None:
        self._quotas: dict[str, _Quota] = {}

    def warn(self, text: str, *values: object) -> None:
        """Log `text % values`, unless there were too many with this `text`; the next one says how many."""
        quota = self._quotas.setdefault(text, _Quota())
        now = asyncio.get_running_loop().time()
        if now >= quota.end:
            quota.end, quota.left = now + _SECONDS, _MAX_LINES
        if quota.left == 0:
            quota.omitted += 1
            return
        quota.left -= 1
        self._tell_omitted(text, quota)
        logger.warning(text, *map(one_line, values))

    def failed(self, what: str, error: BaseException) -> None:
        """Log that `what` has failed: a mistake of the peer as one, and a failure of this side in full."""
        if getattr(error, "is_from_peer", False):
            self.warn("an answer of the peer has failed %s: %s", what, error)
            logger.debug("%s failed", what, exc_info=error)
        else:
            logger.error("%s failed", what, exc_info=error)

    def close(self) -> None:
        """Log how many lines were left out."""
        for text, quota in self._quotas.items():
            self._tell_omitted(text, quota)

    def _tell_omitted(self, text: str, quota: _Quota) -> None:
        if quota.omitted:
            logger.warning("left out %d lines that begin: %s", quota.omitted, text.partition("%")[0].rstrip(" :"))
            quota.omitted = 0


def one_line(value: object, max_characters: int = _MAX_TEXT) -> str:
    """The start of a text of the peer, such that it stays one line of the log and controls no terminal."""
    try:
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    except Exception:  # an exception from elsewhere may have any values in it
        return type(value).__name__
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:max_characters])
    return shown if len(text) <= max_characters else f"{shown}..."


def is_running(task: asyncio.Task[Any] | None) -> bool:
    """Whether `task` is what runs now; while its coroutine is thrown away unfinished, it is not."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


class Tasks:
    """Tasks that end together; each may take `seconds` for that, and is abandoned then."""

    def __init__(self, seconds: float, peer_log: PeerLog) -> None:
        self._seconds = seconds
        self._peer_log = peer_log
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task. What it raises goes to the log, but for the end of the connection."""
        task = asyncio.Task(coroutine)  # never begins at once, as those of an eager task factory do
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        # an interrupt (Ctrl-C on Python 3.10) goes its own way
        if error is not None and not isinstance(error, (ConnectionClosed, *PROGRAM_ENDS)):
            self._peer_log.failed("a task of the connection", error)

    async def end(self) -> None:
        """Cancel all tasks, and wait for their end."""
        for task in self._running:
            task.cancel()
        if self._running:
            _, left = await asyncio.wait(self._running, timeout=self._seconds)
            for task in left:
                logger.warning("task did not finish during clean-up and was abandoned: %r", task)

    async def take_step(self, what: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Take one of the last steps. One that fails or does not end keeps nothing from being done after it."""
        step = asyncio.create_task(coroutine)
        try:
            for _ in range(2):
                await asyncio.wait({step}, timeout=self._seconds)
                if step.done():
                    break
                step.cancel()
        finally:
            step.cancel()
        if not step.done():
            logger.warning("%s did not finish during clean-up and was abandoned", what)
        elif step.cancelled():
            logger.error("%s failed: it was cancelled", what)
        elif (error := step.exception()) is not None:
            self._peer_log.failed(what, error)
