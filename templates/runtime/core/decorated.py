"""Lines of an agent: which are messages, and which have more, as escape sequences or text without its line end.

It imports nothing of the package: clients use it, traces, and `acpgen trace`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final

_DECORATION: Final = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -OQ-WYZ`-~])"
    rb"|[\0-\x1a\x1c-\x20\x7f]|\xef\xbb\xbf)*"
)
"""Escape sequences of a terminal (colours, titles), control characters, blanks and byte order marks.

Each text is matched in one way, or a hostile one would take for ever.
"""
_TOKENS: Final = re.compile(rb'"[^"]*"|[{}]')
_FIRST: Final = re.compile(rb'\{[^{}\[\]]*"jsonrpc"\s*:')
_LAST: Final = re.compile(rb'.*"jsonrpc"\s*:\s*"[0-9.]*"\s*\}', re.DOTALL)
_MAX_TOKENS: Final = 100_000
"""The most braces and strings that are looked at: they take about 20 ms."""
_MAX_PARSED: Final = 2**16
_MAX_BEHIND: Final = 2**10
_OBJECT: Final = re.compile(rb'\s*(?:(\[\s*\{\s*["}]|\{[^{}\[\]]*"jsonrpc"\s*:)|\{\s*["}])')
"""In the group: surely a message, which is not parsed twice."""
_MEMBERS: Final = frozenset({"jsonrpc", "id"})


def is_message(line: bytes) -> bool:
    """True unless a line is text, such as an object of a log: it is not long, and has neither `jsonrpc` nor `id`."""
    found = _OBJECT.match(line)
    if found is None or found[1] or len(line) > _MAX_PARSED:
        return found is not None
    with suppress(ValueError, RecursionError):
        return not _MEMBERS.isdisjoint(json.loads(line))
    return True


def split_line(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Split a line that is no JSON into the text before, the JSON-RPC object that ends it, and the decoration behind.

    None if it has no such object, or more than 1 KiB behind it. An object of more than 64 KiB is not parsed, so it may
    be invalid. Takes time in proportion to the length of the line, whatever it holds.
    """
    end = line.rfind(b"}") + 1
    if not end or len(line) - end > _MAX_BEHIND or _DECORATION.fullmatch(line, end) is None:
        return None
    start = _start_of_object(line[:end])
    if start is None or not _is_json_rpc(message := line[start:end]):
        return None
    return line[:start], message, line[end:]


def _start_of_object(text: bytes) -> int | None:
    """The place of the brace that is closed by the last one.

    Backwards, for only from its end it is known what is inside of a string: the text before may have a single quote.
    """
    backwards = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")[::-1]
    depth = 0
    for count, found in enumerate(_TOKENS.finditer(backwards)):
        sign = backwards[found.start()]
        depth += (sign == ord("}")) - (sign == ord("{"))
        if not depth:
            return len(text) - found.end()
        if count > _MAX_TOKENS:
            break
    return None


def _is_json_rpc(text: bytes) -> bool:
    if len(text) > _MAX_PARSED:
        return bool(_FIRST.match(text) or _LAST.fullmatch(text))
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
    return isinstance(value, dict) and "jsonrpc" in value
