"""A model with the answers of the script. Workflows have none of their own: any client of a model will do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from script import answer


async def stream(messages: list[dict[str, Any]]) -> AsyncIterator[tuple[str, Any]]:
    """The pieces of the next response: ("thought", text), ("text", text), and ("call", {id, tool, arguments})."""
    prompts = [each["text"] for each in messages if each["role"] == "user"]
    last = max(at for at, each in enumerate(messages) if each["role"] == "user")
    found = answer(prompts, [each["text"] for each in messages[last:] if each["role"] == "tool"])
    for thought in found.thoughts:
        yield "thought", thought
    for text in found.text:
        yield "text", text
    for call in found.calls:
        yield "call", vars(call)
