"""Read recorded messages: one JSON line each, alone, after other text, or in an envelope with time and sender."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, BinaryIO

from acpgen.roles import Side
from acpgen.trace.writing import decorated, make_mask, trace_file

LONGEST = 64 * 1024 * 1024
"""The most bytes of a line: twice those of a message that is recorded, which may need escapes. A longer one is
reported, and not kept, and neither is one with more values than a recorder reads."""
_PIECE = 2**20
_BOM = b"\xef\xbb\xbf"

_PAYLOADS = ("msg", "message")
_RAW = ("raw", "raw64")
_SHOWN = 2_000
"""The most characters that are kept of a line without a message."""
_LATEST = 1e12
"""The most seconds, 30,000 years: what is more is no time."""
_TIMES = ("t", "ts", "time", "timestamp")


class Event(Enum):
    """What a recorder says of a connection, beside its messages. The value is the member that marks the line."""

    START = "acp_trace"
    END = "end"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEntry:
    """A message in a file. `sender` and `time` (in seconds) are None where the line does not say them.

    `problem` says why the line has no message. `event` is what the line has instead of one, and `message` the line.
    `part` is the end of the file's name: a recorder renames the file when it is full. `starts_batch` is true for the
    first one of an array. `around` says what the line has beside the message. `may_ask_secret` is true for a line that
    was not read, and may be a request whose result is secret.
    """

    line: int
    part: str = ""
    message: Any = None
    sender: Side | None = None
    time: float | None = None
    connection: str | None = None
    event: Event | None = None
    problem: str | None = None
    starts_batch: bool = False
    around: str | None = None
    may_ask_secret: bool = False


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line that is too long to be kept, and whether it may be a request whose result is secret."""

    size: int
    may_ask_secret: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlace:
    """Where a message is: its number, its line, and what it is a message of."""

    number: int
    line: int
    part: str
    protocol: int
    method: str | None


def read_lines(stream: BinaryIO) -> Iterator[bytes | LongLine]:
    """The lines of a file."""
    while piece := stream.readline(_PIECE):
        pieces, size = [piece], len(piece)
        while not piece.endswith(b"\n") and size <= LONGEST and (piece := stream.readline(_PIECE)):
            pieces.append(piece)
            size += len(piece)
        line = b"".join(pieces)
        pieces.clear()
        yield line if size <= LONGEST else _skipped(stream, line)


def _skipped(stream: BinaryIO, piece: bytes) -> LongLine:
    """Read a line to its end, and keep nothing of it."""
    asks, size = make_mask().asks, len(piece)
    may_ask = asks(piece)
    while not piece.endswith(b"\n") and (more := stream.readline(_PIECE)):
        size += len(more)
        piece = piece[-100:] + more  # a name may be in both
        may_ask = may_ask or asks(piece)
    return LongLine(size, may_ask)


def read_entries(lines: Iterable[bytes | LongLine], part: str = "") -> Iterator[TraceEntry]:
    """Read the messages of `lines`, one at a time; a batch is several entries. Lines without an object are skipped."""
    for number, line in enumerate(lines, 1):
        place = TraceEntry(line=number, part=part)
        if isinstance(line, LongLine):
            problem = f"the line has {line.size:,} bytes, more than {LONGEST:,}: it was not read"
            yield replace(place, problem=problem, may_ask_secret=line.may_ask_secret)
        elif trace_file().is_too_large(line, max_bytes=LONGEST):
            problem = f"the line has more than {trace_file().MAX_VALUES:,} values: it was not read"
            yield replace(place, problem=problem, may_ask_secret=make_mask().asks(line))
        else:
            yield from _parsed(place, line.removeprefix(_BOM) if number == 1 else line)


def no_message(text: str) -> str:
    """The problem of a text that a recorder could not read."""
    return f"{text[:80]!r} is no message"


