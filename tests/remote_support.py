"""A client of `asgi_app` within the process: it calls the application as an ASGI server does, and needs no library.

    async with Server.of(acp, agent) as server:
        client = Client(server.app)
        await client.initialize()
        async with client.get() as stream:  # GET; `stream.receive()` is the next message
            await client.call(1, "session/new", {"cwd": "/", "mcpServers": []})  # POST
            answer = await stream.receive()
        await client.delete()

`Client.headers` go with each request, and are any bytes. `request` and `start` send whatever is asked for: other
methods, paths, versions of HTTP, bodies in pieces. `stream.pause()` stops reading, as a slow client does: the
application waits in `send`. `Client.socket` is the same for a WebSocket.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tests.runtime_support import V1, items_in
from tests.support import runtime_module

__all__ = ["V1", "Answer", "Client", "Exchange", "Server", "Socket", "asgi_of", "settled"]

Pairs = Sequence[tuple[bytes, bytes]]
HOST = (b"host", b"localhost:8000")
JSON = (b"content-type", b"application/json")
EVENTS = (b"accept", b"text/event-stream")
INITIALIZE: Mapping[str, Any] = {"protocolVersion": 1}
NEW_SESSION: Mapping[str, Any] = {"cwd": "/", "mcpServers": []}


def asgi_of(acp: ModuleType) -> Any:
    """The module `asgi` of a package that was built with `--with remote`."""
    return importlib.import_module(f"{acp.__name__}.asgi")


async def settled(condition: Callable[[], object]) -> None:
    """Let other tasks run until `condition` holds; the time limit of the test ends the wait."""
    while not condition():
        await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Answer:
    """A response of the application, or what it refused a WebSocket with."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One call of the application: what it receives, and what it has sent. `task` never hides what it raises."""

    def __init__(self, app: Any, scope: dict[str, Any]) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._may_take = asyncio.Event()
        self._may_take.set()
        self._first_held = b""
        self.is_blocked = False
        """True while the application waits in `send`."""
        self.sent: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        """What the application has sent; None after it has returned."""
        self.task = asyncio.create_task(app(scope, self._incoming.get, self._send))
        self.task.add_done_callback(lambda _: self.sent.put_nowait(None))

    async def _send(self, event: dict[str, Any]) -> None:
        if self._first_held in event.get("body", b""):
            self.is_blocked = not self._may_take.is_set()
            try:
                await self._may_take.wait()
            finally:
                self.is_blocked = False
        self.sent.put_nowait(event)

    def pause(self, *, at: bytes = b"") -> None:
        """Take nothing more: from the first event on whose body contains `at`, the application waits in `send`."""
        self._first_held = at
        self._may_take.clear()

    def resume(self) -> None:
        """Take what is sent again."""
        self._may_take.set()

    def feed(self, kind: str, **more: Any) -> None:
        """Let the application receive an event."""
        self._incoming.put_nowait({"type": kind, **more})

    @property
    def waiting(self) -> int:
        """The number of events that the application has not received yet."""
        return self._incoming.qsize()

    async def event(self) -> dict[str, Any] | None:
        """The next event that the application sends; None after it has returned. Raises what it raised."""
        event = await self.sent.get()
        if event is None:
            self.sent.put_nowait(None)
            if not self.task.cancelled():
                self.task.result()
        return event

    async def answer(self) -> Answer:
        """The whole response."""
        start = await self.event()
        assert start is not None, "there is no response"
        return await self.rest(start)

    async def rest(self, start: dict[str, Any]) -> Answer:
        """The whole response, of which `start` was received already."""
        prefix = start["type"].removesuffix(".start")
        body = b""
        while (event := await self.event()) is not None:
            assert event["type"] == f"{prefix}.body"
            body += event.get("body", b"")
        return Answer(start["status"], names(start["headers"]), body)

    async def leave(self) -> None:
        """Disconnect, and wait until the application has returned."""
        self.resume()
        self.feed("http.disconnect")
        await self.task


