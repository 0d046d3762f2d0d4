"""Times updates that an agent sends, that it sends and saves, and that another one loads and sends again.

Usage: python stored.py FOLDER_OF_THE_PACKAGE COUNT

Prints seconds as JSON. Each update is a tool call of its own, as updates of one message are joined when they are saved.
Both sides are in one process, in memory, and the client decodes each update.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def update(acp: Any, session: str, number: int) -> Any:
    """One tool call."""
    call = acp.SessionUpdateToolCall(tool_call_id=f"call-{number}", title="Read a file", status="completed")
    return acp.SessionNotification(session_id=session, update=call)


def agents(acp: Any, folder: str, count: int) -> tuple[type[Any], type[Any]]:
    """An agent that keeps nothing, and one that saves all; both send `count` updates for each prompt."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    class Unsaved(acp.Agent):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            return acp.advertise(self, acp.InitializeResponse(protocol_version=1))

        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id="s")

        async def session_prompt(self, params: Any) -> Any:
            for number in range(count):
                await self.client.session_update(update(acp, params.session_id, number))
            return acp.PromptResponse(stop_reason="end_turn")

    class Saved(helpers.StoredAgent):  # type: ignore[misc,name-defined]
        store = helpers.SqliteStore(Path(folder, "sessions.db"))

        async def initialize(self, params: Any) -> Any:
            return acp.advertise(self, acp.InitializeResponse(protocol_version=1))

        async def work(self, params: Any) -> None:
            for number in range(count):
                await self.client.session_update(update(acp, params.session_id, number))

    return Unsaved, Saved


@asynccontextmanager
async def connected(acp: Any, agent: type[Any]) -> AsyncGenerator[tuple[Any, list[Any]], None]:
    """The stub of an agent, and the tool calls that the client has got."""
    calls = list[Any]()

    class Client(acp.Client):  # type: ignore[misc]
        async def session_update(self, params: Any) -> None:
            if params.update.session_update == "tool_call":
                calls.append(params.update.tool_call_id)

    near, far = acp.memory_transports()
    serving = asyncio.ensure_future(acp.serve_agent(agent, near))
    async with acp.connect(Client, far) as stub:
        await stub.initialize(acp.InitializeRequest(protocol_version=1))
        yield stub, calls
    await serving


async def sent(acp: Any, agent: type[Any], count: int) -> tuple[float, str]:
    """The time of a prompt, and the session that has its updates."""
    async with connected(acp, agent) as (stub, calls):
        session = (await stub.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))).session_id
        prompt = acp.PromptRequest(session_id=session, prompt=[acp.ContentBlockText(text="Go")])
        start = time.perf_counter()
        await stub.session_prompt(prompt)
        taken = time.perf_counter() - start
        check(calls, count)
    return taken, session


async def loaded(acp: Any, agent: type[Any], session: str, count: int) -> float:
    """The time until all of a session has come again."""
    async with connected(acp, agent) as (stub, calls):
        start = time.perf_counter()
        await stub.session_load(acp.LoadSessionRequest(session_id=session, cwd="/", mcp_servers=[]))
        taken = time.perf_counter() - start
        check(calls, count)
    return taken


def check(calls: list[Any], count: int) -> None:
    """Fail unless each call has come once, in order."""
    if calls != [f"call-{number}" for number in range(count)]:
        raise SystemExit(f"{len(calls)} of {count} tool calls have come")


async def measured(acp: Any, folder: str, count: int) -> dict[str, float]:
    """The times."""
    unsaved, saved = agents(acp, folder, count)
    found = {"unsaved": (await sent(acp, unsaved, count))[0]}
    found["send"], session = await sent(acp, saved, count)
    found["load"] = await loaded(acp, saved, session, count)
    return found


def main() -> None:
    """Measure a package."""
    package = Path(sys.argv[1])
    sys.path.insert(0, str(package.parent))
    with TemporaryDirectory() as folder:
        acp = importlib.import_module(package.name)
        print(json.dumps(asyncio.run(measured(acp, folder, int(sys.argv[2])))))


main()
