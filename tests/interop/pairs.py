"""Pairs of processes that talk ACP: one side ours, the other one an official SDK's."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tests.interop.puppet import CONTROL, Puppet

HERE = Path(__file__).resolve().parent
LIMIT = 2**24
Json = Any


@dataclass(frozen=True)
class Setup:
    """A pair by its kind: whose SDK, which version of the protocol, and the role that is ours."""

    peer: Literal["ts", "py"]
    version: int
    ours: Literal["agent", "client"]

    def __str__(self) -> str:
        return f"{self.peer}-v{self.version}-our_{self.ours}"


SETUPS = tuple(
    Setup(peer, version, ours) for peer, version in (("ts", 1), ("ts", 2), ("py", 1)) for ours in ("agent", "client")
)


class Pair:
    """Both sides of a connection, to be told what to say and asked what they saw."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    async def order(self, side: str, order: str, params: Json) -> Json:
        """Give an order to the agent or the client."""
        return await (self._ours if side == self.setup.ours else self._theirs)(order, params)

    async def _ours(self, order: str, params: Json) -> Json:
        raise NotImplementedError

    async def _theirs(self, order: str, params: Json) -> Json:
        raise NotImplementedError

    async def reset(self, **answers: Json) -> None:
        """Forget what was seen, and answer so from now on; the keys are methods."""
        for side in ("agent", "client"):
            await self.order(side, "reset", {"answers": answers})

    async def say(self, side: str, method: str, params: Json, **more: Json) -> Json:
        """Let `side` send a message; its `result`, its `error`, or nothing for a notification."""
        return await self.order(side, "say", {"method": method, "params": params, **more})

    async def seen(self, side: str, count: int = 0) -> list[Json]:
        """What `side` saw, once that is `count` messages."""
        log: list[Json] = (await self.order(side, "seen", {"count": count}))["log"]
        return log


class OurClient(Pair):
    """Our client in this process, and their agent, which it has started."""

    def __init__(self, setup: Setup, puppet: Puppet) -> None:
        super().__init__(setup)
        self._puppet = puppet

    async def _ours(self, order: str, params: Json) -> Json:
        return await self._puppet.control(order, params)

    async def _theirs(self, order: str, params: Json) -> Json:
        return await self._puppet.stub.ext_method(f"{CONTROL}{order}", params)


class OurAgent(Pair):
    """Their client in a process, which has started our agent."""

    def __init__(self, setup: Setup, process: asyncio.subprocess.Process) -> None:
        super().__init__(setup)
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._orders = 0
        self.exit: Json = None
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while line := await self._output.readline():
            message = json.loads(line)
            if "exit" in message:
                self.exit = message["exit"]
            else:
                self._waiting.pop(message.pop("id")).set_result(message)
        for future in self._waiting.values():
            future.set_exception(ConnectionError("the peer has ended"))

    async def _theirs(self, order: str, params: Json) -> Json:
        self._orders += 1
        future = self._waiting[self._orders] = asyncio.get_running_loop().create_future()
        self._input.write(json.dumps({"id": self._orders, "order": order, "params": params}).encode() + b"\n")
        await self._input.drain()
        return await future

    async def _ours(self, order: str, params: Json) -> Json:
        answer = await self._theirs("say", {"method": f"{CONTROL}{order}", "params": params})
        assert "result" in answer, answer
        return answer["result"]

    async def end(self) -> None:
        """Close stdin, after which both processes end."""
        self._input.close()
        await self._reading


@dataclass(frozen=True)
class Stage:
    """What a pair is made of."""

    acp: ModuleType
    command: tuple[str, ...]
    sdk: Path
    answers: Path
    stderr: Path

    def peer(self, setup: Setup) -> list[str]:
        """The command that starts the side of the peer."""
        role = "client" if setup.ours == "agent" else "agent"
        script = HERE / {"ts": "ts_peer.mjs", "py": "py_peer.py"}[setup.peer]
        return [*self.command, str(script), role, str(setup.version), str(self.sdk), str(self.answers)]

    def our_agent(self) -> list[str]:
        """The command that starts our agent."""
        assert self.acp.__file__ is not None
        package = Path(self.acp.__file__).parent
        script = str(HERE / "our_agent.py")
        return [sys.executable, "-X", "dev", script, str(package.parent), package.name, str(self.answers)]


@asynccontextmanager
async def open_pair(setup: Setup, stage: Stage) -> AsyncGenerator[Pair, None]:
    """Start both sides of `setup`; they have not said anything yet."""
    if setup.ours == "client":
        answers: Mapping[str, Json] = json.loads(stage.answers.read_text(encoding="utf-8"))
        puppet = Puppet(stage.acp, "client", answers)
        async with stage.acp.spawn_agent(puppet.factory, stage.peer(setup), stderr="log", options=puppet.options()):
            yield OurClient(setup, puppet)
        return
    with stage.stderr.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *stage.peer(setup),
            *stage.our_agent(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "PYTHONASYNCIODEBUG": "1"},
            limit=LIMIT,
        )
    pair = OurAgent(setup, process)
    try:
        yield pair
    finally:
        await pair.end()
        await process.wait()
