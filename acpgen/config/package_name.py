"""Checks for the name of the folder of a package: Python must be able to import it on every system."""

from __future__ import annotations

import re
import sys
from keyword import iskeyword
from pathlib import Path
from unicodedata import normalize

from acpgen.diagnostics import InputError, input_error

_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})


def check_package_name(out: Path) -> None:
    """Raise `InputError` if no package in the folder `out` can be imported."""
    folder = out.absolute()
    if flaw := name_flaw(folder.name) or _shadow(folder):
        raise _unusable(folder.name, flaw)


def name_flaw(name: str) -> str | None:
    """The reason why a package of this name cannot be imported; None if it can."""
    if not name.isidentifier():
        return "it is not a Python identifier"
    if normalize("NFKC", name) != name:
        return "Python normalises it to another name"
    if iskeyword(name):
        return "it is a Python keyword"
    if name.lower() in _RESERVED:
        return "Windows reserves this name"
    return None


def _shadow(folder: Path) -> str | None:
    """The flaw of a folder that hides a module of the standard library from the code beside it."""
    if folder.name in sys.stdlib_module_names and folder.parent in (Path.cwd(), folder.parent.with_name("src")):
        return "a module of the standard library has this name"
    return None


def _unusable(name: str, flaw: str) -> InputError:
    better = re.sub(r"\W", "_", normalize("NFKC", name).strip(), flags=re.ASCII).strip("_")
    if not better.isidentifier():
        better = f"acp_{better}".rstrip("_")
    elif better == name:
        better += "_acp"
    return input_error(
        "package-name",
        f"{name!r} cannot be the folder of a package: {flaw}",
        hint=f"the last part of the path is the name of the package; choose {better}",
    )
