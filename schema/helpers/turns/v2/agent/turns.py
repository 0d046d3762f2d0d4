"""Turns: run the work for prompts in the background, and report the state of the session whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import ExitStack, suppress
from typing import Any, Final, TypeAlias
from uuid import uuid4

from ..agent import RemoteClient
from ..dispatch import ConnectionClosed
from ..errors import InternalError, RequestCancelledError, RequestError
from ..types import (
    Error,
    PromptRequest,
    PromptResponse,
    SessionUpdate,
    SessionUpdateStateUpdateIdle,
    SessionUpdateStateUpdateIdleCancelled,
    SessionUpdateStateUpdateIdleError,
    SessionUpdateUserMessage,
)
from .memory import memory_of
from .notification import session_update
from .states import idle_update, running
from .turn_queue import QueuedTurn, TurnQueue, check_work, logger

__all__ = ["Turns"]

Reason: TypeAlias = str
"""A stop reason: of the protocol, or your own, which begins with an underscore."""
_MAX_BYTES: Final = 2**27
"""The most memory of the prompts whose turns run: they are answered, so the connection does not count them."""
_TURN_BYTES: Final = 2**13
"""The memory of a turn beside its prompt."""
Work: TypeAlias = Coroutine[Any, Any, Reason | SessionUpdateStateUpdateIdle | None]


class Turns(TurnQueue):
    """Runs the turns of an agent; one object for all sessions of a connection.

        def __init__(self, client: RemoteClient) -> None:
            super().__init__(client)
            self._turns = Turns(client)

        async def session_prompt(self, params: PromptRequest) -> PromptResponse:
            return await self._turns.run(params, self._work(params))

        async def session_cancel(self, params: CancelSessionNotification) -> None:
            self._turns.cancel(params.session_id)

        async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
            await self._turns.close(params.session_id)
            return CloseSessionResponse()

        async def connection_closed(self, reason: ConnectionClosed) -> None:
            await self._turns.close_all()

    Call `run` before the first `await` of the handler, and load a session inside `work`: a `session/cancel` that comes
    earlier finds no turn, and has no effect. `connection_closed` is required: without it, turns run on after the
    connection has ended.

    In a session, one turn runs at a time: a prompt waits for those before it. `session/cancel` cancels the prompts that
    came before it. Those that still wait fail with -32800, the running turn ends with `cancelled`.
    Source: "Prompt Lifecycle" of protocol 2.
    """

    def __init__(self, client: RemoteClient) -> None:
        super().__init__()
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._bytes = 0

    async def run(self, params: PromptRequest, work: Work) -> PromptResponse:
        """Start a turn when the earlier prompts of the session have ended; returns the response with the message id.

        The message of the user is sent first, and what prevents that is raised: then there is no turn. The turn runs in
        the background: it sends `running`, runs `work`, and sends `idle`.

        `work` returns the stop reason (None for `end_turn`) or the update `idle`. If the turn is cancelled, `work` is
        cancelled, or never started, and the reason is `cancelled`, even if `work` fails. Otherwise its exception makes
        the reason `error`: the client gets a `RequestError`, and no details of other exceptions, which are logged.

        Raises `RequestCancelledError` if the prompt was cancelled while it waited, `InternalError` if the prompts of
        all turns that run would take more than 128 MiB of memory, and `TypeError` for what is no coroutine.
        """
        check_work(work)
        with ExitStack() as cleanup:
            cleanup.callback(work.close)  # if it was never started
            turn = await self._enter(params.session_id)
            cleanup.callback(self._leave, turn)
            if turn.is_cancelled:
                raise RequestCancelledError
            cleanup.callback(self._release, self._take_room(params))
            message = SessionUpdateUserMessage(message_id=uuid4().hex, content=params.prompt)
            await self.send(turn.session_id, message)
            task = asyncio.Task(self._take(turn, work))
            self._tasks.add(task)
            cleanup.callback(self._tasks.discard, task)
            at_end = cleanup.pop_all()
            task.add_done_callback(lambda _: at_end.close())  # also if the task is cancelled before it has started
        return PromptResponse(message_id=message.message_id)

    def _take_room(self, params: PromptRequest) -> int:
        size = _TURN_BYTES + memory_of(params)
        if self._bytes and self._bytes + size > _MAX_BYTES:
            raise InternalError(f"the prompts of all turns may take {_MAX_BYTES} bytes of memory")
        self._bytes += size
        return size

    def _release(self, size: int) -> None:
        self._bytes -= size

    async def close_all(self) -> None:
        """Cancel all turns, and wait until they have ended. Call it in `connection_closed`."""
        for task in self._tasks:
            task.cancel()  # it may wait for a client that does not read
        await super().close_all()

    async def send(self, session_id: str, update: SessionUpdate) -> None:
        """Send an update. Override it to set `background` in state updates."""
        await self._client.session_update(session_update(session_id, update))

    async def _take(self, turn: QueuedTurn, work: Work) -> None:
        end = await self._outcome(turn, work)
        with suppress(ConnectionClosed):
            try:
                await self.send(turn.session_id, end)
            except ConnectionClosed:
                raise
            except Exception as raised:
                logger.exception("the state `idle` cannot be sent as it is")
                error = raised if isinstance(raised, RequestError) else InternalError()
                await self.send(turn.session_id, _failed(error))

    async def _outcome(self, turn: QueuedTurn, work: Work) -> SessionUpdateStateUpdateIdle:
        error: RequestError = InternalError()
        try:
            await self.send(turn.session_id, running(turn.session_id).update)
            end = await turn.run(work)
            if turn.is_cancelled and not isinstance(end, SessionUpdateStateUpdateIdleCancelled):
                end = "cancelled"
            if end is None:
                end = "end_turn"
            return idle_update(end) if isinstance(end, str) else end
        except RequestError as raised:
            error = raised
        except ConnectionClosed:
            pass  # this connection, or another one that the work uses
        except Exception:
            logger.exception("the work on a prompt failed")
        return _failed(error)


def _failed(error: RequestError) -> SessionUpdateStateUpdateIdleError:
    return SessionUpdateStateUpdateIdleError(error=Error(code=error.code, message=error.message, data=error.data))
