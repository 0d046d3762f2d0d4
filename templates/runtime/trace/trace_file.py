"""Records messages in a file that its owner alone can read: a JSON line each, with secrets masked.

It imports nothing of the package but the module of decorated lines, for `acpgen trace` uses it, too.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import stat
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final, TypeGuard

from ..decorated import split_line

MAX_FILE: Final = 64 * 2**20
"""A file that would get larger is renamed, with ".1" at the end, and a new one begins: two of them are kept."""
MAX_LINE: Final = 32 * 2**20
"""Of a longer message, only the start is recorded."""
MAX_VALUES: Final = 500_000
"""The same for a message with more values than that: parsing it would take too much memory."""
_NO_SIGN: Final = bytes(byte for byte in range(256) if byte not in b',:"')
_CHUNK: Final = 2**16
_START: Final = 512
_MASKED: Final = "***"
_MAX_ASKED: Final = 100
_ONE_LINE: Final = {ord(each): " " for each in "\r\n"}
"""JSON may have line ends between its tokens, and nowhere else."""


class _Asked:
    """A request whose result is secret, or several with its id."""

    def __init__(self, sender: str, number: object) -> None:
        self.sender = sender
        self.id = number
        self.count = 1


class Mask:
    """Masks the secrets in the messages of one connection.

    Secret are the values below `properties`, wherever these are, and those in the `params` of these methods and in
    their results. Each is listed with the members that are no secret: names, for instance.
    """

    def __init__(self, properties: Mapping[str, frozenset[str]], params: Mapping[str, frozenset[str]]) -> None:
        self._properties = properties
        self._params = params
        self._names = [json.dumps(name).encode() for name in (*properties, *params)]
        self._methods = self._names[len(properties) :]
        self._asked: list[_Asked] = []  # requests whose results are secret
        self._hides_all = False  # too much is not known: every result may be secret

    def first_name(self, text: bytes) -> int:
        """Where a name that comes before secrets may be for the first time; -1 if there is none.

        An escape may be a letter of it.
        """
        results = [b'"result"'] if self._asked or self._hides_all else []
        return min((at for at in map(text.find, (*self._names, *results, b"\\u", b"\\/")) if at >= 0), default=-1)

    def concerns(self, text: bytes) -> bool:
        """True if the message may have secrets."""
        return bool(self._asked) or self._hides_all or self.first_name(text) >= 0

    def asks(self, text: bytes) -> bool:
        """True if a message that is not read may be a request with a secret result."""
        return any(each in text for each in self._methods)

    def hide_results(self) -> None:
        """Mask the results of all later messages: there may be requests that are not known."""
        self._hides_all = True

    def masked(self, message: Any, sender: str, to: str) -> Any:
        """The message without its secrets."""
        if _is_array(message):
            return [self.masked(each, sender, to) for each in message]
        if not _is_object(message):
            return self._value(message)
        if "result" in message and self._is_hidden_result(message, to):
            return {name: _hidden(each) if name == "result" else self._value(each) for name, each in message.items()}
        if "method" in message:
            self._note_request(message, sender)
        elif "result" not in message:
            self._is_hidden_result(message, to)  # an error: the request has ended
        return self._value(message)

    def _note_request(self, message: dict[str, Any], sender: str) -> None:
        """Note a request with a secret result, and one that has the same id until then."""
        number = message.get("id")
        found = self._of(number, sender)
        if found is not None:
            found.count += 1
        elif self._asks(message):
            self._hides_all = self._hides_all or len(self._asked) >= _MAX_ASKED
            if not self._hides_all:
                self._asked.append(_Asked(sender, number))

    def _is_hidden_result(self, message: dict[str, Any], to: str) -> bool:
        """True for a response whose result is secret. Those without an id cannot be told apart."""
        found = self._of(message.get("id"), to)
        if found is not None and found.id is not None:
            found.count -= 1
            if not found.count:
                self._asked.remove(found)
        return found is not None or self._hides_all

    def _of(self, number: object, asker: str) -> _Asked | None:
        """The secret request with an id, whatever that is. Who has sent it may not be known."""
        same = (each for each in self._asked if each.id == number)
        return next((each for each in same if each.sender == asker or not (each.sender and asker)), None)

    def _asks(self, message: Any) -> bool:
        """True for a request with a secret result, and for one that has it within: a proxy passes it on like that."""
        while _is_object(message):
            if self._is_secret(message.get("method")):
                return True
            message = message.get("params")
        return False

    def _is_secret(self, method: object) -> TypeGuard[str]:
        return isinstance(method, str) and method in self._params

    def _value(self, value: Any) -> Any:
        if _is_array(value):
            return [self._value(each) for each in value]
        if not _is_object(value):
            return value
        found = {name: self._member(name, each) for name, each in value.items()}
        if self._is_secret(method := value.get("method")) and "params" in value:  # it may be within another message
            found["params"] = _hidden(value["params"], self._params[method])
        return found

    def _member(self, name: str, value: Any) -> Any:
        if name not in self._properties:
            return self._value(value)
        # the members of an object have the names of what is secret; those of an array say them in a member
        return _hidden(value, self._properties[name] if _is_array(value) else frozenset())


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _hidden(value: Any, shown: frozenset[str] = frozenset()) -> Any:
    """The value with all its texts and numbers masked, but for the members `shown`."""
    if _is_object(value):
        is_shown = {name for name, each in value.items() if name in shown and isinstance(each, str)}
        return {name: each if name in is_shown else _hidden(each, shown) for name, each in value.items()}
    if _is_array(value):
        return [_hidden(each, shown) for each in value]
    return value if value is None or isinstance(value, bool) else _MASKED


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def is_too_large(text: bytes, *, max_bytes: int = MAX_LINE) -> bool:
    """True if a message has more bytes or values than are read, which is told without parsing it."""
    if len(text) > max_bytes or text.count(b",") + text.count(b":") <= MAX_VALUES:
        return len(text) > max_bytes
    signs = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_SIGN).replace(b'""', b"")
    found = inside = 0
    for start in range(0, len(signs), _CHUNK):  # split as a whole, it might take more memory than the message
        pieces = signs[start : start + _CHUNK].split(b'"')
        found += sum(map(len, pieces[inside::2]))
        inside ^= (len(pieces) - 1) % 2
    return found > MAX_VALUES


def payload(text: bytes, mask: Mask | None, *, sender: str, to: str) -> str:
    """The members of a line for a message: `msg` if it is an array or an object of JSON, otherwise `raw`.

    If the line has more than the message, `before` and `after` have the start of that.
    """
    if is_too_large(text):
        if mask is not None and mask.asks(text):
            mask.hide_results()
        return _raw(text[:_START], mask) + ',"cut":true'
    found = _message(text, mask, sender=sender, to=to)
    if found is None and (parts := split_line(text)) is not None:
        found = _message(parts[1], mask, sender=sender, to=to)
        around = {"before": parts[0], "after": parts[2]}
        more = [f',"{name}":{_json(_without_secrets(each, mask))}' for name, each in around.items() if each.strip()]
        found = None if found is None else found + "".join(more)
    return _raw(text, mask) if found is None else found


def _message(text: bytes, mask: Mask | None, *, sender: str, to: str) -> str | None:
    """The member for an array or an object of JSON; None for other texts."""
    try:
        plain = text.decode()
        found = json.loads(plain, parse_constant=_refuse)
        if not isinstance(found, (dict, list)):
            return None
        if mask is None or not mask.concerns(text):
            return f'"msg":{plain.strip().translate(_ONE_LINE)}'
        shown = mask.masked(found, sender, to)
        # not the text that came: of two members with one name, only the last was seen
        return f'"msg":{_json(shown)}' + (',"masked":true' if shown != found else "")
    except (ValueError, RecursionError):
        return None


def _without_secrets(text: bytes, mask: Mask | None) -> str:
    """The start of a text, which ends before what may be a secret."""
    at = -1 if mask is None else _first_secret(text, mask)
    return (text if at < 0 else text[:at])[:_START].decode(errors="replace")


def _raw(text: bytes, mask: Mask | None) -> str:
    """The member for a text that is no message. If there may be the start of one in it, it ends before secrets."""
    at = -1 if mask is None else _first_secret(text, mask)
    marked, text = (',"masked":true', text[:at]) if at >= 0 else ("", text)
    try:
        return f'"raw":{_json(text.decode())}{marked}'
    except UnicodeDecodeError:
        return f'"raw64":"{base64.b64encode(text).decode()}"{marked}'


def _first_secret(text: bytes, mask: Mask) -> int:
    """Where secrets may come in a text that has something like a message; -1 if there are none."""
    starts = [at for at in map(text.find, (b"{", b"[")) if at >= 0]
    if not starts:
        return -1
    if b"\0" in text and mask.first_name(text.replace(b"\0", b"")) >= 0:  # an encoding with two bytes a character
        return 0
    found = mask.first_name(text[min(starts) :])
    return found if found < 0 else min(starts) + found


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class TraceFile:
    """A file with the messages of one connection. Other connections, and other processes, may write to it, too.

    `about` is in the first line, and in that of each file that follows when one is full: this one has `continues`, too.
    What fails raises `OSError`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int = MAX_FILE, mask: Mask | None, **about: object
    ) -> None:
        self._path = os.fspath(path)
        self._max = max_bytes
        self._mask = mask
        self._connection = os.urandom(4).hex()
        started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        head = {"acp_trace": 1, "started": started, "connection": self._connection, **about}
        self._head = _json({**head, "continues": True}).encode() + b"\n"
        self._file = opened(self._path)
        _write(self._file, _json(head).encode() + b"\n")

    def message(self, text: bytes, *, sender: str, to: str, at: float, size: int, **more: object) -> None:
        """Add a message: its text, who sent it, and the seconds since the start."""
        more = {"t": round(at, 6), "from": sender, "to": to, "connection": self._connection, "size": size, **more}
        members = payload(text, self._mask, sender=sender, to=to)
        self._add(f"{_json(more)[:-1]},{members}}}\n".encode())

    def event(self, at: float, **members: object) -> None:
        """Add a line about something else than a message."""
        self._add(_json({"t": round(at, 6), "connection": self._connection, **members}).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _add(self, line: bytes) -> None:
        found = os.fstat(self._file)
        is_full = found.st_size + len(line) > self._max and found.st_size > len(self._head)
        if is_full or not found.st_nlink:  # others have filled the next file, too, and this one is gone
            self._rotate()
        _write(self._file, line)

    def _rotate(self) -> None:
        """Begin a new file. Another process may have renamed the old one already."""
        if _is_at(self._file, self._path):
            os.replace(self._path, f"{self._path}.1")
        following = opened(self._path)
        os.close(self._file)
        self._file = following
        _write(self._file, self._head)


def opened(path: str) -> int:
    """Open a file to append to: a regular one, no link to one, which the owner alone can read.

    If its last line is cut, as after a full disk, that line gets its end.
    """
    more = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_NOCTTY"))
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | sum(more), 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        os.chmod(file if os.chmod in os.supports_fd else path, 0o600)  # fails for the file of another user
        if os.lseek(file, 0, os.SEEK_END) and os.lseek(file, -1, os.SEEK_END) >= 0 and os.read(file, 1) != b"\n":
            _write(file, b"\n")
    except BaseException:
        os.close(file)
        raise
    return file


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write(file: int, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[os.write(file, left) :]
