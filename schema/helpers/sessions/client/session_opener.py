"""Open sessions, and keep them by their ids: the part of `SessionClient` that every version of the protocol has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from inspect import isawaitable
from typing import Any, Generic, Literal, TypeVar

from .._base import UNSET
from ..client import Client, RemoteAgent
from ..dispatch import ConnectionClosed
from ..errors import InternalError
from ..types import (
    InitializeResponse,
    ListSessionsRequest,
    McpServer,
    NewSessionRequest,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ResumeSessionRequest,
    SessionInfo,
)
from .idle_time import OpenRequests
from .memory import MAX_ID
from .session_core import Early, PermissionChanged, SessionCore, logger

__all__: list[str] = []

Sn = TypeVar("Sn", bound=SessionCore[Any, Any])
Ch = TypeVar("Ch")


class SessionOpener(Client, Generic[Sn, Ch]):
    """The base of `SessionClient`, for sessions of the class `Sn` with changes `Ch`."""

    cancel_seconds: float = 10.0
    """How long a turn that is left may take to end. One that is cancelled, and still read, may take any time."""
    max_pending: int = 10_000
    """How many changes of a turn may wait for its reader, after those that follow each other were joined."""
    max_state_bytes: int = 2**28
    """The memory for what the agent reports in a session. Above it, the session is given up: its turns raise
    `SessionFullError`."""

    quiet_seconds: float = 0.5
    """How long a session that is opened again must have been quiet, after the response, before it counts as open: some
    agents answer first, and replay the conversation then. What they say for a minute without a pause is new."""
    call_seconds: float | None = 3600.0
    """How long the agent may be silent in a turn with `idle_seconds` while a tool call of it has no final status; None
    for any time. Agents run commands that say nothing until they end, and some never tell the end of a call."""

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.sessions: dict[str, Sn] = {}
        """The open sessions by id."""
        self._early = Early()
        self._reopening = set[str]()
        self._aside: dict[str, Sn] = {}  # those that are being opened again, as they were
        self.open_requests = OpenRequests()
        """The requests of the agent that are open."""
        for name in ("ext_method", "fallback_request", *(record.handler for record in self.REQUESTS.values())):
            setattr(self, name, partial(self._watched, getattr(self, name)))

    @property
    def agreed(self) -> InitializeResponse | None:
        """The answer of the agent to `initialize`; None as long as there is none."""
        return getattr(self.agent, "negotiated", None)

    def new_session(self, session_id: str, cwd: str) -> Sn:
        """A session without a state yet."""
        raise NotImplementedError

    async def open(self, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()) -> Sn:
        """Open a new session; `directories` are roots besides `cwd`."""
        request = NewSessionRequest(
            cwd=cwd, mcp_servers=[*mcp_servers], additional_directories=[*directories] if directories else UNSET
        )
        session = await self.open_with(self.agent.session_new(request), cwd)
        session.opened_at = asyncio.get_running_loop().time()
        return session

    async def open_with(self, call: Awaitable[Any], cwd: str) -> Sn:
        """Open the session of a call that makes one; what is reported before its answer is kept, up to 8 MiB."""
        with self._early.kept():
            result = await call
            if len(result.session_id) > MAX_ID:
                raise InternalError(f"the agent has opened a session whose id has more than {MAX_ID} characters")
            session = self._opened(result.session_id, cwd)
            session.state.apply(result)
            for params in self._early.take(session.id):
                session.state.update(params)
        return session

    async def resume(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Sn:
        """Open a session again, without the conversation so far.

        Raises `RuntimeError` while the session is being opened by another call.
        """
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
            if not isinstance(page.next_cursor, str) or page.next_cursor == cursor:
                return  # a cursor that leads to itself has no end
            cursor = page.next_cursor

    async def answer_permission(self, session: Sn, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """Answer a question of the agent: override this one. It is cancelled when its turn is."""
        return await super().session_request_permission(request)

    def session_changed(self, session: Sn, change: Ch) -> None:
        """Called for each change while no turn runs; override it to show them."""

    def known_tool_call(self, session_id: str, tool_call_id: str) -> object | None:
        """A tool call as it was reported: for `PermissionClient`."""
        session = self.sessions.get(session_id)
        return None if session is None else session.state.tool_call(tool_call_id)

    def asked_tool_call(self, request: RequestPermissionRequest) -> object | None:
        """The tool call of a question, as it was reported when the question came: for `PermissionClient`."""
        session = self.sessions.get(request.session_id)
        return None if session is None else session.asked_tool_call(request)

    def permission_changed(self, request: RequestPermissionRequest, decision: Literal["allow", "ask", "deny"]) -> None:
        """Make it a change of the session that what the user has allowed does not hold: for `PermissionClient`."""
        session = self.sessions.get(request.session_id)
        if session is not None:
            session.permission_changed(PermissionChanged(request=request, decision=decision))

    def session_folder(self, session_id: str) -> str | None:
        """The folder of a session: for `PermissionClient`."""
        session = self.sessions.get(session_id)
        return None if session is None else session.cwd

    async def session_closed(self, session: Sn) -> None:
        """Called when `session.close()` has closed a session. Release what belongs to it here, such as terminals."""

    # --- Messages of the agent -----------------------------------------------------------------------------------

    def receive_update(self, params: Any) -> None:
        """Apply an update; those of sessions that are not open are ignored."""
        session = self.sessions.get(params.session_id)
        if session is None:
            self._early.add(params.session_id, params)
        else:
            if session.heard(params.update):
                session.reported.update(params)
            if session.reported.is_full:
                self._give_up(session)

    def _give_up(self, session: Sn) -> None:
        logger.warning("a session is given up: the agent has reported more than %d bytes in it", self.max_state_bytes)
        del self.sessions[session.id]
        session.give_up()

    def _watched(self, handle: Callable[..., Any], *values: Any) -> Any:
        """Call the handler of a request; what cannot be awaited is left to the caller, who explains it."""
        found = handle(*values)
        return self._answered(found, values[-1]) if isawaitable(found) else found

    async def _answered(self, answer: Awaitable[Any], params: Any) -> Any:
        """The answer to a request, which is open until then."""
        raw: Any = params
        said: Any = raw.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
        name = said if isinstance(said, str) else None
        asked = None if name is None else self.sessions.get(name)
        if asked is not None:
            asked.heard()
        about = nullcontext() if asked is None else asked.handling(asyncio.current_task())
        try:
            with self.open_requests.opened(name), about:
                return await answer
        finally:
            for session in self.sessions.values():
                if name in (None, session.id):
                    session.idle_time.heard()

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Ask by `answer_permission`."""
        session = self.sessions.get(params.session_id)
        if session is None:
            return await super().session_request_permission(params)
        return await session.ask_user(params)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """End all turns and questions."""
        for session in (*self.sessions.values(), *self._aside.values()):
            session.lose(reason)
        await super().connection_closed(reason)

    def _check_idle(self, session_id: str) -> None:
        session = self.sessions.get(session_id)
        if session is not None and session.has_turns:
            raise RuntimeError("a turn of the session goes on: wait for its end before you load it again")

    async def _reopen(self, request: Any, send: Any) -> Sn:
        if request.session_id in self._reopening:  # both conversations would go into one session
            raise RuntimeError("the session is being opened by another call: wait for its end")
        self._reopening.add(request.session_id)
        try:
            return await self._replace(request, send)
        finally:
            self._reopening.discard(request.session_id)

    async def _replace(self, request: Any, send: Any) -> Sn:
        earlier = self.sessions.get(request.session_id)
        session = self._opened(request.session_id, request.cwd)
        if earlier is not None and earlier is not session:
            self._aside[session.id] = earlier
        try:
            session.reported.apply(await self._send_opening(request, send))
            await session.quiet.wait(self.quiet_seconds)
        except BaseException:
            if self.sessions.get(session.id) is session:
                del self.sessions[session.id]
                if earlier is not None:
                    self.sessions[session.id] = earlier
            raise
        finally:
            self._aside.pop(session.id, None)
        if earlier is not None and earlier is not session:
            earlier.retire("the session was opened again: use the object that was returned then")
        return session

    async def _send_opening(self, request: Any, send: Any) -> Any:
        """Send a request that opens a session again; returns the response."""
        return await send(request)

    def _opened(self, session_id: str, cwd: str) -> Sn:
        session = self.sessions[session_id] = self.new_session(session_id, cwd)
        return session
