"""The messages of tool calls, as protocol 2 has them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import decides
from ..dispatch import ConnectionClosed
from ..known import ToolCallStatus
from ..types import (
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    RequestPermissionSubjectToolCall,
    SessionUpdate,
    SessionUpdateToolCallContentChunk,
    SessionUpdateToolCallUpdate,
    ToolCallContent,
    ToolCallUpdate,
)
from .content import name_of
from .permissions import PermissionAnswer, permission_answer, permission_options
from .states import requires_action, running

__all__ = ["ask_permission"]

CANCELLED: Final[ToolCallStatus] = "cancelled"
"""The status of a call that was cancelled."""

_open: Final[MutableMapping[RemoteClient, list[str]]] = WeakKeyDictionary()
"""The session ids of the questions in the foreground that are not answered yet, one for each."""


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

    The title of the question is that of the call. Raises what `client.session_request_permission` raises.
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
        return permission_answer(offered, await _ask_in_foreground(client, request))
    return permission_answer(offered, await client.session_request_permission(request))


async def _ask_in_foreground(client: RemoteClient, request: RequestPermissionRequest) -> RequestPermissionResponse:
    session_id = request.session_id
    questions = _open.setdefault(client, [])
    questions.append(session_id)
    is_cancelled = False
    try:
        await client.session_update(requires_action(session_id))
        return await client.session_request_permission(request)
    except (asyncio.CancelledError, GeneratorExit):
        is_cancelled = True
        raise
    finally:
        questions.remove(session_id)
        if session_id not in questions and not is_cancelled:
            with contextlib.suppress(ConnectionClosed):  # the request has raised it already
                await client.session_update(running(session_id))
