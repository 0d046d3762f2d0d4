"""The sessions of the agent. They last as long as the process; their MCP servers as long as the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

from .acp import InvalidParamsError
from .tools import McpParameters, SessionTools


class Sessions:
    """The sessions by their ids, each with its folder and the tools of its MCP servers."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._tools: dict[str, SessionTools] = {}

    def open(self, cwd: str, servers: Sequence[McpParameters]) -> str:
        """Begin a session; returns its id."""
        session_id = uuid4().hex
        self._folders[session_id] = cwd
        self._tools[session_id] = SessionTools(servers)
        return session_id

    def known(self, session_id: str) -> str:
        """The id as it is. Raises `InvalidParamsError` if there is no such session."""
        if session_id not in self._folders:
            raise InvalidParamsError(f"no session {session_id!r}")
        return session_id

    def tools(self, session_id: str) -> SessionTools:
        """The tools of a session that is known."""
        return self._tools[session_id]

    def list(self, cwd: object) -> dict[str, str]:
        """The sessions in the folder `cwd`, or all of them if that is no folder."""
        return {each: folder for each, folder in self._folders.items() if folder == cwd or not isinstance(cwd, str)}

    async def resume(self, session_id: str, servers: Sequence[McpParameters]) -> None:
        """Connect other servers for a session that is known, in the place of those before."""
        earlier = self._tools[session_id]
        self._tools[session_id] = SessionTools(servers)
        await earlier.close()

    def forget(self, session_id: str) -> SessionTools:
        """End a session; returns its tools, to be closed. Raises `InvalidParamsError` if there is no such session."""
        del self._folders[self.known(session_id)]
        return self._tools.pop(session_id)

    async def close(self) -> None:
        """Disconnect the servers of all sessions."""
        await asyncio.gather(*(tools.close() for tools in self._tools.values()))
