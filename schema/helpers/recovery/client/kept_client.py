"""Sessions that go on with another connection, and the client that opens them: `SessionKeeper` keeps both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..client import RemoteAgent
from ..dispatch import ConnectionClosed
from ..errors import MethodNotFoundError, RequestError
from ..types import McpServer, PromptRequest
from .prompt_turns import Turn
from .recovery_changes import (
    ConnectionLost,
    SessionLost,
    SessionRecovered,
    TurnInterruptedError,
    count_in_replay,
)
from .recovery_policy import RecoveryError
from .session_client import Session, SessionClient, TurnChange
from .session_core import logger
from .session_entries import FINAL, ToolCallChange
from .session_reopening import INTERRUPTED, SessionSettings, reopening_ways
from .session_state import SessionState

__all__ = ["KeptClient"]

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
        self.outcome: SessionRecovered | SessionLost | None = None
        """How the last outage has ended; None as long as one goes on."""
        self._sent: dict[Turn[TurnChange], _Sent] = {}  # by the turns that the agent works on
        self._interrupted: dict[Turn[TurnChange], _Sent] = {}  # by those that wait for the outcome
        self._left = asyncio.Event()  # set by each turn that leaves the former
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._is_told = False  # that the connection has ended
        self._is_reopening = False

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

    # --- Turns -------------------------------------------------------------------------------------------------------

    async def _ready(self, turn: Turn[TurnChange], request: PromptRequest) -> None:
        while not self.is_open:
            await self._is_open.wait()
        if isinstance(self.outcome, SessionLost):
            raise self.outcome.error
        self._sent[turn] = _Sent(request=request, entries=len(self.state.entries))

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
            if call.status not in FINAL:
                call.status = INTERRUPTED
                self.report(ToolCallChange(call=call, has_ended=True))

    async def go_on(self, client: KeptClient, *, prefer: Literal["resume", "load"]) -> None:
        """Open the session again with another client.

        Raises what that raises, and `RecoveryError` if the agent cannot; then the state stays as it was.
        """
        ways = reopening_ways(client.agent)
        if not ways:
            raise RecoveryError("the agent has neither session/resume nor session/load")
        ways.sort(key=lambda way: way != prefer)
        before, settings = self.state, SessionSettings(self.state)
        self.join(client)
        self._is_reopening = True
        try:
            by = await self._reopen_by(client, ways)
            await self._restore(client, settings)
        except BaseException:
            self.state = before
            if client.sessions.get(self.id) is self:  # it was opened, and what follows has failed
                del client.sessions[self.id]
            raise
        finally:
            self._is_reopening = False
        self.state.on_change = self._changed
        if self.is_kept:
            self.settle(SessionRecovered(by=by, before=before))
        else:
            await super().close()

    async def _reopen_by(
        self, client: KeptClient, ways: Sequence[Literal["resume", "load"]]
    ) -> Literal["resume", "load"]:
        """Open it in the first way that the agent has, and not only advertises; returns that."""
        before = self.state
        for by in ways[:-1]:
            try:
                await self._reopen(client, by)
            except MethodNotFoundError:
                self.state = before
            else:
                return by
        await self._reopen(client, ways[-1])
        return ways[-1]

    async def _reopen(self, client: KeptClient, by: Literal["resume", "load"]) -> None:
        before = self.state
        if by == "load":
            self.state = SessionState(self.id, max_bytes=client.max_state_bytes)  # nobody is told of the replay
        await client.reopen(self, by)
        if self.state.is_full:
            raise self.full()
        if by == "load" and self._interrupted:
            self._find_prompts(before)

    def _find_prompts(self, before: SessionState) -> None:
        prompts = [*self._interrupted.values()]
        start = before.entries[: min(sent.entries for sent in prompts)]
        count = count_in_replay(start, [sent.request for sent in prompts], self.state.entries)
        for number, sent in enumerate(prompts):
            sent.in_replay = None if count is None else number < count

    async def _restore(self, client: KeptClient, settings: SessionSettings) -> None:
        try:
            await settings.restore(client.agent, self.state)
        except RequestError as error:
            logger.warning("mode and options of a session are those of its agent, which refuses others: %s", error)

    def settle(self, outcome: SessionRecovered | SessionLost) -> None:
        """End the outage."""
        self.outcome = outcome
        if self.is_kept:
            self.report(outcome)
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
