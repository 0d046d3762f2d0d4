"""An agent that corrects the spelling of a file, with the official SDK."""

import asyncio
from typing import Any
from uuid import uuid4

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    plan_entry,
    run_agent,
    tool_diff_content,
    update_agent_message_text,
    update_plan,
)
from acp.contrib.permissions import default_permission_options
from acp.contrib.tool_calls import ToolCallTracker
from acp.interfaces import Client
from acp.schema import Implementation
from model import NEW, OLD, PATH, reply, save


class Corrector(Agent):
    def __init__(self) -> None:
        self.turns: dict[str, asyncio.Task[None]] = {}

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        info = Implementation(name="corrector", version="1.0.0")
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info)

    async def new_session(self, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        turn = self.turns[session_id] = asyncio.create_task(self.work(session_id, prompt))
        try:
            await turn
        except asyncio.CancelledError:
            return PromptResponse(stop_reason="cancelled")
        finally:
            del self.turns[session_id]
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        if turn := self.turns.get(session_id):
            turn.cancel()

    async def work(self, session_id: str, prompt: list[Any]) -> None:
        send = self.client.session_update
        await send(session_id, update_plan([plan_entry("Correct the notes", status="in_progress")]))
        async for word in reply(prompt):
            await send(session_id, update_agent_message_text(word))
        calls, status = ToolCallTracker(), "failed"
        change = tool_diff_content(PATH, NEW, OLD)
        await send(session_id, calls.start("edit", title="Edit notes.txt", kind="edit", content=[change]))
        try:
            call, options = calls.tool_call_model("edit"), list(default_permission_options())
            answer = await self.client.request_permission(session_id, call, options)
            if answer.outcome.outcome == "selected" and answer.outcome.option_id != "reject":
                save(PATH, NEW)
                status = "completed"
        finally:
            await send(session_id, calls.progress("edit", status=status))
        await send(session_id, update_plan([plan_entry("Correct the notes", status="completed")]))


if __name__ == "__main__":
    asyncio.run(run_agent(Corrector()))
