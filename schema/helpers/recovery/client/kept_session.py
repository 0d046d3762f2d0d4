"""Sessions that go on with another connection, or that their agent has forgotten: `SessionKeeper` opens them again."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ..dispatch import ConnectionClosed
from ..errors import MethodNotFoundError, RequestError
from ..types import McpServer, PromptRequest
from .forgotten_sessions import is_unknown_session
from .prompt_turns import Turn
from .recovery_changes import (
    ConnectionLost,
    ReopeningLater,
    SessionForgotten,
    SessionLost,
    SessionRecovered,
    SettingLost,
    TurnInterruptedError,
    count_in_replay,
)
from .recovery_policy import RecoveryError, RecoveryPolicy
from .replays import REPLAYED
from .restored_settings import restore_settings
from .session_choices import ChosenSetting
from .session_client import Session, TurnChange
from .session_core import logger
from .session_entries import FINAL, AttributesChange, ToolCallChange
from .session_reopening import INTERRUPTED, reopening_ways
from .session_state import SessionState

__all__: list[str] = []

_LOGIN = -32000
Way: TypeAlias = Literal["resume", "load", "new"]


@dataclass(eq=False, kw_only=True)
class _Sent:
    """A prompt that was sent, and how many entries the conversation had then."""

    request: PromptRequest
    entries: int
    in_replay: bool | None = None


class KeptSession(Session):
    """A session of a `KeptClient`. Once it is kept, its turns wait while the connection is made again."""

    def __init__(self, client: Any, session_id: str, cwd: str) -> None:
        super().__init__(client, session_id, cwd)
        self.mcp_servers: Sequence[McpServer] = ()
        self.directories: Sequence[str] = ()
        """What it is opened with again, besides its folder."""
        self.is_kept = False
        """True if the end of the connection is not the end of the session."""
        self.is_whole = False
        """True if its state has the conversation from the beginning, as far as the agent has it."""
        self.outcome: SessionRecovered | SessionLost | None = None
        """How the last outage has ended; None as long as one goes on."""
        self._sent: dict[Turn[TurnChange], _Sent] = {}  # by the turns that the agent works on
        self._interrupted: dict[Turn[TurnChange], _Sent] = {}  # by those that wait for the outcome
        self._left = asyncio.Event()  # set by each turn that leaves the former
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._doubt = asyncio.Lock()  # held while the agent may be about to end
        self._is_told = False  # that the connection has ended
        self._is_reopening = False
        self._told = set[str]()  # the attributes that the agent reports while the session is opened again
        self.on_forgotten: Callable[[], None] | None = None
        """Called when the agent does not know the session any more: the keeper opens it again."""
        self._refused: dict[Turn[TurnChange], _Sent] = {}  # by the turns that wait for that
        self._was_prompted = False
        self._heard = 0  # how often the agent has told something about its work
        self._is_resuming = False
        self._openings = 0

    @property
    def is_open(self) -> bool:
        """False from the end of the connection until the session is back."""
        return self._is_open.is_set()

    @property
    def end(self) -> ConnectionClosed | None:
        """How its connection has ended; None while it goes on."""
        found: ConnectionClosed | None = self._client.end
        return found

    async def cancel(self) -> None:
        """Cancel what the agent does. While there is no connection, this ends the turns that were interrupted."""
        if self.is_open:
            await super().cancel()
        for turn in [*self._interrupted, *self._refused]:
            await turn.cancel()

    async def close(self) -> None:
        """End the session, which is not kept any more. Without a connection, only this side ends it."""
        was_kept, self.is_kept = self.is_kept, False
        self._gone = "the session was closed"
        try:
            if not self._is_reopening:  # otherwise the keeper closes it, when the agent has opened it
                await super().close()
        except ConnectionClosed:
            if not was_kept:
                raise
        finally:
            self.settle(SessionLost(error=RecoveryError("the session was closed")))

    def lose(self, reason: Exception) -> None:
        """The connection has ended."""
        super().lose(reason)
        if self.is_kept and isinstance(reason, ConnectionClosed):
            self._is_open.clear()
            self.outcome = None

    def retire(self, reason: str) -> None:
        """Another object has taken its place: this one is not kept any more, and what waits in it ends."""
        self.is_kept = False
        super().retire(reason)
        if not self.is_open:
            self.settle(SessionLost(error=RecoveryError(reason)))

    def heard(self, update: Any = None) -> bool:
        """Note what the agent sends. While the session is resumed, nothing is added to the conversation."""
        super().heard(update)
        is_work = update is None or update.session_update in REPLAYED
        self._heard += is_work
        return not (is_work and self._is_resuming)

    # --- Turns -------------------------------------------------------------------------------------------------------

    async def _ready(self, turn: Turn[TurnChange], request: PromptRequest) -> PromptRequest:
        async with self._doubt:
            pass
        await self._until_open()
        self._sent[turn] = _Sent(request=request, entries=len(self.state.entries))
        return replace(request, session_id=self.id)  # another one, if it was opened anew

    async def _until_open(self) -> None:
        while not self.is_open:
            await self._is_open.wait()
        self._check_open()
        if isinstance(self.outcome, SessionLost):
            raise self.outcome.error

    async def _choose(self, setting: ChosenSetting) -> None:
        await self._until_open()
        await super()._choose(setting)

    async def _cut_off(self) -> None:
        """Wait for the end of the connection: some agents cancel their turns before they exit."""
        if not self.is_kept:
            return
        async with self._doubt:
            with suppress(asyncio.TimeoutError):
                reason = await asyncio.wait_for(self._client.ended(), self._client.ending_seconds)
                raise reason or ConnectionClosed("the connection was left")

    async def _send_prompt(self, turn: Turn[TurnChange], request: PromptRequest) -> Any:
        """Send a prompt; once more if the agent does not know the session, and cannot have worked on it."""
        self._was_prompted = True
        heard, openings, state = self._heard, self._openings, self.state
        try:
            return await super()._send_prompt(turn, request)
        except RequestError as error:
            if self.on_forgotten is None or not self.is_kept or not is_unknown_session(error, self.id):
                raise
            failure = error
        await self._found(turn, failure, has_worked=heard != self._heard, is_first=openings == self._openings)
        if self.state is not state:
            self._show_prompt(request)
        return await super()._send_prompt(turn, replace(request, session_id=self.id))

    async def _found(self, turn: Turn[TurnChange], failure: RequestError, *, has_worked: bool, is_first: bool) -> None:
        """Wait until the session is open again, which the first of its turns begins. Raises what ends the turn then."""
        sent = self._sent.pop(turn)
        self._left.set()
        waiting = self._interrupted if has_worked else self._refused
        waiting[turn] = sent
        try:
            if self.is_open and is_first:
                self._forget(failure)
            await self._is_open.wait()
        finally:
            del waiting[turn]
        outcome = self.outcome
        if has_worked and outcome is not None:
            raise TurnInterruptedError(failure, prompt=sent.request, outcome=outcome, in_replay=sent.in_replay)
        if isinstance(outcome, SessionLost):
            raise outcome.error
        self._sent[turn] = sent

    def _forget(self, reason: RequestError) -> None:
        self._is_open.clear()
        self.outcome = None
        self.cancel_questions()
        self.report(SessionForgotten(reason=reason))
        self._end_calls()
        if self.on_forgotten is not None:
            self.on_forgotten()

    async def _cancel_turn(self, turn: Turn[TurnChange]) -> None:
        if turn in self._refused:
            turn.drop()
        else:
            await super()._cancel_turn(turn)

    def _idle_limit(self, seconds: float) -> float:
        return super()._idle_limit(seconds) if self.is_open else math.inf

    async def _play(self, turn: Turn[TurnChange], request: PromptRequest) -> tuple[str, str]:
        try:
            return await super()._play(turn, request)
        except ConnectionClosed as reason:
            sent = self._sent.get(turn)
            if sent is None or not self.is_kept:
                raise
            self._is_open.clear()  # before the next prompt is sent
            self._interrupted[turn] = sent
            failure = reason
        finally:
            self._sent.pop(turn, None)
            self._left.set()
        try:
            await self._is_open.wait()
        finally:
            del self._interrupted[turn]
        outcome = self.outcome or SessionLost(error=RecoveryError(str(failure), failure))
        raise TurnInterruptedError(failure, prompt=request, outcome=outcome, in_replay=sent.in_replay) from failure

    def _changed(self, change: TurnChange) -> None:
        """Without a connection, the turn that was interrupted first gets it, and a failure does not stop the keeper."""
        if self.is_open:
            super()._changed(change)
        elif (turn := next((each for each in self._interrupted if not each.has_ended), None)) is not None:
            turn.receive(change, self.state.last_bytes)
        else:
            try:
                super()._changed(change)
            except Exception:
                logger.exception("`session_changed` has failed")

    # --- For the keeper ----------------------------------------------------------------------------------------------

    def report(self, change: TurnChange) -> None:
        """Add a change to those of the turn that was interrupted first, or else of the session."""
        self._changed(change)

    async def interrupt(self, reason: Exception) -> None:
        """Report that the connection has ended, once, when its turns have noticed it."""
        while self._sent:
            self._left.clear()
            await self._left.wait()
        if self._is_told:
            return
        self._is_told = True
        prompts = tuple(sent.request for sent in self._interrupted.values())
        self.report(ConnectionLost(reason=reason, prompts=prompts))
        self._end_calls()

    def _end_calls(self) -> None:
        for call in self.state.tool_calls:
            if call.status not in FINAL:
                call.status = INTERRUPTED
                self.report(ToolCallChange(call=call, has_ended=True))

    async def go_on(self, client: Any, policy: RecoveryPolicy) -> None:
        """Open the session again with another client.

        Raises what that raises, and `RecoveryError` if the agent cannot. The attempt has a state of its own: the one
        that is shown stays as it was until all has succeeded.
        """
        before, key = self.state, self.id
        self.join(client)
        self._is_reopening = True
        try:
            by = await self._reopen_by(client, await self._ways(client, policy))
            lost = await restore_settings(client.agent, self.reported, before, self.chosen)
        except BaseException:
            if client.sessions.get(self.id) is self:  # it was opened, and what follows has failed
                del client.sessions[self.id]
            self.state, self.id = before, key
            raise
        else:
            self._take(by)
        finally:
            self._is_reopening = False
            self.reported = self.state
        if self.is_kept:
            self.settle(SessionRecovered(by=by, before=before), lost)
        else:
            await super().close()

    def _take(self, by: Way) -> None:
        """Go on with what the attempt has found: all of it after a replay or anew, or else the attributes."""
        found = self.reported
        if by == "resume":
            self.state.follow(found, self._told)
            return
        found.on_change = self._changed
        if by == "load":
            self._find_prompts(self.state, found)
        self.state, self.is_whole = found, True

    async def _ways(self, client: Any, policy: RecoveryPolicy) -> Sequence[Way]:
        """How to open it again, in this order. If it can only be loaded, this waits until it may be."""
        ways: list[Way] = [*reopening_ways(client.agent)]
        ways.sort(key=lambda way: way != policy.prefer)
        is_empty = self.opened_at is not None and not self._was_prompted
        if is_empty or policy.anew:
            ways.append("new")
        if not ways:
            raise RecoveryError("the agent has neither session/resume nor session/load")
        rest = 0.0 if self.opened_at is None else self.opened_at + policy.young_seconds - now()
        if rest <= 0 or "load" not in ways:
            return ways
        others: list[Way] = [way for way in ways if way == "resume" or (way == "new" and is_empty)]
        if others:
            return others
        self.report(ReopeningLater(seconds=rest))
        await client.pause(rest)
        return ways

    async def _reopen_by(self, client: Any, ways: Sequence[Way]) -> Way:
        """Open it in the first way that the agent has, and not only advertises; returns that."""
        left: list[Way] = [*ways]
        while True:
            by = left.pop(0)
            try:
                await self._reopen(client, by)
            except RequestError as error:
                if not isinstance(error, MethodNotFoundError):
                    left = [way for way in left if way == "new" and error.code != _LOGIN]
                if not left:
                    raise
            else:
                return by

    async def _reopen(self, client: Any, by: Way) -> None:
        if client.sessions.get(self.id) is self:  # the connection goes on, and the agent has lost it
            del client.sessions[self.id]
        self._told = set[str]()
        self.reported = SessionState(self.id, on_change=self._find, max_bytes=client.max_state_bytes)
        self._is_resuming = by == "resume"
        try:
            await client.reopen(self, by)
        finally:
            self._is_resuming = False
        if self.reported.is_full:
            raise self.full()

    def renew(self, session_id: str) -> None:
        """Have another id, and an empty state."""
        self.id, self._was_prompted = session_id, False
        self.reported = SessionState(session_id, on_change=self._find, max_bytes=self._client.max_state_bytes)

    def _find(self, change: TurnChange) -> None:
        """Note what the agent reports while the session is opened again: nobody is told of a replay."""
        if isinstance(change, AttributesChange):
            self._told.update(change.names)

    def _find_prompts(self, before: SessionState, found: SessionState) -> None:
        if not self._interrupted:
            return
        prompts = [*self._interrupted.values()]
        start = before.entries[: min(sent.entries for sent in prompts)]
        requests = [sent.request for sent in prompts]
        count = count_in_replay(start, requests, found.entries, is_whole=self.is_whole)
        for number, sent in enumerate(prompts):
            sent.in_replay = None if count is None else number < count

    def settle(self, outcome: SessionRecovered | SessionLost, lost: Sequence[SettingLost] = ()) -> None:
        """End the outage; `lost` are settings that could not be restored."""
        self.outcome = outcome
        for change in (outcome, *lost) if self.is_kept else ():
            self.report(change)
        self._is_told = False
        self._openings += 1
        self._is_open.set()

    def try_again(self) -> None:
        """Let prompts wait again, if the session is lost."""
        if isinstance(self.outcome, SessionLost):
            self.outcome, self._is_told = None, True
            self._is_open.clear()

    def begin_again(self) -> None:
        """Let prompts wait until the session is opened again, if no turn runs."""
        if self.is_open and not self.has_turns and not self._sent:
            self.outcome, self._is_told = None, True
            self._is_open.clear()


def now() -> float:
    return asyncio.get_running_loop().time()
