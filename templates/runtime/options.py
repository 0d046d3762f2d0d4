"""Options of a connection: limits, hooks and the JSON library; the memory that it holds, and the log.

A peer can cause as many mistakes and failures as it likes, and what it says is part of their text. So at most 10
records of a kind are logged in 30 seconds, for all connections together, and text that may be the peer's is one line
without control characters, in tracebacks, too.
"""

from __future__ import annotations

import builtins
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from math import inf
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import WeakSet

from ._base import Struct
from .dispatch import ConnectionClosed, OnDrop, OnInvalid
from .errors import RequestError

if TYPE_CHECKING:
    from .message import Message, Wire

T = TypeVar("T")

logger: Final = logging.getLogger("acp")
"""Gets failures with their tracebacks; the peer gets no details."""

PROGRAM_ENDS: Final = (KeyboardInterrupt, SystemExit)
"""Never caught. Whatever else a handler or a hook raises ends neither the connection nor its tasks."""


# --- JSON ------------------------------------------------------------------------------------------------------------


def refuse_constant(name: str) -> Any:
    """The hook of a JSON parser that makes `NaN` and infinities errors."""
    raise ValueError(f"{name} is not JSON")


# `json.loads` and `json.dumps` make these for each message if they get any argument. Without `check_circular`, a value
# that contains itself is still an error: it is nested too deep.
_READ: Final = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def _make_write() -> Callable[[Any, int], Iterable[str]]:
    """The encoder in C, made once: `JSONEncoder.encode` makes one for each value. It is private, and may be missing."""
    names: Any = json.encoder
    try:
        make, text = names.c_make_encoder, names.c_encode_basestring_ascii
        write: Callable[[Any, int], Iterable[str]] = make(
            None, _ENCODER.default, text, None, ":", ",", False, False, False
        )
        if "".join(write({"a": [1, "\u00e9"]}, 0)) == '{"a":[1,"\\u00e9"]}':
            return write
    except (AttributeError, TypeError):
        pass
    return lambda value, _: _ENCODER.encode(value)


_WRITE: Final = _make_write()


def loads_json(message: bytes) -> Any:
    """Parse JSON in UTF-8. `json.loads` would accept UTF-16 and NaN. Raises `ValueError`."""
    text = message.decode().strip(" \t\r\n")
    value, end = _READ(text)
    if end != len(text):
        raise ValueError(f"unexpected text after the JSON, at character {end}")
    return value


def dumps_json(message: Any) -> bytes:
    """Write JSON as ASCII: no character can be mistaken for the end of a line, and lone surrogates survive."""
    return "".join(_WRITE(message, 0)).encode("ascii")


# --- Options ---------------------------------------------------------------------------------------------------------


class ConnectionOptions(Struct):
    """The limits and hooks of a connection. They cannot be changed; `dataclasses.replace` makes others of them.

    `loads` and `dumps` parse and write JSON; those of a faster library may be used (`orjson.loads`, `orjson.dumps`).
    """

    max_message_bytes: int = 32 * 2**20
    """The size of the largest message; a larger one of the peer is skipped, and answered with an error."""
    max_in_flight_bytes: int = 128 * 2**20
    """The memory for all requests of the peer in flight, measured after parsing; a request above it is answered with an
    error. A single message that is estimated at more is not parsed."""
    max_write_buffer_bytes: int = 2**18
    """The bytes that may be buffered for the peer before senders have to wait."""
    max_requests: int = 1024
    """The most requests of the peer in flight; more are answered with an error."""
    finish_seconds: float = 0.5
    """The seconds that handlers may run after the peer has closed the connection, before they are cancelled."""
    cleanup_seconds: float = 2.0
    """The seconds that cancelled handlers may take to clean up before they are abandoned."""
    check_capabilities: bool = True
    """Require the handshake first, and refuse calls that the peer has not advertised. To choose a version, the
    handshake is required in any case."""
    check_sent: bool = sys.flags.dev_mode
    """Decode the params and results of this side before they are sent: a value that does not fit its type raises
    `TypeError` with its place. Extension methods without a type are not checked. On under `python -X dev`."""
    on_message: Callable[[Literal["in", "out"], bytes], object] | None = None
    """Called with every message, as it is on the wire."""
    on_drop: OnDrop | None = None
    """Called for each value of a message that is dropped because the schema is lenient about it."""
    on_invalid: OnInvalid | None = None
    """Called with the method, the params and the `DecodeError` if params do not fit their type. Such a notification is
    ignored, such a request is answered with "invalid params"."""
    on_error: Callable[[str, BaseException], RequestError | None] | None = None
    """Called with the method and the exception if a handler fails with another exception than a `RequestError`. The
    error that it returns is sent to the peer; for None, it is "internal error" without details."""
    loads: Callable[[bytes], Any] = loads_json
    dumps: Callable[[Any], bytes] = dumps_json
    trace: str | os.PathLike[str] | None = None
    """A file to which each message is written as a JSON line, with its time, sender and size; its owner alone can read
    it. Without this option, the environment variable `ACP_TRACE` names one."""
    trace_secrets: bool = False
    """Write the values of environment variables and headers, and the params of logins, too. Otherwise these are masked.
    """
    wire: Callable[[ConnectionOptions], Wire] | None = None
    """Makes the object that reads and writes messages in place of `Wire`, which uses `loads` and `dumps`."""

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{name} cannot be changed: make other options with dataclasses.replace")
        super().__setattr__(name, value)


