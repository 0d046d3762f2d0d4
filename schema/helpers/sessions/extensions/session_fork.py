"""Fork a session: open another one that begins with its conversation."""

from __future__ import annotations

from collections.abc import Sequence

from .._base import UNSET
from ..types import ForkSessionRequest, McpServer
from .session_client import Session, SessionClient

__all__ = ["fork_session"]


async def fork_session(
    client: SessionClient,
    session: Session,
    *,
    cwd: str | None = None,
    mcp_servers: Sequence[McpServer] = (),
    directories: Sequence[str] = (),
) -> Session:
    """Open a session that begins with the conversation of another, which goes on as it was.

    `cwd` is by default that of the other; MCP servers and `directories`, the roots besides it, are given anew. Its
    `state` has what the agent reports. Raises `CapabilityError` if the agent has no `session/fork`, and `RequestError`.
    """
    request = ForkSessionRequest(
        session_id=session.id,
        cwd=cwd or session.cwd,
        mcp_servers=[*mcp_servers],
        additional_directories=[*directories] if directories else UNSET,
    )
    return await client.open_with(client.agent.session_fork(request), request.cwd)
