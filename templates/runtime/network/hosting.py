"""The server of remote connections: the checks of each request, the connections, their limits and their end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
import secrets
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Hashable,
    Iterator,
    MutableMapping,
)
from contextvars import ContextVar
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from .._decode import excerpt
from ..dispatch import ConnectionClosed
from ..log import logger
from ..options import ConnectionOptions
from ..peer_kind import current_peer_kind
from .routing import HttpTransport, ServerTransport
from .shared_memory import SharedMemory
from .streams import Stream

Scope: TypeAlias = MutableMapping[str, Any]
Authorize: TypeAlias = "Callable[[Scope], Hashable | Awaitable[Hashable | None] | None]"
"""Returns the identity of the sender of a request, from its ASGI scope; None refuses it."""

T = TypeVar("T", bound=ServerTransport)
R = TypeVar("R")

_GRACE: Final = 1.0
"""The seconds after `finish_seconds` in which a connection whose client has gone should have begun its clean-up."""
METHODS: Final = ("POST", "GET", "DELETE")
_BLANKS: Final = b" \t"
"""The characters that may surround the value of a header."""
_HOST: Final = re.compile(r"([^:]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")

client_identity: ContextVar[Hashable] = ContextVar("client_identity", default=None)
"""The result of `authorize` for the connection; set for the factory and the handlers that serve it."""


@dataclass(frozen=True, kw_only=True)
class RemoteLimits:
    """The limits of a server. Those on messages are in `ConnectionOptions`."""

    max_connections: int = 1024
    """The most connections."""
    max_connections_per_identity: int = 64
    """The most connections for one result of `authorize`; without `authorize`, of all clients."""
    max_sessions: int = 64
    """The most sessions of a connection; each has one stream at most."""
    max_bytes_per_identity: int = 256 * 2**20
    """The memory for the messages of the connections of one result of `authorize`: those that arrive or wait for their
    agents, requests in flight, and what is not read yet. Above it, POST requests get 429, WebSockets are closed, and
    other requests are answered with an error; small messages still reach their agents."""
    idle_seconds: float = 60.0
    """A connection over HTTP is closed after so many seconds without a stream and a request, a WebSocket after so many
    unless a request on it had a result."""
    stall_seconds: float = 60.0
    """A connection is closed if the client takes nothing for so long although something waits for it. A request may
    take as long to arrive and to wait until the agent has room for it, and the first one to be answered."""
    keep_alive_seconds: float = 15.0
    """After so many seconds, a comment is sent on a stream on which nothing else was."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if not (isinstance(value, (int, float)) and value > 0):
                raise ValueError(f"{field.name} must be above 0, and not {excerpt(value)}")


class Refusal(Exception):
    """A request is refused, with this status and text."""

    def __init__(self, status: HTTPStatus, text: str = "", *headers: tuple[bytes, bytes]) -> None:
        super().__init__(text)
        self.status = status
        self.text = text or status.phrase
        self.headers = headers


def unknown_connection() -> Refusal:
    """The refusal of a request for a connection that does not exist, has ended, or belongs to another client."""
    return Refusal(HTTPStatus.NOT_FOUND, "Unknown Acp-Connection-Id")


class Gone(Exception):
    """The client has gone before its request was complete."""


async def within(seconds: float, work: Coroutine[Any, Any, R]) -> R:
    """Wait in this task; on Python 3.10, in a task of its own. Raises `asyncio.TimeoutError`."""
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(work, seconds)
    async with asyncio.timeout(seconds):
        return await work


@dataclass(eq=False)
class Entry(Generic[T]):
    """A connection: its transport, the identity of its client, and the task that serves it once there is one.

    `is_lost` is true once the task was cancelled: a second time would interrupt its clean-up.
    """

    key: str
    transport: T
    identity: Hashable
    task: asyncio.Task[None] | None = None
    is_lost: bool = False


