"""A prompt that was sent: the changes that follow, as they arrive, and its end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar

from ..errors import RequestError
from ..types import PromptResponse
from .idle_time import TurnStalledError
from .session_entries import AgentMessage, AttributesChange, MessageChange, PlanChange, ToolCallChange

__all__ = ["NoAnswerError", "SessionClosedError", "SessionFullError", "SlowReaderError", "Turn", "TurnResult"]

Ch = TypeVar("Ch")

_IN_STATE = ("AttributesChange", "CompactionChange", "ToolCallChange")
"""The changes that have nothing but what the state has."""
_CANCELLED = -32800
"""The code of a request that was cancelled."""


class SlowReaderError(Exception):
    """The changes of a turn were not read, and too many were waiting; the turn was cancelled."""


class SessionFullError(Exception):
    """The agent has reported more in a session than its state may take; the session was given up."""


class SessionClosedError(RuntimeError):
    """The session was closed, or opened again as another object: nothing is sent in it any more."""


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """The end of a turn."""

    stop_reason: str
    """The reason: `end_turn`, `cancelled`, `refusal`, or another one of the protocol or of the agent."""
    text: str
    """The text of the agent's messages in this turn."""
    message_id: str = ""
    """The id of the prompt, if the agent has given it one."""
    is_unasked: bool = False
    """True if the agent has cancelled the turn by itself: neither this side has asked for it, nor has the user said no
    to a question of the turn. Some agents end a turn so when they are told to exit."""
    response: PromptResponse | None = None
    """The answer to the prompt, with its `meta` and what extensions add, such as `usage`. None if there is none, as for
    a prompt that was not sent."""
    update: Any = None
    """The update that has ended the turn in protocol 2, with its `meta`."""


class NoAnswerError(Exception):
    """A turn has ended, and not with an answer: the agent has refused, was cancelled, or has reached a limit."""

    def __init__(self, result: TurnResult) -> None:
        cause = "the agent has cancelled it by itself" if result.is_unasked else f"stop reason {result.stop_reason!r}"
        super().__init__(f"the turn has ended without an answer: {cause}; `text` has what the agent has said")
        self.result = result

    @property
    def stop_reason(self) -> str:
        """The reason, such as `refusal`, `max_tokens`, `max_turn_requests` or `cancelled`."""
        return self.result.stop_reason

    @property
    def text(self) -> str:
        """The text of the agent's messages until then."""
        return self.result.text


