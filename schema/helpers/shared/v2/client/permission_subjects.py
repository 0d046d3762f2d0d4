"""The subject of a permission request, as the agent describes it, and the kinds of tools that a rule may name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias, get_args

from ..known import ToolKind
from ..types import RequestPermissionRequest, RequestPermissionSubjectCommand, RequestPermissionSubjectToolCall
from .operations import Statement
from .tool_subjects import said_by

__all__: list[str] = []

RuleKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""The kinds of tools that the protocol names: `ToolKind` takes any text, as agents may have kinds of their own."""
KINDS: Final = frozenset[str](kind for each in get_args(ToolKind) for kind in get_args(each))


def said_in(params: RequestPermissionRequest) -> Statement:
    """What the request says itself of its operation. Unknown subjects say nothing."""
    match params.subject:
        case RequestPermissionSubjectToolCall(tool_call=call):
            found = said_by(call)
        case RequestPermissionSubjectCommand(command=command, cwd=cwd):
            found = Statement(kind="execute", paths=(cwd,), raw={"command": command, "cwd": cwd})
        case _:
            found = Statement()
    return replace(found, title=params.title or found.title)


def tool_call_id_of(params: RequestPermissionRequest) -> str | None:
    """The id of the tool call that the request belongs to, if it says so."""
    match params.subject:
        case RequestPermissionSubjectToolCall(tool_call=call):
            return call.tool_call_id
        case RequestPermissionSubjectCommand(tool_call_id=str(found)):
            return found
        case _:
            return None
