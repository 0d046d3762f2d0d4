"""The subject of a permission request, as the agent describes it."""

from __future__ import annotations

from ..types import RequestPermissionRequest, RequestPermissionSubjectCommand, RequestPermissionSubjectToolCall
from .permission_records import PermissionSubject
from .tool_subjects import subject_of_tool

__all__: list[str] = []


def title_of(params: RequestPermissionRequest) -> str:
    """The title to show: text of the model."""
    return params.title


def subject_of(
    params: RequestPermissionRequest, known: object = None, *, folder: str | None = None, is_known_newer: bool = False
) -> PermissionSubject:
    """What the request is about. What it leaves out is that of the tool call which is `known`.

    What that says comes first if it `is_known_newer`. `folder` is that of the session. Unknown subjects say nothing.
    """
    match params.subject:
        case RequestPermissionSubjectToolCall(tool_call=call):
            return subject_of_tool(*((known, call) if is_known_newer else (call, known)), folder=folder)
        case RequestPermissionSubjectCommand(command=command, cwd=cwd):
            return PermissionSubject(kind="execute", paths=(cwd,), command=command, folder=cwd)
        case _:
            return PermissionSubject()


def tool_call_id_of(params: RequestPermissionRequest) -> str | None:
    """The id of the tool call that the request belongs to, if it says so."""
    match params.subject:
        case RequestPermissionSubjectToolCall(tool_call=call):
            return call.tool_call_id
        case RequestPermissionSubjectCommand(tool_call_id=str(found)):
            return found
        case _:
            return None
