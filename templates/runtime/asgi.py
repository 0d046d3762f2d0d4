"""Serves an agent over Streamable HTTP and WebSocket: an ASGI 3 application, which needs no other package.

    app = asgi_app(EchoAgent, hosts=["agent.example.com"])

Any ASGI server on asyncio runs it. hypercorn and granian have both transports; uvicorn has WebSocket only.
Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Hashable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias

from .envelope import CONNECTION_HEADER, SESSION_HEADER, as_object, fits_header, is_id, method_of, parse, session_in
from .hosting import (
    Authorize,
    Gone,
    Headers,
    Refusal,
    RemoteLimits,
    RequestCheck,
    Scope,
    Server,
    client_identity,
    unknown_connection,
)
from .options import ConnectionOptions
from .sessions import HANDSHAKE, SESSION_RULES
from .stdio import AnyFactory
from .streamable import HttpTransport, SocketTransport
from .streams import Stream
from .transport import MessageTooLarge

__all__ = ["LOCAL_HOSTS", "AsgiApp", "Authorize", "RemoteLimits", "Scope", "asgi_app", "client_identity"]

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_DRAINED: Final = 2**16
"""The most bytes of the body of a refused request that are still taken."""
_DRAIN_SECONDS: Final = 1.0


def asgi_app(
    factory: AnyFactory,
    *,
    path: str | None = "/acp",
    hosts: Collection[str] = LOCAL_HOSTS,
    origins: Collection[str] = (),
    authorize: Authorize | None = None,
    subprotocols: Collection[str] = (),
    allow_http1: bool = False,
    limits: RemoteLimits | None = None,
    options: ConnectionOptions | None = None,
) -> AsgiApp:
    """An ASGI application that serves an agent on one path: POST, GET and DELETE over HTTP/2, and WebSocket.

    `factory` makes an agent for each connection; a mapping by version serves several versions of the protocol.

    `path` is where the application answers; None stands for everywhere, as below a router. `hosts` are the names,
    without port, that the header Host may have: a page whose name was made to lead to this machine has another one (DNS
    rebinding). `origins` are those of the pages that may connect ("https://editor.example.com"). "*" allows all.

    `authorize` gets the ASGI scope of each request, and returns who has sent it, which must be hashable, or None. It
    may be a coroutine function. A connection belongs to the one who opened it; `client_identity` tells the agent.

    The first of `subprotocols` that a WebSocket client offers is accepted. `allow_http1` also takes HTTP/1.1: for a
    proxy in front that speaks HTTP/2 with the clients.
    """
    return AsgiApp(
        Server(factory, limits or RemoteLimits(), options or ConnectionOptions()),
        RequestCheck(path, hosts, origins, authorize, allow_http1=allow_http1),
        tuple(subprotocols),
    )


class AsgiApp:
    """The application of `asgi_app`. If nothing sends it ASGI's lifespan events, as below a router, call `close`."""

    def __init__(self, server: Server, checks: RequestCheck, subprotocols: tuple[str, ...]) -> None:
        self._server = server
        self._checks = checks
        self._subprotocols = subprotocols

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket or the lifespan of the server."""
        match scope["type"]:
            case "http":
                with contextlib.suppress(OSError):  # from `send`: the client has gone
                    await self._http(scope, receive, send)
            case "websocket":
                with contextlib.suppress(OSError):
                    await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case other:
                raise ValueError(f"the ASGI scope {other!r} is not known")

    @property
    def connections(self) -> int:
        """The number of connections. One that the client has ended counts until its agent has finished."""
        return len(self._server)

    async def close(self) -> None:
        """Take no more connections, end those that there are, and wait until their agents have finished."""
        await self._server.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    # --- Streamable HTTP -----------------------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, incoming = Headers(scope), _Incoming(receive)
        try:
            identity = await self._checks.check(scope, headers)
            match scope["method"]:
                case "POST":
                    await self._post(headers, identity, incoming, send)
                case "GET":
                    await self._get(headers, identity, incoming, send)
                case _:
                    await self._delete(headers, identity, send)
        except Refusal as refusal:
            await incoming.drain()
            text = b"" if scope["method"] == "HEAD" else refusal.text.encode()
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await self._respond(send, refusal.status, text, kind, *refusal.headers)
        except Gone:
            pass

    async def _post(self, headers: Headers, identity: Hashable, receive: Receive, send: Send) -> None:
        if headers.media_types("content-type") != [_JSON] or headers.get("content-encoding") is not None:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        key, session_header = headers.get(CONNECTION_HEADER), headers.get(SESSION_HEADER)
        if key is None:
            await self._initialize(headers, identity, receive, send)
            return
        entry = self._server.find(key, identity)
        transport = entry.transport
        line = await self._body(headers, transport, receive)
        with contextlib.ExitStack() as counted:
            counted.callback(transport.inbox.count, -len(line))
            message = self._parse(line)
            posted = _Posted(line, message, _session_of(message, session_header))
            receiving = self._receive(transport, posted, counted)
            try:
                await asyncio.wait_for(receiving, self._server.limits.stall_seconds)
            except asyncio.TimeoutError:
                raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many messages wait for the agent") from None
        await self._respond(send, HTTPStatus.ACCEPTED)

    async def _receive(self, transport: HttpTransport, posted: _Posted, counted: contextlib.ExitStack) -> None:
        """Receive a message once there is room; until then, `counted` counts its bytes. Raises `Refusal`."""
        async with transport.inbox.turn:
            await transport.inbox.room()
            if transport.inbox.is_ended:  # while the body arrived or waited
                raise unknown_connection()
            session = transport.sessions.get(posted.session)
            if method_of(posted.message) in SESSION_RULES.scoped and (session is None or not session.is_known):
                raise Refusal(HTTPStatus.NOT_FOUND, "Unknown Acp-Session-Id")
            counted.close()
            if not transport.receive(*posted):
                raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many refusals wait for the client")

    async def _initialize(self, headers: Headers, identity: Hashable, receive: Receive, send: Send) -> None:
        transport = HttpTransport(self._server.options, self._server.limits.max_sessions)
        entry = self._server.reserve(transport, identity)
        try:
            line = await self._body(headers, transport, receive)
            transport.inbox.count(-len(line))
            message = self._parse(line)
            number = message.get("id")
            if message.get("method") != HANDSHAKE or not (is_id(number) or ("id" in message and number is None)):
                raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Connection-Id is missing")
            if transport.inbox.is_ended:  # while the body arrived
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "The server is closing")
            response = transport.shake_hands(line, number)
            task = self._server.serve(entry)
        finally:
            if entry.task is None:
                self._server.discard(entry)
        try:
            first = await self._first_response(response, task, receive)
            header = (CONNECTION_HEADER.encode(), entry.key.encode())
            await self._respond(send, HTTPStatus.OK, first, (b"content-type", _JSON), header)
        except BaseException:  # nobody knows the id
            task.cancel()
            raise

    async def _first_response(
        self, response: asyncio.Future[bytes], task: asyncio.Task[None], receive: Receive
    ) -> bytes:
        """Wait for the response to the first request. Raises `Refusal` and `Gone`."""
        leaving = asyncio.create_task(_client_leaves(receive))
        waited: set[asyncio.Future[Any]] = {response, task, leaving}
        seconds = self._server.limits.stall_seconds
        try:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_left = leaving.done()
            await _cancel(leaving)
        if response.done():
            return response.result()
        if has_left:
            raise Gone
        raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR if task.done() else HTTPStatus.GATEWAY_TIMEOUT)

    async def _body(self, headers: Headers, transport: HttpTransport, receive: Receive) -> bytes:
        """The body of a request, which the inbox counts from now on. Raises `Refusal` and `Gone`."""
        size = (headers.get("content-length") or "").lstrip("0")
        if size.isdecimal() and (len(size) > 20 or int(size) > self._server.options.max_message_bytes):
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            return await asyncio.wait_for(self._receive_body(transport, receive), self._server.limits.stall_seconds)
        except asyncio.TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT) from None

    async def _receive_body(self, transport: HttpTransport, receive: Receive) -> bytes:
        body = bytearray()  # a list of small chunks would take many times their size
        try:
            while True:
                event = await receive()
                if event["type"] != "http.request":
                    raise Gone
                chunk = event.get("body", b"")
                body += chunk
                transport.inbox.count(len(chunk))
                transport.last_used = asyncio.get_running_loop().time()
                if len(body) > self._server.options.max_message_bytes:
                    raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                if transport.inbox.is_too_large:
                    raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many messages wait for the agent")
                if not event.get("more_body", False):
                    return bytes(body)
        except BaseException:
            transport.inbox.count(-len(body))
            raise

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            message = parse(line, self._server.options)
        except MessageTooLarge:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE) from None
        except Exception:
            raise Refusal(HTTPStatus.BAD_REQUEST, "The body is not JSON") from None
        if isinstance(message, list):
            raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "Batches are not supported")
        found = as_object(message)
        if found is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "A message is an object")
        return found

    async def _get(self, headers: Headers, identity: Hashable, receive: Receive, send: Send) -> None:
        if _EVENTS not in headers.media_types("accept"):
            raise Refusal(HTTPStatus.NOT_ACCEPTABLE)
        transport = self._server.find(headers.get(CONNECTION_HEADER), identity).transport
        name = headers.get(SESSION_HEADER)
        stream = transport.open_stream(name)
        if stream is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "Unknown Acp-Session-Id")
        if stream.reader is not None:
            raise Refusal(HTTPStatus.CONFLICT, "The stream is read by another request")
        sending = asyncio.create_task(_send_events(stream, send))
        leaving = asyncio.create_task(_client_leaves(receive))
        try:
            with self._server.reading(stream, sending):
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(sending, leaving)
            transport.close_stream(name)

    async def _delete(self, headers: Headers, identity: Hashable, send: Send) -> None:
        entry = self._server.find(headers.get(CONNECTION_HEADER), identity)
        entry.transport.end()  # it counts until its agent has finished
        await self._respond(send, HTTPStatus.ACCEPTED)

    async def _respond(self, send: Send, *response: Any) -> None:
        """Send a response. Some servers would wait forever if the client has gone."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(_respond(send, *response), self._server.limits.stall_seconds)

    # --- WebSocket -----------------------------------------------------------------------------------------------

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        transport = SocketTransport(self._server.options, self._server.limits.max_sessions, send)
        try:
            identity = await self._checks.check(scope, Headers(scope))
            entry = self._server.reserve(transport, identity)
        except Refusal as refusal:
            await _refuse_socket(scope, send, refusal)
            return
        offered = [each for each in scope.get("subprotocols", ()) if each in self._subprotocols]
        headers = [(CONNECTION_HEADER.encode(), entry.key.encode())]
        try:
            await send({"type": "websocket.accept", "subprotocol": next(iter(offered), None), "headers": headers})
            serving = self._server.serve(entry)
        finally:
            if entry.task is None:
                self._server.discard(entry)
        receiving = asyncio.create_task(_receive_frames(transport, receive))
        try:
            await asyncio.wait({serving, receiving}, return_when=asyncio.FIRST_COMPLETED)
            transport.end()
            await asyncio.wait({serving})
        finally:
            serving.cancel()
            await _cancel(receiving)


