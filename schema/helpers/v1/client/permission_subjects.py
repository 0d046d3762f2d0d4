"""The subject of a permission request, as the agent describes it."""

from __future__ import annotations

from ..types import RequestPermissionRequest
from .tool_subjects import PermissionSubject, subject_of_tool

__all__: list[str] = []


def title_of(params: RequestPermissionRequest) -> str:
    """The title to show: text of the model."""
    return params.tool_call.title or "Permission"


def subject_of(params: RequestPermissionRequest, known: object = None) -> PermissionSubject:
    """The subject of the request. `known` is the call as it was reported, which has what the request leaves out."""
    return subject_of_tool(params.tool_call, known)


def tool_call_id_of(params: RequestPermissionRequest) -> str | None:
    """The id of the tool call that the request belongs to."""
    return params.tool_call.tool_call_id
