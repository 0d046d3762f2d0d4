"""JSON documents: read as untrusted text, with JSON pointers and their places in the file."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from acpgen.diagnostics import Location, Report, input_error
from acpgen.files import read_file, too_large
from acpgen.text import EXCERPT, digest


def join(pointer: str, *tokens: str | int) -> str:
    """`pointer` extended by reference tokens, each escaped."""
    for token in tokens:
        pointer += "/" + (token.replace("~", "~0").replace("/", "~1") if isinstance(token, str) else str(token))
    return pointer


def split(pointer: str) -> list[str]:
    """The unescaped reference tokens of `pointer`; raises `ValueError` if it does not start with `/`."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def resolve(root: Any, pointer: str) -> Any:
    """The value at `pointer` in `root`; raises `LookupError` if there is none."""
    node = root
    for token in split(pointer):
        if isinstance(node, dict):
            node = node[token]
        elif isinstance(node, list) and token.isdecimal():
            node = node[int(token)]
        else:
            raise LookupError(pointer)
    return node


MAX_BYTES = 32 * 1024 * 1024
"""The largest file that is read; published schemas are below 1 MiB."""
MAX_VALUES = 500_000
"""The most JSON values in a file; published schemas have about 6,000, one of 10,000 definitions about 200,000."""
MAX_DEPTH = 100
"""The deepest nesting of arrays and objects; published schemas stay below 20."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]|-?Infinity|NaN|-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?')
_SHOWN_DIGITS = 40
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, eq=False)
class Document:
    """A JSON document with the text that it was read from.

    `label` names the file in diagnostics, `origin` its content in docstrings and in the manifest ("ACP v1, 2026-11-02",
    "logout, 2026-02-02"); `digest` is its SHA-256 in hexadecimal.
    """

    label: str
    origin: str
    text: str
    root: dict[str, Any]
    digest: str

    @cached_property
    def _places(self) -> Places:
        return Places(self.label, self.text)

    def location(self, pointer: str) -> Location:
        """The place of the value at `pointer`, or of its last part that exists.

        Places are looked up when a diagnostic needs them: a run without diagnostics pays nothing.
        """
        return self._places.find(pointer)

    def report(self) -> Report:
        """A new report for pointers into this document."""
        return Report(locate=lambda pointer: (self.location(pointer), pointer))


class Places:
    """The places of the values in a JSON text. Offsets are cached: a schema may have many mistakes."""

    def __init__(self, label: str, text: str) -> None:
        self._label = label
        self._text = text
        self._children: dict[int, dict[str, int]] = {}
        self._lines: list[int] = []

    def find(self, pointer: str) -> Location:
        """The place of the value at `pointer`, or of its last part that exists."""
        offset = 0
        for token in split(pointer):
            if offset not in self._children:
                self._children[offset] = _offsets_of_children(self._text, offset)
            if token not in self._children[offset]:
                break
            offset = self._children[offset][token]
        return self.at(offset)

    def at(self, offset: int) -> Location:
        """The place of the character at `offset`."""
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self._text))]
        line = bisect(self._lines, offset)
        start = self._lines[line - 1]
        excerpt, _, _ = self._text[start : start + EXCERPT].partition("\n")
        return Location(self._label, line, offset - start + 1, excerpt.rstrip() if self._is_shown(offset) else "")

    def _is_shown(self, offset: int) -> bool:
        """Whether an excerpt may be shown: not of a file that is no schema, whose content may be secret.

        Such a file is no JSON object, or it is one, and the mistake is the object as a whole.
        """
        start = _skip_space(self._text, 0)
        return self._text.startswith("{", start) and offset > start


def _skip_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _offsets_of_children(text: str, offset: int) -> dict[str, int]:
    """The offsets of the members or elements of the container at or after `offset`, if there is one."""
    start = _skip_space(text, offset)
    is_object = text[start] == "{"
    found: dict[str, int] = {}
    if not is_object and text[start] != "[":
        return found
    position, index = _skip_space(text, start + 1), 0
    while text[position] not in "}]":
        name = str(index)
        if is_object:
            name, position = _DECODER.raw_decode(text, position)
            position = _skip_space(text, _skip_space(text, position) + 1)
        found[name] = position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip_space(text, position)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
        index += 1
    return found


def read_document(path: Path, *, label: str, origin: str) -> Document:
    """Read the JSON object in the file `path`; raises `InputError` for anything else."""
    return parse_document(read_bytes(path, label=label), label=label, origin=origin)


def read_bytes(path: Path, *, label: str) -> bytes:
    """Read a file of limited size; raises `InputError` if it is too large, no regular file, or cannot be read."""
    return read_file(path, label=label, most=MAX_BYTES)


def check_size(size: int, label: str) -> None:
    """Raise `InputError` for an input file with more than `MAX_BYTES` bytes."""
    if size > MAX_BYTES:
        raise too_large(label, MAX_BYTES)


def parse_document(data: bytes, *, label: str, origin: str) -> Document:
    """Parse `data` as a JSON object (RFC 8259, UTF-8, no repeated names); raises `InputError` otherwise."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise input_error("not-utf-8", f"{label} is not UTF-8: {error.reason} at byte {error.start}") from None
    root = _parse(text, label)
    _check_tree(root, label, text)
    if not isinstance(root, dict):
        raise input_error("not-an-object", f"{label} holds no JSON object", location=Location(label, 1, 1))
    return Document(label=label, origin=origin, text=text, root=root, digest=digest(data))


