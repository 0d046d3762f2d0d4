"""Format generated files with black, in a fixed mode that no configuration of the user's can change."""

from __future__ import annotations

import ast
import gc
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from acpgen.diagnostics import internal_error
from acpgen.emit.literals import LINE_LENGTH
from acpgen.emit.pieces import pieces
from acpgen.layout import Trait, UnclearError, indent_of, long_lines, traits

_BETWEEN_COLLECTIONS = 1_000_000
"""Characters of source; more than all that the bundled schemas make, and some 300 MiB of trees."""

_STARTS = re.compile(r"^[^\s#@)\]}]", re.MULTILINE)
"""Where statements of a module start, at least."""


def format_files(files: Mapping[str, str]) -> dict[str, str]:
    """`files` with every Python file formatted; raises `InternalError` for one that is no Python."""
    with _collecting_seldom() as formatted:
        formatter = _Formatter(formatted)
        return {path: _format(path, text, formatter) if path.endswith(".py") else text for path, text in files.items()}


@contextmanager
def _collecting_seldom() -> Iterator[Callable[[str], None]]:
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
            gc.enable()


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

    def __init__(self, formatted: Callable[[str], None]) -> None:
        # imported here: an unchanged build needs no formatter
        import black
        from black.mode import TargetVersion

        self._black = partial(
            black.format_str, mode=black.Mode(target_versions={TargetVersion.PY310}, line_length=LINE_LENGTH)
        )
        self._formatted = formatted
        self._known: set[Trait] = set()

    def format(self, text: str) -> str:
        """`text` as black writes it, without the line end."""
        try:
            folds = {line: self._fold(line) for line in long_lines(text)}
            found = traits(text, folds.keys())
        except UnclearError:
            return self._run(text)
        expected = "\n".join(folds.get(line, line) for line in text.rstrip("\n").split("\n"))
        if found <= self._known:
            return expected
        result = self._run(text)
        if result == expected:
            self._known |= found
        return result

    def _run(self, text: str) -> str:
        self._formatted(text)
        return self._black(text).rstrip("\n")

    def _fold(self, line: str) -> str:
        """A line that is too long as black folds it, all by itself. Raises `UnclearError` where it cannot stand so."""
        from black.parsing import InvalidInput

        code = line.lstrip(" ")
        above = ["if _:"] * (indent_of(line) // 4)
        below = []
        if code.endswith(","):  # an element: of a dict, or of something else with brackets
            opening, closing = ("{", "}") if re.match(r'"[^"]*": ', code) else ("_(", ")")
            above, below = [*above[1:], opening], [closing]
        lines = [f"{'    ' * depth}{each}" for depth, each in enumerate(above)]
        try:
            folded = self._run("\n".join([*lines, line, *(f"{'    ' * (len(above) - 1)}{each}" for each in below)]))
        except InvalidInput:
            raise UnclearError from None
        return "\n".join(folded.split("\n")[len(above) : -1 if below else None])


def _parts(text: str) -> Iterator[str]:
    """`text` cut before each class and function, with what stands above it, where black puts two empty lines.

    Black formats a second time whatever it changed. Cut up, that is a few definitions instead of the whole file.
    """
    for piece in pieces(text, 0):
        if len(_STARTS.findall(piece)) == 1:
            yield piece.strip("\n") + "\n"
        else:
            yield from _definitions(piece)


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
    yield _text(lines[start:])


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"


def _stands_apart(before: ast.stmt, after: ast.stmt) -> bool:
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    is_overloaded = (
        isinstance(before, ast.FunctionDef) and isinstance(after, ast.FunctionDef) and bool(before.decorator_list)
    )
    return (isinstance(before, definitions) or isinstance(after, definitions)) and not is_overloaded
