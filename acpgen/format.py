"""Format generated files with black, in a fixed mode that no configuration of the user's can change."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from acpgen.diagnostics import internal_error
from acpgen.emit.literals import LINE_LENGTH


def format_files(files: Mapping[str, str]) -> dict[str, str]:
    """`files` with every Python file formatted; raises `InternalError` for one that is no Python."""
    return {path: _format(path, text) if path.endswith(".py") else text for path, text in files.items()}


def _format(path: str, text: str) -> str:
    # imported here: an unchanged build needs no formatter
    import black

    mode = black.Mode(target_versions={black.TargetVersion.PY310}, line_length=LINE_LENGTH)
    try:
        return black.format_str(text, mode=mode)
    except black.InvalidInput as error:
        kept = Path(tempfile.mkdtemp(prefix="acpgen-")) / Path(path).name
        kept.write_text(text, encoding="utf-8")
        raise internal_error(f"the generated {path} is no Python: {error}; it is kept as {kept}") from None
