"""What is recorded of the exchanges on a network: the messages in requests, responses, events and WebSockets."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Any

from acpgen.roles import Side
from acpgen.trace.recorder import Recording, max_line, open_file, say
from acpgen.trace.wire import Headers

_CONNECTION = "acp-connection-id"
_MAX_HELD = 2**27
"""The most bytes of messages that are not complete. Of what comes above it, only the size is known."""
_MAX_CONNECTIONS = 100
"""The most connections over HTTP at a time; each has the file open. The one that was quiet for longest is left."""
_SHOWN = 300
"""The most characters of a refusal."""


class Ledger:
    """The connections that are recorded. A failure to write ends the recording, and nothing else."""

    def __init__(self, recording: Recording, remote: str) -> None:
        self._recording = recording
        self._remote = remote
        self._known: dict[str, Line] = {}
        self._is_broken = False
        self.held = 0
        """The bytes of messages that are not complete."""

    def open(self, since: float, name: str | None = None, **about: object) -> Line:
        """Begin a connection, with a first line that has `about`. Over HTTP, it has a name."""
        line = Line(self, since, self.attempt(open_file, self._recording, url=self._remote, **about))
        if name is not None:
            self._known[name] = line
            if len(self._known) > _MAX_CONNECTIONS:
                self._known.pop(next(iter(self._known))).leave()
        return line

    def of(self, name: str) -> Line:
        """The connection of this name, now the latest. One that began elsewhere starts here."""
        line = self._known.pop(name, None)
        if line is None:
            return self.open(time.monotonic(), name, transport="http", continues=True)
        self._known[name] = line
        return line

    def close(self, name: str) -> None:
        """End a connection that has a name."""
        if (line := self._known.pop(name, None)) is not None:
            line.end()

    def end(self) -> None:
        """End all that have a name."""
        for name in [*self._known]:
            self.close(name)

    def attempt(self, write: Any, *values: Any, **named: Any) -> Any:
        """Write, unless that has failed before; returns what `write` does."""
        if not self._is_broken:
            try:
                return write(*values, **named)
            except OSError as error:
                self._is_broken = True
                say(f"recording has ended: {error}")
        return None


class Line:
    """A connection, of which lines are written."""

    def __init__(self, ledger: Ledger, since: float, file: Any) -> None:
        self._ledger = ledger
        self._since = since
        self._file = file  # None if nothing can be written

    def message(self, side: Side, text: Text, at: float) -> None:
        """Write a message that a side has sent at a time."""
        if not (text.size and self._file):
            return
        members = {"sender": side.value, "to": side.peer.value, "at": at - self._since, "size": text.size}
        self._ledger.attempt(self._file.message, bytes(text.kept), **members)

    def error(self, reason: str) -> None:
        """Write what is no message, and is known of the agent."""
        self._event(**{"from": Side.AGENT.value, "err": reason})

    def lose(self, side: Side, reason: str) -> None:
        """Write that messages of a side are missing."""
        self._event(**{"from": side.value, "lost": True, "err": reason})

    def end(self) -> None:
        """Write the last line."""
        self._event(end=True)
        self.leave()

    def leave(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _event(self, **members: object) -> None:
        if self._file is not None:
            self._ledger.attempt(self._file.event, time.monotonic() - self._since, **members)


class Text:
    """A message whose parts arrive. Of one that is too long, the start is kept."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.kept = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Add a part."""
        self.size += len(data)
        room = min(max_line() + 1 - len(self.kept), _MAX_HELD - self._ledger.held)
        part = data[: max(0, room)]
        self.kept += part
        self._ledger.held += len(part)

    def forget(self) -> None:
        """Begin anew."""
        self._ledger.held -= len(self.kept)
        self.kept = bytearray()
        self.size = 0


class _Events:
    """Takes messages out of a stream of server-sent events."""

    def __init__(self, ledger: Ledger) -> None:
        self._line = Text(ledger)
        self.data = Text(ledger)
        self._has_return = False

    def feed(self, part: bytes) -> Iterator[Text]:
        """The messages that are complete."""
        if self._has_return and part.startswith(b"\n"):
            part = part[1:]
        self._has_return = part.endswith(b"\r")
        for piece in part.replace(b"\r\n", b"\n").replace(b"\r", b"\n").splitlines(keepends=True):
            self._line.add(piece.rstrip(b"\n"))
            if piece.endswith(b"\n"):
                if self._line.size:
                    self._take(self._line)
                elif self.data.size:
                    yield self.data
                    self.data.forget()
                self._line.forget()

    def _take(self, line: Text) -> None:
        name, _, value = bytes(line.kept[:6]).partition(b":")
        if name != b"data":
            return
        start = len(b"data:") + value.startswith(b" ")
        if self.data.size:
            self.data.add(b"\n")
        missing = line.size - len(line.kept)
        self.data.add(bytes(line.kept[start:]))
        self.data.size += missing

    def forget(self) -> None:
        """Forget what is not complete."""
        self._line.forget()
        self.data.forget()