class Headers:
    """The headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self._all: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self._all.setdefault(name.lower(), []).append(value)

    def get(self, name: str) -> str | None:
        """The value of a header. Raises `Refusal` if there are two."""
        found = self._all.get(name.encode(), [])
        if len(found) > 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, f"More than one header {name}")
        return found[0].strip(_BLANKS).decode("latin-1") if found else None

    def media_types(self, name: str) -> list[bytes]:
        """The media types of a header, without their parameters."""
        values = b",".join(self._all.get(name.encode(), []))
        return [each.split(b";")[0].strip(_BLANKS).lower() for each in values.split(b",")]


class RequestCheck:
    """The checks that each request has to pass first."""

    def __init__(
        self,
        path: str | None,
        hosts: Collection[str],
        origins: Collection[str],
        authorize: Authorize | None,
        *,
        require_http2: bool,
    ) -> None:
        self._path = path
        self._hosts = {host.lower() for host in hosts}
        self._origins = set(origins)
        self._authorize = authorize
        self._require_http2 = require_http2

    async def check(self, scope: Scope, headers: Headers) -> Hashable:
        """Return the identity of the sender. Raises `Refusal`."""
        if self._path is not None and scope["path"] != self._path:
            raise Refusal(HTTPStatus.NOT_FOUND)
        if scope["type"] == "http":
            self._check_http(scope)
        self._check_source(headers)
        return await self._identify(scope)

    def _check_http(self, scope: Scope) -> None:
        if scope["method"] not in METHODS:
            allowed = (b"allow", ", ".join(METHODS).encode())
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "", allowed)
        if self._require_http2 and scope["http_version"].startswith(("0", "1")):
            raise Refusal(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/2 is required")

    def _check_source(self, headers: Headers) -> None:
        host = _HOST.fullmatch((headers.get("host") or "").lower())
        if "*" not in self._hosts and (host is None or host[1] not in self._hosts):
            raise Refusal(HTTPStatus.FORBIDDEN, "This host is not allowed")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and "*" not in self._origins:
            raise Refusal(HTTPStatus.FORBIDDEN, "This origin is not allowed")

    async def _identify(self, scope: Scope) -> Hashable:
        if self._authorize is None:
            return None
        try:
            found = self._authorize(scope)
            identity: Hashable = await found if inspect.isawaitable(found) else found
            hash(identity)
        except Exception:
            logger.exception("authorize failed")
            raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR) from None
        if identity is None:
            raise Refusal(HTTPStatus.UNAUTHORIZED, "", (b"www-authenticate", b"Bearer"))
        if _is_mistaken(identity):
            text = "authorize must return an identity, such as the name of a user, or None to refuse: it returned a %s"
            logger.error(text, type(identity).__name__)
            raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR)
        return identity


def _is_mistaken(found: object) -> bool:
    """True for a bool, as of a predicate, and for a coroutine, a function or an iterator: each is no identity."""
    return isinstance(found, (bool, Awaitable, Iterator, AsyncIterator)) or callable(found)


def _is_same(one: Hashable, other: Hashable) -> bool:
    """Compare two identities. Raises `Refusal` if they cannot be compared."""
    try:
        return bool(one == other)
    except Exception:
        logger.exception("an identity cannot be compared with another one")
        raise Refusal(HTTPStatus.INTERNAL_SERVER_ERROR) from None


class Server:
    """The connections of an application, and the tasks that serve them. `serve` runs until the connection has ended."""

    def __init__(
        self, serve: Callable[[Any], Awaitable[object]], limits: RemoteLimits, options: ConnectionOptions
    ) -> None:
        self._serve_transport = serve
        self.limits = limits
        self.options = options
        self._entries: dict[str, Entry[Any]] = {}
        self._budgets: WeakKeyDictionary[SharedMemory, Hashable] = WeakKeyDictionary()
        self._readers: set[Stream] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._entries)

    # --- Connections ---------------------------------------------------------------------------------------------

    def reserve(self, transport: T, identity: Hashable) -> Entry[T]:
        """Make a connection that is not served yet. Raises `Refusal` at the limits."""
        if self._is_closing:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "The server is closing")
        if len(self._entries) >= self.limits.max_connections:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections")
        same = sum(_is_same(each.identity, identity) for each in self._entries.values())
        if same >= self.limits.max_connections_per_identity:
            raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, "Too many connections")
        entry = Entry(secrets.token_hex(16), transport, identity)
        self._entries[entry.key] = entry
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        return entry

    def budget(self, identity: Hashable) -> SharedMemory:
        """The budget that the connections of an identity share, as long as one of them, or a request, needs it."""
        for budget, owner in list(self._budgets.items()):
            if _is_same(owner, identity):
                return budget
        budget = SharedMemory(self.limits.max_bytes_per_identity)
        self._budgets[budget] = identity
        return budget

    def find(self, key: str | None, identity: Hashable) -> Entry[HttpTransport]:
        """The connection over HTTP with this id. Raises `Refusal`."""
        if key is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "Acp-Connection-Id is missing")
        entry = self._entries.get(key)
        if entry is None or not isinstance(entry.transport, HttpTransport) or not _is_same(entry.identity, identity):
            raise unknown_connection()
        if entry.transport.inbox.is_ended:
            raise unknown_connection()
        return entry

    def serve(self, entry: Entry[Any]) -> asyncio.Task[None]:
        """Start the agent of a connection; returns the task, which never raises."""
        token, kind = client_identity.set(entry.identity), current_peer_kind.set("network")  # tasks inherit them
        try:
            entry.task = asyncio.create_task(self._serve(entry))
        finally:
            current_peer_kind.reset(kind)
            client_identity.reset(token)
        self._tasks.add(entry.task)
        entry.task.add_done_callback(self._tasks.discard)
        return entry.task

    async def _serve(self, entry: Entry[Any]) -> None:
        try:
            await self._serve_transport(entry.transport)
        except ConnectionClosed:
            pass
        except Exception:
            logger.exception("a connection has failed")
        finally:
            self.discard(entry)

    def discard(self, entry: Entry[Any]) -> None:
        """Forget a connection."""
        if self._entries.pop(entry.key, None) is not None:
            entry.transport.inbox.clear()
            self._stop_watching()

    async def close(self) -> None:
        """Accept no more connections, end the open ones, and wait until their agents have finished."""
        self._is_closing = True
        for entry in list(self._entries.values()):
            entry.transport.go_away()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.options.finish_seconds)
        for entry in list(self._entries.values()):  # a handler of a notification may not have let them read the end
            _cancel(entry)
        if self._tasks:
            await asyncio.wait(self._tasks)
        readers = [stream.reader for stream in self._readers if stream.reader is not None]
        if readers:
            await asyncio.wait(readers, timeout=self.options.finish_seconds)
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)

    # --- Clients that are slow or have gone ------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self, stream: Stream, task: asyncio.Task[None]) -> Generator[None, None, None]:
        """Keep `task` as the reader of a stream during the block."""
        stream.reader = task
        self._readers.add(stream)
        try:
            yield
        finally:
            stream.leave()
            self._readers.discard(stream)
            self._stop_watching()

    def _stop_watching(self) -> None:
        """Stop if there is nothing left to watch."""
        if self._watcher is not None and not (self._entries or self._readers):
            self._watcher.cancel()
            self._watcher = None

    async def _watch(self) -> None:
        limits = self.limits
        pause = min(1.0, limits.idle_seconds / 4, limits.stall_seconds / 4, limits.keep_alive_seconds / 4)
        loop = asyncio.get_running_loop()
        next_comment = loop.time()
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            self._end_lost(now)
            if now >= next_comment:
                next_comment = now + limits.keep_alive_seconds
                for stream in self._readers:
                    stream.keep_alive()

    def _end_lost(self, now: float) -> None:
        for entry in list(self._entries.values()):
            if entry.task is not None and not entry.is_lost and self._is_lost(entry.transport, now):
                logger.info("a connection is closed: the client has gone, or reads too slowly")
                _cancel(entry)
        for stream in list(self._readers):
            if self._is_stuck(stream.stuck_since, now) and stream.reader is not None:
                stream.reader.cancel()

    def _is_stuck(self, since: float | None, now: float) -> bool:
        return since is not None and now - since > self.limits.stall_seconds

    def _is_lost(self, transport: ServerTransport, now: float) -> bool:
        ended = transport.inbox.ended_at
        if ended is not None and now - ended > self.options.finish_seconds + _GRACE:
            return True
        if self._is_stuck(transport.unread_since(), now):
            return True
        return now - transport.last_used > self.limits.idle_seconds and transport.is_unused()


def _cancel(entry: Entry[Any]) -> None:
    if entry.task is not None and not entry.is_lost:
        entry.is_lost = True
        entry.task.cancel()
