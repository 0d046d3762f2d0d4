"""The base class of an agent whose prompts are turns."""

from __future__ import annotations

from ..agent import Agent, RemoteClient
from ..known import StopReason
from ..types import CancelNotification, PromptRequest, PromptResponse
from .turns import Turns

__all__ = ["TurnAgent"]


class TurnAgent(Agent):
    """An agent that overrides `work`, and leaves prompts and their cancellation to `Turns`.

    To refuse prompts, for instance for unknown sessions, override `session_prompt` and call it with `super()`. An agent
    that supports `session/close` calls `self.turns.close` there.
    """

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self.turns = Turns()

    async def work(self, params: PromptRequest) -> StopReason | PromptResponse | None:
        """Work on a prompt; returns the stop reason (None for `end_turn`) or the response. May be cancelled."""
        raise NotImplementedError(f"{type(self).__name__} does not override `work`, which works on the prompts")

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Run `work` after the earlier prompts of the session."""
        return await self.turns.run(params, self.work(params))

    async def session_cancel(self, params: CancelNotification) -> None:
        """Cancel the prompts of the session."""
        self.turns.cancel(params.session_id)
