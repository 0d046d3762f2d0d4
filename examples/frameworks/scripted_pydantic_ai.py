"""A model for Pydantic AI that follows the script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from script import answer


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    parts = [part for message in messages for part in message.parts]
    prompts = [str(part.content) for part in parts if part.part_kind == "user-prompt"]
    last = max(at for at, part in enumerate(parts) if part.part_kind == "user-prompt")
    found = answer(prompts, [str(part.content) for part in parts[last:] if part.part_kind == "tool-return"])
    for thought in found.thoughts:
        yield {0: DeltaThinkingPart(content=thought)}
    for text in found.text:
        yield text
    for at, call in enumerate(found.calls, 1):
        yield {at: DeltaToolCall(call.tool, json.dumps(call.arguments), tool_call_id=call.id)}


MODEL = FunctionModel(stream_function=_stream)
