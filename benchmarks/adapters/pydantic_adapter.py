"""pydantic-acp, with what it has for files, plans, permission and MCP, and the scripted model of the examples."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import unique_ids  # noqa: F401  before the model is imported
from acp.schema import ToolCallProgress
from pydantic_acp import (
    AcpSessionContext,
    AdapterConfig,
    AdapterModel,
    AgentBridgeBuilder,
    FileSessionStore,
    FileSystemProjectionMap,
    NativeApprovalBridge,
    PrepareToolsBridge,
    PrepareToolsMode,
    SessionMcpBridge,
    run_acp,
)
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from scripted_pydantic_ai import MODEL


async def stream(messages: list[Any], info: Any) -> AsyncIterator[Any]:
    """What the script says, with the adapter's own tool for plans."""
    assert MODEL.stream_function is not None
    async for piece in MODEL.stream_function(messages, info):
        names = [tool.name for tool in info.function_tools]
        yield {at: shown(delta, names) for at, delta in piece.items()} if isinstance(piece, dict) else piece


def shown(delta: Any, names: list[str]) -> Any:
    """A call of `write_todos` as one of `acp_set_plan`, and one of a tool of a server by its longer name."""
    if isinstance(delta, DeltaToolCall) and delta.name == "greet":
        name = next((each for each in names if each.endswith("greet")), "greet")
        return DeltaToolCall(name, delta.json_args, tool_call_id=delta.tool_call_id)
    if not isinstance(delta, DeltaToolCall) or delta.name != "write_todos":
        return delta
    given = json.loads(delta.json_args or "")
    entries = [
        {"content": step, "priority": "medium", "status": "completed" if at < given["done"] else "pending"}
        for at, step in enumerate(given["steps"])
    ]
    return DeltaToolCall("acp_set_plan", json.dumps({"entries": entries}), tool_call_id=delta.tool_call_id)


def capabilities(session: AcpSessionContext) -> Any:
    """The tools of MCP servers, if MCP is "yes": with Pydantic AI 2.52.0 each turn then ends in an error."""
    if os.environ.get("MCP") != "yes":
        return ()
    return AgentBridgeBuilder(session=session, capability_bridges=BRIDGES).build().capabilities


def build(session: AcpSessionContext) -> Agent[None, str]:
    """The agent of a session."""
    agent = Agent(SCRIPTED, deps_type=type(None), capabilities=capabilities(session))

    @agent.tool_plain
    async def read_file(path: str) -> str:
        return (session.cwd / path).read_text()

    @agent.tool_plain(requires_approval=True)
    async def write_file(path: str, text: str) -> str:
        (session.cwd / path).write_text(text)
        return f"{path} is written"

    @agent.tool
    async def count(ctx: RunContext[None], to: int) -> str:
        for number in range(1, to + 1):
            await asyncio.sleep(0.01)
            text = {"type": "content", "content": {"type": "text", "text": f"{number} of {to}"}}
            about = {"toolCallId": ctx.tool_call_id, "status": "in_progress", "content": [text]}
            await session.emit_update(ToolCallProgress.model_validate({"sessionUpdate": "tool_call_update", **about}))
        return f"counted to {to}"

    return agent


SCRIPTED = FunctionModel(stream_function=stream)
MODE = PrepareToolsMode(id="work", name="Work", prepare_func=lambda _, tools: list(tools), plan_tools=True)
BRIDGES = [
    PrepareToolsBridge(default_mode_id="work", modes=[MODE], default_plan_generation_type="tools"),
    SessionMcpBridge(),
]
FILES = FileSystemProjectionMap(
    default_read_tool="read_file", default_write_tool="write_file", path_arg="path", content_arg="text"
)
CONFIG = AdapterConfig(
    session_store=FileSessionStore(Path(f"{sys.argv[1]}.sessions")),
    approval_bridge=NativeApprovalBridge(enable_persistent_choices=True),
    capability_bridges=BRIDGES,
    projection_maps=[FILES],
    allow_model_selection=True,
    available_models=[AdapterModel(model_id=each, name=each, override=SCRIPTED) for each in ("script", "other")],
)
run_acp(agent_factory=build, config=CONFIG)
