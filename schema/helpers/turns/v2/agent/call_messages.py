"""The messages of tool calls, as protocol 2 has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import decides
from ..known import ToolCallStatus
from ..types import (
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionSubjectToolCall,
    SessionUpdate,
    SessionUpdateToolCallContentChunk,
    SessionUpdateToolCallUpdate,
    ToolCallContent,
    ToolCallUpdate,
)
from .content import name_of
from .foreground import ask_in_foreground
from .permissions import PermissionAnswer, permission_options, read_permission

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
        meta=call.meta,
        **name_of(getattr(call, "name", None)),
    )


def appended(
    call: ToolCallUpdate, added: Sequence[ToolCallContent], *, meta: dict[str, Any] | UnsetType = UNSET
) -> Iterator[tuple[SessionUpdate, ToolCallUpdate]]:
    """The updates that append content, each with the call as it is then."""
    for each in added:
        call = replace(call, content=[*(call.content or ()), each])
        yield SessionUpdateToolCallContentChunk(tool_call_id=call.tool_call_id, content=each, meta=meta), call


@decides
async def ask_permission(
    client: RemoteClient,
    session_id: str,
    call: ToolCallUpdate,
    *,
    options: Sequence[PermissionOption] | None = None,
    foreground: bool = True,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> PermissionAnswer:
    """Ask for permission for a tool call, and wait for the answer; by default with `permission_options()`.

    The state of the session is `requires_action` meanwhile, and `running` when the last of its questions is answered.
    Set `foreground` to False if the call runs in the background, or if other work goes on: then the state stays as it
    is. It also stays if this is cancelled, because `idle` comes next; after a time-out of your own, send `running`.

    The title of the question is that of the call. Raises what `client.session_request_permission` raises;
    but an answer that does not fit allows nothing, which the log says.
    """
    offered = list(options or permission_options())
    request = RequestPermissionRequest(
        session_id=session_id,
        title=call.title or "Permission for a tool call",
        subject=RequestPermissionSubjectToolCall(tool_call=call),
        options=offered,
        meta=meta,
    )
    if foreground:
        ask = partial(client.session_request_permission, request)
        return await read_permission(offered, ask_in_foreground(client, session_id, ask))
    return await read_permission(offered, client.session_request_permission(request))