def _parse(text: str, label: str) -> Any:
    places = Places(label, text)

    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name, count in counts.items() if count > 1)
            raise input_error(
                "duplicate-name",
                f"the name {json.dumps(twice)} occurs twice in one object",
                location=places.at(_offset_of_duplicate(text)),
            )
        return members

    def refuse(token: str, why: str) -> NoReturn:
        offset = next(match.start() for match in _TOKEN.finditer(text) if match[0] == token)
        shown = token if len(token) <= _SHOWN_DIGITS else f"{token[:_SHOWN_DIGITS]}…"
        raise input_error("bad-json", f"{shown} {why}", location=places.at(offset))

    def no_constant(name: str) -> NoReturn:
        refuse(name, "is not JSON")

    def finite(number: str) -> float:
        found = float(number)
        return found if math.isfinite(found) else refuse(number, "is out of range")

    def whole(number: str) -> int:
        try:
            return int(number)
        except ValueError:
            refuse(number, f"has {len(number):,} digits, more than Python reads")

    try:
        return json.loads(
            text, object_pairs_hook=no_duplicates, parse_constant=no_constant, parse_float=finite, parse_int=whole
        )
    except json.JSONDecodeError as error:
        raise input_error("bad-json", f"not JSON: {error.msg}", location=places.at(error.pos)) from None
    except RecursionError:
        raise _too_deep(label) from None


def _offset_of_duplicate(text: str) -> int:
    """The offset of the first duplicate name; `text` must have one."""
    names: list[set[str]] = []
    last = ""
    start = 0
    for match in _TOKEN.finditer(text):
        found = match[0]
        if found[0] == '"':
            last, start = found, match.start()
        elif found in "{[":
            names.append(set())
        elif found in "}]":
            names.pop()
        elif found == ":":
            name = json.loads(last)
            if name in names[-1]:
                return start
            names[-1].add(name)
    return 0


def _too_deep(label: str) -> Exception:
    return input_error("too-deep", f"{label} nests arrays and objects more than {MAX_DEPTH} deep")


def _check_tree(root: Any, label: str, text: str) -> None:
    """Refuse lone surrogates, which no text file can hold, and values that would exhaust a recursive reader."""
    if "\\u" in text.lower():
        try:
            json.dumps(root, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise input_error(
                "lone-surrogate", f"{label} holds half of a surrogate pair (\\ud800 to \\udfff)"
            ) from None
        except RecursionError:
            raise _too_deep(label) from None
    level: list[Any] = [root]
    count = 0
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        count += len(level)
        if count > MAX_VALUES:
            message = f"{label} holds more than {MAX_VALUES:,} JSON values"
            raise input_error("file-too-large", message, hint="is this a schema?")
        if not level:
            return
    raise _too_deep(label)
