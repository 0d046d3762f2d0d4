"""What is known of an operation that needs a permission, who says it, and what it decides: the theory, and its table.

An agent tells of an operation in two ways: it *reports* the tool call, in updates, and it asks a *question* about it.
Hardly any agent says all in one of them. opencode reports a folder, asks about a command without a folder, and reports
both a moment later; gemini-cli reports nothing before it asks; others ask with nothing but the id of the call. So
neither is the operation. `PermissionClient`, `PermissionRules` and `PermissionMemory` go by one record that is made
from both, and by five rules:

1. An empty value says nothing. What is absent, null, `""`, `[]` or `{}`, or has nothing but such values, hides nothing,
   takes nothing back, and is not compared.
2. Both sources count. What one leaves out the other completes: single values as they are, the input of a tool by its
   keys, paths all together. Where they contradict each other, the operation has two readings, that of the question and
   that of the report. Both are shown. A rule that denies or asks is for the operation if it is for either of them; a
   rule that allows, only if it is for both.
3. More detail is no other operation. When the user has answered, what is known by then is compared with what was shown.
   A fact that is another than the one that was shown makes another operation. One that nobody had said may follow, as
   the column `later` says: what a command does is told by the command itself, so its kind, and its folder among the
   paths, are details. Where nothing was told but a title, all that follows makes another operation.
4. Another operation is another question. The rules decide about it first, then the user is asked again, with the new
   record. The program hears of it by `permission_changed`; so it does of all that the user has allowed and that is
   refused nevertheless.
5. What is remembered is exact: all that was shown, title included, with what its paths led to. It is for an equal
   record, and for no other. Where neither a command nor a path nor an input tells the operation from others, nothing is
   remembered, and "always" counts once. Folder, time-out and the like say how something is done, and not what.

`FACTS` has a row for each fact. Its columns say how two sources become one value, whether rules look at it, what it
makes of an operation if it is said only after the question was shown, and whether it is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

__all__: list[str] = []


@dataclass(frozen=True)
class Fact:
    """A row of the table."""

    merged: Literal["one", "keys", "all"]
    """How two sources become one value: `one` of them says it, each says some `keys` of an input, or `all` count."""
    has_rules: bool
    """Whether conditions of rules look at it."""
    later: Literal["detail", "detail of a command", "another"]
    """What it makes of the operation, if it is said only after the question was shown."""
    kept: Literal["always", "not of a file"]
    """Whether it is remembered: not for a tool that is remembered for one file."""


FACTS: Final[dict[str, Fact]] = {
    "title": Fact("one", has_rules=False, later="detail", kept="always"),
    "kind": Fact("one", has_rules=True, later="detail of a command", kept="always"),
    "tool": Fact("one", has_rules=True, later="detail of a command", kept="always"),
    "command": Fact("keys", has_rules=True, later="another", kept="always"),
    "args": Fact("keys", has_rules=True, later="another", kept="always"),
    "env": Fact("keys", has_rules=True, later="another", kept="always"),
    "folder": Fact("keys", has_rules=False, later="detail", kept="not of a file"),
    "paths": Fact("all", has_rules=True, later="another", kept="always"),
    "input": Fact("keys", has_rules=True, later="detail", kept="not of a file"),
}
"""The facts of an operation. Two exceptions are in no column: among the `paths`, the folder of a command is a detail;
and the tools that only look, `read` and `search`, are remembered for a file with their input."""

FOR_ONE_FILE: Final = frozenset({"read", "edit", "delete", "search"})
"""The kinds of tools that are remembered for a file. What is moved has a second one, which only the input has."""
ONLY_LOOKING: Final = frozenset({"read", "search"})
"""Those of them whose input is remembered, too: the input of the others is the change, which is new each time."""
FOLDERS: Final = ("cwd", "workdir")
"""The keys under which agents have the folder of a command in the input of a tool."""
FILES: Final = ("file_path", "filePath", "filepath")
"""The keys under which they have the one file of a tool."""
OF_A_COMMAND: Final = frozenset({"command", "args", "env", *FOLDERS})
"""The keys of an input that are facts of their own."""
_HOW: Final = frozenset(
    {
        *("env", *FOLDERS),
        *("timeout", "timeout_ms", "timeoutMs", "timeout_seconds", "timeoutSeconds"),
        *("background", "run_in_background", "is_background", "description"),
    }
)
"""The keys that tell no operation from another. A description is a second title."""
_MAX_DEPTH: Final = 8


def says(value: object, *, depth: int = 0) -> bool:
    """True if a value says something: it is not empty, and not made of empty values alone."""
    if depth > _MAX_DEPTH:
        return True
    if isinstance(value, Mapping):
        return any(says(each, depth=depth + 1) for each in cast("Mapping[str, object]", value).values())
    if isinstance(value, (list, tuple)):
        return any(says(each, depth=depth + 1) for each in cast("list[object]", value))
    return value is not None and value != ""


def tells(key: str) -> bool:
    """True if a key of an input may tell an operation from others; the empty one is for an input without keys."""
    return key not in _HOW


def merged_input(first: Any, second: Any) -> Any:
    """The input of a tool from two sources, without its empty values; where both say something, that of the first."""
    first, second = _spoken(first), _spoken(second)
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, dict) and isinstance(second, dict):
        return {**cast("dict[str, Any]", second), **cast("dict[str, Any]", first)}
    return cast("Any", first)


def _spoken(raw: Any) -> Any:
    """An input without the keys that say nothing; None if nothing is left."""
    if not says(raw):
        return None
    if isinstance(raw, dict):
        return {key: value for key, value in cast("dict[str, Any]", raw).items() if says(value)}
    return raw