class _Body:
    """The content of a request or response, as it was before it was compressed."""

    def __init__(self, headers: Headers) -> None:
        self.kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.coding = headers.get("content-encoding", "identity").strip().lower()
        self._inflate = zlib.decompressobj(47) if self.coding in {"gzip", "x-gzip", "deflate"} else None
        self.is_known = self._inflate is not None or self.coding in {"", "identity"}

    def read(self, data: bytes) -> bytes:
        """The content of the next bytes."""
        if self._inflate is None:
            return data if self.is_known else b""
        try:
            return self._inflate.decompress(data)
        except zlib.error:
            self._inflate, self.is_known = None, False
            return b""


class Exchange:
    """A request with its response. The first request of a connection waits for the response that gives it a name."""

    def __init__(self, ledger: Ledger, method: str, headers: Headers) -> None:
        self._ledger = ledger
        self._method = method.upper()
        self._name = headers.get(_CONNECTION)
        self._line = None if self._name is None else ledger.of(self._name)
        self._asked, self._said = _Body(headers), _Body({})
        self._request, self._response = Text(ledger), Text(ledger)
        self._events: _Events | None = None
        self._status = 0
        self._at = time.monotonic()
        self._is_single = False  # the line is of this exchange alone
        self._frames: dict[Side, Text] = {}

    # --- The request ---

    def sent(self, data: bytes) -> None:
        """Add a part of the request."""
        self._request.add(self._asked.read(data))

    def sent_all(self) -> None:
        """Record the request, if its connection is known."""
        self._at = time.monotonic()
        if self._line is not None:
            self._record_request(self._line)

    def _record_request(self, line: Line) -> None:
        self._check(self._asked, line, Side.CLIENT)
        if self._method == "POST":
            line.message(Side.CLIENT, self._request, self._at)
        self._request.forget()

    # --- The response ---

    def answered(self, status: int, headers: Headers) -> None:
        """Take the status and the headers of the response."""
        self._status, self._said = status, _Body(headers)
        if status == 101:
            self._line, self._is_single = self._ledger.open(self._at, transport="websocket"), True
            self._frames = {side: Text(self._ledger) for side in Side}
            return
        if self._line is None and (self._method == "POST" or status >= 400):
            name = headers.get(_CONNECTION)
            self._line, self._is_single = self._ledger.open(self._at, name, transport="http"), name is None
            self._record_request(self._line)
        if self._line is not None and self._said.kind == "text/event-stream":
            self._events = _Events(self._ledger)

    def got(self, data: bytes) -> None:
        """Add a part of the response."""
        if self._line is None:
            return
        part = self._said.read(data)
        if self._events is None:
            self._response.add(part)
            return
        for text in self._events.feed(part):
            self._line.message(Side.AGENT, text, time.monotonic())

    def got_all(self) -> None:
        """Record the response, if it is a message, and the end of a connection."""
        is_done = 200 <= self._status < 300
        self._finish()
        if self._line is not None and self._is_single:
            self._line.end()
        if self._method == "DELETE" and self._name is not None and is_done:
            self._ledger.close(self._name)

    @staticmethod
    def _check(body: _Body, line: Line, side: Side) -> None:
        if not body.is_known:
            line.lose(side, f"what is encoded as {body.coding!r} is not recorded")

    def _finish(self) -> None:
        if self._line is not None:
            self._check(self._said, self._line, Side.AGENT)
            is_message = self._said.kind == "application/json" and self._response.kept.lstrip().startswith((b"{", b"["))
            if is_message:
                self._line.message(Side.AGENT, self._response, time.monotonic())
            if self._status >= 400:
                shown = "" if is_message else bytes(self._response.kept[: 4 * _SHOWN]).decode(errors="replace")[:_SHOWN]
                self._line.error(f"HTTP {self._status} for {self._method}: {shown}".rstrip(": "))
        self._status = 0
        for text in (self._request, self._response):
            text.forget()
        if self._events is not None:
            self._events.forget()

    # --- WebSocket ---

    def framed(self, side: Side, data: bytes, *, is_last: bool) -> None:
        """Add a part of a message."""
        text = self._frames[side]
        text.add(data)
        if is_last and self._line is not None:
            self._line.message(side, text, time.monotonic())
            text.forget()

    def end(self) -> None:
        """End what is not complete: the connection has broken, or is a WebSocket that was closed."""
        if self._line is None and self._request.size:
            self._line, self._is_single = self._ledger.open(self._at, transport="http"), True
            self._record_request(self._line)
            self._line.error("the connection has ended before the response")
        self._finish()
        for text in self._frames.values():
            text.forget()
        if self._line is not None and self._is_single:
            self._line.end()
