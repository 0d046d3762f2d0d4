"""Sessions that go on with another connection, and the client that opens them: `SessionKeeper` keeps both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from ..client import RemoteAgent
from ..dispatch import ConnectionClosed
from ..errors import MethodNotFoundError
from ..types import McpServer, PromptRequest
from .prompt_turns import Turn
from .recovery_changes import (
    ConnectionLost,
    SessionLost,
    SessionRecovered,
    SettingLost,
    TurnInterruptedError,
    count_in_replay,
)
from .recovery_policy import RecoveryError
from .restored_settings import restore_settings
from .session_choices import Choice
from .session_client import Session, SessionClient, TurnChange
from .session_core import logger
from .session_entries import AttributesChange, ToolCallChange
from .session_reopening import INTERRUPTED, reopening_ways
from .session_state import SessionState

__all__ = ["KeptClient"]

_FINAL = ("completed", "failed", "cancelled")


@dataclass(eq=False, kw_only=True)
class _Sent:
    """A prompt that was sent, and how many entries the conversation had then."""

    request: PromptRequest
    entries: int
    in_replay: bool | None = None


class KeptSession(Session):
    """A session of a `KeptClient`. Once it is kept, its turns wait while the connection is made again."""

    def __init__(self, client: KeptClient, session_id: str, cwd: str) -> None:
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
        self._found = set[str]()  # the attributes that the agent reports while the session is opened again

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
        for turn in [*self._interrupted]:
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

    # --- Turns -------------------------------------------------------------------------------------------------------

    async def _ready(self, turn: Turn[TurnChange], request: PromptRequest) -> None:
        async with self._doubt:
            pass
        await self._until_open()
        self._sent[turn] = _Sent(request=request, entries=len(self.state.entries))

    async def _until_open(self) -> None:
        while not self.is_open:
            await self._is_open.wait()
        self._check_open()
        if isinstance(self.outcome, SessionLost):
            raise self.outcome.error

    async def _choose(self, setting: Choice) -> None:
        await self._until_open()
        await super()._choose(setting)

    async def _cut_off(self) -> None:
        """Wait for the end of the connection: some agents cancel their turns before they exit."""
        if not self.is_kept:
            return
        async with self._doubt:
            with suppress(asyncio.TimeoutError):
                raise await asyncio.wait_for(self._client.ended(), self._client.ending_seconds)

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
        for call in self.state.tool_calls:
            if call.status not in _FINAL:
                call.status = INTERRUPTED
                self.report(ToolCallChange(call=call, has_ended=True))

    async def go_on(self, client: KeptClient, *, prefer: Literal["resume", "load"]) -> None:
        """Open the session again with another client.

        Raises what that raises, and `RecoveryError` if the agent cannot. The attempt has a state of its own: the one
        that is shown stays as it was until all has succeeded.
        """
        ways = reopening_ways(client.agent)
        if not ways:
            raise RecoveryError("the agent has neither session/resume nor session/load")
        ways.sort(key=lambda way: way != prefer)
        before = self.state
        self.join(client)
        self._is_reopening = True
        try:
            by = await self._reopen_by(client, ways)
            lost = await restore_settings(client.agent, self.reported, before, self.chosen)
        except BaseException:
            if client.sessions.get(self.id) is self:  # it was opened, and what follows has failed
                del client.sessions[self.id]
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

    def _take(self, by: Literal["resume", "load"]) -> None:
        """Go on with what the attempt has found: all of it after a replay, or else the attributes."""
        found = self.reported
        if by == "resume":
            self.state.follow(found, self._found)
            return
        found.on_change = self._changed
        self._find_prompts(self.state, found)
        self.state, self.is_whole = found, True

    async def _reopen_by(
        self, client: KeptClient, ways: Sequence[Literal["resume", "load"]]
    ) -> Literal["resume", "load"]:
        """Open it in the first way that the agent has, and not only advertises; returns that."""
        for by in ways[:-1]:
            with suppress(MethodNotFoundError):
                await self._reopen(client, by)
                return by
        await self._reopen(client, ways[-1])
        return ways[-1]

    async def _reopen(self, client: KeptClient, by: Literal["resume", "load"]) -> None:
        self._found = set[str]()
        self.reported = SessionState(self.id, on_change=self._find, max_bytes=client.max_state_bytes)
        await client.reopen(self, by)
        if self.reported.is_full:
            raise self.full()

    def _find(self, change: TurnChange) -> None:
        """Note what the agent reports while the session is opened again: nobody is told of a replay."""
        if isinstance(change, AttributesChange):
            self._found.update(change.names)

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
        self._is_open.set()

    def try_again(self) -> None:
        """Let prompts wait again, if the session is lost."""
        if isinstance(self.outcome, SessionLost):
            self.outcome, self._is_told = None, True
            self._is_open.clear()


class KeptClient(SessionClient):
    """The base of a client whose sessions a `SessionKeeper` keeps: there is one for each connection.

        class Chat(KeptClient):
            async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> ...:
                return select_permission(request, "allow_once")

    What one connection has to leave to the next, such as rules or files, is for all of them: make it outside. An
    override of `connection_closed` calls it with `super()`.
    """

    ending_seconds: float = 1.0
    """How long a turn that the agent has cancelled by itself waits for the end of the connection: then it is an
    interruption. Agents that are told to exit take up to 0.3 seconds in between."""

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self._reopened: KeptSession | None = None
        self.end: ConnectionClosed | None = None
        """How the connection has ended; None while it goes on."""
        self._has_ended = asyncio.Event()

    def new_session(self, session_id: str, cwd: str) -> KeptSession:
        """A session without a state yet; one that is opened again has the state that it is to go on with."""
        if self._reopened is not None and self._reopened.id == session_id:
            return self._reopened
        return KeptSession(self, session_id, cwd)

    async def open(
        self, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a new session; `directories` are roots besides `cwd`."""
        session = await super().open(cwd, mcp_servers=mcp_servers, directories=directories)
        return _whole(session)

    async def load(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again; the agent reports the conversation so far, which `state` has at the end."""
        session = await super().load(session_id, cwd, mcp_servers=mcp_servers, directories=directories)
        return session if session is self._reopened else _whole(session)

    async def reopen(self, session: KeptSession, by: Literal["resume", "load"]) -> None:
        """Open a session of an earlier connection again: for a `SessionKeeper`."""
        self._reopened = session
        call: Any = self.resume if by == "resume" else self.load
        try:
            await call(session.id, session.cwd, mcp_servers=session.mcp_servers, directories=session.directories)
        finally:
            self._reopened = None

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """End all questions, and the turns of sessions that are not kept."""
        await super().connection_closed(reason)
        self.end = reason
        self._has_ended.set()

    async def ended(self) -> ConnectionClosed:
        """Wait for the end of the connection; returns its reason."""
        while self.end is None:
            await self._has_ended.wait()
        return self.end


def _whole(session: Session) -> Session:
    if isinstance(session, KeptSession):
        session.is_whole = True
    return session
