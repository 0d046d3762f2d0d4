"""The tasks of a connection, which end together, and the steps of its clean-up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from .dispatch import ConnectionClosed
from .log import PROGRAM_ENDS, log_failure, logger


def is_running(task: asyncio.Task[Any] | None) -> bool:
    """True if `task` is the current one; False while its coroutine is closed before it has finished."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def check_loop(own: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
    """Return the event loop that runs. Raises `RuntimeError` if a connection has another one of its `own`.

    No response could wake what waits in another one.
    """
    loop = running_loop()
    if loop is None or own not in (None, loop):
        from .places import caller

        where = caller()
        raise RuntimeError(
            f"a stub{where} is used outside of the event loop of its connection, where it would wait for ever: "
            "await it in that loop, or call blocking(stub) from another thread"
        )
    return loop


def check_outcome(task: asyncio.Task[None]) -> None:
    """Log what a task has raised, except `ConnectionClosed`."""
    error = None if task.cancelled() else task.exception()
    # asyncio itself raises an interrupt (Ctrl-C on Python 3.10)
    if error is not None and not isinstance(error, (ConnectionClosed, *PROGRAM_ENDS)):
        log_failure("a task of the connection", error)


class Tasks:
    """Tasks that end together; each has `seconds` to clean up, and is abandoned after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[asyncio.Task[None], None] = {}

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task. What it raises is logged, except `ConnectionClosed`."""
        task = asyncio.Task(coroutine)  # an eager task factory would run it at once
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        check_outcome(task)

    async def end(self, others: Iterable[asyncio.Task[None]], name: Callable[[asyncio.Task[None]], str]) -> None:
        """Cancel all tasks, and `others`, and wait for them. `name` says what one is for, in the log."""
        tasks = dict.fromkeys((*self._running, *others))
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._seconds)
            for task in left:
                from .places import waits_at

                text = "%s ignores that it was cancelled: it did not finish during clean-up and was abandoned%s"
                logger.warning(text, name(task), waits_at(task))

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
