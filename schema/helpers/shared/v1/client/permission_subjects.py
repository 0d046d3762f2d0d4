"""The subject of a permission request, as the agent describes it, and the kinds of tools that a rule may name."""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

from ..known import ToolKind
from ..types import RequestPermissionRequest
from .operations import Statement
from .tool_subjects import said_by

__all__: list[str] = []

RuleKind: TypeAlias = ToolKind
"""A kind of tools that the schema or an extension names."""
KINDS: Final = frozenset[str](get_args(ToolKind))


def said_in(params: RequestPermissionRequest) -> Statement:
    """What the request says itself of its operation."""
    return said_by(params.tool_call)


def tool_call_id_of(params: RequestPermissionRequest) -> str | None:
    """The id of the tool call that the request belongs to."""
    return params.tool_call.tool_call_id
