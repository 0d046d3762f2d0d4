"""The scripted model of the OpenAI Agents SDK, with the answers of the script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseTextDeltaEvent,
)
from script import answer


async def _stream(call: ModelCall) -> AsyncIterator[Any]:
    items: list[dict[str, Any]] = (
        call.input if isinstance(call.input, list) else [{"role": "user", "content": call.input}]
    )
    prompts = [str(item["content"]) for item in items if item.get("role") == "user"]
    last = max(at for at, item in enumerate(items) if item.get("role") == "user")
    results = [str(item["output"]) for item in items[last:] if item.get("type") == "function_call_output"]
    found = answer(prompts, results)
    place: dict[str, Any] = {"item_id": "m", "output_index": 0, "sequence_number": 0}
    for thought in found.thoughts:
        yield ResponseReasoningSummaryTextDeltaEvent(
            type="response.reasoning_summary_text.delta", delta=thought, summary_index=0, **place
        )
    for text in found.text:
        yield ResponseTextDeltaEvent(
            type="response.output_text.delta", delta=text, content_index=0, logprobs=[], **place
        )
    output = [function_call(each.tool, each.arguments, call_id=each.id) for each in found.calls]
    response = Response.model_construct(
        id="r",
        output=output or [assistant_message("".join(found.text))],
        object="response",
        created_at=0,
        model="script",
    )
    yield ResponseCompletedEvent.model_construct(type="response.completed", response=response, sequence_number=0)


class _Script(ScriptedModel):
    """A script without an end."""

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        self.enqueue(ModelStep.stream(_stream))
        return super().stream_response(*args, **options)


set_tracing_disabled(True)  # it goes to OpenAI
MODEL = _Script()
