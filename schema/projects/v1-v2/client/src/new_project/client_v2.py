"""The client in version 2 of the protocol: a prompt is answered at once, and updates tell how the work on it goes."""

from __future__ import annotations

import asyncio
import os

from .acp import ConnectionClosed, v2
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

    async def prompt(self, text: str) -> str:
        """Send a prompt; returns why the work on it has ended."""
        self._work = asyncio.get_running_loop().create_future()
        try:
            prompt: list[v2.ContentBlock] = [v2.ContentBlockText(text=text)]
            await self.agent.session_prompt(v2.PromptRequest(session_id=self._session_id, prompt=prompt))
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
            case other:
                reason = _reason(other)
                if reason is None:
                    self._screen.note(f"({other.session_update})")
                elif self._work is not None and not self._work.done():
                    self._work.set_result(reason)

    async def session_request_permission(self, params: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        """Ask the user; no answer allows nothing."""
        options = {option.option_id: option.name for option in params.options}
        chosen = await self._screen.choose(params.title, options)
        if chosen is None:
            return v2.RequestPermissionResponse(outcome=v2.RequestPermissionOutcomeCancelled())
        return v2.RequestPermissionResponse(outcome=v2.RequestPermissionOutcomeSelected(option_id=chosen))


def _reason(update: v2.SessionUpdate) -> str | None:
    """Why the work has ended; None where `update` does not tell that it has."""
    match update:
        case v2.SessionUpdateStateUpdateIdleNone():
            return "done"
        case v2.SessionUpdateStateUpdateIdleError(error=error):
            return f"error: {error.message}" if isinstance(error, v2.Error) else "error"
        case (
            v2.SessionUpdateStateUpdateIdleEndTurn(stop_reason=reason)
            | v2.SessionUpdateStateUpdateIdleMaxTokens(stop_reason=reason)
            | v2.SessionUpdateStateUpdateIdleMaxTurnRequests(stop_reason=reason)
            | v2.SessionUpdateStateUpdateIdleRefusal(stop_reason=reason)
            | v2.SessionUpdateStateUpdateIdleCancelled(stop_reason=reason)
            | v2.SessionUpdateStateUpdateIdleOther(stop_reason=reason)
        ):
            return reason
        case _:
            return None


def _text(content: v2.ContentBlock) -> str:
    return content.text if isinstance(content, v2.ContentBlockText) else f"({content.type})"
