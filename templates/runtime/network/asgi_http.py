"""The server's end of Streamable HTTP: POST, GET with server-sent events, and DELETE."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias

from ...errors import ParseError
from ..message import Message, Unreadable
from .hosting import Gone, Headers, Refusal, RequestCheck, Scope, Server, unknown_connection, within
from .routing import HttpTransport
from .sessions import HANDSHAKE, SESSION_RULES
from .streams import CONNECTION_HEADER, SESSION_HEADER, Stream, fits_header, member, session_in, session_name

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_FULL: Final = "Too many messages wait for the agent"
_DRAINED: Final = 2**16
"""The most bytes of the body of a refused request that are still received."""
_DRAIN_SECONDS: Final = 1.0


class HttpRequests:
    """Handles the requests of clients, each in the task that the server has made for it."""

    def __init__(self, server: Server, checks: RequestCheck) -> None:
        self._server = server
        self._checks = checks

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. Raises `Gone`."""
        headers, incoming = Headers(scope), _Incoming(receive)
        try:
            request = _Request(await self._checks.check(scope, headers), headers, incoming, send)
            match scope["method"]:
                case "POST":
                    await self._post(request)
                case "GET":
                    await self._get(request)
                case _:
                    await self._delete(request)
            return
        except Refusal as refusal:
            text = b"" if scope["method"] == "HEAD" else refusal.text.encode()
            response = refusal.status, text, (b"content-type", b"text/plain; charset=utf-8"), *refusal.headers
        except Gone:
            return
        await incoming.drain()  # not in the `except` clause: the exception keeps the message alive
        await self._respond(send, *response)

    async def _post(self, request: _Request) -> None:
        headers = request.headers
        if headers.media_types("content-type") != [_JSON] or headers.get("content-encoding") is not None:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        key, session_header = headers.get(CONNECTION_HEADER), _session_header(headers)
        if key is None:
            await self._initialize(request)
            return
        transport = self._server.find(key, request.identity).transport
        progress = _ReceivingProgress(session_header)
        try:
            await within(self._server.limits.stall_seconds, self._accept(request, transport, progress))
        except asyncio.TimeoutError:
            raise Refusal(progress.status, progress.text) from None
        await self._respond(request.send, HTTPStatus.ACCEPTED)

    async def _accept(self, request: _Request, transport: HttpTransport, progress: _ReceivingProgress) -> None:
        """Receive a message once there is room for it. Raises `Refusal` and `Gone`."""
        line = await self._body(request, transport, _check_open)
        progress.status, progress.text = HTTPStatus.TOO_MANY_REQUESTS, _FULL
        with contextlib.ExitStack() as counted:
            counted.callback(transport.inbox.count, -len(line))
            async with transport.inbox.turn:
                await transport.inbox.room()
                _check_open(transport)  # it may have ended while this waited
                message = _read(line, transport)  # not earlier: only its text is counted
                name = _session_of(message, progress.session_header)
                session = transport.sessions.get(name)
                if _is_scoped(message) and (session is None or not session.is_known):
                    raise Refusal(HTTPStatus.NOT_FOUND, "Unknown Acp-Session-Id")
                del line
                counted.close()
                if transport.inbox.lacks_room_for(message):
                    raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, _FULL)
                if not transport.receive(message, name):
                    raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many refusals wait for the client")

    async def _initialize(self, request: _Request) -> None:
        server = self._server
        transport = HttpTransport(server.options, server.limits.max_sessions, server.budget(request.identity))
        entry = self._server.reserve(transport, request.identity)
        try:
            response = self._receive_first(await self._first_body(request, transport), transport)
            task = self._server.serve(entry)
        finally:
            if entry.task is None:
                self._server.discard(entry)
        try:
            first = await self._first_response(response, task, request.receive)
            header = (CONNECTION_HEADER.encode(), entry.key.encode())
            await self._respond(request.send, HTTPStatus.OK, first, (b"content-type", _JSON), header)
        except BaseException:  # the client does not know the id
            task.cancel()
            raise

    def _receive_first(self, line: bytes, transport: HttpTransport) -> asyncio.Future[bytes]:
        """Receive the first request; returns a future of the response. Raises `Refusal`."""
        transport.inbox.count(-len(line))
        message = _read(line, transport)
        if message.kind != "request" or _method_of(message) != HANDSHAKE:
            raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Connection-Id is missing")
        _check_not_closing(transport)
        return transport.shake_hands(message)

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
            await cancel(leaving)
        if response.done():
            return response.result()
        if has_left:
            raise Gone
        raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR if task.done() else HTTPStatus.GATEWAY_TIMEOUT)

    async def _first_body(self, request: _Request, transport: HttpTransport) -> bytes:
        try:
            body = self._body(request, transport, _check_not_closing)
            return await within(self._server.limits.stall_seconds, body)
        except asyncio.TimeoutError:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT) from None

    async def _body(self, request: _Request, transport: HttpTransport, check: Callable[[HttpTransport], None]) -> bytes:
        """The body of a request, which the inbox counts from now on. Raises `Refusal` and `Gone`."""
        size = (request.headers.get("content-length") or "").lstrip("0")
        if size.isdecimal() and (len(size) > 20 or int(size) > self._server.options.max_message_bytes):
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        body = bytearray()  # a list of small chunks would take many times their size
        try:
            while True:
                event = await request.receive()
                if event["type"] != "http.request":
                    raise Gone
                chunk = event.get("body", b"")
                body += chunk
                transport.inbox.count(len(chunk))
                transport.last_used = asyncio.get_running_loop().time()
                if len(body) > self._server.options.max_message_bytes:
                    raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                check(transport)  # the memory of an ended connection is not counted
                if transport.inbox.is_too_large or transport.inbox.lacks_room_for_text():
                    raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, _FULL)
                if not event.get("more_body", False):
                    return bytes(body)
        except BaseException:
            transport.inbox.count(-len(body))
            raise

    async def _get(self, request: _Request) -> None:
        headers = request.headers
        if _EVENTS not in headers.media_types("accept"):
            raise Refusal(HTTPStatus.NOT_ACCEPTABLE)
        transport = self._server.find(headers.get(CONNECTION_HEADER), request.identity).transport
        name = _session_header(headers)
        stream = transport.open_stream(name)
        if stream is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "Unknown Acp-Session-Id")
        if stream.reader is not None:
            raise Refusal(HTTPStatus.CONFLICT, "The stream is read by another request")
        sending = asyncio.create_task(_send_events(stream, request.send))
        leaving = asyncio.create_task(_client_leaves(request.receive))
        try:
            with self._server.reading(stream, sending):
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(sending, leaving)
            transport.close_stream(name)

    async def _delete(self, request: _Request) -> None:
        entry = self._server.find(request.headers.get(CONNECTION_HEADER), request.identity)
        entry.transport.end()  # it counts until its agent has finished
        await self._respond(request.send, HTTPStatus.ACCEPTED)

    async def _respond(self, send: Send, *response: Any) -> None:
        """Send a response. Some servers would wait forever if the client has gone."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(self._server.limits.stall_seconds, _respond(send, *response))


class _Request(NamedTuple):
    """A request over HTTP that has passed the checks."""

    identity: Hashable
    headers: Headers
    receive: Receive
    send: Send


class _ReceivingProgress:
    """A message that is being received; `status` and `text` are the response if that takes too long."""

    def __init__(self, session_header: str | None) -> None:
        self.session_header = session_header
        self.status = HTTPStatus.REQUEST_TIMEOUT
        self.text = ""


class _Incoming:
    """The body of a request, as it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_over = False

    async def __call__(self) -> MutableMapping[str, Any]:
        event = await self._receive()
        self._is_over = not event.get("more_body", False)
        return event

    async def drain(self) -> None:
        """Receive the rest of a small body: hypercorn closes an HTTP/2 connection on which it follows the response."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(_DRAIN_SECONDS, self._drain())

    async def _drain(self) -> None:
        left = _DRAINED
        while left > 0 and not self._is_over:
            left -= len((await self()).get("body", b""))


def _session_header(headers: Headers) -> str | None:
    name = headers.get(SESSION_HEADER)
    return None if name is None else session_name(name)


def _check_open(transport: HttpTransport) -> None:
    if transport.inbox.is_ended:
        raise unknown_connection()


def _check_not_closing(transport: HttpTransport) -> None:
    if transport.inbox.is_ended:
        raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "The server is closing")


def _read(line: bytes, transport: HttpTransport) -> Message | Unreadable:
    """Parse a body as a message. Raises `Refusal` if it is no JSON object."""
    found = transport.wire.read(line)
    if isinstance(found, Message):
        return found
    if isinstance(found.error, ParseError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "The body is not JSON")
    if found.start:  # it was not parsed
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    match line.lstrip()[:1]:
        case b"{":
            return found  # the connection answers it
        case b"[":
            raise Refusal(HTTPStatus.NOT_IMPLEMENTED, "Batches are not supported")
        case _:
            raise Refusal(HTTPStatus.BAD_REQUEST, "A message is an object")


def _method_of(message: Message | Unreadable) -> Any:
    return message.method if isinstance(message, Message) else member(message.value, "method")


def _is_scoped(message: Message | Unreadable) -> bool:
    """True for a message that acts on a session of its connection."""
    return isinstance(message, Message) and message.method in SESSION_RULES.scoped


def _session_of(message: Message | Unreadable, header: str | None) -> str | None:
    """The session that a message belongs to. Raises `Refusal` if the header is missing, or names another one."""
    name = session_in(message.value) if isinstance(message, Message) and not message.is_response else None
    needs_header = name is None or fits_header(name)
    if header is None and needs_header and _is_scoped(message):
        raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Session-Id is missing")
    if header is not None and name is not None and header != name:
        raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Session-Id is not the session of the message")
    return header if name is None else name


async def _respond(send: Send, status: HTTPStatus, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status.value, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


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
        await asyncio.sleep(0)  # a `receive` that never waits must not block the event loop


async def cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks, and wait for them. What they raise is ignored."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