def options_or_default(options: object) -> ConnectionOptions:
    """The options that were passed to a function, or the usual ones. Raises `TypeError` for anything else."""
    if options is None:
        return ConnectionOptions()
    if not isinstance(options, ConnectionOptions):
        from .on_demand.mistakes import caller, shown

        raise TypeError(f"options{caller()} is {shown(options)}: write options=ConnectionOptions(...)")
    return options


def call_hook(name: str, hook: Callable[..., T], *values: Any) -> T | None:
    """Call a hook of the user, and return its result. An exception is logged, and gives None."""
    try:
        return hook(*values)
    except PROGRAM_ENDS as error:
        log_program_end(f"the hook {name}", error)
        raise
    except BaseException:
        logger.exception("%s failed", name)
        return None


# --- Memory ----------------------------------------------------------------------------------------------------------


class Budget:
    """The memory that several connections hold for a peer, in bytes, and its limit."""

    def __init__(self, limit: float = inf) -> None:
        self.limit = limit
        self.bytes = 0
        self.parts: WeakSet[Held] = WeakSet()

    def lacks(self, size: int = 0) -> bool:
        """True if so many more bytes would exceed the limit."""
        if self.bytes + size <= self.limit:
            return False
        for part in self.parts:
            part.measure()
        return self.bytes + size > self.limit


class Held:
    """Messages that are held, and their memory, in bytes.

    Each counts with its bound, which costs nothing. Only if that exceeds a limit, messages are measured, once each.
    `overhead` is what a message takes in the budget beside its own memory.
    """

    def __init__(self, budget: Budget, *, overhead: int = 0) -> None:
        self.bytes = 0
        self.budget = budget
        self._overhead = overhead
        self._counted: dict[Message, int] = {}
        self._bounds: set[Message] = set()  # those among them that are counted with their bound
        budget.parts.add(self)

    def __len__(self) -> int:
        return len(self._counted)

    def add(self, message: Message) -> None:
        """Hold a message."""
        size = self._counted[message] = message.bound
        self._bounds.add(message)
        self.bytes += size
        self.budget.bytes += size + self._overhead

    def remove(self, message: Message) -> None:
        """Hold a message no longer."""
        size = self._counted.pop(message)
        self._bounds.discard(message)
        self.bytes -= size
        self.budget.bytes -= size + self._overhead

    def measure(self) -> None:
        """Count each message with its memory in place of its bound."""
        for message in self._bounds:
            less = self._counted[message] - message.weight
            self._counted[message] = message.weight
            self.bytes -= less
            self.budget.bytes -= less
        self._bounds.clear()

    def exceeds(self, limit: int, message: Message) -> bool:
        """True if these and one more message would exceed `limit`."""
        if self.bytes + message.bound <= limit:
            return False
        self.measure()
        return self.bytes + message.weight > limit

    def exceeds_budget(self, message: Message) -> bool:
        """True if one more message would exceed the budget."""
        if not self.budget.lacks(message.bound + self._overhead):
            return False
        return self.budget.lacks(message.weight + self._overhead)


# --- The log ---------------------------------------------------------------------------------------------------------

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
        from .on_demand.mistakes import failed_at

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
        from .on_demand.mistakes import failed_at

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