class Turn(Generic[Ch]):
    """A prompt of a session. It is sent when it is first used: iterated, awaited, or entered.

        async for change in session.prompt("Hello!"):
            if isinstance(change, MessageChange):
                print(change.text, end="")

    Iterating gives the changes until the turn ends; `result` is there then. Awaiting gives the result. Both raise what
    has ended the turn early: a `RequestError`, `ConnectionClosed`, `SlowReaderError` or `TurnStalledError`. Leaving the
    loop, an exception in it, or the cancellation of the task cancels the turn. That goes on behind the loop; at the end
    of `async with session.prompt("Hello!") as turn`, the turn has ended.
    """

    max_pending_bytes: ClassVar[int] = 2**26
    """The most memory of the changes that wait for the reader."""
    may_be_cancelled: bool = False
    """True once the agent was asked to cancel all that it does in the session."""
    is_unasked: bool = False
    """True if the agent has cancelled the turn by itself."""
    response: PromptResponse | None = None
    update: Any = None
    """What the session has got as the end of the turn."""
    _refused_at: tuple[int, int] | None = None

    def __init__(
        self,
        play: Callable[[Turn[Ch]], Awaitable[tuple[str, str]]],
        cancel: Callable[[Turn[Ch]], Awaitable[None]],
        *,
        cancel_seconds: float,
        max_pending: int,
        idle_seconds: float | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.idle_seconds = idle_seconds
        """How long the agent may be idle before the turn is cancelled; None for any time."""
        self._play = play
        self._cancel = cancel
        self._cancel_seconds = cancel_seconds
        self._max_pending = max_pending
        self._check = check  # raises where waiting for the turn would never end
        self._pending = deque[Any]()
        self._sizes = deque[int]()  # of those that are pending, in bytes
        self._size = 0  # their sum
        self._behind: asyncio.Task[None] | None = None
        self._is_read = False
        self._texts: dict[AgentMessage, list[str]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._result: TurnResult | None = None
        self._failure: BaseException | None = None
        self.is_cancelled = False
        """True once the agent was asked to cancel the turn."""

    @property
    def has_ended(self) -> bool:
        """True if it has a result, or has failed."""
        return self._result is not None or self._failure is not None

    @property
    def result(self) -> TurnResult:
        """The result. Raises the error that has ended the turn early, and `RuntimeError` while it runs."""
        if self._failure is not None:
            raise self._failure
        if self._result is None:
            raise RuntimeError("the turn has not ended")
        return self._result

    async def cancel(self) -> None:
        """Ask the agent to cancel the turn, once; it goes on until the agent has ended it.

        Nothing limits how long that takes: leave the loop to give up after `cancel_seconds`.
        """
        if not self.has_ended and not self.is_cancelled:
            self.is_cancelled = True
            await self._cancel(self)

    def __aiter__(self) -> AsyncGenerator[Ch, None]:
        """The changes of the turn."""
        self._is_read = True
        self._start()
        return self._changes()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        """The result of the turn; the changes are not kept."""
        self._is_read = False
        self._forget()
        return self._ended().__await__()

    async def __aenter__(self) -> Turn[Ch]:
        """Send the prompt."""
        self._is_read = True
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel the turn if it has not ended, and wait for its end."""
        await self._stop()

    # --- For the session ---------------------------------------------------------------------------------------------

    def refused(self, entries: int) -> None:
        """Note that the user says no to a question of the turn, when the transcript has so many entries."""
        self._refused_at = self._progress(entries)

    def is_cut_off(self, entries: int) -> bool:
        """True if an end by `cancelled` follows from nothing that this side has said.

        It follows from the user's "no" where the agent has done nothing more since then.
        """
        is_due = self.is_cancelled or self.may_be_cancelled
        return not is_due and self._refused_at != self._progress(entries)

    def _progress(self, entries: int) -> tuple[int, int]:
        return entries, sum(len(parts) for parts in self._texts.values())

    def drop(self) -> None:
        """End the turn, whose prompt was not sent."""
        self._result = TurnResult(stop_reason="cancelled", text="")
        self._wake.set()  # a task that has not begun cannot do so
        if self._task is not None:
            self._task.cancel()

    def receive(self, change: Any, size: int = 0) -> None:
        """Keep a change for the reader; those that follow each other become one where nothing is lost by that.

        `size` is the memory of what has made the change.
        """
        if isinstance(change, MessageChange) and isinstance(change.entry, AgentMessage):
            texts = self._texts.get(change.entry)
            if texts is None or change.is_whole:
                self._texts[change.entry] = texts = []
            texts.append(change.text)
        if not self._is_read or self._failure is not None:
            return
        kind = type(change).__name__
        size = 0 if kind in _IN_STATE else size
        if not (self._pending and self._merge(change)):
            self._pending.append(_Joined(change) if kind in _PARTS else change)
            self._sizes.append(0)
        elif kind not in _PARTS or change.is_whole:  # it replaces the one that waits
            self._size -= self._sizes[-1]
            self._sizes[-1] = 0
        self._sizes[-1] += size
        self._size += size
        self._wake.set()
        if len(self._pending) > self._max_pending:
            self.abort(SlowReaderError(f"{len(self._pending)} changes of a turn wait for their reader (max_pending)"))
        elif self._size > self.max_pending_bytes:
            text = f"{self._size} bytes of changes of a turn wait for their reader (max_pending_bytes)"
            self.abort(SlowReaderError(text))

    def stall(self, seconds: float) -> None:
        """Cancel the turn: the agent has been idle for so long. One that was left has its own limit."""
        if self._behind is None and not self.has_ended:
            self._fail(TurnStalledError(f"the agent has been idle for {seconds:g} s: the turn was cancelled"))
            self._leave()

    def _merge(self, change: Any) -> bool:
        """Make a change a part of the one that waits last, if it can be."""
        last = self._pending[-1]
        if isinstance(last, _Joined):
            return last.take(change)
        merged = _merged(last, change)
        if merged is not None:
            self._pending[-1] = merged
        return merged is not None

    def abort(self, error: Exception) -> None:
        """End the turn by an error: the agent gets a cancellation, and what waits is dropped."""
        self._fail(error)
        self._forget()
        self._leave()

    def _forget(self) -> None:
        self._pending.clear()
        self._sizes.clear()
        self._size = 0

    def _leave(self) -> None:
        """Begin to cancel the turn and to wait for its end, in a task: nothing that happens to the reader stops it."""
        if self._behind is None:
            self._behind = asyncio.ensure_future(self._give_up())

    async def _give_up(self) -> None:
        if not self.is_cancelled:
            self.is_cancelled = True
            try:
                await self._cancel(self)
            except Exception as error:  # raised to the reader
                self._fail(error)
        await self._finish()

    def _fail(self, error: BaseException) -> None:
        if self._failure is None and self._result is None:
            self._failure = error
        self._wake.set()

    # --- Running -----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self.has_ended:
            return
        if self._check is not None:
            self._check()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            stop_reason, message_id = await self._play(self)
        except asyncio.CancelledError:
            self._fail(
                TimeoutError(f"the agent did not end the turn in {self._cancel_seconds:g} s after its cancellation")
            )
        except Exception as error:  # raised to the reader
            if self.is_cancelled and isinstance(error, RequestError) and error.code == _CANCELLED:
                self._end("cancelled")  # so protocol 2 ends a prompt that has not begun, and some agents end any
            else:
                self._fail(error)
        else:
            self._end(stop_reason, message_id)
        self._wake.set()

    def _end(self, stop_reason: str, message_id: str = "") -> None:
        if self._failure is None:
            text = "".join(part for parts in self._texts.values() for part in parts)
            self._result = TurnResult(
                stop_reason=stop_reason,
                text=text,
                message_id=message_id,
                is_unasked=self.is_unasked,
                response=self.response,
                update=self.update,
            )

    async def _changes(self) -> AsyncGenerator[Ch, None]:
        try:
            while True:
                while self._pending:
                    change = self._pending.popleft()
                    self._size -= self._sizes.popleft()
                    found: Any = change.change() if isinstance(change, _Joined) else change
                    yield found
                if self.has_ended:
                    break
                self._wake.clear()
                await self._wake.wait()
            if self._failure is not None:
                raise self._failure
        finally:
            await self._stop()

    async def _ended(self) -> TurnResult:
        self._start()
        try:
            while not self.has_ended:
                self._wake.clear()
                await self._wake.wait()
        finally:
            await self._stop()
        return self.result

    async def _stop(self) -> None:
        """Cancel the turn, and wait for its end; after that, nobody reads it."""
        self._is_read = False
        if not self.has_ended:
            self._leave()
        if self._behind is not None:
            await asyncio.shield(self._behind)

    async def _finish(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._cancel_seconds)
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})


_PARTS = {"MessageChange": ("entry", "content"), "TerminalChange": ("terminal", "output")}
"""The changes that are joined: the attributes of their object and of the new part. By name: versions differ."""


class _Joined:
    """Changes of one message or terminal that follow each other."""

    def __init__(self, change: Any) -> None:
        self._first = change
        self._of, self._part = _PARTS[type(change).__name__]
        self._is_whole = change.is_whole
        self._parts = [getattr(change, self._part)]

    def take(self, change: Any) -> bool:
        """Add a change if it is of the same; one that is whole replaces those before it."""
        if type(change) is not type(self._first) or getattr(change, self._of) is not getattr(self._first, self._of):
            return False
        part = getattr(change, self._part)
        if change.is_whole:
            self._is_whole, self._parts = True, [part]
        elif part:
            self._parts.append(part)
        return True

    def change(self) -> Any:
        """One change for all of them."""
        is_bytes = isinstance(self._parts[0], bytes)
        joined: Any = b"".join(self._parts) if is_bytes else tuple(chain.from_iterable(self._parts))
        return replace(self._first, **{self._part: joined, "is_whole": self._is_whole})


def _merged(last: Any, change: Any) -> Any:
    """One change in place of two that follow each other; None if they must stay apart."""
    kind = type(change).__name__  # without the type arguments, which nobody knows here
    if type(last).__name__ != kind:
        return None
    if kind == ToolCallChange.__name__ and last.call is change.call:
        return replace(change, is_new=last.is_new, has_ended=last.has_ended or change.has_ended)
    if kind == PlanChange.__name__ and last.plan_id == change.plan_id:
        return change
    if kind == AttributesChange.__name__:
        return replace(change, names=last.names | change.names)
    return None
