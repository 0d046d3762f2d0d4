"""An agent of LangGraph. README.md beside it says how its package is built, and what to install.

`create_agent` of LangChain makes the graph. `create_deep_agent` of deepagents does, too.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import acp_frameworks as acp
from acp_frameworks import helpers
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.tools import StructuredTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from scripted_langgraph import MODEL  # or the name of a real one, such as "openai:gpt-…"


@dataclass
class Turn:
    """What tools need of the turn that runs."""

    session: helpers.ActiveSession
    calls: helpers.ToolCalls
    client: acp.RemoteClient


# --- Tools ------------------------------------------------------------------------------------------------------------


@tool
async def read_file(path: str, runtime: ToolRuntime[Turn, Any]) -> str:
    """Read a file of the project."""
    return Path(runtime.context.session.cwd, path).read_text()


@tool
async def write_file(path: str, text: str, runtime: ToolRuntime[Turn, Any]) -> str:
    """Write a file of the project."""
    Path(runtime.context.session.cwd, path).write_text(text)
    return f"{path} is written"


@tool
async def count(to: int, runtime: ToolRuntime[Turn, Any]) -> str:
    """Count, slowly."""
    for number in range(1, to + 1):
        await asyncio.sleep(0.01)
        await runtime.context.calls[runtime.tool_call_id or ""].update(content=[f"{number} of {to}"])
    return f"counted to {to}"


class ReportedTools(AgentMiddleware[Any, Turn]):
    """Shows the calls of tools to the user, and asks before a file is written in the mode "ask"."""

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        turn: Turn = request.runtime.context
        name, given, key = request.tool_call["name"], request.tool_call["args"], request.tool_call["id"] or ""
        if name == "write_todos":  # the user sees the plan
            entries = [helpers.plan_entry(each["content"], status=each["status"]) for each in given["todos"]]
            await turn.client.session_update(helpers.plan(turn.session.id, entries))
            return await handler(request)
        call = await self.report(turn, name, given, key)
        memory = helpers.PermissionMemory(turn.session.data["permissions"], folder=turn.session.cwd)
        if call.reported.status == "pending" and not await call.permission(memory=memory):
            await call.end()
            return ToolMessage("the user has refused", tool_call_id=key, status="error")
        try:
            result = await handler(request)
        except Exception as error:  # noqa: BLE001  the model may try something else
            result = ToolMessage(str(error), tool_call_id=key, status="error")
        shown = list(call.reported.content or ()) if name == "write_file" else [result.text]
        end: Any = "failed" if result.status == "error" else "completed"
        await call.end(end, content=shown, raw_output=result.text)
        return result

    async def report(self, turn: Turn, name: str, given: dict[str, Any], key: str) -> helpers.RunningToolCall:
        if name != "write_file":
            kind: Any = "read" if name == "read_file" else "other"
            return await turn.calls.start(key, name, kind=kind, name=name, raw_input=given)
        path = Path(turn.session.cwd, given["path"])
        old = path.read_text() if path.exists() else None
        status: Any = "pending" if turn.session.data["mode"] == "ask" else "in_progress"
        return await turn.calls.start_edit(key, str(path), old=old, new=given["text"], status=status, name=name)


# --- The agent --------------------------------------------------------------------------------------------------------


class LangGraphAgent(helpers.StoredAgent):
    """Its sessions have the messages of the graph, the mode, and what the user has allowed for good."""

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
        more = [
            StructuredTool.from_function(
                coroutine=each.__call__, name=each.name, description=each.description, args_schema=each.input_schema
            )
            for each in await self.servers[session.id].list()
        ]
        middleware = [TodoListMiddleware(), ReportedTools()]
        graph = create_agent(MODEL, [read_file, write_file, count, *more], middleware=middleware, context_schema=Turn)
        prompt = HumanMessage("\n".join(getattr(block, "text", "") for block in params.prompt))
        state: Any = {"messages": [*messages_from_dict(session.data["history"]), prompt]}
        async for mode, event in graph.astream(state, context=turn, stream_mode=["messages", "values"]):
            if mode == "values":
                state = event
            elif isinstance(event[0], AIMessageChunk):
                for block in event[0].content_blocks:
                    if block["type"] == "text":
                        await self.client.session_update(helpers.agent_message(session.id, block["text"]))
                    elif block["type"] == "reasoning":
                        await self.client.session_update(helpers.agent_thought(session.id, block["reasoning"]))
        session.data["history"] = messages_to_dict(state["messages"])


if __name__ == "__main__":
    acp.run_agent(LangGraphAgent, options=acp.ConnectionOptions(cleanup_seconds=10.0))  # for the end of MCP servers
