"""Where the bundled data files are: inside an installed package, or at the top of a checkout."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from acpgen.diagnostics import internal_error


@cache
def data_folder() -> Path:
    """The folder that holds `schema/` and `templates/`; raises `InternalError` where neither home has it."""
    package = Path(str(files("acpgen")))
    for folder in (package / "_data", package.parent):
        if (folder / "schema").is_dir():
            return folder
    raise internal_error("acpgen was installed without its schemas")
