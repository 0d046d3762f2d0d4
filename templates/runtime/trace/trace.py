"""Records the messages of a connection, around its transport."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Literal

from ..log import logger
from ..message import Message, Unreadable
from ..options import ConnectionOptions
from ..peer_kind import PeerKind, peer_kind_of
from ..transport import Transport
from .secrets import PARAMS, PROPERTIES
from .trace_file import Mask, TraceFile

_OTHER = {"agent": "client", "client": "agent", "peer": "self"}


def traced(transport: Transport, options: ConnectionOptions, path: str | os.PathLike[str], peer: str) -> Transport:
    """The transport, or one around it that records in `path`. A file that cannot be written is logged."""
    try:
        return TracedTransport(transport, options, path, peer or "peer")
    except OSError as error:
        logger.error("the messages of a connection are not recorded: %s", error)
        return transport


class TracedTransport:
    """Records what another transport carries: what was read, and what was accepted to be sent."""

    def __init__(
        self, transport: Transport, options: ConnectionOptions, path: str | os.PathLike[str], peer: str
    ) -> None:
        self._transport = transport
        self.peer_kind: PeerKind = peer_kind_of(transport)
        self._peer = peer
        self._start = monotonic()
        mask = None if options.trace_secrets else Mask(PROPERTIES, PARAMS)
        self._file: TraceFile | None = TraceFile(path, mask=mask, peer=peer, process=os.getpid())
        self.budget: Any = getattr(transport, "budget", None)
        if (flush := getattr(transport, "flush", None)) is not None:
            self.flush: Callable[[], object] = flush
        if (ready := getattr(transport, "ready", None)) is not None:
            self._ready: Callable[[], Message | Unreadable | None] = ready
            self.ready = self._next
        if (attach := getattr(transport, "attach", None)) is not None:
            self.attach: Callable[[Callable[[bool], None]], None] = attach

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        return self._received(await self._transport.read())

    def _next(self) -> Message | Unreadable | None:
        """The next message if it has arrived."""
        return self._received(self._ready())

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await."""
        rest = self._transport.send(message)
        self._record("out", message)
        return rest

    async def close(self) -> None:
        """Close the transport and the file."""
        try:
            await self._transport.close()
        finally:
            if (file := self._file) is not None:
                self._record("end")
                self._file = None
                file.close()

    def _received(self, message: Message | Unreadable | None) -> Message | Unreadable | None:
        if message is not None:
            self._record("in", message)
        return message

    def _record(self, what: Literal["in", "out", "end"], message: Message | Unreadable | None = None) -> None:
        """Add a line. A failure ends the recording, and not the connection."""
        if self._file is None:
            return
        at = monotonic() - self._start
        try:
            if message is None:
                self._file.event(at, end=True)
            else:
                text = self._text(message)
                size = getattr(message, "size", 0) or len(text)
                sender, to = _OTHER[self._peer], self._peer
                if what == "in":
                    sender, to = to, sender
                self._file.message(text, sender=sender, to=to, at=at, size=size, dir=what)
        except Exception as error:
            logger.error("the messages of a connection are no longer recorded: %s", error)
            self._file.close()
            self._file = None

    @staticmethod
    def _text(message: Message | Unreadable) -> bytes:
        """The text of a message, or what is known of it."""
        if isinstance(message, Unreadable):
            return message.start if message.value is None else _text_of(message.value)
        line: Callable[[], bytes] | None = getattr(message, "line", None)  # that of a proxy has its text
        return _text_of(message.to_json()) if line is None else line()


def _text_of(value: Any) -> bytes:
    """JSON of a value. `dumps` of the options may be a hook that is called once for each message."""
    return json.dumps(value, separators=(",", ":"), default=str).encode()
