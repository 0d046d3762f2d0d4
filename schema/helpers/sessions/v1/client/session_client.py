"""A client that talks in sessions, for protocol 1."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from .._base import UNSET
from ..advertising import advertise
from ..methods import PROTOCOL_VERSION
from ..types import (
    CancelNotification,
    CloseSessionRequest,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    LoadSessionRequest,
    McpServer,
    PromptRequest,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
)
from .permissions import permission_cancelled
from .prompt_turns import Turn
from .session_core import ConnectionChange, PermissionAsked, PermissionChanged, SessionCore
from .session_opener import SessionOpener
from .session_state import SessionChange, SessionState

__all__ = ["Session", "SessionClient", "TurnChange"]

TurnChange: TypeAlias = SessionChange | PermissionAsked | PermissionChanged | ConnectionChange
"""An item of the iteration of a `Turn`."""


class Session(SessionCore[SessionState, TurnChange]):
    """A session with an agent. `SessionClient` opens it."""

    def __init__(self, client: SessionClient, session_id: str, cwd: str) -> None:
        state = SessionState(session_id, on_change=self._changed, max_bytes=client.max_state_bytes)
        super().__init__(client, session_id, cwd, state=state)
        self._one_by_one = asyncio.Lock()

    async def cancel(self) -> None:
        """Cancel the turn that goes on, if there is one; it ends when the agent has answered."""
        for turn in [*self._turns]:
            await turn.cancel()

    async def close(self) -> None:
        """End the session, also at the agent if it has `session/close`; updates of it are ignored from now on."""
        self._gone = "the session was closed"
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
        if self._turns and self._turns[0].is_cancelled:
            self.reported.ask(request)
            return permission_cancelled()
        return await super().ask_user(request)

    async def _play(self, turn: Turn[TurnChange], request: PromptRequest) -> tuple[str, str]:
        async with self._one_by_one:
            request = await self._ready(turn, request)
            with self._active(turn):
                self._show_prompt(request)
                turn.response = response = await self._send_prompt(turn, request)
                if response.stop_reason == "cancelled":
                    await self._cancelled(turn)
                return response.stop_reason, ""

    def _show_prompt(self, request: PromptRequest) -> None:
        self.state.prompt(request)

    async def _send_cancel(self) -> None:
        for call in self.state.tool_calls:
            if call.status in ("pending", "in_progress"):
                # by the protocol, clients show so at once; later updates still count
                self._changed(self.state.end_call(call, "cancelled"))
        self.cancel_questions()
        await self._client.agent.session_cancel(CancelNotification(session_id=self.id))


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
    Other classes with handlers come after this one: `class Chat(SessionClient, PermissionClient, FileClient)`.
    """

    ADVERTISES = ("session.compaction",)

    def new_session(self, session_id: str, cwd: str) -> Session:
        """A session without a state yet."""
        return Session(self, session_id, cwd)

    async def start(self, name: str, version: str) -> InitializeResponse:
        """Call `initialize`, with the capabilities that follow from the methods of the class.

        `name` and `version` are those of this program. Raises `RuntimeError` for an agent of another version of the
        protocol.
        """
        hello = InitializeRequest(
            protocol_version=PROTOCOL_VERSION, client_info=Implementation(name=name, version=version)
        )
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
        request = LoadSessionRequest(
            session_id=session_id,
            cwd=cwd,
            mcp_servers=[*mcp_servers],
            additional_directories=[*directories] if directories else UNSET,
        )
        return await self._reopen(request, self.agent.session_load)

    def terminal_folder(self, session_id: str) -> str | None:
        """The folder of a session: for `TerminalClient`."""
        return self.session_folder(session_id)

    def takes(self, name: str) -> bool:
        """True if the agent has advertised this kind of content for prompts, or is not known yet."""
        if self.agreed is None:
            return True
        able = self.agreed.agent_capabilities
        return bool(able and able.prompt_capabilities and getattr(able.prompt_capabilities, name))

    async def session_update(self, params: SessionNotification) -> None:
        """Apply an update; those of sessions that are not open are ignored."""
        self.receive_update(params)
