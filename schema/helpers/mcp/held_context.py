"""An asynchronous context manager that a task of its own enters and leaves."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_logger: Final = logging.getLogger("acp")


class HeldContext(Generic[T]):
    """A context that is open from `start` to `stop`, which any task may call.

    Task groups of anyio must be left by the task that entered them, and a handler of ACP ends with its message.
    """

    def __init__(self, context: AbstractAsyncContextManager[T], *, name: str) -> None:
        self._context = context
        self._name = name
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> T:
        """Enter the context. Raises what it raises; if cancelled, cancels that, too."""
        started: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(started))
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait({self._task})
            raise

    async def stop(self) -> None:
        """Leave the context. What it raises is logged."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self, started: asyncio.Future[T]) -> None:
        try:
            async with self._context as value:
                started.set_result(value)
                await self._stopping.wait()
        except Exception as error:
            if started.done():
                _logger.exception("%s failed while it was closed", self._name)
            else:
                started.set_exception(error)
