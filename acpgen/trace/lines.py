"""Read recorded messages: one JSON line each, alone, after a prefix, or in an envelope with time and sender."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acpgen.roles import Side

LONGEST = 64 * 1024 * 1024
"""The most bytes of a line. A longer one is reported, and not parsed."""

_PAYLOADS = ("msg", "message")
_TIMES = ("t", "ts", "time", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message in a file. `sender` and `time` (in seconds) are None where the line does not say them.

    `problem` says why the line has no message.
    """

    line: int
    message: Any = None
    sender: Side | None = None
    time: float | None = None
    problem: str | None = None


def read_entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read the messages of `lines`, one at a time; a batch is several entries. Lines without an object are skipped."""
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            yield Entry(line=number, problem=f"the line has {len(line):,} bytes, more than {LONGEST:,}")
        elif (start := _start(line)) is not None:
            yield from _parsed(number, line[start:].strip())


def _start(line: bytes) -> int | None:
    """The place of the JSON in a line; None for a line without JSON. A prefix may have brackets of its own."""
    if line.lstrip()[:1] == b"[" and line.rstrip()[-1:] == b"]":
        return 0
    found = line.find(b"{")
    return found if found >= 0 else None


def _parsed(number: int, text: bytes) -> Iterator[Entry]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text[:2] in (b'{"', b"[{"):
            yield Entry(line=number, problem=f"the line is no JSON: {error}")
        return
    for each in found if isinstance(found, list) else [found]:
        entry = _entry(number, each)
        if entry is not None:
            yield entry


def _entry(number: int, found: Any) -> Entry | None:
    if not isinstance(found, dict):
        return None
    if _is_message(found):
        return Entry(line=number, message=found)
    inner = next((found[key] for key in _PAYLOADS if isinstance(found.get(key), dict)), None)
    if inner is None:
        if isinstance(raw := found.get("raw"), str):
            return Entry(line=number, sender=_sender(found), problem=f"{raw[:80]!r} is no message")
        return None
    return Entry(line=number, message=inner, sender=_sender(found), time=_time(found))


def _is_message(found: dict[str, Any]) -> bool:
    has_payload = any(isinstance(found.get(key), dict) for key in _PAYLOADS)
    return "jsonrpc" in found or (not has_payload and bool(found.keys() & {"method", "result", "error"}))


def _sender(found: dict[str, Any]) -> Side | None:
    return next((side for side in Side if found.get("from") == side.value), None)


def _time(found: dict[str, Any]) -> float | None:
    stated = next((found[key] for key in _TIMES if key in found), None)
    if isinstance(stated, (int, float)):
        return float(stated)
    try:
        return datetime.fromisoformat(stated.replace("Z", "+00:00")).timestamp() if isinstance(stated, str) else None
    except ValueError:
        return None
