"""Diffs, as content of a tool call."""

from __future__ import annotations

from typing import Any

from .._base import UNSET, UnsetType
from ..types import ToolCallContentDiff

__all__ = ["diff"]


def diff(
    path: str, old: str | None, new: str | None, *, meta: dict[str, Any] | UnsetType = UNSET
) -> ToolCallContentDiff:
    """The change of one file, from its text before and after. `path` is absolute.

    `old` is None for a new file. Protocol 1 cannot say that a file is deleted: a `new` of None is shown as empty.
    """
    return ToolCallContentDiff(path=path, old_text=UNSET if old is None else old, new_text=new or "", meta=meta)