class EventStream(Exchange):
    """A GET request, as a reader of messages. `comments` counts the comments so far."""

    def __init__(self, app: Any, scope: dict[str, Any]) -> None:
        super().__init__(app, scope)
        self.comments = 0
        self._messages: list[Any] = []
        self._is_over = False

    async def start(self) -> Answer | None:
        """Wait for the start of the stream; returns the response if it is a refusal."""
        self.feed("http.request", body=b"", more_body=False)
        event = await self.event()
        assert event is not None
        if event["status"] == 200:
            assert names(event["headers"])["content-type"] == "text/event-stream"
            return None
        return await self.rest(event)

    async def receive(self) -> Any:
        """The next message; None at the end of the stream."""
        while not self._messages:
            event = await self.event()
            if event is None:
                return None
            self._is_over = not event.get("more_body", False)
            for part in event.get("body", b"").split(b"\n\n")[:-1]:
                if part == b":":
                    self.comments += 1
                else:
                    assert part.startswith(b"data: ")
                    assert b"\n" not in part
                    self._messages.append(json.loads(part.removeprefix(b"data: ")))
        return self._messages.pop(0)


class Socket(Exchange):
    """A WebSocket."""

    async def connect(self) -> dict[str, Any]:
        """Connect; returns what the application answers first."""
        self.feed("websocket.connect")
        event = await self.event()
        assert event is not None
        return event

    async def send(self, message: Any) -> None:
        """Send a message, or any text."""
        self.feed("websocket.receive", text=message if isinstance(message, str) else json.dumps(message))

    async def call(self, number: Any, method: str, params: Any = None) -> None:
        """Send a request, and do not wait for the response."""
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    async def receive(self) -> Any:
        """The next message; the whole event if it is no message, as of a close, and None after the end."""
        event = await self.event()
        return json.loads(event["text"]) if event is not None and "text" in event else event

    async def ask(self, number: Any, method: str, params: Any = None) -> Any:
        """Send a request, and return the next message, which should be the response."""
        await self.call(number, method, params)
        return await self.receive()

    async def leave(self, code: int = 1001) -> None:
        """Disconnect, and wait until the application has returned."""
        self.resume()
        self.feed("websocket.disconnect", code=code)
        await self.task


