"""The messages of tool calls, as protocol 2 has them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from ..agent import RemoteClient
from ..dispatch import ConnectionClosed
from ..types import (
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionSubjectToolCall,
    SessionUpdate,
    SessionUpdateToolCallContentChunk,
    SessionUpdateToolCallUpdate,
    ToolCallContent,
    ToolCallStatus,
    ToolCallUpdate,
)
from .permissions import PermissionAnswer, permission_answer, permission_options
from .states import requires_action, running

__all__ = ["ask_permission"]

CANCELLED: Final[ToolCallStatus] = "cancelled"
"""The status of a call that was cancelled."""


def first_update(call: ToolCallUpdate) -> SessionUpdate:
    """The update that introduces a call."""
    return SessionUpdateToolCallUpdate(
        tool_call_id=call.tool_call_id,
        title=call.title,
        kind=call.kind,
        status=call.status,
        content=call.content,
        locations=call.locations,
        raw_input=call.raw_input,
    )


def content_updates(call: ToolCallUpdate, added: Sequence[ToolCallContent]) -> list[SessionUpdate]:
    """The updates that append `added`."""
    return [SessionUpdateToolCallContentChunk(tool_call_id=call.tool_call_id, content=each) for each in added]


async def ask_permission(
    client: RemoteClient,
    session_id: str,
    call: ToolCallUpdate,
    *,
    options: Sequence[PermissionOption] | None = None,
    foreground: bool = True,
) -> PermissionAnswer:
    """Ask for permission for a tool call, and wait for the answer; by default with `permission_options()`.

    The state of the session is `requires_action` meanwhile, and `running` afterwards. Set `foreground` to False if the
    call runs in the background, or if other work goes on: then the state stays as it is. The title of the question is
    that of the call. Raises what `client.session_request_permission` raises.
    """
    offered = list(options or permission_options())
    request = RequestPermissionRequest(
        session_id=session_id,
        title=call.title or "Permission for a tool call",
        subject=RequestPermissionSubjectToolCall(tool_call=call),
        options=offered,
    )
    if not foreground:
        return permission_answer(offered, await client.session_request_permission(request))
    await client.session_update(requires_action(session_id))
    try:
        return permission_answer(offered, await client.session_request_permission(request))
    finally:
        with contextlib.suppress(ConnectionClosed):  # the request has raised it already
            await client.session_update(running(session_id))
