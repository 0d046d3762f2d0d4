"""A client that talks in sessions, for protocol 2."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

from .._base import UNSET
from ..advertising import advertise
from ..errors import RequestError
from ..methods import PROTOCOL_VERSION
from ..types import (
    CancelSessionNotification,
    CloseSessionRequest,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    McpServer,
    PromptRequest,
    ReplayFromStart,
    ResumeSessionRequest,
    SessionUpdateStateUpdateIdle,
    UpdateSessionNotification,
)
from .prompt_turns import SessionClosedError, Turn
from .session_core import ConnectionChange, PermissionAsked, PermissionChanged, SessionCore
from .session_entries import AttributesChange, MessageChange, UserMessage
from .session_opener import SessionOpener
from .session_state import SessionChange, SessionState

__all__ = ["Session", "SessionClient", "TurnChange"]

_NOT_FOUND = -32002

TurnChange: TypeAlias = SessionChange | PermissionAsked | PermissionChanged | ConnectionChange
"""An item of the iteration of a `Turn`."""


class _Watch:
    """The end of a turn: the first time that the agent is idle, and says why, after the message of the prompt."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._ends: dict[str, SessionUpdateStateUpdateIdle | None] = {}
        """The messages that were inserted, and how the work after each has ended. The state has these messages, too."""
        self._working = list[str]()  # those without an end
        self.end: asyncio.Future[SessionUpdateStateUpdateIdle] = asyncio.get_running_loop().create_future()

    def inserted(self, message_id: str) -> None:
        """A message of the user is in the conversation."""
        if self._message_id in (None, message_id) and message_id not in self._ends:
            self._ends[message_id] = None
            self._working.append(message_id)

    def idle(self, update: SessionUpdateStateUpdateIdle) -> None:
        """The agent is idle, and has said why."""
        for message_id in self._working:
            self._ends[message_id] = update
        self._working.clear()
        self._look()

    def confirmed(self, message_id: str) -> None:
        """The message of the prompt has this id."""
        self._message_id = message_id
        self._look()

    def _look(self) -> None:
        found = self._ends.get(self._message_id or "")
        if found is not None and not self.end.done():
            self.end.set_result(found)


class Session(SessionCore[SessionState, TurnChange]):
    """A session with an agent. `SessionClient` opens it.

    Prompts may be sent while the agent works: it inserts them in their order, and may end several turns at once.
    Changes are given to the turn that was sent first.
    """

    def __init__(self, client: SessionClient, session_id: str, cwd: str) -> None:
        state = SessionState(session_id, on_change=self._changed, max_bytes=client.max_state_bytes)
        super().__init__(client, session_id, cwd, state=state)
        self._watches = list[_Watch]()
        self._lost: Exception | None = None

    async def cancel(self) -> None:
        """Cancel what the agent does, unless it is idle; turns end when the agent says so."""
        state = self.state.state
        for turn in self._turns:
            turn.is_cancelled = True
        if self._turns or (state is not None and state.state != "idle"):
            await self._client.agent.session_cancel(CancelSessionNotification(session_id=self.id))

    async def close(self) -> None:
        """End the session at the agent; updates of it are ignored from now on. One that is unknown there is closed."""
        self._gone = "the session was closed"
        self.cancel_questions()
        try:
            await self._client.agent.session_close(CloseSessionRequest(session_id=self.id))
        except RequestError as error:
            if error.code != _NOT_FOUND:
                raise
        finally:
            self._client.sessions.pop(self.id, None)
            self.lose(SessionClosedError(self._gone))
            await self._client.session_closed(self)

    def join(self, client: SessionClient) -> None:
        """Go on with another client, after the connection of this one has ended."""
        super().join(client)
        self._lost = None

    def lose(self, reason: Exception) -> None:
        """Nothing comes any more."""
        super().lose(reason)
        self._lost = reason
        for watch in self._watches:
            if not watch.end.done():
                watch.end.set_exception(reason)

    async def _play(self, turn: Turn[TurnChange], request: PromptRequest) -> tuple[str, str]:
        request = await self._ready(turn, request)
        watch = _Watch()
        self._watches.append(watch)
        try:
            with self._active(turn):
                turn.response = response = await self._send_prompt(turn, request)
                if self._lost is not None:
                    raise self._lost
                watch.confirmed(response.message_id)
                turn.update = end = await watch.end
                reason = _reason(end)
                if reason == "cancelled":
                    await self._cancelled(turn)
        finally:
            self._watches.remove(watch)
            watch.end.cancel()
        return reason, response.message_id

    async def _send_cancel(self) -> None:
        await self._client.agent.session_cancel(CancelSessionNotification(session_id=self.id))

    def _changed(self, change: TurnChange) -> None:
        super()._changed(change)
        if isinstance(change, MessageChange) and isinstance(change.entry, UserMessage):
            for watch in self._watches:
                watch.inserted(change.entry.id)
        elif isinstance(change, AttributesChange) and "state" in change.names:
            state = self.state.state
            if isinstance(state, SessionUpdateStateUpdateIdle) and isinstance(state.stop_reason, str):
                for watch in self._watches:
                    watch.idle(state)


