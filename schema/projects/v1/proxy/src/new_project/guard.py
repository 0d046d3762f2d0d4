"""The proxy in version 1 of the protocol: it asks the user before the agent writes outside the folders of a session.

Put your own rules here.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from .acp import (
    Call,
    InvalidParamsError,
    Proxy,
    RemoteAgent,
    RemoteClient,
    RequestPermissionRequest,
    ToolCallLocation,
    ToolCallUpdate,
    WriteTextFileRequest,
    WriteTextFileResponse,
)
from .acp.helpers import permission_answer, permission_options
from .folders import Folders


class Guard(Proxy):
    """Passes everything on as it came, but for writes that the user does not allow.

    It sees the files that the client writes for the agent. What an agent writes by itself passes no proxy.
    """

    def __init__(self, client: RemoteClient, agent: RemoteAgent) -> None:
        super().__init__(client, agent)
        self._folders = Folders()

    async def from_client(self, call: Call) -> Any:
        """Pass on what the client sends, and learn the folders of a session where it is opened."""
        result = await call.forward()
        self._folders.learn(call.params, result)
        return result

    async def fs_write_text_file(self, params: WriteTextFileRequest) -> WriteTextFileResponse:
        """Let the client write a file, if it is in a folder of the session, or if the user allows it."""
        if self._folders.is_outside(params.session_id, params.path) and not await self._is_allowed(params):
            raise InvalidParamsError(f"the user has not allowed to write {params.path}")
        return await self.client.fs_write_text_file(params)

    async def _is_allowed(self, params: WriteTextFileRequest) -> bool:
        options = permission_options()
        call = ToolCallUpdate(
            tool_call_id=uuid4().hex,
            title=f"Write outside the project: {params.path}",
            kind="edit",
            status="pending",
            locations=[ToolCallLocation(path=params.path)],
        )
        question = RequestPermissionRequest(session_id=params.session_id, tool_call=call, options=options)
        return permission_answer(options, await self.client.session_request_permission(question)).allowed
