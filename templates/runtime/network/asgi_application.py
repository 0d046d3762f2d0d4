"""The ASGI 3 application that serves agents, and the server's end of a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

from ..log import logger
from ..message import Message, MessageTooLarge, too_large
from ..options import ConnectionOptions
from .asgi_http import HttpRequests, Receive, Send, cancel
from .hosting import Gone, Headers, Refusal, RequestCheck, Scope, Server
from .routing import ServerTransport
from .shared_memory import SharedMemory
from .streams import CONNECTION_HEADER, MAX_BURST, session_in

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_LOST: Final = "the ASGI server has failed to receive or send"
_GOING_AWAY: Final = 1001
_FAILED: Final = 1011
_TRY_AGAIN_LATER: Final = 1013

P = ParamSpec("P")
T = TypeVar("T")


class AsgiApp:
    """An application for ASGI servers. If nothing sends it ASGI's lifespan events, as below a router, call `close`."""

    def __init__(self, server: Server, checks: RequestCheck, subprotocols: tuple[str, ...]) -> None:
        self._server = server
        self._checks = checks
        self._requests = HttpRequests(server, checks)
        self._subprotocols = subprotocols

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket or the lifespan of the server."""
        match scope["type"]:
            case "http":
                with contextlib.suppress(Gone):
                    await self._requests.handle(scope, _raising_gone(receive), _raising_gone(send))
            case "websocket":
                with contextlib.suppress(Gone):
                    await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case other:
                raise ValueError(f"unknown ASGI scope: {other!r}")

    @property
    def connections(self) -> int:
        """The number of connections. One that the client has ended counts until its agent has finished."""
        return len(self._server)

    async def close(self) -> None:
        """Accept no more connections, end the open ones, and wait until their agents have finished."""
        await self._server.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        server, send_safely = self._server, _raising_gone(send)
        if (await _raising_gone(receive)())["type"] != "websocket.connect":
            return
        try:
            identity = await self._checks.check(scope, Headers(scope))
            transport = SocketTransport(server.options, server.limits.max_sessions, server.budget(identity), send)
            entry = server.reserve(transport, identity)
        except Refusal as refusal:
            await _refuse_socket(scope, send_safely, refusal)
            return
        offered = [each for each in scope.get("subprotocols", ()) if each in self._subprotocols]
        headers = [(CONNECTION_HEADER.encode(), entry.key.encode())]
        try:
            await send_safely(
                {"type": "websocket.accept", "subprotocol": next(iter(offered), None), "headers": headers}
            )
            serving = server.serve(entry)
        finally:
            if entry.task is None:
                server.discard(entry)
        receiving = asyncio.create_task(_receive_frames(transport, receive))
        try:
            await asyncio.wait({serving, receiving}, return_when=asyncio.FIRST_COMPLETED)
            transport.end()
            await asyncio.wait({serving})
        finally:
            serving.cancel()
            await cancel(receiving)


def _raising_gone(call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wrap `receive` or `send` of the server, so that it raises `Gone`: each server has exceptions of its own."""

    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await call(*args, **kwargs)
        except Exception as error:
            logger.debug(_LOST, exc_info=error)
            raise Gone from error

    return called


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer the upgrade with a status, if the server can; otherwise it answers with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *refusal.headers]
    start = {"type": "websocket.http.response.start", "status": refusal.status.value, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": refusal.text.encode()})


# --- WebSocket -------------------------------------------------------------------------------------------------------


class SocketTransport(ServerTransport):
    """The transport of a connection over a WebSocket; `send` is that of ASGI.

    The socket is closed with an error unless the agent has been made.
    """

    def __init__(self, options: ConnectionOptions, max_sessions: int, budget: SharedMemory, send: Send) -> None:
        super().__init__(options, max_sessions, budget, lambda: None)
        self._max_bytes = options.max_message_bytes
        self._send = send
        self._lock = asyncio.Lock()
        self._now = asyncio.get_running_loop().time
        self._burst = 0
        self._has_answered = False
        self._close_code = _FAILED
        self._stuck_since: float | None = None
        self.is_gone = False

    def attach(self, arrived: Callable[[bool], None]) -> None:
        """Call `arrived` when messages have arrived: the agent has been made."""
        if self._close_code == _FAILED:
            self._close_code = 1000
        super().attach(arrived)

    def unread_since(self) -> float | None:
        """The time since which a message is being sent."""
        return self._stuck_since

    def is_unused(self) -> bool:
        """True before a request had a result."""
        return not self._has_answered

    def receive(self, text: str) -> Message | None:
        """Receive a message; returns the response if it must not reach the agent. Raises `MessageTooLarge`."""
        line = text.encode("utf-8", "surrogatepass")
        if self.inbox.lacks_room_for_text(len(line)):
            raise self._over_budget()
        if len(line) > self._max_bytes:
            self.inbox.put(too_large(f"more than {self._max_bytes} bytes (max_message_bytes)", line))
            return None
        message = self.wire.read(line)
        if self.inbox.lacks_room_for(message):
            raise self._over_budget()
        if isinstance(message, Message):
            name = session_in(message.value)
            if (refusal := self.sessions.refusal(message, name)) is not None:
                return refusal
            self.sessions.called(message, name)
        self.inbox.put(message)
        return None

    def _over_budget(self) -> MessageTooLarge:
        self._close_code = _TRY_AGAIN_LATER
        return MessageTooLarge("too much for the connections of one client (max_bytes_per_identity)")

    def send(self, message: Message) -> Awaitable[None]:
        """Send a message; returns what is left to await."""
        line = self.wire.write(message)
        if message.is_response:
            self.sessions.answered(message)
            self._has_answered = self._has_answered or message.kind == "result"
        return self.send_line(line)

    async def send_line(self, line: bytes) -> None:
        """Send the text of a message. Raises `OSError`."""
        await self._lock.acquire()
        try:
            if self.is_gone:
                raise ConnectionResetError("the client has gone")
            self._stuck_since = self._now()
            await self._send({"type": "websocket.send", "text": line.decode()})
        except Exception as error:  # each server has its own
            self.is_gone = True
            raise ConnectionResetError("the client has gone") from error
        finally:
            self._stuck_since = None
            self._lock.release()
        self._burst += 1
        if self._burst >= MAX_BURST:
            self._burst = 0
            await asyncio.sleep(0)

    def go_away(self) -> None:
        """End the connection because the server is closing."""
        self._close_code = _GOING_AWAY
        self.end()

    async def close(self) -> None:
        """Close the socket."""
        self.end()
        if not self.is_gone:
            self.is_gone = True
            with contextlib.suppress(Exception):
                await self._send({"type": "websocket.close", "code": self._close_code})


async def _receive_frames(transport: SocketTransport, receive: Receive) -> None:
    while True:
        try:
            event = await receive()
        except Exception as error:
            logger.debug(_LOST, exc_info=error)
            return
        if event["type"] == "websocket.disconnect":
            transport.is_gone = True
            return
        text = event.get("text")
        if text is None:
            continue  # other frames are ignored
        try:
            refusal = transport.receive(text)
        except MessageTooLarge as error:
            logger.info("a WebSocket is closed: %s", error)
            return
        del event, text  # the agent may read, or the client, much later
        if refusal is not None:
            await transport.send_line(transport.written(refusal))
        elif transport.inbox.is_full:
            await transport.inbox.room()
