"""Messages that keep their text, so that what is passed on is what came in, but for its id."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final, TypeAlias

from ...errors import InternalError, InvalidRequestError
from .._base import Record
from ..log import one_line
from ..message import (
    MAX_ID_BYTES,
    MAX_START,
    Kind,
    Message,
    Unreadable,
    Unsendable,
    dumps_json,
    head,
    message_of,
    refuse_constant,
)
from ..options import call_hook
from ..transport import Wire

Span: TypeAlias = "tuple[int, int]"
"""Where the text of a value starts and ends."""

_PAYLOADS: Final[Mapping[Kind, str]] = {"request": "params", "notification": "params"}
OF_WRAPPER: Final = frozenset({"jsonrpc", "id", "_meta"})  # members that a wrapped message shares with its wrapper
_BLANKS: Final = " \t\n\r"
_BREAKS: Final = str.maketrans("\n\r", "  ")  # JSON has them between values only


class Passed(Message):
    """A message with the text that it came as; `spans` says where in it the value of each member is.

    `changes` has the text of members that are sent in place of their own.
    """

    __slots__ = ("changes", "spans", "text")

    def __init__(
        self, message: Message, text: str, spans: Mapping[str, Span], changes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message.kind, message.value, method=message.method, id=message.id, size=message.size)
        self.text = text
        self.spans = spans
        self.changes = changes or {}

    def text_of(self, name: str) -> str | None:
        """The text of a member; None if there is none."""
        if name in self.changes:
            return self.changes[name]
        span = self.spans.get(name)
        return None if span is None else self.text[slice(*span)]

    @property
    def payload(self) -> str | None:
        """The text of the params, the result or the error."""
        return self.text_of(_PAYLOADS.get(self.kind, self.kind))

    def changed(self, **members: str) -> Passed:
        """A copy with other texts of members that it has. The caller sets the attributes for them."""
        return Passed(self, self.text, self.spans, {**self.changes, **members})

    def with_id(self, request_id: int | str | None, text: str) -> Passed:
        """A copy with another id, whose text is `text`."""
        found = self.changed(id=text)
        found.id = request_id
        return found

    def line(self) -> bytes:
        """The text to send, as one line."""
        parts, at = list[str](), 0
        for (start, end), text in sorted((self.spans[name], text) for name, text in self.changes.items()):
            parts += self.text[at:start], text
            at = end
        text = "".join([*parts, self.text[at:]])
        return (text.translate(_BREAKS) if "\n" in text or "\r" in text else text).encode()


def written(message: Message, /, **members: str | None) -> Passed:
    """A message with the text of its members, in their order; None stands for no member."""
    text, spans = '{"jsonrpc":"2.0"', dict[str, Span]()
    for name, value in members.items():
        if value is not None:
            text += f",{name_text(name)}:"
            spans[name] = len(text), len(text) + len(value)
            text += value
    return Passed(message, text + "}", spans)


def name_text(name: str) -> str:
    """The text of the name of a member."""
    return f'"{name}"' if name.isidentifier() else dumps_json(name).decode()


def with_text(message: Message) -> Passed:
    """The message itself if it has its text; otherwise a copy that is written here, as for a transport of values.

    Raises `Unsendable`.
    """
    if isinstance(message, Passed):
        return message
    members = {name: each for name, each in message.to_json().items() if name != "jsonrpc"}
    try:
        return written(message, **{name: dumps_number(each).decode() for name, each in members.items()})
    except (RecursionError, TypeError, ValueError) as error:
        raise Unsendable(one_line(error)) from error


def dumps_number(value: Any) -> bytes:
    """Write JSON. A number too large for a float was read as infinity, and is written so that it is read so again."""
    try:
        return dumps_json(value)
    except ValueError:
        return _spelled(value).encode()


def _spelled(value: Any) -> str:
    found: Any = value
    if isinstance(value, dict):
        return "{" + ",".join(f"{_spelled(str(name))}:{_spelled(each)}" for name, each in found.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_spelled, found)) + "]"
    return {inf: "1e999", -inf: "-1e999"}[found] if found in (inf, -inf) else dumps_json(found).decode()


class PassingWire(Wire):
    """Reads messages with their text, and writes that text. `loads` and `dumps` of the user are not used."""

    def parse(self, line: bytes) -> Message | Unreadable:
        """Parse the text of a message. Raises `ValueError` for text that is no JSON."""
        text = line.decode()
        try:
            value, spans, end = scan(text, is_message=True)
        except RepeatedMemberError as error:
            return _ambiguous(str(error), line[:MAX_START])
        if text[end:].strip(_BLANKS):
            raise ValueError(f"unexpected text after the JSON, at character {end}")
        found = message_of(value, size=len(line))
        return Passed(found, text, spans) if isinstance(found, Message) else found

    def write(self, message: Message) -> bytes:
        """The text of a message. The limit of one that is passed on was checked when it was read."""
        if not isinstance(message, Passed):
            return super().write(message)
        line = message.line()
        if self._options.on_message is not None:
            call_hook("on_message", self._options.on_message, "out", line)
        return line


# --- Scanning --------------------------------------------------------------------------------------------------------


def _integer(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return float(text)


_blanks: Final = re.compile(r"[ \t\n\r]*").match
_plain_name: Final = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*').match
"""The name of a member without escapes, and what is between it and the value."""
_colon: Final = re.compile(r"[ \t\n\r]*:[ \t\n\r]*").match
_after_value: Final = re.compile(r"[ \t\n\r]*([,}])").match
_no_members: Final = re.compile(r"[ \t\n\r]*\}").match
_value: Final = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
_any_value: Final = json.JSONDecoder(parse_constant=refuse_constant, parse_int=_integer).raw_decode


def _ambiguous(reason: str, start: bytes) -> Unreadable:
    kind, request_id = head(start)
    error = InternalError(reason) if kind == "response" else InvalidRequestError(reason)
    return Unreadable(error, kind=kind, id=request_id, start=start)


class RepeatedMemberError(ValueError):
    """A message has a member twice."""


def scan(text: str, *, is_message: bool = False) -> tuple[Any, dict[str, Span], int]:
    """Parse a JSON value; returns it, where the values of its members are, and where it ends.

    Raises `ValueError`. Integers of any length are read: they are passed on as they are. A member that is there twice
    has its last value; in a message it raises `RepeatedMemberError`, as the next reader may take the first one.
    """
    at = _skip(text, 0)
    try:
        return _scan(text, at, _value, is_message)
    except ValueError:
        return _scan(text, at, _any_value, is_message)


def _scan(text: str, at: int, parse: Any, is_message: bool) -> tuple[Any, dict[str, Span], int]:
    if text.startswith("{", at):
        return _object(text, at + 1, parse, is_message)
    value, end = parse(text, at)
    return value, {}, end


def _object(text: str, at: int, parse: Any, is_message: bool) -> tuple[Any, dict[str, Span], int]:
    """Parse the members of an object. Their names are found here; the parser in C reads their values."""
    values, spans = dict[str, Any](), dict[str, Span]()
    while True:
        if (found := _plain_name(text, at)) is not None:
            name, start = found[1], found.end()
        elif not values and (found := _no_members(text, at)) is not None:
            return values, spans, found.end()
        else:
            name, start = _name(text, at, parse)
        if is_message and name in values:
            raise RepeatedMemberError(f"the member {name[:80]!r} is there twice, at character {start}")
        values[name], at = parse(text, start)
        spans[name] = start, at
        if (found := _after_value(text, at)) is None:
            raise ValueError(f"expected ',' or '}}' at character {at}")
        at = found.end()
        if found[1] == "}":
            return values, spans, at


def _name(text: str, at: int, parse: Any) -> tuple[str, int]:
    """A name with escapes, and where its value starts."""
    at = _skip(text, at)
    if not text.startswith('"', at):
        raise ValueError(f"expected the name of a member at character {at}")
    name, at = parse(text, at)
    if (found := _colon(text, at)) is None:
        raise ValueError(f"expected ':' at character {at}")
    return name, found.end()


def _skip(text: str, at: int) -> int:
    found = _blanks(text, at)
    return at if found is None else found.end()


# --- Between a conductor and its proxies ------------------------------------------------------------------------------


class Said(Record):
    """What a message has said of its side: the text, None if it is too large."""

    text: bytes | None


class Asked:
    """A request that was passed on: only the parts that its response needs, as its text may be large."""

    __slots__ = ("id", "id_text", "key", "method", "said")

    def __init__(self, request: Passed, said: Said | None) -> None:
        self.id = request.id
        self.id_text = request.text_of("id") or "null"
        self.key: object = self if request.id is None else request.id
        self.method = request.method if len(request.method) <= MAX_ID_BYTES else ""  # then it is none of the schema's
        self.said = said


def unwrap(message: Passed) -> Passed | None:
    """The message in the params of another; None if there is none."""
    text = message.payload or "null"
    try:
        found, spans, _ = scan(text, is_message=True)
    except ValueError:
        return None
    values: Any = found
    if not isinstance(found, dict) or not isinstance(values.get("method"), str):
        return None
    members = {name: text[slice(*span)] for name, span in spans.items() if name not in OF_WRAPPER}
    inner = Message(message.kind, values.get("params"), method=values["method"], id=message.id, size=message.size)
    return written(inner, id=message.text_of("id"), **members)


def renamed(message: Passed, method: str) -> Passed:
    """The message with another method."""
    found = message.changed(method=dumps_json(method).decode())
    found.method = method
    return found


def marked(message: Passed, path: tuple[str, ...]) -> Passed:
    """The message with `true` at `path` in its params or result, for a transport that writes it."""
    payload = with_true(message.payload or "{}", path)
    if message.kind == "result":
        return message.changed(result=payload)
    return written(message, id=message.text_of("id"), method=message.text_of("method"), params=payload)


def with_true(text: str, path: Sequence[str]) -> str:
    """The text of an object, with `true` at `path`; all else in it stays as it is."""
    if not text.startswith("{"):
        text = "{}"
    name, *rest = path
    _, spans, end = scan(text)
    start, stop = spans.get(name, (end - 1, end - 1))
    inner = with_true(text[start:stop], rest) if rest else "true"
    if name not in spans:
        inner = f"{',' if spans else ''}{dumps_json(name).decode()}:{inner}"
    return text[:start] + inner + text[stop:]
