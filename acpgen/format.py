"""Format generated files with black, in a fixed mode that no configuration of the user's can change."""

from __future__ import annotations

import ast
import gc
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from acpgen.diagnostics import internal_error
from acpgen.emit.literals import LINE_LENGTH
from acpgen.emit.pieces import pieces
from acpgen.layout import Line, Trait, UnclearError, indent_of, long_lines, traits

_BETWEEN_COLLECTIONS = 1_000_000
"""Characters of source; more than all that the bundled schemas make, and some 300 MiB of trees."""

_STARTS = re.compile(r"^[^\s#@)\]}]", re.MULTILINE)
"""Where statements of a module start, at least."""
_DEFINITION = re.compile(r"^(?:class|def|async def) ", re.MULTILINE)


def format_files(files: Mapping[str, str], known: Collection[str] = ()) -> dict[str, str]:
    """`files` with every Python file formatted; raises `InternalError` for one that is no Python.

    `known` are definitions that stand as black writes them.
    """
    with formatting(known) as formatted:
        return formatted(files)


@contextmanager
def formatting(known: Collection[str] = ()) -> Iterator[Callable[[Mapping[str, str]], dict[str, str]]]:
    """What formats files as `format_files` does, for those who have them one after the other."""
    with _collecting_by_size() as collect:
        formatter = _Formatter(collect, known)

        def formatted(files: Mapping[str, str]) -> dict[str, str]:
            return {
                path: _format(path, text, formatter) if path.endswith(".py") else text for path, text in files.items()
            }

        yield formatted


@contextmanager
def _collecting_by_size() -> Iterator[Callable[[str], None]]:
    """Switch the garbage collector off; it is run by telling what was formatted, once for each million characters.

    Black makes trees by the million nodes: to look for garbage among them all the time takes longer than to format,
    and to keep all of them fills the memory.
    """
    was_enabled = gc.isenabled()
    size = 0

    def formatted(text: str) -> None:
        nonlocal size
        size += len(text)
        if size > _BETWEEN_COLLECTIONS:
            gc.collect()
            size = 0

    gc.disable()
    try:
        yield formatted
    finally:
        if was_enabled:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Have what is there now looked at among the old objects, not among those that were made just now, and at once."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


def _format(path: str, text: str, formatter: _Formatter) -> str:
    from black.parsing import InvalidInput

    try:
        parts = [formatter.format(part) for part in _parts(text)]
    except (SyntaxError, InvalidInput) as error:
        kept = Path(tempfile.mkdtemp(prefix="acpgen-")) / Path(path).name
        kept.write_text(text, encoding="utf-8")
        raise internal_error(f"the generated {path} is no Python: {error}; it is kept as {kept}") from None
    return "\n\n\n".join(parts) + "\n"


class _Formatter:
    """Formats definitions with black, but for those that are laid out like others that black left as they were."""

    def __init__(self, formatted: Callable[[str], None], known: Collection[str]) -> None:
        # imported here: an unchanged build needs no formatter
        import black
        from black.mode import TargetVersion

        self._black = partial(
            black.format_str, mode=black.Mode(target_versions={TargetVersion.PY310}, line_length=LINE_LENGTH)
        )
        self._formatted = formatted
        self._left = known
        self._known: set[Trait] = set()
        self._refused: set[Line] = set()

    def format(self, text: str) -> str:
        """`text` as black writes it, without the line end."""
        if text in self._left:
            return text.rstrip("\n")
        try:
            found = traits(text, too_long := long_lines(text))
            if self._are_known(found):
                folds = {line: self._alone(line, is_element=line[-1] == ",") for line in too_long}
                return "\n".join(folds.get(line, line) for line in text.rstrip("\n").split("\n"))
        except UnclearError:
            return self._run(text)
        result = self._run(text)
        if result == text.rstrip("\n"):
            self._known |= found
        return result

    def _run(self, text: str) -> str:
        self._formatted(text)
        return self._black(text).rstrip("\n")

    def _are_known(self, found: Collection[Trait]) -> bool:
        """Whether black leaves what has these traits; what is only about a line, it is asked."""
        missing = [trait for trait in found if trait not in self._known]
        if not all(isinstance(trait, Line) and trait not in self._refused for trait in missing):
            return False
        for trait in missing:
            if isinstance(trait, Line):
                (self._known if self._is_left(trait) else self._refused).add(trait)
        return self._known.issuperset(found)

    def _is_left(self, line: Line) -> bool:
        try:
            return self._alone(line.text, is_element=line.is_element) == line.text
        except UnclearError:
            return False

    def _alone(self, line: str, *, is_element: bool) -> str:
        """A line as black writes it in any place of that depth. Raises `UnclearError` where it is no whole one."""
        from black.parsing import InvalidInput

        above = ["if _:"] * (indent_of(line) // 4)
        below: list[str] = []
        if is_element:  # of a dict, or of something else with brackets
            opening, closing = ("{", "}") if re.match(r' *"[^"]*": ', line) else ("_(", ")")
            above, below = [*above[1:], opening], ["    " * (len(above) - 1) + closing]
        elif line.endswith(":"):
            below = ["    " * (len(above) + 1) + "pass"]
        lines = ["    " * depth + each for depth, each in enumerate(above)]
        try:
            result = self._run("\n".join([*lines, line, *below]) + "\n").split("\n")
        except InvalidInput:
            raise UnclearError from None
        if result[: len(lines)] != lines or result[len(result) - len(below) :] != below:
            raise UnclearError
        return "\n".join(result[len(lines) : len(result) - len(below)])


def _parts(text: str) -> Iterator[str]:
    """`text` cut before each class and function, with what stands above it, where black puts two empty lines.

    Black formats a second time whatever it changed. Cut up, that is a few definitions instead of the whole file.
    """
    others: list[str] = []  # with what has no definition beside it, empty lines are black's to count
    for piece in pieces(text, 0):
        is_one = len(_STARTS.findall(piece)) == 1 and _DEFINITION.search(piece)
        if is_one and (not others or _STARTS.search(others[-1])):
            yield from _definitions("\n\n".join(others))
            yield _text([piece])
            others.clear()
        else:
            others.append(piece)
    yield from _definitions("\n\n".join(others))


def _definitions(piece: str) -> Iterator[str]:
    lines = piece.splitlines()
    start = 0
    previous: ast.stmt | None = None
    for node in ast.parse(piece).body:
        if previous is not None and _stands_apart(previous, node):
            end = previous.end_lineno or 0
            yield _text(lines[start:end])
            start = end
        previous = node
    if lines:
        yield _text(lines[start:])


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"


def _stands_apart(before: ast.stmt, after: ast.stmt) -> bool:
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    is_overloaded = (
        isinstance(before, ast.FunctionDef) and isinstance(after, ast.FunctionDef) and bool(before.decorator_list)
    )
    return (isinstance(before, definitions) or isinstance(after, definitions)) and not is_overloaded
