"""A program for the tests that kill it: an agent of a package, or a published one. It notes each prompt it works on.

python recovery_agent.py ours FOLDER PACKAGE STORE NOTES
python recovery_agent.py pydantic-acp STORE NOTES
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any


def note(path: str, text: str) -> None:
    """Note a prompt: one write, which a kill cannot split."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{text}\n".encode())
    os.close(file)


def run_ours(folder: str, package: str, store: str, notes: str) -> None:
    """An agent with a store in a file, which says each word of a prompt, and makes a tool call."""
    sys.path.insert(0, folder)
    acp: Any = importlib.import_module(package)
    helpers: Any = importlib.import_module(f"{package}.helpers")
    is_v1 = acp.PROTOCOL_VERSION == 1
    info: Any = {} if is_v1 else {"info": acp.Implementation(name="worker", version="1")}

    class Worker(helpers.StoredAgent):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            return acp.advertise(self, acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **info))

        async def work(self, params: Any) -> None:
            key, (name, *words) = params.session_id, params.prompt[0].text.split()
            note(notes, name)
            ids = {} if is_v1 else {"message_id": f"m-{name}"}
            async with helpers.tool_call(self.client, key, f"Edit {name}", tool_call_id=f"c-{name}"):
                await asyncio.sleep(0.001)
            for word in words:
                await self.client.session_update(helpers.agent_message(key, f"{word} ", **ids))
                await asyncio.sleep(0.001)

    Worker.store = helpers.SqliteStore(store)
    Worker.save_seconds = 0.01
    acp.run_agent(Worker)


def run_pydantic_acp(store: str, notes: str) -> None:
    """The published adapter with its store of files, and a model that says the words of a prompt."""
    agents: Any = importlib.import_module("pydantic_ai")
    functions: Any = importlib.import_module("pydantic_ai.models.function")
    adapter: Any = importlib.import_module("pydantic_acp")
    sessions: Any = importlib.import_module("pydantic_acp.session.store")

    async def say(messages: Any, _: Any) -> AsyncIterator[str]:
        name, *words = str(messages[-1].parts[-1].content).split()
        note(notes, name)
        for word in words:
            yield f"{word} "
            await asyncio.sleep(0.001)

    agent = agents.Agent(functions.FunctionModel(stream_function=say))
    config = adapter.AdapterConfig(session_store=sessions.FileSessionStore(Path(store)))
    adapter.run_acp(agent, config=config)


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    {"ours": run_ours, "pydantic-acp": run_pydantic_acp}[kind](*arguments)
