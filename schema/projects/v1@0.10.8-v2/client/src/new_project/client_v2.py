"""The client in version 2 of the protocol: a prompt is answered at once, and updates tell how the work on it goes."""

from __future__ import annotations

import asyncio
import os

from .acp import ConnectionClosed, v2
from .acp.v2.helpers import permission_cancelled, select_permission_option, text
from .screen import Screen


class ClientV2(v2.Client):
    """The agent tells it what happens, and asks it for permission."""

    def __init__(self, agent: v2.RemoteAgent, *, screen: Screen) -> None:
        super().__init__(agent)
        self._screen = screen
        self._session_id = ""
        self._work: asyncio.Future[str] | None = None

    async def open(self) -> None:
        """Open a session."""
        self._session_id = (await self.agent.session_new(v2.NewSessionRequest(cwd=os.getcwd()))).session_id

    async def prompt(self, line: str) -> str:
        """Send a line as a prompt; returns why the work on it has ended."""
        self._work = asyncio.get_running_loop().create_future()
        try:
            await self.agent.session_prompt(v2.PromptRequest(session_id=self._session_id, prompt=[text(line)]))
            return await self._work
        finally:
            self._work.cancel()
            self._work = None

    async def cancel(self) -> None:
        """Ask the agent to stop its work."""
        await self.agent.session_cancel(v2.CancelSessionNotification(session_id=self._session_id))

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Wait no longer: nothing more comes."""
        if self._work is not None and not self._work.done():
            self._work.set_exception(reason)

    async def session_update(self, params: v2.UpdateSessionNotification) -> None:
        """Print what happens; that the session is idle ends the wait for the work on a prompt."""
        match params.update:
            case v2.SessionUpdateAgentMessageChunk(content=content) | v2.SessionUpdateAgentThoughtChunk(
                content=content
            ):
                self._screen.say(_text(content))
            case v2.SessionUpdateAgentMessage(content=list(blocks)):
                self._screen.say("".join(map(_text, blocks)))
            case v2.SessionUpdateToolCallUpdate(title=title, status=status):
                self._screen.note(title, status)
            case v2.SessionUpdateUserMessage() | v2.SessionUpdateStateUpdateRunning():
                pass  # that is no news
            case v2.SessionUpdateStateUpdateRequiresAction():
                pass  # the question comes by itself
            case other if isinstance(other, v2.SessionUpdateStateUpdateIdle):
                if self._work is not None and not self._work.done():
                    self._work.set_result(_reason(other))
            case other:
                self._screen.note(f"({other.session_update})")

    async def session_request_permission(self, params: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        """Ask the user; no answer allows nothing."""
        options = {option.option_id: option.name for option in params.options}
        chosen = await self._screen.choose(params.title, options)
        return permission_cancelled() if chosen is None else select_permission_option(chosen)


def _reason(idle: v2.SessionUpdateStateUpdateIdle) -> str:
    """Why the work has ended."""
    match idle:
        case v2.SessionUpdateStateUpdateIdleNone():
            return "done"
        case v2.SessionUpdateStateUpdateIdleError(error=v2.Error(message=message)):
            return f"error: {message}"
        case _:
            return idle.stop_reason


def _text(content: v2.ContentBlock) -> str:
    return content.text if isinstance(content, v2.ContentBlockText) else f"({content.type})"
