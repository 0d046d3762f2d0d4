"""What an agent replays when a session is opened again, and when it has replayed all."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

__all__: list[str] = []

REPLAYED: Final = frozenset(
    {
        *("user_message", "user_message_chunk", "agent_message", "agent_message_chunk"),
        *("agent_thought", "agent_thought_chunk", "tool_call", "tool_call_update", "tool_call_content_chunk"),
        *("plan", "terminal_update", "terminal_output_chunk", "compaction_update", "compaction_summary_chunk"),
    }
)
"""The updates of a conversation. All others are about the session, such as its options, and replace what was there."""
_MOST_SECONDS: Final = 60.0


class Quiet:
    """Waits until a session is quiet: some agents answer before they have replayed the conversation.

    What an agent says for a minute without a pause is no replay any more.
    """

    def __init__(self) -> None:
        self._heard_at = 0.0
        self._error: Exception | None = None
        self._is_lost: asyncio.Event | None = None

    def heard(self) -> None:
        """Note that a part of a conversation has come."""
        if self._is_lost is not None:
            self._heard_at = asyncio.get_running_loop().time()

    def lose(self, error: Exception) -> None:
        """End the wait by an error."""
        if self._is_lost is not None:
            self._error = error
            self._is_lost.set()

    async def wait(self, seconds: float) -> None:
        """Wait until nothing has come for so long. Raises the error of `lose`."""
        loop = asyncio.get_running_loop()
        self._is_lost = is_lost = asyncio.Event()
        self._heard_at, most = loop.time(), loop.time() + _MOST_SECONDS
        try:
            while self._error is None and (rest := min(self._heard_at + seconds, most) - loop.time()) > 0:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(is_lost.wait(), rest)
            if self._error is not None:
                raise self._error
        finally:
            self._is_lost = self._error = None
