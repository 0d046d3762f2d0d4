"""The log: a peer can cause as many records as it likes, and what it says is part of their text.

So at most 10 records of a kind are logged in 30 seconds, for all connections together, and text that may be the peer's
is one line without control characters, in tracebacks, too.
"""

from __future__ import annotations

import builtins
import logging
import traceback
from textwrap import indent
from typing import Any, Final

from .dispatch import ConnectionClosed
from .places import failed_at

logger: Final = logging.getLogger("acp")
"""Gets failures with their tracebacks; the peer gets no details."""

PROGRAM_ENDS: Final = (KeyboardInterrupt, SystemExit)
"""Never caught. Whatever else a handler or a hook raises ends neither the connection nor its tasks."""

_MAX_RECORDS: Final = 10
_SECONDS: Final = 30.0
_MAX_TEXT: Final = 200
_MAX_ERROR_TEXT: Final = 2_000
_MAX_ERRORS: Final = 10
"""The most exceptions of a chain, or of a group, in a traceback."""
_GROUP: Final[Any] = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.10 has none


def log_mistake(text: str, *values: object) -> None:
    """Log a mistake of the peer: `text % values`, one line without a traceback."""
    logger.warning(text, *map(one_line, values), stacklevel=2)


def log_failure(what: str, error: BaseException) -> None:
    """Log that `what` has failed: in full, but for an error that the peer has sent."""
    if getattr(error, "is_from_peer", False):
        log_mistake("an error from the peer made %s fail%s: %s", what, failed_at(error), error)
        logger.debug("%s failed", what, exc_info=error)
    else:
        logger.error("%s failed: %s", what, one_line(error), exc_info=error)


def log_handler_failure(method: str, error: BaseException, *, is_closed: bool) -> None:
    """Log that a handler has failed, unless that is a consequence of the connection being closed."""
    what = f"the handler of {method}"
    if is_closed and isinstance(error, ConnectionClosed):
        logger.debug("%s failed", what, exc_info=error)
    else:
        log_failure(what, error)


def log_program_end(what: str, error: BaseException) -> None:
    """Log that `what` ends the program by `sys.exit`, once. An interrupt is not its doing."""
    if isinstance(error, SystemExit) and not vars(error).get("acp_is_logged"):
        vars(error)["acp_is_logged"] = True
        logger.warning("%s has ended the program: %r%s", what, error, failed_at(error))


# --- Limits ----------------------------------------------------------------------------------------------------------


class _Quota:
    """The number of records of one kind since `start`."""

    __slots__ = ("count", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self.count = 0


_quotas: Final[dict[object, _Quota]] = {}


def _admit(record: logging.LogRecord) -> bool:
    """Decide whether a record is logged, and escape its traceback. Another package may have done so already."""
    if record.__dict__.setdefault("acp_filter", _admit) is not _admit:
        return True
    error = record.exc_info[1] if record.exc_info else None
    if record.levelno > logging.DEBUG and not _has_room(record, error):
        return False
    if error is not None:
        try:
            record.exc_text = traceback_text(error)  # formatters show it in place of their own
        except Exception:  # such as for groups within groups, hundreds of times
            record.exc_text = type(error).__name__
    return True


def _has_room(record: logging.LogRecord, error: BaseException | None) -> bool:
    """Count a record; False if there were too many of its kind: from the same line, by an error of the same line."""
    frames = traceback.walk_tb(None if error is None else error.__traceback__)
    raised = [(frame.f_code.co_filename, line) for frame, line in frames]
    quota = _quotas.setdefault((record.pathname, record.lineno, *raised[-1:]), _Quota(record.created))
    if not 0 <= record.created - quota.start < _SECONDS:
        if quota.count > _MAX_RECORDS:
            record.msg = f"{record.msg} ({quota.count - _MAX_RECORDS} records of this kind were left out before)"
        quota.start, quota.count = record.created, 0
    quota.count += 1
    if quota.count == _MAX_RECORDS:
        record.msg = f"{record.msg} (more of this kind are left out for {_SECONDS:.0f} seconds)"
    return quota.count <= _MAX_RECORDS


logger.addFilter(_admit)


# --- Text that may be the peer's -------------------------------------------------------------------------------------


def one_line(value: object, max_characters: int = _MAX_TEXT) -> str:
    """The start of a text, as one line without control characters."""
    try:
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    except PROGRAM_ENDS:
        raise
    except BaseException:  # of an exception class from elsewhere
        return type(value).__name__
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:max_characters])
    return shown if len(text) <= max_characters else f"{shown}..."


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception, and of those before it. The text of each is one line."""
    chain: list[BaseException] = []
    left: BaseException | None = error
    while left is not None and len(chain) < _MAX_ERRORS:
        chain.append(left)
        is_caused = left.__cause__ is not None or left.__suppress_context__
        left = left.__cause__ if is_caused else left.__context__
    return "\n\nAnother exception followed:\n\n".join(map(_without_chain, reversed(chain)))


def _without_chain(error: BaseException) -> str:
    frames = "".join(traceback.format_tb(error.__traceback__))
    text = one_line("".join(traceback.format_exception_only(error)).rstrip(), _MAX_ERROR_TEXT)
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ()) if isinstance(error, _GROUP) else ()
    shown = [f"Traceback (most recent call last):\n{frames}{text}", *map(traceback_text, members[:_MAX_ERRORS])]
    return indent("\n".join(shown), "  | ", lambda _: True) if members else shown[0]