@dataclass
class Client:
    """A client of an application. `headers` go with each request; `key` is the connection that it has opened."""

    app: Any
    headers: list[tuple[bytes, bytes]] = field(default_factory=lambda: [HOST])
    path: str = "/acp"
    http_version: str = "2"
    key: str | None = None
    extensions: Mapping[str, Any] = field(default_factory=dict)

    def scope(self, kind: str, headers: Iterable[tuple[bytes, bytes]], **more: Any) -> dict[str, Any]:
        """The ASGI scope of a request."""
        return {
            "type": kind,
            "asgi": {"version": "3.0", "spec_version": "2.5"},
            "http_version": self.http_version,
            "scheme": "ws" if kind == "websocket" else "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [*self.headers, *headers],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
            "extensions": dict(self.extensions),
            **more,
        }

    def start(self, method: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> Exchange:
        """Start a request; the body is up to the caller (`feed`)."""
        return Exchange(self.app, self.scope("http", headers, method=method))

    async def request(
        self, method: str, headers: Iterable[tuple[bytes, bytes]] = (), *, body: bytes | Sequence[bytes] = b""
    ) -> Answer:
        """Send a request, with a body in one or several pieces; returns the response."""
        exchange = self.start(method, headers)
        pieces = [body] if isinstance(body, bytes) else list(body)
        for number, piece in enumerate(pieces, start=1):
            exchange.feed("http.request", body=piece, more_body=number < len(pieces))
        return await exchange.answer()

    def ids(self, session: str | None = None) -> list[tuple[bytes, bytes]]:
        """The headers that name the connection and a session."""
        found = [] if self.key is None else [(b"acp-connection-id", self.key.encode())]
        return found if session is None else [*found, (b"acp-session-id", session.encode())]

    async def post(self, message: Any, session: str | None = None, *more: tuple[bytes, bytes]) -> Answer:
        """POST a message, or any bytes, on the connection."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.request("POST", [JSON, *self.ids(session), *more], body=body)

    async def call(self, number: Any, method: str, params: Any = None, session: str | None = None) -> None:
        """POST a request, which has to be accepted."""
        answer = await self.post(request_of(number, method, params), session)
        assert answer.status == 202, answer

    async def initialize(self, params: Any = INITIALIZE) -> Any:
        """Open a connection; returns the response to `initialize`."""
        answer = await self.post(request_of(0, "initialize", params))
        assert answer.status == 200, answer
        assert answer.headers["content-type"] == "application/json"
        self.key = answer.headers["acp-connection-id"]
        return answer.json

    def open_get(self, session: str | None = None) -> EventStream:
        """Start a GET request."""
        return EventStream(self.app, self.scope("http", [EVENTS, *self.ids(session)], method="GET"))

    @asynccontextmanager
    async def get(self, session: str | None = None) -> AsyncIterator[EventStream]:
        """The stream of the connection or of a session; afterwards the client leaves."""
        stream = self.open_get(session)
        try:
            refusal = await stream.start()
            assert refusal is None, refusal
            yield stream
        finally:
            await stream.leave()

    async def refused_get(self, session: str | None = None) -> Answer:
        """GET a stream; returns the refusal."""
        refusal = await self.open_get(session).start()
        assert refusal is not None, "the stream was opened"
        return refusal

    async def delete(self) -> Answer:
        """DELETE the connection."""
        return await self.request("DELETE", self.ids())

    async def new_session(self, stream: EventStream, number: Any = "new") -> str:
        """Open a session; returns its id. `stream` is that of the connection."""
        await self.call(number, "session/new", NEW_SESSION)
        answer = await stream.receive()
        assert answer["id"] == number
        session: str = answer["result"]["sessionId"]
        return session

    def open_socket(self, headers: Iterable[tuple[bytes, bytes]] = (), subprotocols: Iterable[str] = ()) -> Socket:
        """A WebSocket that is not connected yet."""
        return Socket(self.app, self.scope("websocket", headers, subprotocols=list(subprotocols)))

    @asynccontextmanager
    async def socket(self, *, initialized: bool = True) -> AsyncIterator[Socket]:
        """A WebSocket, on which `initialize` has been called; afterwards the client leaves."""
        socket = self.open_socket()
        try:
            event = await socket.connect()
            assert event["type"] == "websocket.accept", event
            if initialized:
                assert "result" in await socket.ask("initialize", "initialize", INITIALIZE)
            yield socket
        finally:
            await socket.leave()

    async def refused_socket(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> Answer | int:
        """Open a WebSocket; returns the response that refuses it, or the code that it is closed with."""
        socket = self.open_socket(headers)
        event = await socket.connect()
        if event["type"] == "websocket.close":
            await socket.task
            code: int = event["code"]
            return code
        return await socket.rest(event)


@dataclass(frozen=True)
class Server:
    """An application, with what its server does beside requests.

    `limits` are those of the application, where a test changes them.
    """

    acp: ModuleType
    app: Any
    limits: Any = None
    _idle: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_idle", items_in(self.app))

    @staticmethod
    @asynccontextmanager
    async def of(acp: ModuleType, factory: Any, **options: Any) -> AsyncGenerator[Server, None]:
        """Serve `factory` with these options of `asgi_app`; afterwards the application is closed, and must be empty."""
        limits = options.pop("limits", None) or asgi_of(acp).RemoteLimits()
        server = Server(acp, asgi_of(acp).asgi_app(factory, limits=limits, **options), limits)
        try:
            yield server
        finally:
            await server.app.close()
        server.check_empty()

    def hurry(self, **limits: float) -> None:
        """Let short times hold from now on; a busy machine would exceed them while a test prepares its case."""
        for name, seconds in limits.items():
            object.__setattr__(self.limits, name, seconds)  # frozen for users

    @property
    def held(self) -> int:
        """The bytes that count for `max_bytes_per_identity`: arriving, waiting, in flight and unread.

        They are found in the budgets that exist, wherever the application keeps them.
        """
        budget = runtime_module(self.acp, "shared_memory").SharedMemory
        return sum(each.bytes for each in gc.get_objects() if type(each) is budget)

    def check_empty(self) -> None:
        """Fail if anything of a connection is left."""
        assert (self.app.connections, self.held) == (0, 0)
        assert items_in(self.app) == self._idle

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the application's lifespan, as a server does around all requests."""
        exchange = Exchange(self.app, {"type": "lifespan", "asgi": {"version": "3.0"}})
        exchange.feed("lifespan.startup")
        assert await exchange.event() == {"type": "lifespan.startup.complete"}
        try:
            yield
        finally:
            exchange.feed("lifespan.shutdown")
            assert await exchange.event() == {"type": "lifespan.shutdown.complete"}
            await exchange.task


def request_of(number: Any, method: Any, params: Any = None) -> dict[str, Any]:
    """A request as JSON-RPC has it."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def names(headers: Pairs) -> dict[str, str]:
    """Headers of a response by name, each of which may stand once."""
    found = {name.decode(): value.decode() for name, value in headers}
    assert len(found) == len(headers)
    assert all(name == name.lower() for name in found)
    return found


async def ended(*exchanges: Exchange) -> None:
    """Wait until the application has returned from these calls, whatever they came to."""
    await asyncio.gather(*(each.task for each in exchanges), return_exceptions=True)


def agent_for(acp: ModuleType) -> type[Any]:
    """An agent of protocol 1 whose sessions are names, and whose extension methods do what hostile clients want.

    `_open` opens the session that its params name. `_identity` tells who the client is. `_wait` never returns. `_flood`
    sends notifications until the connection ends; `said` counts those that were taken. The notification `_block` keeps
    the read loop busy until `release` of the class is set; `seen` counts the messages that handlers got.
    """

    class RemoteAgent(acp.Agent):  # type: ignore[misc, name-defined]
        seen = 0
        said = 0
        sessions = 0
        release = None

        async def initialize(self, params: Any) -> Any:
            capabilities = acp.AgentCapabilities(
                load_session=True, session_capabilities=acp.SessionCapabilities(close=acp.SessionCloseCapabilities())
            )
            return acp.InitializeResponse(protocol_version=1, agent_capabilities=capabilities)

        async def session_new(self, params: Any) -> Any:
            RemoteAgent.sessions += 1
            return acp.NewSessionResponse(session_id=f"s{RemoteAgent.sessions}")

        async def session_load(self, params: Any) -> Any:
            if params.session_id.startswith("missing"):
                raise acp.ResourceNotFoundError("there is no such session")
            return acp.LoadSessionResponse()

        async def session_close(self, params: Any) -> Any:
            return acp.CloseSessionResponse()

        async def session_prompt(self, params: Any) -> Any:
            RemoteAgent.seen += 1
            return acp.PromptResponse(stop_reason="end_turn")

        async def ext_method(self, method: str, params: Any) -> Any:
            RemoteAgent.seen += 1
            match method:
                case "_open":
                    return {"sessionId": params["name"]}
                case "_identity":
                    return {"identity": repr(asgi_of(acp).client_identity.get())}
                case "_wait":
                    await asyncio.Event().wait()
                case "_flood":
                    while True:
                        await self.client.ext_notification("_said", {"text": "x" * 1000})
                        RemoteAgent.said += 1
                case _:
                    return {"method": method}
            return None

        async def ext_notification(self, method: str, params: Any) -> None:
            RemoteAgent.seen += 1
            if method == "_block":
                RemoteAgent.release = RemoteAgent.release or asyncio.Event()
                await RemoteAgent.release.wait()

    return RemoteAgent
