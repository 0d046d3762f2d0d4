"""The subject of a permission request, as the agent describes it."""

from __future__ import annotations

from ..types import RequestPermissionRequest
from .permission_records import PermissionSubject
from .tool_subjects import subject_of_tool

__all__: list[str] = []


def title_of(params: RequestPermissionRequest) -> str:
    """The title to show: text of the model."""
    return params.tool_call.title or "Permission"


def subject_of(
    params: RequestPermissionRequest, known: object = None, *, folder: str | None = None, is_known_newer: bool = False
) -> PermissionSubject:
    """The subject of the request. `known` is the call as it was reported, which has what the request leaves out.

    What it says comes first if it `is_known_newer`. `folder` is that of the session.
    """
    calls = (known, params.tool_call) if is_known_newer else (params.tool_call, known)
    return subject_of_tool(*calls, folder=folder)


def tool_call_id_of(params: RequestPermissionRequest) -> str | None:
    """The id of the tool call that the request belongs to."""
    return params.tool_call.tool_call_id
