"""Diffs, as content of a tool call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from typing import Any, Final

from .._base import UNSET, UnsetType
from ..decision import explains
from ..types import DiffChange, DiffChangeAdd, DiffChangeDelete, DiffChangeModify, DiffPatch, ToolCallContentDiff

__all__ = ["diff"]

_CONTEXT: Final = 3
"""Lines that are shown around a change, as git does."""

_MAX_STEPS: Final = 2 * 10**6
"""Pairs of equal lines that are looked at. Lines that repeat take long, which would block the event loop."""


@explains
def diff(
    path: str, old: str | None, new: str | None, *, meta: dict[str, Any] | UnsetType = UNSET
) -> ToolCallContentDiff:
    """The change of one text file, from its text before and after, with a patch. `path` is absolute.

    `old` is None for a new file, and `new` for a deleted one. For other changes, such as moves and binary files,
    construct `ToolCallContentDiff`.
    """
    lines = list(_patch(_quoted(path), old, new))
    patch = DiffPatch(format="git_patch", text="".join(lines)) if len(lines) > 1 else UNSET
    return ToolCallContentDiff(changes=[_change(path, old, new)], patch=patch, meta=meta)


def _change(path: str, old: str | None, new: str | None) -> DiffChange:
    if old is None:
        return DiffChangeAdd(path=path, file_type="text")
    if new is None:
        return DiffChangeDelete(path=path, file_type="text")
    return DiffChangeModify(path=path, file_type="text")


def _patch(path: str, old: str | None, new: str | None) -> Iterator[str]:
    """The patch as git prints it, but with the absolute path on both sides."""
    yield f"diff --git {path} {path}\n"
    if old is None:
        yield "new file mode 100644\n"
    elif new is None:
        yield "deleted file mode 100644\n"
    if (old or "") != (new or ""):
        end = "\t\n" if " " in path else "\n"  # as git does, so that the path is read to its end
        yield "--- /dev/null\n" if old is None else f"--- {path}{end}"
        yield "+++ /dev/null\n" if new is None else f"+++ {path}{end}"
    for line in _hunks(_lines(old or ""), _lines(new or "")):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """The lines with their ends: only a newline ends one, whatever else `str.splitlines` may split at."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """The changes with the lines around them. Only what lies between the first and the last change is compared."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start, left_out = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    before, after = old[start : len(old) - left_out], new[start : len(new) - left_out]
    for group in _groups(before, after, head - start, tail - left_out):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_range(start + i1, i2 - i1)} +{_range(start + j1, j2 - j1)} @@\n"
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[i:i_end])
            else:
                yield from (f"-{line}" for line in before[i:i_end])
                yield from (f"+{line}" for line in after[j:j_end])


def _groups(
    before: list[str], after: list[str], head: int, tail: int
) -> Iterator[list[tuple[str, int, int, int, int]]]:
    """The hunks as steps that turn `before` into `after`; their first `head` and last `tail` lines are the same."""
    try:
        groups = list(_Matcher(before, after).get_grouped_opcodes(_CONTEXT))
    except _TooManyStepsError:
        i, j = len(before) - tail, len(after) - tail
        last = ("equal", i, len(before), j, len(after))
        groups = [[("equal", 0, head, 0, head), ("replace", head, i, head, j), last]]
    yield from groups


class _TooManyStepsError(Exception):
    pass


class _Matcher(SequenceMatcher[str]):
    """Compares lines, and gives up with `_TooManyStepsError`."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after)
        most = len(after) // 100 + 1 if len(after) >= 200 else len(after)  # it does not look for more frequent lines
        counts = {line: count for line, count in Counter(after).items() if count <= most}
        self._steps = [1 + counts.get(line, 0) for line in before]
        self._left = _MAX_STEPS

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self._left -= sum(self._steps[alo:ahi])
        if self._left < 0:
            raise _TooManyStepsError
        return super().find_longest_match(alo, ahi, blo, bhi)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of lines at the start that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _range(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"


_ESCAPES: Final = {code: f"\\{code:03o}" for code in (*range(32), ord('"'), ord("\\"), 127)}


def _quoted(path: str) -> str:
    """The path as git reads it: in quotes, with octal escapes, if it has characters that need them."""
    escaped = path.translate(_ESCAPES)
    return path if escaped == path else f'"{escaped}"'
