"""Follow HTTP/1.1, and WebSocket, in the bytes of a connection that passes, in both directions.

The bytes stay what they are; only the header `Host` is changed. This module alone imports h11 and wsproto, which have
no input or output of their own. They belong to the extra `trace`.
"""

from __future__ import annotations

import re
from collections import deque

import h11
from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import FrameProtocol, Opcode, ParseFailed

from acpgen.roles import Side
from acpgen.trace.exchanges import Exchange, Ledger
from acpgen.trace.wire import MAX_HEAD, MAX_OPEN, BrokenError, Headers, Hosts, named

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(rb"[^\n]*\Z|\s*[!-~]+ [!-~]+ HTTP/1\.[01]\r?\n")
"""What a request may start with: else nothing of it is held."""
_HOST = re.compile(rb"^(host:[ \t]*)([^\r\n]*?)([ \t]*\r?)$", re.IGNORECASE | re.MULTILINE)
_FAULTS = (h11.RemoteProtocolError, h11.LocalProtocolError, ParseFailed, ValueError)


class Http1:
    """A connection of HTTP/1.1, or of a WebSocket after its handshake.

    Each message has a parser of its own: what is left over in it is the start of the next one.
    """

    def __init__(self, hosts: Hosts, ledger: Ledger) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._head = b""
        self._request: tuple[h11.Connection, Exchange] | None = None
        self._asked: deque[tuple[h11.Request, Exchange]] = deque()
        self._response: h11.Connection | None = None
        self._socket: _Socket | None = None
        self._is_raw = False  # another protocol goes on here, or something that cannot be followed

    def sent(self, data: bytes) -> bytes:
        """What is to be passed on. The head of a request is held until it is complete."""
        data, self._head = self._head + data, b""
        passed = b""
        try:
            while data and not self._is_raw:
                if self._socket is not None:
                    self._socket.feed(Side.CLIENT, data)
                    break
                part, data = self._next(data)
                passed += part
        except _FAULTS:
            self.end()
            self._is_raw = True
        return passed + data

    def _next(self, data: bytes) -> tuple[bytes, bytes]:
        """Follow the start of what the client has sent; returns what is to be passed on of it, and the rest."""
        if self._request is not None:
            rest = self._feed(self._request, data)
            return data[: len(data) - len(rest)], rest
        if (found := _BLANK_LINE.search(data)) is None:
            if len(data) > MAX_HEAD or not _REQUEST_LINE.match(data):
                raise ValueError("no request")
            self._head = data
            return b"", b""
        head, rest = data[: found.end()], data[found.end() :]
        self._start(head)
        return _HOST.sub(lambda found: found[1] + self._hosts.of(found[2]) + found[3], head), rest

    def _start(self, head: bytes) -> None:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        parser.receive_data(head)
        event = parser.next_event()
        if not isinstance(event, h11.Request) or len(self._asked) >= MAX_OPEN:
            raise ValueError("no request")
        exchange = Exchange(self._ledger, event.method.decode("latin-1"), named(event.headers))
        self._asked.append((event, exchange))
        self._request = parser, exchange
        self._feed(self._request, b"")

    def _feed(self, request: tuple[h11.Connection, Exchange], data: bytes) -> bytes:
        """Follow the body of a request; returns what comes after it."""
        parser, exchange = request
        if data:
            parser.receive_data(data)
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Data):
                exchange.sent(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                exchange.sent_all()
                self._request = None
                return parser.trailing_data[0]
            else:
                return b""

    def received(self, data: bytes) -> None:
        """Follow responses; no bytes are the end. After a `BrokenError` nothing more is followed."""
        if self._is_raw:
            return
        try:
            if self._socket is not None:
                self._socket.feed(Side.AGENT, data)
            else:
                self._responses(data)
        except _FAULTS as error:
            self.end()
            self._is_raw = True
            if data:  # else it is an end in the middle, of which both sides learn
                raise BrokenError(str(error)) from error

    def _responses(self, data: bytes) -> None:
        while self._asked:
            if self._response is None:
                self._response = _waiting(self._asked[0][0])
            rest = self._follow(self._response, self._asked[0][1], data)
            if rest is None:
                return
            self._asked.popleft()
            self._response = None
            if self._socket is not None or not rest:
                return
            data = rest
        if data:
            raise ValueError("a response without a request")

    def _follow(self, parser: h11.Connection, exchange: Exchange, data: bytes) -> bytes | None:
        """Follow a response; returns what comes after it, None while it is not complete."""
        parser.receive_data(data)
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Response):
                exchange.answered(event.status_code, named(event.headers))
            elif isinstance(event, h11.Data):
                exchange.got(bytes(event.data))
            elif isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                self._switch(exchange, named(event.headers), parser.trailing_data[0])
                return b""
            elif isinstance(event, h11.EndOfMessage):
                exchange.got_all()
                return parser.trailing_data[0]
            elif not isinstance(event, h11.InformationalResponse):
                return None

    def _switch(self, exchange: Exchange, headers: Headers, rest: bytes) -> None:
        exchange.answered(101, headers)
        if headers.get("upgrade", "").lower() != "websocket":
            self._is_raw = True
            return
        self._socket = _Socket(exchange, headers.get("sec-websocket-extensions", ""))
        if rest:
            self._socket.feed(Side.AGENT, rest)

    def end(self) -> None:
        """End what is open."""
        if self._socket is not None:
            self._socket.exchange.end()
        unfinished = [exchange for _, exchange in self._asked]
        if self._request is not None and self._request[1] not in unfinished:  # it was answered before its end
            unfinished.append(self._request[1])
        for exchange in unfinished:
            exchange.end()
        self._asked.clear()
        self._request = None


def _waiting(asked: h11.Request) -> h11.Connection:
    """A parser for the response: the method, and a change of the protocol that was asked for, decide on its form."""
    names = (b"upgrade", b"connection")
    headers = [(b"host", b"-"), *((name, value) for name, value in asked.headers if name in names)]
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    parser.send(h11.Request(method=asked.method, target=b"/", headers=headers))
    parser.send(h11.EndOfMessage())
    return parser


class _Socket:
    """The frames of a WebSocket, in both directions."""

    def __init__(self, exchange: Exchange, accepted: str) -> None:
        self.exchange = exchange
        self._frames = {side: FrameProtocol(side is Side.AGENT, _extensions(accepted)) for side in Side}

    def feed(self, side: Side, data: bytes) -> None:
        """Follow bytes of a side."""
        self._frames[side].receive_bytes(data)
        for frame in self._frames[side].received_frames():
            if frame.opcode in {Opcode.TEXT, Opcode.BINARY, Opcode.CONTINUATION}:
                payload = frame.payload
                part = payload.encode() if isinstance(payload, str) else bytes(payload)  # type: ignore[arg-type]
                self.exchange.framed(side, part, is_last=frame.message_finished)


def _extensions(accepted: str) -> list[Extension]:
    found: list[Extension] = []
    for each in accepted.split(",") if accepted else ():
        if each.split(";")[0].strip() != PerMessageDeflate.name:
            raise ValueError(f"the extension {each.strip()!r} is not known")
        deflate = PerMessageDeflate()
        deflate.finalize(each)
        found.append(deflate)
    return found
