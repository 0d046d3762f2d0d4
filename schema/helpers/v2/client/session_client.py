"""A client that talks in sessions, for protocol 2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypeAlias

from .._base import UNSET
from ..client import Client, RemoteAgent
from ..dispatch import ConnectionClosed
from ..errors import RequestError
from ..handshake import advertise
from ..methods import PROTOCOL_VERSION
from ..types import (
    CancelSessionNotification,
    CloseSessionRequest,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    McpServer,
    NewSessionRequest,
    PromptRequest,
    ReplayFromStart,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ResumeSessionRequest,
    SessionInfo,
    SessionUpdateStateUpdateIdle,
    UpdateSessionNotification,
)
from .prompt_turns import Turn
from .session_core import Early, PermissionAsked, SessionCore
from .session_entries import AttributesChange, MessageChange, UserMessage
from .session_state import SessionChange, SessionState

__all__ = ["Session", "SessionClient", "TurnChange"]

_NOT_FOUND = -32002
_MAX_MESSAGES = 64
"""The most messages of the user that are kept for a prompt whose id is not known yet."""

TurnChange: TypeAlias = SessionChange | PermissionAsked
"""What iterating a `Turn` gives."""


class _Watch:
    """The end of a turn: the first time that the agent is idle, and says why, after the message of the prompt."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._ends: dict[str, SessionUpdateStateUpdateIdle | None] = {}
        """The messages that were inserted, and how the work after each has ended."""
        self.end: asyncio.Future[SessionUpdateStateUpdateIdle] = asyncio.get_running_loop().create_future()

    def inserted(self, message_id: str) -> None:
        """A message of the user is in the conversation."""
        if self._message_id in (None, message_id):
            self._ends.setdefault(message_id, None)
            while len(self._ends) > _MAX_MESSAGES:
                del self._ends[next(iter(self._ends))]

    def idle(self, update: SessionUpdateStateUpdateIdle) -> None:
        """The agent is idle, and has said why."""
        for message_id, end in self._ends.items():
            if end is None:
                self._ends[message_id] = update
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
        super().__init__(client, session_id, cwd, state=SessionState(session_id, on_change=self._changed))
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
        self._is_closed = True
        self.cancel_questions()
        try:
            await self._client.agent.session_close(CloseSessionRequest(session_id=self.id))
        except RequestError as error:
            if error.code != _NOT_FOUND:
                raise
        finally:
            self._client.sessions.pop(self.id, None)
            self.lose(RuntimeError("the session was closed"))
            await self._client.session_closed(self)

    async def ask_user(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """The answer to a question. The agent cancels the question if it does not need it any more."""
        self.state.ask(request)
        return await self.answer(request, lambda: self._client.answer_permission(self, request))

    def lose(self, reason: Exception) -> None:
        """Nothing comes any more."""
        super().lose(reason)
        self._lost = reason
        for watch in self._watches:
            if not watch.end.done():
                watch.end.set_exception(reason)

    async def _play(self, turn: Turn[TurnChange], request: PromptRequest) -> tuple[str, str]:
        watch = _Watch()
        self._watches.append(watch)
        try:
            with self._active(turn):
                response = await self._client.agent.session_prompt(request)
                if self._lost is not None:
                    raise self._lost
                watch.confirmed(response.message_id)
                end = await watch.end
        finally:
            self._watches.remove(watch)
            watch.end.cancel()
        return _reason(end), response.message_id

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
    Other classes with handlers come after this one: `class Chat(SessionClient, PermissionClient)`.
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
        hello = InitializeRequest(protocol_version=PROTOCOL_VERSION, info=Implementation(name=name, version=version))
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
        request = ResumeSessionRequest(
            session_id=session_id,
            cwd=cwd,
            mcp_servers=[*mcp_servers],
            additional_directories=[*directories] if directories else UNSET,
            replay_from=ReplayFromStart(),
        )
        return await self._reopen(request, self.agent.session_resume)

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
        able = self.agreed.capabilities
        return bool(able and able.session and able.session.prompt and getattr(able.session.prompt, name))

    # --- What the agent sends ----------------------------------------------------------------------------------------

    async def session_update(self, params: UpdateSessionNotification) -> None:
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
