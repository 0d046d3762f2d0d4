"""The tasks of a connection: none outlives it unnoticed, and none fails silently."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .dispatch import ConnectionClosed
from .log import PROGRAM_ENDS, log_failure, logger


def is_running(task: asyncio.Task[Any] | None) -> bool:
    """True if `task` is the current one; False while its coroutine is closed before it has finished."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


class Tasks:
    """Tasks that end together; each has `seconds` to clean up, and is abandoned after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task. What it raises is logged, except `ConnectionClosed`."""
        task = asyncio.Task(coroutine)  # an eager task factory would run it at once
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        # asyncio itself raises an interrupt (Ctrl-C on Python 3.10)
        if error is not None and not isinstance(error, (ConnectionClosed, *PROGRAM_ENDS)):
            log_failure("a task of the connection", error)

    async def end(self) -> None:
        """Cancel all tasks, and wait for them."""
        for task in self._running:
            task.cancel()
        if self._running:
            _, left = await asyncio.wait(self._running, timeout=self._seconds)
            for task in left:
                logger.warning("task did not finish during clean-up and was abandoned: %r", task)

    async def run_step(self, what: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a step of the clean-up; a step that fails or hangs does not prevent the next one."""
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
            log_failure(what, error)