def _reason(end: SessionUpdateStateUpdateIdle) -> str:
    """Why work has ended. Raises the error of work that has failed."""
    if end.stop_reason == "error":
        found: Any = getattr(end, "error", None)
        if found:
            raise RequestError(found.message, code=found.code, data=found.data)
        raise RequestError("the agent has failed, and does not say how")
    return str(end.stop_reason)


class SessionClient(SessionOpener[Session, TurnChange]):
    """A client that opens sessions and talks in them.

        class Chat(SessionClient):
            async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> ...:
                return select_permission(request, "allow_once")

        async with (spawned := spawn_agent(Chat, command)):
            await spawned.handler.start("chat", "1.0.0")
            session = await spawned.handler.open(cwd)
            print(await session.ask("Hello!"))

    A turn that is left has `cancel_seconds` to end. `max_pending` changes of a turn wait for its reader at most.
    Other classes with handlers come after this one: `class Chat(SessionClient, PermissionClient)`.
    """

    def new_session(self, session_id: str, cwd: str) -> Session:
        """A session without a state yet."""
        return Session(self, session_id, cwd)

    async def start(self, name: str, version: str) -> InitializeResponse:
        """Call `initialize`, with the capabilities that follow from the methods of the class.

        `name` and `version` are those of this program. Raises `RuntimeError` for an agent of another version of the
        protocol.
        """
        hello = InitializeRequest(protocol_version=PROTOCOL_VERSION, info=Implementation(name=name, version=version))
        agreed = await self.agent.initialize(advertise(self, hello))
        if agreed.protocol_version != PROTOCOL_VERSION:
            raise RuntimeError(f"the agent speaks version {agreed.protocol_version} of the protocol")
        return agreed

    async def load(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again; the agent reports the conversation so far, which `state` has at the end.

        That is when the session has been quiet for `quiet_seconds` after the response.

        Raises `RuntimeError` while a turn of the session goes on here, as its updates would be taken for the
        conversation, and while the session is being opened by another call.
        """
        self._check_idle(session_id)
        request = ResumeSessionRequest(
            session_id=session_id,
            cwd=cwd,
            mcp_servers=[*mcp_servers],
            additional_directories=[*directories] if directories else UNSET,
            replay_from=ReplayFromStart(),
        )
        return await self._reopen(request, self.agent.session_resume)

    def takes(self, name: str) -> bool:
        """True if the agent has advertised this kind of content for prompts, or is not known yet."""
        if self.agreed is None:
            return True
        able = self.agreed.capabilities
        return bool(able and able.session and able.session.prompt and getattr(able.session.prompt, name))

    async def session_update(self, params: UpdateSessionNotification) -> None:
        """Apply an update; those of sessions that are not open are ignored."""
        self.receive_update(params)
