"""The base class of an agent whose prompts are turns."""

from __future__ import annotations

from ..agent import Agent, RemoteClient
from ..dispatch import ConnectionClosed
from ..types import CancelSessionNotification, PromptRequest, PromptResponse, SessionUpdateStateUpdateIdle
from .turns import Reason, Turns

__all__ = ["TurnAgent"]


class TurnAgent(Agent):
    """An agent that overrides `work`, and leaves prompts, their cancellation and the state of sessions to `Turns`.

    To refuse prompts, for instance for unknown sessions, override `session_prompt` and call it with `super()`. Your
    `session_close` calls `self.turns.close`.
    """

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self.turns = Turns(client)

    async def work(self, params: PromptRequest) -> Reason | SessionUpdateStateUpdateIdle | None:
        """Work on a prompt; returns the stop reason (None for `end_turn`) or the update `idle`. May be cancelled."""
        raise NotImplementedError(f"{type(self).__name__} does not override `work`, which works on the prompts")

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Start `work` in the background after the earlier prompts of the session."""
        return await self.turns.run(params, self.work(params))

    async def session_cancel(self, params: CancelSessionNotification) -> None:
        """Cancel the prompts of the session."""
        self.turns.cancel(params.session_id)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Cancel all turns. Call it with `super()` if you override it."""
        await self.turns.close_all()
