"""A chat model for LangChain and LangGraph that follows the script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from script import Call, answer


class ScriptedModel(BaseChatModel):
    """Streams the answers of the script."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("it streams")

    async def _astream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> AsyncIterator[Any]:
        prompts = [message.text for message in messages if message.type == "human"]
        last = max(at for at, message in enumerate(messages) if message.type == "human")
        found = answer(prompts, [message.text for message in messages[last:] if message.type == "tool"])
        for thought in found.thoughts:
            yield _chunk(content=[{"type": "reasoning", "reasoning": thought}])
        for text in found.text:
            yield _chunk(content=text)
        for at, call in enumerate(found.calls):
            piece = {"name": call.tool, "args": json.dumps(_arguments(call)), "id": call.id, "index": at}
            yield _chunk(content="", tool_call_chunks=[piece])


def _chunk(**given: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(**given))


def _arguments(call: Call) -> dict[str, Any]:
    """LangChain has a tool of its own for what is to be done, with other arguments."""
    if call.tool != "write_todos":
        return call.arguments
    steps, done = call.arguments["steps"], call.arguments["done"]
    states = ["completed" if at < done else "pending" for at in range(len(steps))]
    return {"todos": [{"content": step, "status": state} for step, state in zip(steps, states, strict=True)]}


MODEL = ScriptedModel()
