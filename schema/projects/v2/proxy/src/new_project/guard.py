"""The proxy in version 2 of the protocol: it asks the user before the agent writes outside the folders of a session.

Put your own rules here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from .acp import (
    Call,
    CancelSessionNotification,
    CancelToolCallRequest,
    ConnectionClosed,
    Proxy,
    RemoteAgent,
    RemoteClient,
    RequestError,
    RequestPermissionRequest,
    RequestPermissionResponse,
    RequestPermissionSubjectToolCall,
    SessionUpdateToolCallUpdate,
    ToolCallUpdate,
    UpdateSessionNotification,
)
from .acp.helpers import permission_answer, permission_options
from .folders import Folders

WRITES = ("edit", "delete", "move")
"""The kinds of tool calls that change files."""
ENDED = ("completed", "failed", "cancelled")


class Work:
    """What the agent has reported of a tool call."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.status: str | None = None
        self.paths: list[str] = []
        self.can_cancel = False
        self.is_asked = False
        """Whether the user was asked about it."""

    def learn(self, update: ToolCallUpdate) -> None:
        """Note what has changed: None clears, and what is absent stays."""
        if update.kind is None or isinstance(update.kind, str):
            self.kind = update.kind
        if update.status is None or isinstance(update.status, str):
            self.status = update.status
        if update.locations is None or isinstance(update.locations, list):
            self.paths = [location.path for location in update.locations or []]
        if (controls := update.capabilities) is None or controls:
            self.can_cancel = bool(controls and controls.cancel)


class Guard(Proxy):
    """Passes everything on as it came, and watches the tool calls that change files.

    An agent of this version writes by itself, so no proxy can hold a write back. If the agent asks the user, the
    question says what is outside. If it does not, the proxy asks as soon as the work has begun, and cancels it if the
    user does not allow it.
    """

    def __init__(self, client: RemoteClient, agent: RemoteAgent) -> None:
        super().__init__(client, agent)
        self._folders = Folders()
        self._work: dict[tuple[str, str], Work] = {}
        self._questions: dict[asyncio.Task[None], str] = {}

    async def from_client(self, call: Call) -> Any:
        """Pass on what the client sends, and learn the folders of a session where it is opened."""
        result = await call.forward()
        self._folders.learn(call.params, result)
        return result

    async def session_cancel(self, params: CancelSessionNotification) -> None:
        """Cancel the questions of a session, too."""
        for question, session_id in self._questions.items():
            if session_id == params.session_id:
                question.cancel()
        await self.agent.session_cancel(params)

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Say in a question of the agent which files are outside."""
        if isinstance(params.subject, RequestPermissionSubjectToolCall):
            work = self._learn(params.session_id, params.subject.tool_call)
            work.is_asked = True
            if found := self._outside(params.session_id, work):
                note = f"Outside the project: {found}"
                params.description = f"{note}\n\n{params.description}" if params.description else note
        return await self.client.session_request_permission(params)

    async def session_update(self, params: UpdateSessionNotification) -> None:
        """Watch the tool calls; ask about those that have begun without a question."""
        await self.client.session_update(params)
        if not isinstance(params.update, SessionUpdateToolCallUpdate):
            return
        work = self._learn(params.session_id, params.update)
        if work.status in ENDED:
            del self._work[params.session_id, params.update.tool_call_id]
        elif work.status == "in_progress" and not work.is_asked and self._outside(params.session_id, work):
            work.is_asked = True
            question = asyncio.create_task(self._ask(params.session_id, params.update.tool_call_id, work))
            self._questions[question] = params.session_id
            question.add_done_callback(self._questions.pop)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Ask no longer."""
        for question in self._questions:
            question.cancel()

    def _learn(self, session_id: str, update: ToolCallUpdate) -> Work:
        work = self._work.setdefault((session_id, update.tool_call_id), Work())
        work.learn(update)
        return work

    def _outside(self, session_id: str, work: Work) -> str:
        """The files outside that the work changes, as one text."""
        outside = [path for path in work.paths if self._folders.is_outside(session_id, path)]
        return ", ".join(outside) if work.kind in WRITES else ""

    async def _ask(self, session_id: str, call_id: str, work: Work) -> None:
        options = permission_options()
        question = RequestPermissionRequest(
            session_id=session_id,
            title="The agent changes files outside the project",
            description=self._outside(session_id, work),
            subject=RequestPermissionSubjectToolCall(tool_call=ToolCallUpdate(tool_call_id=call_id)),
            options=options,
        )
        try:
            if not permission_answer(options, await self.client.session_request_permission(question)):
                await self._cancel(session_id, call_id, work)
        except ConnectionClosed:
            pass  # there is nobody to ask, and no work
        except RequestError:  # a client that cannot ask allows nothing
            await self._cancel(session_id, call_id, work)

    async def _cancel(self, session_id: str, call_id: str, work: Work) -> None:
        """Cancel the work on a tool call, or all work in the session if that is not offered."""
        try:
            if work.can_cancel:
                await self.agent.tool_call_cancel(CancelToolCallRequest(session_id=session_id, tool_call_id=call_id))
                return
        except RequestError:
            pass
        await self.agent.session_cancel(CancelSessionNotification(session_id=session_id))
