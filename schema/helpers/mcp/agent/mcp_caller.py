"""The MCP servers that the client offers through the connection. It needs the package `mcp`.

An agent makes an `McpCaller` of its stub, gives it what `mcp_message_notification` gets, and calls a server so:
`async with mcp.Client(caller.transport(server_id), mode=MCP_VERSION) as client`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from .._base import UNSET
from .._decode import DecodeError
from ..dispatch import ConnectionClosed
from ..errors import RequestError
from ..types import MessageMcpNotification, MessageMcpRequest, MessageMcpResponseResult
from .mcp_library import (
    SUBSCRIPTION_ID_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    MCPError,
    RequestId,
    SessionMessage,
    anyio,
    cancelled_request_id_from_params,
)
from .memory import memory_of

__all__ = ["MCP_VERSION", "McpCaller"]

MCP_VERSION: Final = "2026-07-28"
"""The version of MCP that goes through the connection, for the `mode` of `mcp.Client`."""
_FAILED: Final = -33002
_WAIT_SECONDS: Final = 5.0
"""The longest time that the messages of the connection wait for a reader of notifications."""
_MAX_BYTES: Final = 2**23
"""The most memory of the messages that wait for the reader of a transport, if they are more than one."""
_Key: TypeAlias = tuple[str, str]
_Take: TypeAlias = Callable[[JSONRPCNotification], Awaitable[None]]


class McpCaller:
    """The calls of an agent to the servers of its client.

    For each transport, `queue` notifications wait at most, and if there are several, 8 MiB of them.
    """

    def __init__(self, client: Any, *, queue: int = 256) -> None:
        self._client = client
        self._queue = queue
        self._calls: dict[_Key, _ServerRequest] = {}
        self._count = 0

    async def handle(self, params: MessageMcpNotification) -> None:
        """Give a notification to the call that it is about; what is about none is ignored.

        If the reader does not take it in time, the call fails, and is cancelled at the server.
        """
        call = self._calls.get((params.server_id, params.request_id))
        if call is not None:
            await call.receive(params)

    async def request(
        self,
        server_id: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        known_as: RequestId | None = None,
        on_notification: _Take | None = None,
    ) -> Any:
        """The result of a request, as JSON. Raises `MCPError` for an error of the server or of the connection.

        `on_notification` gets the notifications about it. Those of a subscription carry the id `known_as`, if given.
        """
        self._count += 1
        call = _ServerRequest(server_id, str(self._count), known_as=known_as, take=on_notification)
        self._calls[call.key] = call
        try:
            return await call.result(self._client, method, params)
        finally:
            del self._calls[call.key]

    @asynccontextmanager
    async def transport(self, server_id: str) -> AsyncGenerator[Any, None]:
        """A transport to a server, for `mcp.Client(transport, mode=MCP_VERSION)`."""
        into, answers = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        requests, out = anyio.create_memory_object_stream[SessionMessage](0)
        inbox = _Inbox(self._queue)
        pumps = {
            asyncio.create_task(_Link(self, server_id, inbox).run(out)),
            asyncio.create_task(inbox.run(into)),
        }
        try:
            yield answers, requests
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)
            for stream in (into, answers, requests, out):
                stream.close()


class _ServerRequest:
    """A request to a server, and who gets the notifications about it."""

    def __init__(self, server_id: str, number: str, *, known_as: RequestId | None, take: _Take | None) -> None:
        self.key: _Key = (server_id, number)
        self._known_as = known_as
        self._take = take
        self._task: asyncio.Task[Any] | None = None
        self._failure = ""

    async def receive(self, notification: MessageMcpNotification) -> None:
        """Give a notification to the one who called."""
        if self._take is None:
            return
        params = notification.params if isinstance(notification.params, dict) else None
        found = JSONRPCNotification(jsonrpc="2.0", method=notification.method, params=self._own(params))
        try:
            await asyncio.wait_for(self._take(found), _WAIT_SECONDS)
        except asyncio.TimeoutError:
            self._failure = "the notifications about this request were not read in time"
            if self._task is not None:
                self._task.cancel()

    def _own(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        """Params with the id that the caller knows its subscription by."""
        if params is None or self._known_as is None:
            return params
        match params.get("_meta"):
            case {**meta} if meta.get(SUBSCRIPTION_ID_META_KEY) == self.key[1]:
                return {**params, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: self._known_as}}
            case _:
                return params

    async def result(self, client: Any, method: str, params: Mapping[str, Any] | None) -> Any:
        """Send the request, and return the result."""
        server_id, request_id = self.key
        given = UNSET if params is None else dict(params)
        request = MessageMcpRequest(server_id=server_id, request_id=request_id, method=method, params=given)
        task: asyncio.Task[Any] = asyncio.ensure_future(client.mcp_message(request))
        self._task = task
        try:
            found = await task
        except RequestError as error:
            raise _error(error.code, error.message, error.data) from None
        except ConnectionClosed as error:
            raise MCPError(-32000, str(error)) from None
        except DecodeError as error:
            raise MCPError(_FAILED, f"the response of the client is invalid: {error}") from None
        except asyncio.CancelledError:
            if not self._failure:
                raise
            raise MCPError(-32603, self._failure) from None
        if isinstance(found, MessageMcpResponseResult):
            return found.result
        raise _error(found.error.code, found.error.message, found.error.data)


def _error(code: int, message: str, data: Any) -> MCPError:
    return MCPError(code, message, None if data is UNSET else data)


class _Link:
    """One transport: what a client of `mcp` writes to it, and the calls that follow."""

    def __init__(self, caller: McpCaller, server_id: str, inbox: _Inbox) -> None:
        self._caller = caller
        self._server_id = server_id
        self._inbox = inbox
        self._running: dict[RequestId, asyncio.Task[None]] = {}

    async def run(self, written: Any) -> None:
        """Make a call of each request that is written, until the task is cancelled; then all of them are."""
        try:
            async for message in written:
                self._start(message.message)
        finally:
            for task in self._running.values():
                task.cancel()
            if self._running:
                await asyncio.wait(self._running.values())

    def _start(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            task = asyncio.create_task(self._call(message))
            self._running[message.id] = task
            task.add_done_callback(lambda _: self._running.pop(message.id, None))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = cancelled_request_id_from_params(message.params)
            if cancelled is not None and cancelled in self._running:
                self._running[cancelled].cancel()

    async def _call(self, sent: JSONRPCRequest) -> None:
        try:
            found = await self._caller.request(
                self._server_id, sent.method, sent.params, known_as=sent.id, on_notification=self._inbox.put
            )
            result: Any = found
            if not isinstance(found, dict):
                raise MCPError(_FAILED, "the result is no object, which a client of MCP cannot take")
        except MCPError as error:
            await self._inbox.put(JSONRPCError(jsonrpc="2.0", id=sent.id, error=_data(error)))
        else:
            await self._inbox.put(JSONRPCResponse(jsonrpc="2.0", id=sent.id, result=result))


class _Inbox:
    """Messages that wait for the reader of a transport."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._messages = deque[tuple[Any, int]]()
        self._bytes = 0
        self._is_open = True
        self._added = asyncio.Event()
        self._taken = asyncio.Event()

    async def put(self, message: Any) -> None:
        """Add a message, once there is room. It is dropped if the reader has gone."""
        size = memory_of(message.model_dump())
        while self._is_open and self._messages and not self._has_room(size):
            self._taken.clear()
            await self._taken.wait()
        if self._is_open:
            self._messages.append((message, size))
            self._bytes += size
            self._added.set()

    def _has_room(self, size: int) -> bool:
        return len(self._messages) < self._limit and self._bytes + size <= _MAX_BYTES

    async def run(self, into: Any) -> None:
        """Give the messages to the reader, until it goes."""
        try:
            while True:
                while not self._messages:
                    self._added.clear()
                    await self._added.wait()
                message, size = self._messages[0]  # it is there until it is taken
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its reader has gone
                    await into.send(SessionMessage(message))
                self._messages.popleft()
                self._bytes -= size
                self._taken.set()
        finally:
            self._is_open = False
            self._messages.clear()
            self._taken.set()


def _data(error: MCPError) -> ErrorData:
    found: ErrorData = error.error
    return found
