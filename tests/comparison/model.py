"""What both agents use: a model that streams a reply to a prompt, and the change that it wants to make."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

PATH, OLD, NEW = "/home/me/notes.txt", "colour\n", "color\n"


async def reply(prompt: Sequence[object]) -> AsyncIterator[str]:
    """The words of the reply. If the prompt asks to wait, they stop after the first one."""
    for word in ("I ", "fix ", "the ", "spelling."):
        yield word
        if any("wait" in getattr(block, "text", "") for block in prompt):
            await asyncio.Event().wait()


def save(path: str, text: str) -> None:
    """Stands for writing the file."""
    print(f"saved {path}: {text!r}", file=sys.stderr)