class _Posted(NamedTuple):
    """A message of the client, as text and as an object, and the session that it belongs to."""

    line: bytes
    message: dict[str, Any]
    session: str | None


class _Incoming:
    """What a request receives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_over = False

    async def __call__(self) -> MutableMapping[str, Any]:
        event = await self._receive()
        self._is_over = not event.get("more_body", False)
        return event

    async def drain(self) -> None:
        """Take the rest of a small body. hypercorn closes an HTTP/2 connection on which one follows its response."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._drain(), _DRAIN_SECONDS)

    async def _drain(self) -> None:
        left = _DRAINED
        while left > 0 and not self._is_over:
            left -= len((await self()).get("body", b""))


def _session_of(message: dict[str, Any], header: str | None) -> str | None:
    """The session that a message belongs to. Raises `Refusal` if the header is missing, or names another one."""
    name = session_in(message.get("params"))
    has_to_have = name is None or fits_header(name)
    if header is None and has_to_have and method_of(message) in SESSION_RULES.scoped:
        raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Session-Id is missing")
    if header is not None and name is not None and header != name:
        raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Session-Id is not the session of the message")
    return header if name is None else name


async def _respond(send: Send, status: HTTPStatus, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status.value, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer the upgrade with a status, if the server can; otherwise it answers with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *refusal.headers]
    start = {"type": "websocket.http.response.start", "status": refusal.status.value, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": refusal.text.encode()})


async def _send_events(stream: Stream, send: Send) -> None:
    headers = [(b"content-type", _EVENTS), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": headers})
    await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})  # some servers wait for a body
    while (events := await stream.take()) is not None:
        await send({"type": "http.response.body", "body": events, "more_body": True})
        stream.taken()
    await send({"type": "http.response.body"})


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        await asyncio.sleep(0)  # what repeats itself without waiting must not stop the event loop


async def _receive_frames(transport: SocketTransport, receive: Receive) -> None:
    while (event := await receive())["type"] != "websocket.disconnect":
        text = event.get("text")
        if text is not None:  # other frames are ignored
            await transport.receive(text)
    transport.is_gone = True


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks, and wait for them; how they end has no consequence."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
