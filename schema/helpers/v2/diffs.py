"""Diffs, as content of a tool call."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from .._base import UNSET
from ..types import DiffChange, DiffChangeAdd, DiffChangeDelete, DiffChangeModify, DiffPatch, ToolCallContentDiff

__all__ = ["diff"]


def diff(path: str, old: str | None, new: str | None) -> ToolCallContentDiff:
    """The change of one text file, from its text before and after, with a patch. `path` is absolute.

    `old` is None for a new file, and `new` for a deleted one. For other changes, such as moves and binary files,
    construct `ToolCallContentDiff`.
    """
    lines = list(_patch(_quoted(path), old, new))
    patch = DiffPatch(format="git_patch", text="".join(lines)) if len(lines) > 1 else UNSET
    return ToolCallContentDiff(changes=[_change(path, old, new)], patch=patch)


def _change(path: str, old: str | None, new: str | None) -> DiffChange:
    if old is None:
        return DiffChangeAdd(path=path, file_type="text")
    if new is None:
        return DiffChangeDelete(path=path, file_type="text")
    return DiffChangeModify(path=path, file_type="text")


def _patch(path: str, old: str | None, new: str | None) -> Iterator[str]:
    """The patch as `git diff` prints it, but with the absolute path on both sides."""
    yield f"diff --git {path} {path}\n"
    if old is None:
        yield "new file mode 100644\n"
    elif new is None:
        yield "deleted file mode 100644\n"
    hunks = list(unified_diff(_lines(old or ""), _lines(new or "")))[2:]
    if hunks:
        end = "\t\n" if " " in path else "\n"  # as git does, so that the path is read to its end
        yield "--- /dev/null\n" if old is None else f"--- {path}{end}"
        yield "+++ /dev/null\n" if new is None else f"+++ {path}{end}"
    for line in hunks:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines with their ends: only a newline ends one, whatever else `str.splitlines` may split at."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def _quoted(path: str) -> str:
    """The path as git writes it: in quotes, with escapes, if it has characters that need them."""
    escaped = "".join(
        f"\\{_ESCAPES[char]}" if char in _ESCAPES else f"\\{ord(char):03o}" if char < " " or char == "\x7f" else char
        for char in path
    )
    return path if escaped == path else f'"{escaped}"'
