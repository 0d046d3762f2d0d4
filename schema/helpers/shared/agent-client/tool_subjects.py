"""The subject of a tool call: the attributes that permission rules compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from .._base import UNSET
from ..types import ToolCallLocation
from .permission_records import PermissionPath, PermissionRecord, PermissionSubject

__all__ = ["PermissionPath", "PermissionRecord", "PermissionSubject"]

_FOLDERS: Final = ("cwd", "workdir")
"""The names under which agents have the folder of a command in the input of a tool."""


def subject_of_tool(*calls: object, folder: str | None = None) -> PermissionSubject:
    """The subject of a tool call, of which there are several reports: what the first leaves out is that of the next.

    `folder` is that of the session.
    """
    raw = _value("raw_input", *calls)
    command, args = _command(raw)
    return PermissionSubject(
        kind=_text("kind", *calls),
        tool=_text("name", *calls),
        paths=tuple(dict.fromkeys((*_located(_value("locations", *calls)), *_shown(_value("content", *calls))))),
        command=command,
        args=args,
        folder=next((each for name in _FOLDERS if isinstance(each := _of(raw, name), str)), folder),
        env=_variables(_of(raw, "env")),
        input=None if raw is None else _digest(raw),
    )


def _value(name: str, *calls: object) -> Any:
    """The attribute of the first call that says something."""
    values = (getattr(call, name, UNSET) for call in calls)
    return next((value for value in values if value is not UNSET and value is not None), None)


def _text(name: str, *calls: object) -> str | None:
    found: Any = _value(name, *calls)
    return found if isinstance(found, str) else None


def _located(locations: Iterable[object] | None) -> Iterable[str]:
    return (each.path for each in locations or () if isinstance(each, ToolCallLocation))


def _shown(content: Iterable[object] | None) -> Iterable[str]:
    """The paths of the files whose changes are shown, in the form of either version of the protocol."""
    for each in content or ():
        if getattr(each, "type", None) == "diff":
            for change in (each, *getattr(each, "changes", ())):
                paths = (getattr(change, name, None) for name in ("old_path", "path"))
                yield from (path for path in paths if isinstance(path, str))


def _of(raw: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", raw).get(name) if isinstance(raw, dict) else None


def _command(raw: Any) -> tuple[str | None, tuple[str, ...]]:
    """The command and its arguments in the input of a tool, where most agents have it."""
    command, args = _of(raw, "command"), _texts(_of(raw, "args"))
    if not isinstance(command, (str, list)) or not command:
        return None, ()
    first, *others = _texts(command)
    return first, (*others, *args)


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list; what has another form is one text."""
    if value is None or isinstance(value, list):
        return tuple(each if isinstance(each, str) else json.dumps(each) for each in cast("list[object]", value or []))
    return (value if isinstance(value, str) else json.dumps(value),)


def _variables(raw: Any) -> tuple[tuple[str, str], ...]:
    """The variables of a command, as a map or as a list of names and values."""
    found: Any = raw
    if isinstance(raw, list) and all(isinstance(_of(each, "name"), str) for each in cast("list[object]", raw)):
        found = {_of(each, "name"): _of(each, "value") for each in cast("list[object]", raw)}
    if isinstance(found, dict):
        return tuple(sorted((str(name), str(value)) for name, value in cast("dict[object, object]", found).items()))
    return (("env", json.dumps(found)),) if found else ()


def _digest(raw: Any) -> str:
    return hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