def continues(entry: TraceEntry) -> bool:
    """True for the start of a file that goes on where a full one ended."""
    return entry.event is Event.START and entry.message.get("continues") is True


def _start(line: bytes) -> int | None:
    """The place of the JSON in a line; None for a line without JSON. A prefix may have brackets of its own."""
    if line.lstrip()[:1] == b"[" and line.rstrip()[-1:] == b"]":
        return 0
    found = line.find(b"{")
    return found if found >= 0 else None


def _parsed(place: TraceEntry, line: bytes) -> Iterator[TraceEntry]:
    """The messages of a line: of all of it, or else of the JSON-RPC object in it."""
    if (start := _start(line)) is None:
        return
    before, text, after = line[:start], line[start:].strip(), b""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        before, inner, after = decorated().split_line(line) or (b"", b"", b"")
        if (found := _object(inner)) is None:
            if text[:2] in (b'{"', b"[{"):
                shown = text[:_SHOWN].decode(errors="replace")
                yield replace(place, message=shown, problem=f"the line is no JSON: {error}")
            return
    texts = [each.decode(errors="replace") for each in (before, after)]
    place = replace(place, around=_around("" if _is_prefix(texts[0]) else texts[0], texts[1]))
    objects = [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]
    for at, each in enumerate(objects):
        yield from _entries(replace(place, starts_batch=at == 0 and isinstance(found, list)), each)


def _object(text: bytes) -> Any:
    """The object of JSON in a text that a runtime takes for one; None if it is none after all."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_prefix(text: str) -> bool:
    """True for what a log writes before a message: it can be read, and is apart from it."""
    return text.replace("\t", " ").isprintable() and text[-1:].isspace()


def _around(before: str, after: str) -> str | None:
    """What a line has beside its message."""
    shown = [f"{text[:80]!r} {where}" for where, text in (("before", before), ("after", after)) if text.strip()]
    return f"the line has {' and '.join(shown)} the message" if shown else None


def _entries(place: TraceEntry, found: dict[str, Any]) -> Iterator[TraceEntry]:
    """The messages of an object: itself, or what it has. An envelope may have a batch."""
    if _is_message(found):
        yield replace(place, message=found)
        return
    entry = replace(place, sender=_sender(found), time=_time(found), connection=_connection(found))
    before, after = (found[key] if isinstance(found.get(key), str) else "" for key in ("before", "after"))
    entry = replace(entry, around=_around(before, after) or place.around)
    inner = next((found[key] for key in _PAYLOADS if isinstance(found.get(key), (dict, list))), None)
    if inner is not None:
        for at, each in enumerate(inner if isinstance(inner, list) else [inner]):
            yield replace(entry, message=each, starts_batch=at == 0 and isinstance(inner, list))
    elif (raw := next((found[key] for key in _RAW if isinstance(found.get(key), str)), None)) is not None:
        yield replace(entry, message=raw[:_SHOWN], problem=no_message(raw))
    elif event := next((each for each in Event if each.value in found), None):
        yield replace(entry, event=event, message=found)


def _is_message(found: dict[str, Any]) -> bool:
    has_payload = any(isinstance(found.get(key), dict) for key in _PAYLOADS)
    return "jsonrpc" in found or (not has_payload and bool(found.keys() & {"method", "result", "error"}))


def _sender(found: dict[str, Any]) -> Side | None:
    return next((side for side in Side if found.get("from") == side.value), None)


def _connection(found: dict[str, Any]) -> str | None:
    stated = found.get("connection")
    return None if isinstance(stated, bool) or not isinstance(stated, (str, int)) else str(stated)


def _time(found: dict[str, Any]) -> float | None:
    stated = next((found[key] for key in _TIMES if key in found), None)
    if isinstance(stated, (int, float)) and abs(stated) < _LATEST:
        return float(stated)
    try:
        return datetime.fromisoformat(stated.replace("Z", "+00:00")).timestamp() if isinstance(stated, str) else None
    except ValueError:
        return None
