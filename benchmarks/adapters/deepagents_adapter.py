"""deepagents-acp, with its file tools and a durable checkpointer, and the scripted model of the examples."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import unique_ids  # noqa: F401  before the model is imported
from acp import run_agent
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents_acp.server import AgentServerACP, AgentSessionContext
from langchain.agents.middleware import TodoListMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted_langgraph import ScriptedModel


class Model(ScriptedModel):
    """Calls the file tools of deepagents: its `write_file` does not write over a file, so it edits."""

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        async for chunk in super()._astream(*args, **options):
            pieces = [self._piece(dict(piece)) for piece in chunk.message.tool_call_chunks]
            message = AIMessageChunk(content="", tool_call_chunks=pieces)
            yield ChatGenerationChunk(message=message) if pieces else chunk

    def _piece(self, piece: dict[str, Any]) -> dict[str, Any]:
        if piece["name"] == "read_file":
            return {**piece, "args": json.dumps({"file_path": "/notes.txt"})}
        if piece["name"] == "write_file":
            change = {"file_path": "/notes.txt", "old_string": "colour", "new_string": "color"}
            return {**piece, "name": "edit_file", "args": json.dumps(change)}
        return piece


@tool
async def count(to: int) -> str:
    """Count, slowly."""
    for _ in range(to):
        await asyncio.sleep(0.01)
    return f"counted to {to}"


async def main() -> None:
    """Serve on stdio."""
    async with AsyncSqliteSaver.from_conn_string(sys.argv[1]) as saver:

        def build(context: AgentSessionContext) -> Any:
            return create_deep_agent(
                Model(),
                tools=[count],
                backend=FilesystemBackend(root_dir=context.cwd, virtual_mode=True),
                middleware=[TodoListMiddleware()],  # this release has it no more of its own
                interrupt_on={"edit_file": True},
                checkpointer=saver,
            )

        models = [{"value": "script", "name": "Script"}, {"value": "other", "name": "Other"}]
        await run_agent(AgentServerACP(build, models=models, load_sessions=True))


asyncio.run(main())
