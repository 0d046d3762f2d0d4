"""Places in the user's code, for messages: imported only after something has failed."""

from __future__ import annotations

import asyncio
import inspect
import sys
from traceback import walk_tb
from types import FrameType
from typing import Any, Final, cast

_PACKAGE: Final = __name__.rpartition("_runtime.")[0]


def caller() -> str:
    """The place in the user's code that has called this package, for a message; empty if there is none."""
    frame = inspect.currentframe()
    while frame is not None and is_ours_or_python(frame) and not _is_of_asyncio(frame):
        frame = frame.f_back
    if frame is None or _is_of_asyncio(frame):
        return ""
    return f", called by {place(frame, frame.f_lineno)},"


def failed_at(error: BaseException) -> str:
    """The last place in the user's code that an error has passed, for a message; empty if there is none."""
    passed = [each for each in walk_tb(error.__traceback__) if not is_ours(each[0].f_globals.get("__name__", ""))]
    theirs = [each for each in passed if not is_of_python(each[0])] or passed
    return f" in {place(*theirs[-1])}" if theirs else ""


def waits_at(task: asyncio.Task[Any]) -> str:
    """The place in the user's code where a task waits, for a message; empty if it is not known."""
    found, each = "", cast("Any", task.get_coro())
    while each is not None:
        frame = getattr(each, "cr_frame", None) or getattr(each, "gi_frame", None)
        if frame is not None and not is_ours(name := frame.f_globals.get("__name__", "")):
            found = found if name.startswith("asyncio.") else f"; it waits at {place(frame, frame.f_lineno)}"
        each = getattr(each, "cr_await", None) or getattr(each, "gi_yieldfrom", None)
    return found


def place(frame: FrameType, line: int) -> str:
    """A line of the user's code, for a message."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]  # Python 3.11 and later
    return f"{name} in line {line} of {code.co_filename}"


def is_of_python(frame: FrameType) -> bool:
    """True for code of the standard library."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names


def is_ours(module: str) -> bool:
    """True for a module of this package."""
    return module.startswith(_PACKAGE)


def is_ours_or_python(frame: FrameType) -> bool:
    """True for code of this package, or of the standard library."""
    return is_ours(frame.f_globals.get("__name__", "")) or is_of_python(frame)


def _is_of_asyncio(frame: FrameType) -> bool:
    return bool(frame.f_globals.get("__name__", "").startswith("asyncio."))
