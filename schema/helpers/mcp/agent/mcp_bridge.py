"""The MCP servers that the client offers through the connection, at URLs, for an MCP client that knows those alone.

It needs the packages `mcp` and `uvicorn`.
"""

from __future__ import annotations

from typing import Any, cast

from .mcp_caller import MCP_VERSION, McpCaller
from .mcp_endpoint import McpEndpoint
from .mcp_library import JSONRPCNotification, MCPError, Server
from .mcp_servers import AcpParameters, HttpParameters, McpParameters
from .memory import memory_of

__all__ = ["McpBridge"]

_MAX_BYTES = 2**18
"""The most memory of what is kept of a server: how it describes itself, and how the client does."""
_META = "io.modelcontextprotocol/"
_OWN = frozenset({"initialize", "ping"})
"""The requests that are answered here: they are about the connection, which ends here, and only older MCP has them."""


class McpBridge:
    """Servers of the client at a port of 127.0.0.1, each with a path and a token, until `close`.

    Clients may speak the MCP of the connection, or an older one. `limit` is the number of requests of a server at the
    same time, and `max_body` the longest body of one, in bytes.
    """

    def __init__(self, caller: McpCaller, *, limit: int = 64, max_body: int = 2**20) -> None:
        self._caller = caller
        self._endpoint = McpEndpoint(limit=limit, max_body=max_body)

    async def at_url(self, server: McpParameters) -> McpParameters:
        """A server with a URL in place of its id; one of another kind as it is.

        Raises `MCPError` if the client does not answer for the server, or describes it by no object, or at length.
        """
        if not isinstance(server, AcpParameters):
            return server
        answer = await self._caller.request(server.server_id, "server/discover", {"_meta": _required({})})
        if not isinstance(answer, dict):
            raise MCPError(-32603, "the client describes the server by no object")
        found = cast("dict[str, Any]", answer)
        if memory_of([server, found]) > _MAX_BYTES:
            raise MCPError(-32603, f"the description of the server takes more than {_MAX_BYTES} bytes of memory")
        entry = await self._endpoint.offer(_Forwarding(self._caller, server, found), name=server.name)
        headers = [(each.name, each.value) for each in entry.headers or ()]
        return HttpParameters(name=server.name, url=entry.url, headers=headers, meta=server.meta)

    async def close(self) -> None:
        """Stop to listen. Calls that are active are cancelled."""
        await self._endpoint.close()


def _required(meta: dict[str, Any]) -> dict[str, Any]:
    """The `_meta` of a request with what each request needs in the MCP of the connection."""
    return {f"{_META}protocolVersion": MCP_VERSION, f"{_META}clientCapabilities": {}, **meta}


class _Forwarding(Server[Any]):
    """A server that sends all requests on, whatever they are."""

    def __init__(self, caller: McpCaller, server: AcpParameters, discovered: Any) -> None:
        super().__init__(server.name, instructions=discovered.get("instructions"))
        self.middleware.append(self._forward)
        self._caller = caller
        self._server_id = server.server_id
        self._able: Any = discovered.get("capabilities") or {}

    def get_capabilities(self, *args: Any, **options: Any) -> Any:
        """Those of the server of the client."""
        return type(super().get_capabilities(*args, **options)).model_validate(self._able)

    async def _forward(self, ctx: Any, call_next: Any) -> Any:
        if ctx.request_id is None or ctx.method in _OWN:
            return await call_next(ctx)

        async def notify(notification: JSONRPCNotification) -> None:
            await ctx.session.send_notification(cast("Any", notification), related_request_id=ctx.request_id)

        is_older = ctx.protocol_version != MCP_VERSION
        params = dict(ctx.params or {})
        if is_older:
            params["_meta"] = _required(params.get("_meta") or {})
        result = await self._caller.request(
            self._server_id, ctx.method, params, known_as=ctx.request_id, on_notification=notify
        )
        return _as_before(result) if is_older else result


def _as_before(result: Any) -> Any:
    """A result for an MCP that had no kinds of results."""
    if result.get("resultType", "complete") != "complete":
        raise MCPError(-32603, "the server asks for input, which this version of MCP cannot carry")
    return {key: value for key, value in result.items() if key != "resultType"}
