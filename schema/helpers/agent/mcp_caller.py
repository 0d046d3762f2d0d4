"""The MCP servers that the client offers through the connection, for `mcp.Client` of the package `mcp`, which it needs.

An agent makes an `McpCaller` of its stub, gives it what `mcp_message_notification` gets, and calls a server so:
`async with mcp.Client(caller.transport(server_id), mode=VERSION) as client`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import anyio
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from .._base import UNSET
from ..dispatch import ConnectionClosed
from ..errors import RequestError
from ..types import MessageMcpNotification, MessageMcpRequest, MessageMcpResponseResult

__all__ = ["McpCaller", "VERSION"]  # noqa: RUF022  sorted as in the other helpers

VERSION: Final = "2026-07-28"
"""The version of MCP that goes through the connection, for the `mode` of `mcp.Client`."""
_WAIT_SECONDS: Final = 5.0
"""The longest time that the messages of the connection wait for a reader of notifications."""
_Key: TypeAlias = tuple[str, str]


class McpCaller:
    """The calls of an agent to the servers of its client. `queue` notifications wait for each transport at most."""

    def __init__(self, client: Any, *, queue: int = 256) -> None:
        self._client = client
        self._queue = queue
        self._calls: dict[_Key, _Call] = {}
        self._count = 0

    async def handle(self, params: MessageMcpNotification) -> None:
        """Give a notification to the call that it is about; what is about none is ignored.

        If the reader does not take it in time, the call fails, and is cancelled at the server.
        """
        call = self._calls.get((params.server_id, params.request_id))
        if call is not None:
            await call.receive(params)

    @asynccontextmanager
    async def transport(self, server_id: str) -> AsyncGenerator[Any, None]:
        """A transport to a server, for `mcp.Client(transport, mode=VERSION)`."""
        into, answers = anyio.create_memory_object_stream[SessionMessage | Exception](self._queue)
        requests, out = anyio.create_memory_object_stream[SessionMessage](0)
        link = _Link(self, server_id, into)
        pump = asyncio.create_task(link.run(out))
        try:
            yield answers, requests
        finally:
            pump.cancel()
            await asyncio.wait({pump})
            for stream in (into, answers, requests, out):
                stream.close()

    def add(self, call: _Call) -> None:
        """Expect notifications about a call."""
        self._calls[call.key] = call

    def remove(self, call: _Call) -> None:
        """Expect none any more."""
        self._calls.pop(call.key, None)

    def new_id(self) -> str:
        """An id that no other request has."""
        self._count += 1
        return str(self._count)

    async def send(self, request: MessageMcpRequest) -> Any:
        """Send a request to a server; returns the response."""
        return await self._client.mcp_message(request)


class _Link:
    """One transport: what a client of `mcp` writes to it, and the calls that follow."""

    def __init__(self, caller: McpCaller, server_id: str, into: Any) -> None:
        self.caller = caller
        self.server_id = server_id
        self.into = into
        self._running: dict[RequestId, _Call] = {}

    async def run(self, written: Any) -> None:
        """Make a call of each request that is written, until the task is cancelled; then all of them are."""
        try:
            async for message in written:
                self._take(message.message)
        finally:
            tasks = [call.cancel() for call in self._running.values()]
            if tasks:
                await asyncio.wait(tasks)

    def _take(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            call = _Call(self, message)
            self._running[message.id] = call
            call.task.add_done_callback(lambda _: self._running.pop(message.id, None))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = cancelled_request_id_from_params(message.params)
            if cancelled is not None and cancelled in self._running:
                self._running[cancelled].cancel()


class _Call:
    """A request to a server."""

    def __init__(self, link: _Link, request: JSONRPCRequest) -> None:
        self._link = link
        self._request = request
        self.id = link.caller.new_id()
        self.key: _Key = (link.server_id, self.id)
        self._failure = ""
        self.task = asyncio.create_task(self._run())

    def cancel(self) -> asyncio.Task[None]:
        """Cancel it at the server, too."""
        self.task.cancel()
        return self.task

    async def receive(self, notification: MessageMcpNotification) -> None:
        """Give a notification to the client of `mcp`."""
        params = notification.params if isinstance(notification.params, dict) else None
        found = JSONRPCNotification(jsonrpc="2.0", method=notification.method, params=self._own(params))
        try:
            await asyncio.wait_for(self._link.into.send(SessionMessage(found)), _WAIT_SECONDS)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        except asyncio.TimeoutError:
            self._failure = "the notifications about this request were not read in time"
            self.cancel()

    def _own(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        """Params with the id that the client of `mcp` knows its subscription by."""
        found = dict(params or {})
        match found:
            case {"_meta": {**meta}} if meta.get(SUBSCRIPTION_ID_META_KEY) == self.id:
                return {**found, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: self._request.id}}
            case _:
                return params

    async def _run(self) -> None:
        self._link.caller.add(self)
        try:
            answer = await self._answer()
        except asyncio.CancelledError:
            if not self._failure:
                raise
            answer = self._error(-32603, self._failure)
        finally:
            self._link.caller.remove(self)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its reader may have gone
            await self._link.into.send(SessionMessage(answer))

    async def _answer(self) -> JSONRPCResponse | JSONRPCError:
        sent = self._request
        request = MessageMcpRequest(
            server_id=self._link.server_id,
            request_id=self.id,
            method=sent.method,
            params=UNSET if sent.params is None else sent.params,
        )
        try:
            found = await self._link.caller.send(request)
        except RequestError as error:
            return self._error(error.code, error.message, error.data)
        except ConnectionClosed as error:
            return self._error(-32000, str(error))
        if isinstance(found, MessageMcpResponseResult):
            return JSONRPCResponse(jsonrpc="2.0", id=sent.id, result=found.result)
        return self._error(found.error.code, found.error.message, found.error.data)

    def _error(self, code: int, message: str, data: Any = UNSET) -> JSONRPCError:
        found = ErrorData(code=code, message=message, data=None if data is UNSET else data)
        return JSONRPCError(jsonrpc="2.0", id=self._request.id, error=found)
