"""Recognise JSON-RPC in an RFD: which methods its examples use, in which direction, and what pairs with what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from acpgen.diagnostics import Location
from acpgen.ir.model import Role
from acpgen.ir.names import words
from acpgen.rfd.jsonblocks import Piece
from acpgen.rfd.source import Source

MAX_METHOD = 200
"""Characters of the name of a method; more than that is none."""

_ROLES = "|".join(role.value for role in Role)
_DIRECTION = re.compile(rf"\b({_ROLES})\s*(?:-{{1,2}}>|→|⇒|=>|\bto\b)\s*(?:the\s+)?({_ROLES})\b", re.IGNORECASE)
_ARROW = re.compile(r"\s*(\w+)\s*->{1,2}[+-]?\s*(\w+)\s*:\s*(\S+)")
_ALIAS = re.compile(r"\s*(?:participant|actor)\s+(\w+)\s+as\s+(\w+)")


class MessageKind(Enum):
    """What a message of JSON-RPC is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """An example of a message; `method` is None for an answer whose request does not stand before it."""

    kind: MessageKind
    method: str | None
    piece: Piece
    handler: str | None

    @property
    def location(self) -> Location:
        """Where the message begins."""
        return self.piece.location("")


def is_message(root: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a message of JSON-RPC."""
    return "jsonrpc" in root or (isinstance(root.get("method"), str) and ("params" in root or "id" in root))


def read_messages(pieces: Iterable[Piece]) -> tuple[Message, ...]:
    """The messages among `pieces`, in their order; an answer gets the method of the last request with its id."""
    asked: dict[str, str] = {}
    found = []
    for piece in pieces:
        root, key = piece.root, repr(piece.root.get("id"))
        method = root.get("method")
        method = method if isinstance(method, str) and 0 < len(method) <= MAX_METHOD else None
        if "error" in root and method is None:
            kind, method = MessageKind.ERROR, asked.get(key)
        elif method is None:
            kind, method = MessageKind.RESULT, asked.get(key)
        elif "id" in root:
            kind = MessageKind.REQUEST
            asked[key] = method
        else:
            kind = MessageKind.NOTIFICATION
        found.append(Message(kind=kind, method=method, piece=piece, handler=_stated_handler(piece)))
    return tuple(found)


def _stated_handler(piece: Piece) -> str | None:
    """Who gets the message, where the line before it or a comment says so ("Client → Agent")."""
    start = piece.location("").line
    for text in (piece.comments.get(start, ""), piece.comments.get(start - 1, ""), piece.block.intro[:MAX_METHOD]):
        if match := _DIRECTION.search(text):
            return match[2].lower()
    return None


def drawn_handlers(source: Source) -> Iterator[tuple[str, str, Location]]:
    """The pairs (method, handler) of all arrows in sequence diagrams, as Mermaid has them."""
    names = {role.value: role.value for role in Role}
    for number, line in enumerate(source.lines, 1):
        if len(line) > 2 * MAX_METHOD:
            continue
        if match := _ALIAS.match(line):
            names[match[1].lower()] = match[2].lower()
        elif match := _ARROW.match(line):
            sender, handler = (names.get(each.lower(), "") for each in match.group(1, 2))
            if {sender, handler} == {role.value for role in Role}:
                yield match[3], handler, source.location(number)


def belongs_to(stem: str, methods: Sequence[str]) -> str | None:
    """The one method that a definition is for by its name, without the ending: nearest first, None if not just one.

    `session/new` is that of `SessionNew`, then of `NewSession`; `_vendor/session/new` has the end of its name in
    common with both.
    """
    stem_words = lower_words(stem)
    if not stem_words:
        return None
    by_method = {method: lower_words(method) for method in methods}
    levels = (
        [method for method, found in by_method.items() if found == stem_words],
        [method for method, found in by_method.items() if sorted(found) == sorted(stem_words)],
        [method for method, found in by_method.items() if found[-len(stem_words) :] == stem_words],
        [method for method, found in by_method.items() if sorted(found[-len(stem_words) :]) == sorted(stem_words)],
    )
    for level in levels:
        if level:
            return level[0] if len(level) == 1 else None
    return None


@lru_cache(maxsize=2_000)
def lower_words(text: str) -> tuple[str, ...]:
    """The words of a name in lower case."""
    return tuple(word.lower() for word in words(text))
