"""An operation, from what was reported of it and what a question says: its record, and whether another one is the same.

`operation_facts` has the rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from .operation_facts import FACTS, FOLDERS, OF_A_COMMAND, merged_input, says
from .permission_records import PermissionSubject, digest, is_folder

__all__: list[str] = []

_MAX_PARTS: Final = 256
"""The most keys of an input that are compared one by one; a larger one is compared as a whole."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What one source says of an operation. None or empty where it says nothing."""

    title: str | None = None
    kind: str | None = None
    tool: str | None = None
    paths: tuple[str, ...] = ()
    raw: Any = None
    """The input of the tool."""

    def completed_by(self, earlier: Statement) -> Statement:
        """The same, with what the same source has said earlier and now leaves empty."""
        return Statement(
            title=self.title or earlier.title,
            kind=self.kind or earlier.kind,
            tool=self.tool or earlier.tool,
            paths=self.paths or earlier.paths,
            raw=self.raw if says(self.raw) else earlier.raw,
        )


def subject_of(
    question: Statement, report: Statement | None = None, *, folder: str | None = None, is_report_newer: bool = False
) -> PermissionSubject:
    """The record of an operation. `folder` is that of the session. The newer source comes first in what is shown.

    It looks at files: call it in a thread where that must not block.
    """
    report = report or Statement()
    title = question.title or report.title
    paths = tuple(dict.fromkeys((*question.paths, *report.paths)))
    first, second = (report, question) if is_report_newer else (question, report)
    own, other = _reading(first, second, folder), _reading(second, first, folder)
    contrary = None if own == other else PermissionSubject(title=title, paths=paths, **other)
    return PermissionSubject(title=title, paths=paths, contrary=contrary, **own)


def _reading(first: Statement, second: Statement, folder: str | None) -> dict[str, Any]:
    """What two sources say, by the first of them where they contradict each other; without title and paths."""
    raw = merged_input(first.raw, second.raw)
    command, args = _command(raw)
    parts = _parts(raw, OF_A_COMMAND if command is not None else frozenset(FOLDERS))
    return {
        "kind": first.kind or second.kind,
        "tool": first.tool or second.tool,
        "command": command,
        "args": args,
        "env": _variables(entry_of(raw, "env")),
        "folder": next((each for name in FOLDERS if isinstance(each := entry_of(raw, name), str)), folder),
        "input": digest(raw) if parts or command is not None else None,
        "parts": parts,
    }


# --- The same operation ----------------------------------------------------------------------------------------------


def is_same_operation(shown: PermissionSubject, now: PermissionSubject) -> bool:
    """True if all that is known now goes on with what was shown: it is the same, or says more of it."""
    return all(any(_goes_on(before, after) for before in shown.readings) for after in now.readings)


def _goes_on(before: PermissionSubject, after: PermissionSubject) -> bool:
    if not before.is_told and (after.is_told or after.title != before.title):
        return False  # nothing but a title was shown
    names = (name for name, fact in FACTS.items() if fact.merged != "all" and name not in {"title", "input"})
    if not all(_fact_goes_on(name, before, after) for name in names):
        return False
    return _paths_go_on(before, after) and _parts_go_on(before, after)


def _fact_goes_on(name: str, before: PermissionSubject, after: PermissionSubject) -> bool:
    was, now = _shown(name, before), _shown(name, after)
    if was == now:
        return True
    later = FACTS[name].later
    is_detail = later == "detail" or (later == "detail of a command" and before.command is not None)
    return is_detail and not says(was)


def _shown(name: str, subject: PermissionSubject) -> object:
    if name == "folder":  # a command runs in the same one, by whatever links it was named
        return subject.place or subject.folder
    return getattr(subject, name)


def _paths_go_on(before: PermissionSubject, after: PermissionSubject) -> bool:
    if before.paths == after.paths:
        return before.files == after.files
    known = {*zip(before.paths, before.files, strict=True)}
    leads = {each for each in before.files if each is not None}
    return all(
        (path, file) in known or file in leads or (after.command is not None and is_folder(file, after))
        for path, file in zip(after.paths, after.files, strict=True)
    )


def _parts_go_on(before: PermissionSubject, after: PermissionSubject) -> bool:
    """A command is told by its own facts, so that the rest of its input may be left out later; nothing else may."""
    now = dict(after.parts)
    return all(now.get(name, value if before.command is not None else None) == value for name, value in before.parts)


# --- The input of a tool ---------------------------------------------------------------------------------------------


def entry_of(raw: Any, name: str) -> Any:
    """The value under a key of an input; None if there is none."""
    return cast("Mapping[str, Any]", raw).get(name) if isinstance(raw, dict) else None


def _command(raw: Any) -> tuple[str | None, tuple[str, ...]]:
    """The command and its arguments in the input of a tool, where most agents have it."""
    command, args = entry_of(raw, "command"), _texts(entry_of(raw, "args"))
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
    if isinstance(raw, list) and all(isinstance(entry_of(each, "name"), str) for each in cast("list[object]", raw)):
        found = {entry_of(each, "name"): entry_of(each, "value") for each in cast("list[object]", raw)}
    if isinstance(found, dict):
        return tuple(sorted((str(name), str(value)) for name, value in cast("dict[object, object]", found).items()))
    return (("env", json.dumps(found)),) if found else ()


def _parts(raw: Any, facts: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Digests of the values in an input, by their keys, without those that are `facts`; or one of it as a whole."""
    if raw is None:
        return ()
    found = cast("dict[str, Any]", raw)
    if not isinstance(raw, dict) or len(found) > _MAX_PARTS:
        return (("", digest(found)),)
    return tuple((key, digest(found[key])) for key in sorted(found) if key not in facts)
