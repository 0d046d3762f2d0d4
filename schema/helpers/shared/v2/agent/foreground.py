"""Questions that the work of a session waits for, and the state that the session has meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from ..agent import RemoteClient
from ..dispatch import ConnectionClosed
from .states import requires_action, running

__all__: list[str] = []

T = TypeVar("T")

_open: Final[MutableMapping[RemoteClient, list[str]]] = WeakKeyDictionary()
"""The session ids of the questions in the foreground that are not answered yet, one for each."""


async def ask_in_foreground(client: RemoteClient, session_id: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and wait for the answer in the state `requires_action`. It is `running` after the last of the questions.

    A question that is cancelled leaves the state: `idle` comes next.
    """
    questions = _open.setdefault(client, [])
    questions.append(session_id)
    is_cancelled = False
    try:
        await client.session_update(requires_action(session_id))
        return await ask()
    except (asyncio.CancelledError, GeneratorExit):
        is_cancelled = True
        raise
    finally:
        questions.remove(session_id)
        if session_id not in questions and not is_cancelled:
            with contextlib.suppress(ConnectionClosed):  # the request has raised it already
                await client.session_update(running(session_id))
