"""What the agent does: it sends back what it receives. It is the same in both versions of the protocol.

Put your own work into `work`. It shows its progress through `Output`: extend that, and the modules `agent_v1` and
`agent_v2`, which make messages of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from .tools import SessionTools

PAUSE = 0.05
"""Seconds between two words, in the place of work."""


class Edit(Protocol):
    """A running edit of a file; the helper `tool_call` of each version makes one."""

    async def permission(self) -> object:
        """Ask the user whether to go on; the answer is true if so."""
        ...


class Output(Protocol):
    """What the user sees of the work on a prompt."""

    async def say(self, text: str) -> None:
        """Add `text` to the answer."""
        ...

    def edit(self, title: str) -> AbstractAsyncContextManager[Edit]:
        """Show an edit: the block is the work on it."""
        ...


async def work(prompt: Sequence[str], tools: SessionTools, output: Output) -> None:
    """Stream the prompt back, word by word.

    If the word "edit" is in it, first pretend to edit a file; if "tools" is, show those of the session's MCP servers.
    It may be cancelled at any `await`.
    """
    if _has("edit", prompt):
        async with output.edit("Edit notes.txt") as edit:
            if await edit.permission():
                pass  # edit the file here
    if _has("tools", prompt):
        await output.say(f"{await tools.describe()}\n")
    for text in prompt:
        for word in re.findall(r"\S+\s*|\s+", text):
            await output.say(word)
            await asyncio.sleep(PAUSE)


def _has(word: str, prompt: Sequence[str]) -> bool:
    return any(re.search(rf"\b{word}\b", text) for text in prompt)
