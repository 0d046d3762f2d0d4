"""What the agent does: it sends back what it is told. It is the same in all versions of the protocol.

Put your own work into `work`. What it tells and asks the user goes through `Turn`: extend that, and the modules
`agent_v1` and `agent_v2`, which translate it to messages.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from uuid import uuid4

PAUSE = 0.05
"""Seconds between two words, as if they took some thought."""

EditEnd: TypeAlias = Literal["completed", "failed", "cancelled"]
TurnEnd: TypeAlias = Literal["end_turn", "cancelled", "error"]


@dataclass(frozen=True)
class Edit:
    """The edit of a file, which the user sees."""

    id: str
    title: str


class Turn(ABC):
    """The work on one prompt, as the user sees it."""

    async def begin(self) -> None:
        """Tell that the work begins."""

    async def end(self, reason: TurnEnd) -> None:
        """Tell why the work has ended."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """Add `text` to the answer."""

    @abstractmethod
    async def begin_edit(self, edit: Edit) -> None:
        """Show an edit."""

    @abstractmethod
    async def end_edit(self, edit: Edit, reason: EditEnd) -> None:
        """Tell what has become of an edit."""

    @abstractmethod
    async def allows(self, edit: Edit) -> bool:
        """Ask the user whether to go on with an edit."""


async def work(prompt: Sequence[str], turn: Turn) -> None:
    """Stream the prompt back, word by word. Where the word "edit" is in it, ask first for permission to edit.

    The task may be cancelled at any `await`.
    """
    if any(re.search(r"\bedit\b", text) for text in prompt):
        await _edit(turn)
    for text in prompt:
        for word in re.findall(r"\S+\s*|\s+", text):
            await turn.say(word)
            await asyncio.sleep(PAUSE)


async def _edit(turn: Turn) -> None:
    """Pretend to edit a file, if the user allows it."""
    edit = Edit(id=uuid4().hex, title="Edit notes.txt")
    await turn.begin_edit(edit)
    reason: EditEnd = "cancelled"
    try:
        # here the file would be edited
        reason = "completed" if await turn.allows(edit) else "failed"
    finally:
        await turn.end_edit(edit, reason)
