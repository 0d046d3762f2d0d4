"""Follow HTTP/2 in the bytes of a connection that passes, in both directions.

Frames stay what they are, but for those with the headers of requests: `:authority` is changed. This module alone
imports hpack and hyperframe, which have no input or output of their own. They belong to the extra `trace`.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpack import Decoder, Encoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
)

from acpgen.roles import Side
from acpgen.trace.exchanges import Exchange, Ledger
from acpgen.trace.wire import MAX_HEAD, MAX_OPEN, BrokenError, Hosts, named

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What each connection starts with, before its first frame."""
_FRAME_HEAD = 9
_MAX_FRAME = 2**14
"""The longest frame that every server takes."""
_MAX_TABLE = 2**20
_FAULTS = (HPACKError, HyperframeError, ValueError)


class Http2:
    """A connection of HTTP/2 after its preface. Frames are passed on as they are, but for the headers of requests.

    Headers are compressed with what came before, so to change one, all are written anew.
    """

    def __init__(self, hosts: Hosts, ledger: Ledger) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._frames = {side: _Frames() for side in Side}
        self._decoders = {side: Decoder() for side in Side}
        self._encoder = Encoder()
        self._exchanges: dict[int, Exchange] = {}
        self._is_raw = False  # what the remote sends is not followed

    def sent(self, data: bytes) -> bytes:
        """What is to be passed on: whole frames. Raises `BrokenError` if nothing more can be."""
        try:
            return b"".join(self._passed(data))
        except _FAULTS as error:
            raise BrokenError(f"HTTP/2 of the client: {error}") from error

    def received(self, data: bytes) -> None:
        """Follow responses. After a `BrokenError` nothing more is followed."""
        if self._is_raw:
            return
        try:
            for frame, _ in self._frames[Side.AGENT].feed(data):
                if frame is not None:
                    self._note(Side.AGENT, frame)
        except _FAULTS as error:
            self.end()
            self._is_raw = True
            raise BrokenError(f"HTTP/2 of the remote: {error}") from error

    def end(self) -> None:
        """End what is open."""
        for exchange in self._exchanges.values():
            exchange.end()
        self._exchanges.clear()

    def _passed(self, data: bytes) -> Iterator[bytes]:
        for frame, text in self._frames[Side.CLIENT].feed(data):
            if frame is not None:
                passed = self._ask(frame) if isinstance(frame, HeadersFrame) else text
                self._note(Side.CLIENT, frame)
                yield passed

    def _ask(self, frame: HeadersFrame) -> bytes:
        """Begin an exchange; returns its headers for the remote. Trailers begin none."""
        headers = list(self._decoders[Side.CLIENT].decode(frame.data, raw=True))
        changed = [
            type(each)(each[0], self._hosts.of(each[1])) if each[0] in {b":authority", b"host"} else each
            for each in headers
        ]
        if not self._is_raw and frame.stream_id not in self._exchanges and len(self._exchanges) < MAX_OPEN:
            fields = named(headers)
            self._exchanges[frame.stream_id] = Exchange(self._ledger, fields.get(":method", ""), fields)
        return _written(frame, self._encoder.encode(changed))

    def _note(self, side: Side, frame: Frame) -> None:
        """Follow a frame, but for the headers of a request."""
        exchange = self._exchanges.get(frame.stream_id)
        if isinstance(frame, SettingsFrame):
            self._resize(side.peer, frame)
        elif side is Side.AGENT and isinstance(frame, (HeadersFrame, PushPromiseFrame)):
            self._answer(frame, exchange)
        elif isinstance(frame, RstStreamFrame) and exchange is not None:
            del self._exchanges[frame.stream_id]
            exchange.end()
        elif isinstance(frame, DataFrame) and exchange is not None:
            (exchange.sent if side is Side.CLIENT else exchange.got)(frame.data)
        if exchange is not None and "END_STREAM" in frame.flags:
            self._end_stream(side, frame.stream_id)

    def _end_stream(self, side: Side, stream: int) -> None:
        if side is Side.CLIENT:
            self._exchanges[stream].sent_all()
        else:
            self._exchanges.pop(stream).got_all()

    def _answer(self, frame: HeadersFrame | PushPromiseFrame, exchange: Exchange | None) -> None:
        headers = named(self._decoders[Side.AGENT].decode(frame.data, raw=True))
        status = int(headers.get(":status", "0")) if isinstance(frame, HeadersFrame) else 0
        if exchange is not None and status >= 200:
            exchange.answered(status, headers)

    def _resize(self, side: Side, frame: SettingsFrame) -> None:
        """A side says how large the table of the other one may be."""
        size = frame.settings.get(SettingsFrame.HEADER_TABLE_SIZE)
        if size is None:
            return
        self._decoders[side].max_allowed_table_size = min(max(size, 4096), _MAX_TABLE)
        if side is Side.CLIENT:
            self._encoder.header_table_size = min(size, 4096)


class _Frames:
    """Divides bytes into frames. Headers that go on in other frames become one."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._headers: HeadersFrame | PushPromiseFrame | None = None

    def feed(self, data: bytes) -> Iterator[tuple[Frame | None, bytes]]:
        """The frames, and their bytes. None is a frame that belongs to headers which are not complete."""
        self._bytes += data
        while len(self._bytes) >= _FRAME_HEAD:
            frame, size = Frame.parse_frame_header(memoryview(bytes(self._bytes[:_FRAME_HEAD])))
            text = bytes(self._bytes[: _FRAME_HEAD + size])
            if len(text) < _FRAME_HEAD + size:
                return
            del self._bytes[: len(text)]
            frame.parse_body(memoryview(text[_FRAME_HEAD:]))
            yield self._whole(frame), text

    def _whole(self, frame: Frame) -> Frame | None:
        if isinstance(frame, ContinuationFrame):
            if self._headers is None or len(self._headers.data) > MAX_HEAD:
                raise ValueError("headers go on that have not begun, or are too long")
            self._headers.data += frame.data
        elif isinstance(frame, (HeadersFrame, PushPromiseFrame)):
            self._headers = frame
        else:
            return frame
        if "END_HEADERS" not in frame.flags:
            return None
        found, self._headers = self._headers, None
        return found


def _written(frame: HeadersFrame, block: bytes) -> bytes:
    """The frames for headers."""
    frame.flags.discard("PADDED")
    frame.flags.discard("END_HEADERS")
    frame.pad_length = 0
    first, rest = block[: _MAX_FRAME - 8], block[_MAX_FRAME - 8 :]  # a priority takes 5
    frames: list[HeadersFrame | ContinuationFrame] = [frame]
    frame.data = first
    frames += [
        ContinuationFrame(frame.stream_id, data=rest[at : at + _MAX_FRAME]) for at in range(0, len(rest), _MAX_FRAME)
    ]
    frames[-1].flags.add("END_HEADERS")
    return b"".join(each.serialize() for each in frames)
