"""The sessions of the agent, and the work in them. They last as long as the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from uuid import uuid4

from .acp import ConnectionClosed, InvalidParamsError, InvalidRequestError
from .agent import Turn, TurnEnd, work

logger = logging.getLogger(__name__)


class Session:
    """A conversation, with one prompt at a time."""

    def __init__(self, cwd: str) -> None:
        self.id = uuid4().hex
        self.cwd = cwd
        self._task: asyncio.Task[TurnEnd] | None = None
        self._is_cancelled = False

    @property
    def is_busy(self) -> bool:
        """True while there is work on a prompt."""
        return self._task is not None

    def start(self, prompt: Sequence[str], turn: Turn) -> asyncio.Task[TurnEnd]:
        """Begin to work on a prompt. Raises `InvalidRequestError` if there is another one."""
        if self._task is not None:
            raise InvalidRequestError("one prompt at a time")
        self._is_cancelled = False
        self._task = asyncio.create_task(self._run(prompt, turn))
        return self._task

    async def _run(self, prompt: Sequence[str], turn: Turn) -> TurnEnd:
        end: TurnEnd = "end_turn"
        try:
            await turn.begin()
            await work(prompt, turn)
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise  # not by `cancel`
            end = "cancelled"
        except ConnectionClosed:
            pass  # nobody is there to see more
        except Exception:
            logger.exception("the work on a prompt failed")
            end = "error"
        finally:
            self._task = None
        with contextlib.suppress(ConnectionClosed):
            await turn.end(end)
        return end

    async def cancel(self) -> asyncio.Task[TurnEnd] | None:
        """Stop the work on the prompt, wherever it is; returns its task."""
        await asyncio.sleep(0)  # the work has begun then, and will tell how it ended
        task = self._task
        if task is not None and not self._is_cancelled:
            self._is_cancelled = True
            task.cancel()
        return task


class Sessions(dict[str, Session]):
    """The sessions by their ids."""

    def __missing__(self, session_id: str) -> Session:
        raise InvalidParamsError(f"no session {session_id!r}")

    def open(self, cwd: str) -> Session:
        """Begin a session."""
        session = Session(cwd)
        self[session.id] = session
        return session

    async def close(self, session_id: str) -> None:
        """End a session, and the work in it. Raises `InvalidParamsError` for an unknown one."""
        task = await self[session_id].cancel()
        if task is not None:
            await asyncio.wait([task])
        self.pop(session_id, None)
