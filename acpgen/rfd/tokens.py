"""Split TypeScript into tokens, each with the comments before it. Every character ends up in one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum


class TokenKind(Enum):
    """What a token is."""

    NAME = "a name"
    STRING = "a string"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end of the code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment: its text without signs, where it starts, and whether it is one for documentation."""

    text: str
    start: int
    is_doc: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token with its place in the text, the comments before it, and the one behind it in the same line."""

    kind: TokenKind
    text: str
    start: int
    end: int
    comments: tuple[Comment, ...]
    starts_line: bool
    trailing: tuple[Comment, ...] = ()


# each alternative takes what it has looked at: a string or comment that is never closed ends with the line or the text
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    r"|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<number>[0-9][\w.]*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?)"
    r"|(?P<sign>\.\.\.|=>|`[^`]*`?|.)",
)
_ELISION = re.compile(
    r"\.\.\.|…|\b(?:existing|other|remaining) (?:fields|properties|members|variants|values)", re.IGNORECASE
)
_KINDS = {"name": TokenKind.NAME, "number": TokenKind.NUMBER, "string": TokenKind.STRING, "sign": TokenKind.SIGN}


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of `text`, the last of kind END."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    starts_line = True
    for match in _TOKEN.finditer(text):
        group = match.lastgroup or ""
        if group == "space":
            if "\n" in match[0] and not starts_line:
                # only now it shows that the comments stand behind something, not before it
                tokens[-1] = replace(tokens[-1], trailing=tuple(comments))
                comments, starts_line = [], True
        elif group == "comment":
            comments.append(_comment(match[0], match.start()))
        else:
            tokens.append(_token(_KINDS[group], match, comments, starts_line=starts_line))
            comments, starts_line = [], False
    end = len(text)
    tokens.append(Token(kind=TokenKind.END, text="", start=end, end=end, comments=tuple(comments), starts_line=True))
    return tuple(tokens)


def _token(kind: TokenKind, match: re.Match[str], comments: list[Comment], *, starts_line: bool) -> Token:
    return Token(
        kind=kind,
        text=match[0],
        start=match.start(),
        end=match.end(),
        comments=tuple(comments),
        starts_line=starts_line,
    )


def _comment(raw: str, start: int) -> Comment:
    if raw.startswith("//"):
        return Comment(text=raw.lstrip("/").strip(), start=start, is_doc=False)
    lines = [line.strip().lstrip("*").strip() for line in raw[2:].removesuffix("*/").split("\n")]
    return Comment(text=" ".join(line for line in lines if line), start=start, is_doc=raw.startswith("/**"))


def doc_of(comments: Sequence[Comment]) -> str:
    """What the comments beside something say of it: the last one for documentation, else all."""
    docs = [comment.text for comment in comments if comment.is_doc]
    plain = [comment.text for comment in comments if comment.text and not _ELISION.search(comment.text)]
    return docs[-1] if docs else " ".join(plain)


def is_elision(comments: Sequence[Comment]) -> bool:
    """Whether one of the comments stands for code that is left out."""
    return any(not comment.is_doc and _ELISION.search(comment.text) for comment in comments)
