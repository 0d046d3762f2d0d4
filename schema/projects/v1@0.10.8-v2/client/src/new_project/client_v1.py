"""The client in version 1 of the protocol: the answer to a prompt tells why the work on it has ended."""

from __future__ import annotations

import os

from .acp import v1
from .acp.v1.helpers import permission_cancelled, select_permission_option, text
from .screen import Screen


class ClientV1(v1.Client):
    """The agent tells it what happens, and asks it for permission."""

    def __init__(self, agent: v1.RemoteAgent, *, screen: Screen) -> None:
        super().__init__(agent)
        self._screen = screen
        self._session_id = ""

    async def open(self) -> None:
        """Open a session."""
        session = await self.agent.session_new(v1.NewSessionRequest(cwd=os.getcwd(), mcp_servers=[]))
        self._session_id = session.session_id

    async def prompt(self, line: str) -> str:
        """Send a line as a prompt; returns why the work on it has ended."""
        request = v1.PromptRequest(session_id=self._session_id, prompt=[text(line)])
        return (await self.agent.session_prompt(request)).stop_reason

    async def cancel(self) -> None:
        """Ask the agent to stop its work."""
        await self.agent.session_cancel(v1.CancelNotification(session_id=self._session_id))

    async def session_update(self, params: v1.SessionNotification) -> None:
        """Print what happens."""
        match params.update:
            case v1.SessionUpdateAgentMessageChunk(content=content) | v1.SessionUpdateAgentThoughtChunk(
                content=content
            ):
                self._screen.say(content.text if isinstance(content, v1.ContentBlockText) else f"({content.type})")
            case v1.SessionUpdateToolCall(title=title):
                self._screen.note(title)
            case v1.SessionUpdateToolCallUpdate(title=title, status=status):
                self._screen.note(title, status)
            case v1.SessionUpdatePlan(entries=entries):
                for entry in entries:
                    self._screen.note(f"[{entry.status}]", entry.content)
            case other:
                self._screen.note(f"({other.session_update})")

    async def session_request_permission(self, params: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        """Ask the user; no answer allows nothing."""
        options = {option.option_id: option.name for option in params.options}
        chosen = await self._screen.choose(params.tool_call.title, options)
        return permission_cancelled() if chosen is None else select_permission_option(chosen)
