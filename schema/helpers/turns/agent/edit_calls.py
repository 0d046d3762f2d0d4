"""Tool calls that change a file: what they show follows from the text before and after."""

from __future__ import annotations

import ntpath
from typing import Any, Literal

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import explains
from .diffs import diff
from .tool_calls import RunningToolCall, tool_call

__all__ = ["edit_call"]


@explains
def edit_call(
    client: RemoteClient,
    session_id: str,
    path: str,
    *,
    old: str | None,
    new: str | None,
    title: str | None = None,
    status: Literal["pending", "in_progress"] = "in_progress",
    raw_input: Any = UNSET,
    tool_call_id: str | None = None,
    name: str | None = None,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> RunningToolCall:
    """Report a tool call that changes a file, with a diff of its text; otherwise as `tool_call`.

    `path` is absolute. `old` is None for a new file, and `new` for one that is deleted. Without a title, it is "Edit",
    "Create" or "Delete" and the name of the file.
    """
    verb = "Create" if old is None else "Delete" if new is None else "Edit"
    return tool_call(
        client,
        session_id,
        title if title is not None else f"{verb} {ntpath.basename(path)}",
        kind="delete" if new is None else "edit",
        status=status,
        content=[diff(path, old, new)],
        locations=[path],
        raw_input=raw_input,
        tool_call_id=tool_call_id,
        name=name,
        meta=meta,
    )
