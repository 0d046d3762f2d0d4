"""Imports packages under an audit hook, in a process of its own, and prints what each import did.

    python auditing.py FOLDER PACKAGE…

One line of JSON for each package: the events, each with the file or module that it was about and the file whose code
caused it. What belongs to the package is named alike for all packages.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

WATCHED = (
    "open",
    "exec",
    "compile",
    "import",
    "socket.",
    "subprocess.",
    "os.",
    "shutil.",
    "ctypes.",
    "glob.",
    "tempfile.",
)

_seen: list[tuple[str, str, str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(WATCHED):
        # what is compiled comes before its file name
        about = _about(arguments[1:] if event == "compile" else arguments)
        _seen.append((event, about, sys._getframe(1).f_code.co_filename))


def _about(arguments: tuple[Any, ...]) -> str:
    subject = arguments[0] if arguments else ""
    return getattr(subject, "co_filename", None) or (os.fsdecode(subject) if isinstance(subject, (str, bytes)) else "")


def _in_general(text: str, folder: str, package: str) -> str:
    """`text` with the folder of the package, and its name, made those of any package."""
    return text.replace(f"{folder}/{package}", "PACKAGE").replace(package, "PACKAGE").replace(folder, "FOLDER")


def _kind(found: list[str]) -> tuple[str, ...]:
    """An event; which module of a package takes another one in first is the same to us."""
    event, about, by = found
    is_own = event == "import" and about.startswith("PACKAGE.") and by.startswith("PACKAGE/")
    return (event, "PACKAGE.…", "PACKAGE/…") if is_own else (event, about, by)


def main() -> None:
    """Import every package, each with nothing left of the one before."""
    folder, *packages = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    sys.addaudithook(_hook)
    for package in packages:
        importlib.invalidate_caches()
        _seen.clear()
        importlib.import_module(package)
        events = tuple(_seen)
        general = {_kind([_in_general(text, folder, package) for text in found]) for found in events}
        print(json.dumps(sorted(general)))


if __name__ == "__main__":
    main()
