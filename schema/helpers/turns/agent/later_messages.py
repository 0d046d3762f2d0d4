"""What an agent sends after a response."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final
from weakref import WeakKeyDictionary

from ..decision import called_by, explains
from ..in_flight import InFlight
from .turns import Turns

__all__ = ["after_response", "after_turn"]

_logger: Final = logging.getLogger("acp")
_waiting: Final = WeakKeyDictionary[asyncio.Task[Any], deque[Coroutine[Any, Any, object]]]()
"""What each task that responds to a request leaves for later."""
_running: Final = set[asyncio.Task[None]]()
"""The event loop itself keeps no strong reference to them."""


def after_response(work: Coroutine[Any, Any, object]) -> None:
    """Run `work`, such as `client.session_update(...)`, after the response to the request that is being handled.

        async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
            response = await super().session_new(params)
            after_response(self.client.session_update(commands(response.session_id, COMMANDS)))
            return response

    What is given by several calls runs in this order, one after the other, also after a response that is an error. What
    it raises is logged; nothing is, and the rest is dropped, if the connection has ended. Raises `TypeError` for what
    is no coroutine, and `RuntimeError` where no response follows: in the handler of a notification, and in a task that
    a handler has started, as that of a turn.
    """
    _check(work)
    task = asyncio.current_task()
    if task is None or not InFlight.responds(task):
        work.close()
        raise RuntimeError(
            f"after_response{called_by()} is not called in the handler of a request: no response follows here; "
            "call it in the handler itself, or after_turn in a turn"
        )
    _add(task, work)


@explains
def after_turn(turns: Turns, session_id: str, work: Coroutine[Any, Any, object]) -> None:
    """Run `work` after the end of the turn that runs in a session: the response to its prompt, or `idle` in protocol 2.

    Any task may call it. All else is as with `after_response`. Raises `RuntimeError` if no turn runs.
    """
    _check(work)
    try:
        task = turns.running(session_id).reporter
    except RuntimeError:
        work.close()
        raise
    if task is not None:
        _add(task, work)


def _check(work: object) -> None:
    if not isinstance(work, Coroutine):
        raise TypeError(f"work must be a coroutine, found {type(work).__name__}: call an `async def`")


def _add(task: asyncio.Task[Any], work: Coroutine[Any, Any, object]) -> None:
    if (waiting := _waiting.get(task)) is None:
        waiting = _waiting[task] = deque()
        task.add_done_callback(_start)
    waiting.append(work)


def _start(done: asyncio.Task[Any]) -> None:
    task = asyncio.Task(_run(_waiting.pop(done)))
    _running.add(task)
    task.add_done_callback(_running.discard)


async def _run(waiting: deque[Coroutine[Any, Any, object]]) -> None:
    try:
        while waiting:
            await _tried(waiting.popleft())
    except ConnectionError:
        pass  # nobody is there to be told
    finally:
        for work in waiting:
            work.close()


async def _tried(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except ConnectionError:
        raise
    except Exception:
        _logger.exception("what was to be sent after a response has failed")
