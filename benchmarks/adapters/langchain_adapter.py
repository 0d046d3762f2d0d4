"""langchain-acp, with what it has for files, plans and permission, and the scripted model of the examples."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import unique_ids  # noqa: F401  before the model is imported
from acp import run_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, TodoListMiddleware
from langchain.tools import tool
from langchain_acp import (
    AcpSessionContext,
    AdapterConfig,
    AdapterModel,
    FileSessionStore,
    FileSystemProjectionMap,
    NativeApprovalBridge,
    create_acp_agent,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted_langgraph import MODEL


def tools_in(folder: Path) -> list[Any]:
    """The tools for a folder."""

    @tool
    async def read_file(path: str) -> str:
        """Read a file of the project."""
        return (folder / path).read_text()

    @tool
    async def write_file(path: str, text: str) -> str:
        """Write a file of the project."""
        (folder / path).write_text(text)
        return f"{path} is written"

    @tool
    async def count(to: int) -> str:
        """Count, slowly."""
        for _ in range(to):
            await asyncio.sleep(0.01)
        return f"counted to {to}"

    return [read_file, write_file, count]


async def main() -> None:
    """Serve on stdio."""
    async with AsyncSqliteSaver.from_conn_string(sys.argv[1]) as durable:
        saver = durable if os.environ.get("SAVER") == "durable" else InMemorySaver()

        def build(session: AcpSessionContext) -> Any:
            return create_agent(
                MODEL,
                tools=tools_in(session.cwd),
                middleware=[TodoListMiddleware(), HumanInTheLoopMiddleware(interrupt_on={"write_file": True})],
                checkpointer=saver,
            )

        files = FileSystemProjectionMap(
            read_tool_names=frozenset({"read_file"}), write_tool_names=frozenset({"write_file"})
        )
        config = AdapterConfig(
            session_store=FileSessionStore(Path(f"{sys.argv[1]}.sessions")),
            approval_bridge=NativeApprovalBridge(enable_persistent_choices=True),
            projection_maps=[files],
            available_models=[AdapterModel(model_id=each, name=each) for each in ("script", "other")],
        )
        await run_agent(create_acp_agent(graph_factory=build, config=config))


asyncio.run(main())
