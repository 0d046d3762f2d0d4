"""What a tool call says of an operation, in a report or in a question."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from .._base import UNSET
from ..types import ToolCallLocation
from .operation_facts import FILES
from .operations import Statement, entry_of
from .permission_records import MAX_PATH, PermissionPath, PermissionRecord, PermissionSubject

__all__ = ["PermissionPath", "PermissionRecord", "PermissionSubject"]


def said_by(call: object) -> Statement:
    """What a tool call says; nothing if there is none."""
    raw: Any = _value(call, "raw_input")
    paths = (*_located(_value(call, "locations")), *_shown(_value(call, "content")), *_named(raw))
    return Statement(
        title=_text(call, "title"),
        kind=_text(call, "kind"),
        tool=_text(call, "name"),
        paths=tuple(dict.fromkeys(paths)),
        raw=raw,
    )


def _value(call: object, name: str) -> Any:
    value = getattr(call, name, None)
    return None if value is UNSET else value


def _text(call: object, name: str) -> str | None:
    found = _value(call, name)
    return found if isinstance(found, str) and found else None


def _located(locations: Iterable[object] | None) -> Iterable[str]:
    return (each.path for each in locations or () if isinstance(each, ToolCallLocation) and each.path)


def _shown(content: Iterable[object] | None) -> Iterable[str]:
    """The paths of the files whose changes are shown, in the form of either version of the protocol."""
    for each in content or ():
        if getattr(each, "type", None) == "diff":
            for change in (each, *getattr(each, "changes", ())):
                paths = (getattr(change, name, None) for name in ("old_path", "path"))
                yield from (path for path in paths if isinstance(path, str) and path)


def _named(raw: Any) -> Iterable[str]:
    """The file in the input of a tool, where most agents have it: some give no location before they are allowed."""
    for key in FILES:
        found = entry_of(raw, key)
        if isinstance(found, str) and len(found) <= MAX_PATH and os.path.isabs(found):
            yield found
