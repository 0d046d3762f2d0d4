"""Format generated files with black. The mode is fixed: no configuration of the user changes it.

Templates are laid out as black would do it. Only statements with a line that is too long go through black, which takes
time for all that it reads.
"""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from unicodedata import east_asian_width

from acpgen.diagnostics import internal_error
from acpgen.emit.source import LINE_LENGTH

_APART = re.compile(r"\n\n\n(?=[^\s)\]}])")
"""The gap before a top-level definition. Docstrings never contain two empty lines."""


def format_files(files: Mapping[str, str]) -> dict[str, str]:
    """Format every Python file of `files`. Raises `InternalError` for one that is not Python."""
    return {path: _format(path, text) if path.endswith(".py") else text for path, text in files.items()}


def _format(path: str, text: str) -> str:
    whole = text.rstrip("\n")
    if not has_long_line(whole):
        return f"{whole}\n"
    return "\n\n\n".join(_format_part(path, part) for part in _APART.split(whole)) + "\n"


def _format_part(path: str, part: str) -> str:
    if not has_long_line(part):
        return part
    from black.parsing import InvalidInput

    try:
        rest = _format_statements(part)
        return black_at(LINE_LENGTH)(rest).rstrip("\n") if has_long_line(rest) else rest
    except (InvalidInput, SyntaxError) as error:
        kept = Path(tempfile.mkdtemp(prefix="acpgen-")) / Path(path).name
        kept.write_text(part, encoding="utf-8")
        raise internal_error(f"the generated {path} is not Python: {error}; see {kept}") from None


def _format_statements(part: str) -> str:
    """Format the simple statements of a definition that have a long line; what else is long is left as it is."""
    lines = part.split("\n")
    simple = [node for node in ast.walk(ast.parse(part)) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    for node in sorted(simple, key=lambda node: node.lineno, reverse=True):  # so that the other numbers stay right
        place, indent = slice(node.lineno - 1, node.end_lineno), node.col_offset
        text, margin = "\n".join(lines[place]), " " * indent
        if has_long_line(text) and text.startswith(margin) and '"""' not in text:
            formatted = black_at(LINE_LENGTH - indent)(textwrap.dedent(text)).rstrip("\n")
            lines[place] = textwrap.indent(formatted, margin).split("\n")
    return "\n".join(lines)


@cache
def black_at(width: int) -> Callable[[str], str]:
    """The formatter for lines of at most `width` columns."""
    # imported late: an unchanged build needs no formatter
    import black
    from black.mode import TargetVersion

    return partial(black.format_str, mode=black.Mode(target_versions={TargetVersion.PY310}, line_length=width))


def has_long_line(text: str) -> bool:
    """True if a line of `text` is too long."""
    return any(_width(line) > LINE_LENGTH for line in text.split("\n"))


def _width(line: str) -> int:
    """The columns of a line, as black counts them: characters of East Asian scripts take two."""
    return len(line) if line.isascii() else sum(2 if east_asian_width(char) in "FW" else 1 for char in line)
