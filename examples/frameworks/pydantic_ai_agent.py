"""An agent of Pydantic AI. README.md beside it says how its package is built, and what to install."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import acp_frameworks as acp
import pydantic_ai as ai
from acp_frameworks import helpers
from pydantic_ai.toolsets import CombinedToolset, ToolsetTool
from scripted_pydantic_ai import MODEL  # or the name of a real one, such as "openai:gpt-…"


@dataclass
class Turn:
    """What tools need of the turn that runs."""

    session: helpers.ActiveSession
    calls: helpers.ToolCalls
    client: acp.RemoteClient


# --- Tools ------------------------------------------------------------------------------------------------------------

agent = ai.Agent(MODEL, deps_type=Turn)
tools = ai.FunctionToolset[Turn]()


@tools.tool
async def read_file(ctx: ai.RunContext[Turn], path: str) -> str:
    """Read a file of the project."""
    return Path(ctx.deps.session.cwd, path).read_text()


@tools.tool
async def write_file(ctx: ai.RunContext[Turn], path: str, text: str) -> str:
    """Write a file of the project."""
    Path(ctx.deps.session.cwd, path).write_text(text)
    return f"{path} is written"


@tools.tool
async def count(ctx: ai.RunContext[Turn], to: int) -> str:
    """Count, slowly."""
    for number in range(1, to + 1):
        await asyncio.sleep(0.01)
        await ctx.deps.calls[ctx.tool_call_id or ""].update(content=[f"{number} of {to}"])
    return f"counted to {to}"


@tools.tool
async def write_todos(ctx: ai.RunContext[Turn], steps: list[str], done: int) -> str:
    """Show what is to be done, and how much of it is done."""
    entries = [helpers.plan_entry(each, status="completed") for each in steps[:done]]
    await ctx.deps.client.session_update(helpers.plan(ctx.deps.session.id, [*entries, *steps[done:]]))
    return "shown"


class ReportedTools(ai.WrapperToolset[Turn]):
    """Shows the calls of tools to the user, and asks before a file is written in the mode "ask"."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: ai.RunContext[Turn], tool: ToolsetTool[Turn]
    ) -> Any:
        if name == "write_todos":  # the user sees the plan
            return await super().call_tool(name, tool_args, ctx, tool)
        call = await self.report(name, tool_args, ctx)
        session = ctx.deps.session
        memory = helpers.PermissionMemory(session.data["permissions"], folder=session.cwd)
        if call.reported.status == "pending" and not await call.permission(memory=memory):
            await call.end()
            raise ai.ToolFailed("the user has refused")
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            await call.end("failed", raw_output=str(error))
            raise ai.ToolFailed(str(error)) from error
        shown = list(call.reported.content or ()) if name == "write_file" else [str(result)]
        await call.end(content=shown, raw_output=result)
        return result

    async def report(self, name: str, given: dict[str, Any], ctx: ai.RunContext[Turn]) -> helpers.RunningToolCall:
        calls, key = ctx.deps.calls, ctx.tool_call_id or ""
        if name != "write_file":
            kind: Any = "read" if name == "read_file" else "other"
            return await calls.start(key, name, kind=kind, name=name, raw_input=given)
        path = Path(ctx.deps.session.cwd, given["path"])
        old = path.read_text() if path.exists() else None
        status: Any = "pending" if ctx.deps.session.data["mode"] == "ask" else "in_progress"
        return await calls.start_edit(key, str(path), old=old, new=given["text"], status=status, name=name)


# --- The agent --------------------------------------------------------------------------------------------------------


class PydanticAgent(helpers.StoredAgent):
    """Its sessions have the history of the model, the mode, and what the user has allowed for good."""

    store = helpers.SqliteStore(sys.argv[1] if len(sys.argv) > 1 else "sessions.db")

    def __init__(self, client: acp.RemoteClient) -> None:
        super().__init__(client)
        self.servers: dict[str, helpers.SessionTools] = {}

    async def initialize(self, params: acp.InitializeRequest) -> acp.InitializeResponse:
        return acp.advertise(self, acp.InitializeResponse(protocol_version=1), mcp_capabilities={"http": True})

    async def on_open(self, session: helpers.ActiveSession, params: helpers.OpenSessionRequest) -> None:
        session.data = session.data or {"history": [], "permissions": [], "mode": "ask"}
        self.servers[session.id] = helpers.SessionTools(helpers.mcp_parameters(params.mcp_servers, cwd=session.cwd))

    async def on_close(self, session_id: str) -> None:
        await self.servers.pop(session_id).close()

    def config_options(self, session: helpers.ActiveSession) -> list[acp.SessionConfigOption]:
        both = [acp.SessionConfigSelectOption(value=each, name=each.title()) for each in ("ask", "edit")]
        now = session.data["mode"]
        return [acp.SessionConfigOptionSelect(id="mode", name="Mode", category="mode", current_value=now, options=both)]

    async def work(self, params: acp.PromptRequest) -> None:
        session = self.session(params.session_id)
        calls = helpers.ToolCalls(self.client, session.id, self.turns)
        found = await self.servers[session.id].list()
        more = [ai.Tool[Turn].from_schema(each, each.name, each.description, each.input_schema) for each in found]
        run = agent.run_stream_events(
            "\n".join(getattr(block, "text", "") for block in params.prompt),
            deps=Turn(session, calls, self.client),
            message_history=ai.ModelMessagesTypeAdapter.validate_python(session.data["history"]),
            toolsets=[ReportedTools(CombinedToolset([tools, ai.FunctionToolset(more)]))],
        )
        async with run as events:
            async for event in events:
                match event.part if isinstance(event, ai.PartStartEvent) else getattr(event, "delta", None):
                    case ai.TextPart(content=str(text)) | ai.TextPartDelta(content_delta=str(text)):
                        await self.client.session_update(helpers.agent_message(session.id, text))
                    case ai.ThinkingPart(content=str(text)) | ai.ThinkingPartDelta(content_delta=str(text)):
                        await self.client.session_update(helpers.agent_thought(session.id, text))
            session.data["history"] = ai.ModelMessagesTypeAdapter.dump_python(events.all_messages(), mode="json")


if __name__ == "__main__":
    acp.run_agent(PydanticAgent, options=acp.ConnectionOptions(cleanup_seconds=10.0))  # for the end of MCP servers
