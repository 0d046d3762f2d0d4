"""What errors say of the code that uses this package: the place in it, and the part or Python that it needs."""

from __future__ import annotations

import sys
from importlib import import_module
from traceback import walk_tb
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    import asyncio

if sys.version_info < (3, 10):
    raise ImportError(f"this package needs Python 3.10 or later, and this is {sys.version.split()[0]}")

_PACKAGE: Final = __name__.rpartition("_runtime.")[0]


def caller() -> str:
    """The place in the user's code that has called this package, for a message; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
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


# --- Parts -----------------------------------------------------------------------------------------------------------


def without_part(what: str, part: str) -> ImportError:
    """The error for something that this package was built without."""
    way = f'add "{part}" to `with` in [tool.acpgen], or run `acpgen build` with `--with {part}` besides the other parts'
    return ImportError(f"{what} needs the part {part!r}, which this package is without: {way}")


def part_module(part: str, module: str, what: str) -> Any:
    """A module of a part, imported now. Raises `ImportError` for `what`, if the package is without the part."""
    try:
        return import_module(f".{part}.{module}", __package__)
    except ModuleNotFoundError as error:
        # the folder may still be there, with compiled files of a former package
        if error.name not in (f"{__package__}.{part}", f"{__package__}.{part}.{module}"):
            raise
        raise without_part(what, part) from None
