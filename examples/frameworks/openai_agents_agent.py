"""An agent of the OpenAI Agents SDK. README.md beside it says how its package is built, and what to install."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import acp_frameworks as acp
from acp_frameworks import helpers
from agents import Agent, FunctionTool, RunHooks, Runner, Tool, function_tool
from agents.tool_context import ToolContext
from openai.types.responses import ResponseReasoningSummaryTextDeltaEvent, ResponseTextDeltaEvent
from scripted_openai_agents import MODEL  # or the name of a real one, such as "gpt-…"


@dataclass
class Turn(RunHooks[Any]):
    """What tools need of the turn that runs. It shows their calls, but for those that need approval."""

    session: helpers.ActiveSession
    calls: helpers.ToolCalls
    client: acp.RemoteClient

    async def on_tool_start(self, context: Any, agent: Any, tool: Tool) -> None:
        if tool.name not in {"write_todos", "write_file"}:
            kind: Any = "read" if tool.name == "read_file" else "other"
            given = json.loads(context.tool_arguments)
            await self.calls.start(context.tool_call_id, tool.name, kind=kind, name=tool.name, raw_input=given)

    async def on_tool_end(self, context: Any, agent: Any, tool: Tool, result: object) -> None:
        if (key := context.tool_call_id) in self.calls:
            shown = list(self.calls[key].reported.content or ()) if tool.name == "write_file" else [str(result)]
            await self.calls.end(key, content=shown, raw_output=result)


async def failed(ctx: Any, error: Exception) -> str:
    """Show that a tool has failed; the model gets the text."""
    await ctx.context.calls.end(ctx.tool_call_id, "failed", content=[str(error)])
    return str(error)


@function_tool(failure_error_function=failed)
async def read_file(ctx: ToolContext[Turn], path: str) -> str:
    """Read a file of the project."""
    return Path(ctx.context.session.cwd, path).read_text()


@function_tool(failure_error_function=failed, needs_approval=True)
async def write_file(ctx: ToolContext[Turn], path: str, text: str) -> str:
    """Write a file of the project."""
    Path(ctx.context.session.cwd, path).write_text(text)
    return f"{path} is written"


@function_tool(failure_error_function=failed)
async def count(ctx: ToolContext[Turn], to: int) -> str:
    """Count, slowly."""
    for number in range(1, to + 1):
        await asyncio.sleep(0.01)
        await ctx.context.calls.update(ctx.tool_call_id, content=[f"{number} of {to}"])
    return f"counted to {to}"


@function_tool
async def write_todos(ctx: ToolContext[Turn], steps: list[str], done: int) -> str:
    """Show what is to be done, and how much of it is done."""
    entries = [helpers.plan_entry(each, status="completed") for each in steps[:done]]
    await ctx.context.client.session_update(helpers.plan(ctx.context.session.id, [*entries, *steps[done:]]))
    return "shown"


def tool_of_server(tool: helpers.SessionTool) -> FunctionTool:
    """A tool of an MCP server of the session."""

    async def invoke(ctx: ToolContext[Any], arguments: str) -> str:
        try:
            return await tool(**json.loads(arguments))
        except helpers.SessionToolError as error:
            return await failed(ctx, error)

    return FunctionTool(tool.name, tool.description, tool.input_schema, invoke, strict_json_schema=False)


class OpenAIAgent(helpers.StoredAgent):
    """Its sessions have the items of the model, the mode, and what the user has allowed for good."""

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
        turn = Turn(session, helpers.ToolCalls(self.client, session.id, self.turns), self.client)
        more = [tool_of_server(each) for each in await self.servers[session.id].list()]
        agent = Agent[Turn]("agent", tools=[read_file, write_file, count, write_todos, *more], model=MODEL)
        prompt = "\n".join(getattr(block, "text", "") for block in params.prompt)
        given: Any = [*session.data["history"], {"role": "user", "content": prompt}]
        while given:
            run = Runner.run_streamed(agent, given, context=turn, hooks=turn)
            try:
                async for event in run.stream_events():
                    match getattr(event, "data", None):
                        case ResponseTextDeltaEvent(delta=text):
                            await self.client.session_update(helpers.agent_message(session.id, text))
                        case ResponseReasoningSummaryTextDeltaEvent(delta=text):
                            await self.client.session_update(helpers.agent_thought(session.id, text))
            finally:
                run.cancel()
            given = run.to_state() if run.interruptions else None
            for item in run.interruptions:
                (given.approve if await self.ask(turn, item) else given.reject)(item)
        session.data["history"] = run.to_input_list()

    async def ask(self, turn: Turn, item: Any) -> bool:
        session, given = turn.session, json.loads(item.arguments)
        path, text = Path(session.cwd, given["path"]), given["text"]
        old = path.read_text() if path.exists() else None
        status: Any = "pending" if session.data["mode"] == "ask" else "in_progress"
        call = await turn.calls.start_edit(item.call_id, str(path), old=old, new=text, status=status, name=item.name)
        memory = helpers.PermissionMemory(session.data["permissions"], folder=session.cwd)
        if is_refused := status == "pending" and not await call.permission(memory=memory):
            await call.end()
        return not is_refused


if __name__ == "__main__":
    acp.run_agent(OpenAIAgent, options=acp.ConnectionOptions(cleanup_seconds=10.0))  # for the end of MCP servers
