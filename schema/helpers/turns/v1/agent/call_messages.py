"""The messages of tool calls, as protocol 1 has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import decides
from ..known import ToolCallStatus
from ..types import (
    PermissionOption,
    RequestPermissionRequest,
    SessionUpdate,
    SessionUpdateToolCall,
    SessionUpdateToolCallUpdate,
    ToolCallContent,
    ToolCallUpdate,
)
from .content import name_of
from .permissions import PermissionAnswer, permission_options, read_permission

__all__ = ["ask_permission"]

CANCELLED: Final[ToolCallStatus] = "failed"
"""The status of a call that was cancelled: there is none of its own."""


def first_update(call: ToolCallUpdate) -> SessionUpdate:
    """The update that introduces a call."""
    return SessionUpdateToolCall(
        tool_call_id=call.tool_call_id,
        title=call.title or "",
        kind=call.kind or UNSET,
        status=call.status or UNSET,
        content=call.content or UNSET,
        locations=call.locations or UNSET,
        raw_input=call.raw_input,
        meta=call.meta,
        **name_of(getattr(call, "name", None)),
    )


def appended(
    call: ToolCallUpdate, added: Sequence[ToolCallContent], *, meta: dict[str, Any] | UnsetType = UNSET
) -> Iterator[tuple[SessionUpdate, ToolCallUpdate]]:
    """The updates that append content, each with the call as it is then. Here one update replaces all content."""
    if added:
        call = replace(call, content=[*(call.content or ()), *added])
        yield SessionUpdateToolCallUpdate(tool_call_id=call.tool_call_id, content=call.content, meta=meta), call


@decides
async def ask_permission(
    client: RemoteClient,
    session_id: str,
    call: ToolCallUpdate,
    *,
    options: Sequence[PermissionOption] | None = None,
    foreground: bool = True,  # so that the code of an agent is the same in both protocols
    meta: dict[str, Any] | UnsetType = UNSET,
) -> PermissionAnswer:
    """Ask for permission for a tool call, and wait for the answer; by default with `permission_options()`.

    `foreground` changes nothing: sessions have states in protocol 2. Raises what `client.session_request_permission`
    raises; but an answer that does not fit allows nothing, which the log says.
    """
    offered = list(options or permission_options())
    request = RequestPermissionRequest(session_id=session_id, tool_call=call, options=offered, meta=meta)
    return await read_permission(offered, client.session_request_permission(request))
