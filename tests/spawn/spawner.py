"""Spawns agents for the tests, and keeps what their clients saw."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import Any

from tests.runtime_agents import Diary, command, environment


class Editor:
    """What the client saw; `acp.Client` is mixed in once it is known."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.texts: asyncio.Queue[str] = asyncio.Queue()
        self.reasons: list[Any] = []

    async def session_update(self, params: Any) -> None:
        self.texts.put_nowait(params.update.content.text)

    async def connection_closed(self, reason: Any) -> None:
        self.reasons.append(reason)


class Spawner:
    """Spawns scripts, and keeps the clients made for them."""

    def __init__(self, acp: ModuleType, diary: Diary) -> None:
        self.acp = acp
        self.env = environment(acp, ACP_DIARY=str(diary.path))
        self.clients: list[Any] = []

    def __call__(
        self, script: str, *arguments: str, shim: tuple[str, ...] = (), **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        kind = type("TestClient", (Editor, self.acp.Client), {})

        def factory(agent: Any) -> Any:
            self.clients.append(kind(agent))
            return self.clients[-1]

        argv = [*shim, *command(script, *arguments)]
        return self.acp.spawn_agent(factory, argv, **{"env": self.env} | options)

    @property
    def client(self) -> Any:
        return self.clients[-1]

    async def initialize(self, agent: Any) -> Any:
        return await agent.initialize(self.acp.InitializeRequest(protocol_version=1))

    async def prompt(self, agent: Any, text: str) -> Any:
        prompt = [self.acp.ContentBlockText(text=text)]
        return await agent.session_prompt(self.acp.PromptRequest(session_id="s", prompt=prompt))

    async def text(self) -> str:
        return str(await self.client.texts.get())


async def next_entry(diary: Diary) -> str:
    return str(await asyncio.to_thread(diary.next))


SHIM = ("sh", "-c", '"$@"; true', "sh")
"""Starts the agent as its child, and waits for it, as the launchers of package managers do."""
