"""Questions that the work of a session waits for. Sessions have states in protocol 2 alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..agent import RemoteClient

__all__: list[str] = []

T = TypeVar("T")


async def ask_in_foreground(client: RemoteClient, session_id: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and wait for the answer."""
    return await ask()
