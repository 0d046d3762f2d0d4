"""Queues of turns: in each session one turn runs at a time, in the order in which the prompts came."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from ..decision import called_by, explains
from ..read_loop import answered_anyway

T = TypeVar("T")

logger: Final = logging.getLogger("acp")


def check_work(work: object) -> None:
    """Raise `TypeError` for the work of a turn that is no coroutine."""
    if not isinstance(work, Coroutine):
        found = type(work).__name__
        raise TypeError(f"the work on a prompt must be a coroutine, found {found}: write `async def`, without `yield`")


def _log_exit(work: Coroutine[Any, Any, Any], error: BaseException | None) -> None:
    """Log `sys.exit` in the work of a turn, which ends the program at once: no handler gets it, and could say so."""
    if isinstance(error, SystemExit) and not vars(error).get("acp_is_logged"):
        vars(error)["acp_is_logged"] = True
        logger.warning("%s has ended the program: %r", getattr(work, "__qualname__", "the work on a prompt"), error)


class _Join(asyncio.Future[None]):
    """Waits for a worker. Cancelling the task that waits cancels the worker in the same moment, and is noted."""

    def __init__(self, worker: asyncio.Task[Any]) -> None:
        super().__init__()
        self.was_cancelled = False
        self._worker = worker
        worker.add_done_callback(lambda _: self.set_result(None))

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the worker instead: it may clean up, and then this future is done."""
        self.was_cancelled = True
        return self._worker.cancel(msg)


_unfinished: Final = set[asyncio.Task[None]]()
"""Tasks that go on even if nobody waits for them; the event loop itself keeps no strong reference to them."""


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.Task(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    return task


class QueuedTurn:
    """A prompt of a session: it waits for earlier ones, then its work runs, then it has ended."""

    reporter: asyncio.Task[Any] | None = None
    """The task that waits for the work, and reports its end; None before the work runs."""
    at_end: tuple[Callable[[bool], Awaitable[object]], ...] = ()
    """What is called when the work has ended, before that is reported: with true if the turn was cancelled."""
    answered: frozenset[str] = frozenset()
    """The methods of requests in this turn that the client answers now, as it has cancelled the turn."""

    def __init__(self, session_id: str) -> None:
        loop = asyncio.get_running_loop()
        self.session_id = session_id
        self.is_cancelled = False
        self.ended: asyncio.Future[None] = loop.create_future()
        self._admitted: asyncio.Future[None] = loop.create_future()
        self._worker: asyncio.Task[Any] | None = None

    @property
    def is_working(self) -> bool:
        """True while its work runs; false also while its end is reported."""
        return self._worker is not None and not self._worker.done()

    def admit(self) -> None:
        """End the wait for earlier prompts."""
        if not self._admitted.done():
            self._admitted.set_result(None)

    async def wait_admitted(self) -> None:
        """Wait for earlier prompts. Returns at once if there are none."""
        await self._admitted

    def cancel(self) -> None:
        """Cancel the work, or prevent its start. A second call does not disturb the work, which may be cleaning up."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self.admit()
            if self._worker is not None:
                self._worker.cancel()

    async def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run `work` as a task: cancelling it does not touch the task that waits here, which reports the end.

        Returns the result of `work`; None if the turn was cancelled and there is none. Raises what `work` raises,
        unless the turn was cancelled: then errors are a consequence. Raises `CancelledError` only if the task that
        waits was cancelled; for `work` that cancels itself, it is a `RuntimeError`.
        """
        if self.is_cancelled:
            return None
        self.reporter = asyncio.current_task()
        token = answered_anyway.set(lambda method: method in self.answered)
        self._worker = worker = asyncio.Task(work)  # it and its tasks inherit that
        answered_anyway.reset(token)
        join = _Join(worker)
        try:
            await join
            return worker.result()
        except asyncio.CancelledError as error:
            if not self.is_cancelled:
                if join.was_cancelled:
                    raise
                raise RuntimeError("the work on a prompt has cancelled itself") from error
        except Exception:
            if not self.is_cancelled:
                raise
            logger.debug("the work of a cancelled turn failed", exc_info=True)
        finally:
            if worker.done() and not worker.cancelled():
                # this marks it as retrieved: the waiting task may be cancelled as the work fails
                _log_exit(work, worker.exception())
            if self.at_end:
                await asyncio.shield(_started(self._end(is_cancelled=self.is_cancelled or join.was_cancelled)))
        return None

    async def _end(self, *, is_cancelled: bool) -> None:
        for callback in self.at_end:
            try:
                await callback(is_cancelled)
            except ConnectionError:
                pass  # nobody is there to be told
            except Exception:
                logger.exception("what was to be done at the end of a turn has failed")


class TurnQueue:
    """The base of `Turns`: cancels the turns of a session, and closes the session."""

    ANSWERED: frozenset[str] = frozenset()
    """The methods of requests that a client has to answer when it has cancelled their turn: nobody withdraws them."""

    def __init__(self) -> None:
        self._turns: dict[str, list[QueuedTurn]] = {}  # by session: the running one, then those that wait
        self._closing: list[str] = []  # session ids, one for each call of `close`: several can wait at a time

    def cancel(self, session_id: str) -> None:
        """Cancel the running turn of a session and all prompts that wait for it. Nothing happens if there is none.

        This is for `session/cancel`: what the client answers then by itself is not cancelled by `$/cancel_request`. The
        work of a turn is cancelled once: later calls let it clean up.
        """
        for turn in self._turns.get(session_id, ()):
            turn.answered = self.ANSWERED
            turn.cancel()

    async def close(self, session_id: str) -> None:
        """Cancel the turns of a session, and wait until they have ended. Prompts that arrive meanwhile are cancelled.

        Forget the session before this call or right after it, without an `await` between.
        """
        self._closing.append(session_id)
        try:
            turns = [*self._turns.get(session_id, ())]
            for turn in turns:
                turn.cancel()
            if turns:
                await asyncio.wait([turn.ended for turn in turns])
        finally:
            self._closing.remove(session_id)

    async def close_all(self) -> None:
        """Cancel all turns, and wait until they have ended."""
        turns = [turn for turns in self._turns.values() for turn in turns]
        for turn in turns:
            turn.cancel()
        if turns:
            await asyncio.wait([turn.ended for turn in turns])

    def has_turns(self, session_id: str) -> bool:
        """True while a turn of the session runs or prompts wait."""
        return session_id in self._turns

    @explains
    def running(self, session_id: str) -> QueuedTurn:
        """The turn of the session that runs now. Raises `RuntimeError` if there is none."""
        for turn in self._turns.get(session_id, ())[:1]:
            if turn.reporter is not None:
                return turn
        raise RuntimeError(f"session_id {session_id!r:.80}{called_by()} has no turn that runs: call this in one")

    async def _enter(self, session_id: str) -> QueuedTurn:
        """Wait for the earlier prompts of the session. The turn may be cancelled already when this returns."""
        turn = QueuedTurn(session_id)
        turns = self._turns.setdefault(session_id, [])
        turns.append(turn)
        turns[0].admit()
        if session_id in self._closing:
            turn.cancel()
        try:
            await turn.wait_admitted()
        except BaseException:
            self._leave(turn)
            raise
        return turn

    def _leave(self, turn: QueuedTurn) -> None:
        """End a turn, and admit the next one."""
        turns = self._turns[turn.session_id]
        turns.remove(turn)
        turn.ended.set_result(None)
        if turns:
            turns[0].admit()
        else:
            del self._turns[turn.session_id]
