"""Format generated files with black. The mode is fixed: no configuration of the user changes it.

Templates are laid out as black would do it. Only definitions with a line that is too long go through black.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
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
    run = black_at(LINE_LENGTH)
    return "\n\n\n".join(_format_part(path, part, run) for part in _APART.split(whole)) + "\n"


def _format_part(path: str, part: str, run: Callable[[str], str]) -> str:
    from black.parsing import InvalidInput

    if not has_long_line(part):
        return part
    try:
        return run(part).rstrip("\n")
    except InvalidInput as error:
        kept = Path(tempfile.mkdtemp(prefix="acpgen-")) / Path(path).name
        kept.write_text(part, encoding="utf-8")
        raise internal_error(f"the generated {path} is not Python: {error}; see {kept}") from None


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
