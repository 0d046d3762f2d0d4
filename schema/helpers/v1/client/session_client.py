"""A client that talks in sessions, for protocol 1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypeAlias

from .._base import UNSET
from ..client import Client, RemoteAgent
from ..dispatch import ConnectionClosed
from ..handshake import advertise
from ..methods import PROTOCOL_VERSION
from ..types import (
    CancelNotification,
    CloseSessionRequest,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    LoadSessionRequest,
    McpServer,
    NewSessionRequest,
    PromptRequest,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ResumeSessionRequest,
    SessionInfo,
    SessionNotification,
)
from .permissions import permission_cancelled
from .prompt_turns import Turn
from .session_core import Early, PermissionAsked, SessionCore
from .session_entries import ToolCallChange
from .session_state import SessionChange, SessionState, ToolCall

__all__ = ["Session", "SessionClient", "TurnChange"]

TurnChange: TypeAlias = SessionChange | PermissionAsked
"""What iterating a `Turn` gives."""


class Session(SessionCore[SessionState, TurnChange]):
    """A session with an agent. `SessionClient` opens it."""

    def __init__(self, client: SessionClient, session_id: str, cwd: str) -> None:
        super().__init__(client, session_id, cwd, state=SessionState(session_id, on_change=self._changed))
        self._one_by_one = asyncio.Lock()

    async def cancel(self) -> None:
        """Cancel the turn that goes on, if there is one; it ends when the agent has answered."""
        for turn in [*self._turns]:
            await turn.cancel()

    async def close(self) -> None:
        """End the session, also at the agent if it has `session/close`; updates of it are ignored from now on."""
        self._is_closed = True
        self.cancel_questions()
        try:
            if self._client.agent.supports("session/close"):
                await self._client.agent.session_close(CloseSessionRequest(session_id=self.id))
            else:
                await self.cancel()
        finally:
            self._client.sessions.pop(self.id, None)
            await self._client.session_closed(self)

    async def ask_user(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """The answer to a question; "cancelled" if its turn is being cancelled."""
        self.state.ask(request)
        if self._turns and self._turns[0].is_cancelled:
            return permission_cancelled()
        return await self.answer(request, lambda: self._client.answer_permission(self, request))

    async def _play(self, turn: Turn[TurnChange], request: PromptRequest) -> tuple[str, str]:
        async with self._one_by_one:
            with self._active(turn):
                self.state.prompt(request)
                response = await self._client.agent.session_prompt(request)
                return response.stop_reason, ""

    async def _send_cancel(self) -> None:
        for call in self.state.tool_calls:
            if call.status in ("pending", "in_progress"):
                self._end(call)
        self.cancel_questions()
        await self._client.agent.session_cancel(CancelNotification(session_id=self.id))

    def _end(self, call: ToolCall) -> None:
        shown: Any = "cancelled"  # by the protocol, clients show so at once; later updates still count
        call.status = shown
        self._changed(ToolCallChange(call=call, has_ended=True))


class SessionClient(Client):
    """A client that opens sessions and talks in them.

        class Chat(SessionClient):
            async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> ...:
                return select_permission(request, "allow_once")

        async with (spawned := spawn_agent(Chat, command)):
            await spawned.handler.start("chat", "1.0.0")
            session = await spawned.handler.open(cwd)
            print(await session.ask("Hello!"))

    A turn that is cancelled has `cancel_seconds` to end. `max_pending` changes of a turn wait for its reader at most.
    Other classes with handlers come after this one: `class Chat(SessionClient, PermissionClient, FileClient)`.
    """

    cancel_seconds: float = 10.0
    max_pending: int = 10_000

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.sessions: dict[str, Session] = {}
        """The open sessions by id."""
        self.agreed: InitializeResponse | None = None
        """The answer of the agent to `initialize`."""
        self._early = Early()

    async def start(self, name: str, version: str) -> InitializeResponse:
        """Call `initialize`, with the capabilities that follow from the methods of the class.

        `name` and `version` are those of this program. Raises `RuntimeError` for an agent of another version of the
        protocol.
        """
        hello = InitializeRequest(
            protocol_version=PROTOCOL_VERSION, client_info=Implementation(name=name, version=version)
        )
        self.agreed = await self.agent.initialize(advertise(self, hello))
        if self.agreed.protocol_version != PROTOCOL_VERSION:
            raise RuntimeError(f"the agent speaks version {self.agreed.protocol_version} of the protocol")
        return self.agreed

    async def open(
        self, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a new session; `directories` are roots besides `cwd`."""
        request = NewSessionRequest(
            cwd=cwd, mcp_servers=[*mcp_servers], additional_directories=[*directories] if directories else UNSET
        )
        with self._early.kept():
            result = await self.agent.session_new(request)
            session = self._opened(result.session_id, cwd)
            session.state.apply(result)
            for params in self._early.take(session.id):
                session.state.update(params)
        return session

    async def load(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again; the agent reports the conversation so far, which `state` has at the end."""
        request = LoadSessionRequest(
            session_id=session_id,
            cwd=cwd,
            mcp_servers=[*mcp_servers],
            additional_directories=[*directories] if directories else UNSET,
        )
        return await self._reopen(request, self.agent.session_load)

    async def resume(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again, without the conversation so far."""
        request = ResumeSessionRequest(
            session_id=session_id,
            cwd=cwd,
            mcp_servers=[*mcp_servers],
            additional_directories=[*directories] if directories else UNSET,
        )
        return await self._reopen(request, self.agent.session_resume)

    async def listed(self, cwd: str | None = None) -> AsyncGenerator[SessionInfo, None]:
        """The sessions that the agent knows, page by page; only those in the folder `cwd`, if it is given."""
        cursor: Any = UNSET
        while True:
            page = await self.agent.session_list(ListSessionsRequest(cwd=cwd or UNSET, cursor=cursor))
            for info in page.sessions:
                yield info
            if not isinstance(page.next_cursor, str):
                return
            cursor = page.next_cursor

    async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """Answer a question of the agent: override this one. It is cancelled when its turn is."""
        return await super().session_request_permission(request)

    def session_changed(self, session: Session, change: TurnChange) -> None:
        """Called for each change while no turn goes on; override it to show them."""

    def terminal_folder(self, session_id: str) -> str | None:
        """The folder of a session: for `TerminalClient`."""
        session = self.sessions.get(session_id)
        return None if session is None else session.cwd

    def known_tool_call(self, session_id: str, tool_call_id: str) -> object | None:
        """What was reported about a tool call: for `PermissionClient`."""
        session = self.sessions.get(session_id)
        return None if session is None else session.state.tool_call(tool_call_id)

    async def session_closed(self, session: Session) -> None:
        """Called when `session.close()` has closed a session. Release what belongs to it here, such as terminals."""

    def takes(self, name: str) -> bool:
        """True if the agent has advertised this kind of content for prompts, or is not known yet."""
        if self.agreed is None:
            return True
        able = self.agreed.agent_capabilities
        return bool(able and able.prompt_capabilities and getattr(able.prompt_capabilities, name))

    # --- What the agent sends ----------------------------------------------------------------------------------------

    async def session_update(self, params: SessionNotification) -> None:
        """Apply an update; those of sessions that are not open are ignored."""
        session = self.sessions.get(params.session_id)
        if session is None:
            self._early.add(params.session_id, params)
        else:
            session.state.update(params)

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Ask by `answer_permission`."""
        session = self.sessions.get(params.session_id)
        if session is None:
            return await super().session_request_permission(params)
        return await session.ask_user(params)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """End what waits."""
        for session in self.sessions.values():
            session.lose(reason)
        await super().connection_closed(reason)

    async def _reopen(self, request: Any, send: Any) -> Session:
        earlier = self.sessions.get(request.session_id)
        session = self._opened(request.session_id, request.cwd)
        try:
            session.state.apply(await send(request))
        except BaseException:
            if self.sessions.get(session.id) is session:
                del self.sessions[session.id]
                if earlier is not None:
                    self.sessions[session.id] = earlier
            raise
        if earlier is not None:
            earlier.lose(RuntimeError("the session was opened again"))
        return session

    def _opened(self, session_id: str, cwd: str) -> Session:
        session = self.sessions[session_id] = Session(self, session_id, cwd)
        return session
