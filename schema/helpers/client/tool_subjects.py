"""The subject of a tool call: the attributes that permission rules compare."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ..types import ToolCallLocation, ToolCallUpdate

__all__ = ["PermissionSubject"]


@dataclass(frozen=True, kw_only=True)
class PermissionSubject:
    """The subject of a question, as the agent describes it. None or empty if it does not say.

    `kind` is that of the tool, `tool` its name in code. `paths` are the files that it touches, or the folder in which
    `command` runs. `input` is a digest of the input of the tool.
    """

    kind: str | None = None
    tool: str | None = None
    paths: tuple[str, ...] = ()
    command: str | None = None
    input: str | None = None


def subject_of_tool(call: ToolCallUpdate, known: object = None) -> PermissionSubject:
    """The subject of a tool call. `known` is an earlier report, which has the attributes that `call` leaves out."""
    locations = _value("locations", call, known)
    raw = _value("raw_input", call, known)
    return PermissionSubject(
        kind=_text("kind", call, known),
        tool=_text("name", call, known),
        paths=tuple(each.path for each in locations or () if isinstance(each, ToolCallLocation)),
        command=_command(raw),
        input=None if raw is None else _digest(raw),
    )


def _value(name: str, *calls: object) -> Any:
    """The attribute of the first call that says something."""
    values = (getattr(call, name, None) for call in calls)
    return next((value for value in values if value), None)


def _text(name: str, *calls: object) -> str | None:
    found: Any = _value(name, *calls)
    return found if isinstance(found, str) else None


def _command(raw: Any) -> str | None:
    """The command in the input of a tool, where most agents have it."""
    found: Any = raw
    command = found.get("command") if isinstance(raw, dict) else None
    return command if isinstance(command, str) else None


def _digest(raw: Any) -> str:
    return hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
