"""Turns: run the work for prompts, so that they can be cancelled in any order of the messages."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import closing
from dataclasses import replace
from typing import Any

from ..known import StopReason
from ..types import PromptRequest, PromptResponse
from .turn_queue import TurnQueue, check_work

__all__ = ["Turns"]


class Turns(TurnQueue):
    """Runs the turns of an agent; one object for all sessions of a connection.

        def __init__(self, client: RemoteClient) -> None:
            super().__init__(client)
            self._turns = Turns()

        async def session_prompt(self, params: PromptRequest) -> PromptResponse:
            return await self._turns.run(params, self._work(params))

        async def session_cancel(self, params: CancelNotification) -> None:
            self._turns.cancel(params.session_id)

        async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
            await self._turns.close(params.session_id)
            return CloseSessionResponse()

    Call `run` before the first `await` of the handler, and load a session inside `work`: a `session/cancel` that comes
    earlier finds no turn, and has no effect.

    In a session, one turn runs at a time: a prompt waits for those before it. `session/cancel` cancels the prompts that
    came before it, running or waiting; they are answered with the stop reason `cancelled`. The runtime answers
    `$/cancel_request`, and cancels all turns when the connection ends, without a call of `close_all`.
    Source: "Prompt Turn" of protocol 1.
    """

    ANSWERED = frozenset({"session/request_permission"})

    async def run(
        self, params: PromptRequest, work: Coroutine[Any, Any, StopReason | PromptResponse | None]
    ) -> PromptResponse:
        """Run `work` when the earlier prompts of the session have ended; returns the response.

        `work` returns the stop reason (None for `end_turn`) or the response. If the turn is cancelled, `work` is
        cancelled, or never started, and the stop reason is `cancelled`, even if `work` fails. Otherwise its exception
        is raised here; a `RuntimeError` if it has cancelled itself. Raises `TypeError` for what is no coroutine.
        """
        check_work(work)
        with closing(work):  # if it was never started
            turn = await self._enter(params.session_id)
            try:
                end = await turn.run(work)
            finally:
                self._leave(turn)
        response = end if isinstance(end, PromptResponse) else PromptResponse(stop_reason=end or "end_turn")
        return replace(response, stop_reason="cancelled") if turn.is_cancelled else response
