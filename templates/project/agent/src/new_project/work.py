"""What the agent does: it sends back what it receives. It is the same in each version of the protocol.

Put your own work into `work`. It shows its progress through `Output`: extend that, and the class `MessageOutput` beside
the agent, which makes messages of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from .tools import SessionTools

PAUSE = 0.05
"""Seconds between two words, in the place of work."""


class Edit(Protocol):
    """A running edit of a file; the helper `tool_call` makes one."""

    def permission(self) -> Awaitable[object]:
        """Ask the user whether to go on; the answer is true if so."""
        ...


class Output(Protocol):
    """What the user sees of the work on a prompt."""

    async def say(self, content: Any) -> None:
        """Add to the answer: a text, or something else that was in the prompt."""
        ...

    def edit(self, title: str) -> AbstractAsyncContextManager[Edit]:
        """Show an edit: the block is the work on it."""
        ...


async def work(prompt: Sequence[Any], tools: SessionTools, output: Output) -> None:
    """Stream the prompt back: its texts word by word, and everything else as it is.

    If the word "edit" is in it, first pretend to edit a file; if "tools" is, show those of the session's MCP servers.
    It may be cancelled at any `await`.
    """
    if _has("edit", prompt):
        async with output.edit("Edit notes.txt") as edit:
            if await edit.permission():
                pass  # edit the file here
    if _has("tools", prompt):
        await output.say(f"{await tools.describe()}\n")
    for part in prompt:
        for piece in re.findall(r"\S+\s*|\s+", part) if isinstance(part, str) else [part]:
            await output.say(piece)
            await asyncio.sleep(PAUSE)


def _has(word: str, prompt: Sequence[Any]) -> bool:
    return any(isinstance(part, str) and re.search(rf"\b{word}\b", part) for part in prompt)
