"""The folder of the bundled data files: in an installed package or in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import acpgen
from acpgen.diagnostics import internal_error


@cache
def data_folder() -> Path:
    """The folder that holds `schema/` and `templates/`; raises `InternalError` if there is none."""
    package = Path(acpgen.__file__).parent
    for folder in (package / "_data", package.parent):
        if (folder / "schema").is_dir():
            return folder
    raise internal_error("acpgen was installed without its schemas")
