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


class Tool(Protocol):
    """A tool of an MCP server. It is a function, too: a model calls it with `await tool(**arguments)`."""

    @property
    def name(self) -> str: ...

    @property
    def server(self) -> str: ...


class Tools(Protocol):
    """The tools of a session; the helper `SessionTools` has them."""

    @property
    def errors(self) -> Sequence[tuple[str, str]]:
        """The servers that cannot be used, and why."""
        ...

    async def list(self) -> Sequence[Tool]:
        """The tools of all others. Waits until each was tried."""
        ...


async def work(prompt: Sequence[Any], tools: Tools, output: Output) -> None:
    """Stream the prompt back: its texts word by word, and everything else as it is.

    If the word "edit" is in it, first pretend to edit a file; if "tools" is, show those of the session's MCP servers.
    It may be cancelled at any `await`.
    """
    if _has("edit", prompt):
        async with output.edit("Edit notes.txt") as edit:
            if await edit.permission():
                pass  # edit the file here
    if _has("tools", prompt):
        await output.say(f"{await _described(tools)}\n")
    for part in prompt:
        for piece in re.findall(r"\S+\s*|\s+", part) if isinstance(part, str) else [part]:
            await output.say(piece)
            await asyncio.sleep(PAUSE)


async def _described(tools: Tools) -> str:
    """A line for each server: its tools, or why it has none."""
    found: dict[str, list[str]] = {}
    for tool in await tools.list():
        found.setdefault(tool.server, []).append(tool.name)
    lines = [f"{server}: {', '.join(names)}" for server, names in found.items()]
    lines += [f"{server}: {reason}" for server, reason in tools.errors]
    return "\n".join(lines or ["This session has no MCP servers with tools."])


def _has(word: str, prompt: Sequence[Any]) -> bool:
    return any(isinstance(part, str) and re.search(rf"\b{word}\b", part) for part in prompt)
