"""Pairs of processes that talk ACP: one side ours, the other one an official SDK's."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tests.interop.puppet import CONTROL, Puppet

HERE = Path(__file__).resolve().parent
LIMIT = 2**24
Json = Any
Starter = Callable[..., AbstractAsyncContextManager[Any]]
"""Connects a factory of clients to an agent; the keywords are those of `spawn_agent`."""


@dataclass(frozen=True)
class Setup:
    """A pair by its kind: whose SDK, which version both speak, and the role that is ours.

    A `router` is an agent of both versions, of the TypeScript SDK.
    """

    peer: Literal["ts", "py", "router"]
    version: int
    ours: Literal["agent", "client"]
    of_two: bool = False
    """Whether our side has both versions."""
    transport: Literal["stdio", "websocket", "http1", "http2"] = "stdio"
    """How they talk; the latter two are Streamable HTTP."""
    proxy: Literal["", "empty", "typed", "two"] = ""
    """What is between them: a proxy of ours without methods, one that hands on all by its types, or both of them."""
    agent_of: Literal["", "ts", "py"] = ""
    """The SDK of the agent, if that is not ours although the client is theirs."""

    def __str__(self) -> str:
        name = f"{self.without_transport}_of_two" if self.of_two else self.without_transport
        name = f"{name}-{self.agent_of}_agent" if self.agent_of else name
        name = f"{name}-{self.proxy}" if self.proxy else name
        return name if self.transport == "stdio" else f"{name}-{self.transport}"

    @property
    def without_transport(self) -> str:
        """The name without what says how they talk, and how many versions our side has."""
        return f"{self.peer}-v{self.version}-our_{self.ours}"

    @property
    def is_http(self) -> bool:
        """Whether they talk over Streamable HTTP, where each session has a stream."""
        return self.transport.startswith("http")

    @property
    def is_recorded(self) -> bool:
        """Whether our side records what is said, so that `acpgen trace` can look at it: see `recordings.py`.

        The other pairs record nothing, as what records is around the transport, and both ways have to work.
        """
        if self.proxy or self.of_two or self.peer == "router":
            return bool(self.agent_of)  # of a proxy, both sides
        if self.transport == "stdio":
            return True
        # each transport once from each end: what the SDKs say is the same on all of them
        return (self.peer, self.version) == ("ts", 1) and self.transport in ("http1", "websocket")

    @property
    def sdk(self) -> str:
        """The SDK that the peer is of."""
        return "py" if self.peer == "py" else "ts"


OF_ONE = tuple(
    Setup(peer, version, ours) for peer, version in (("ts", 1), ("ts", 2), ("py", 1)) for ours in ("agent", "client")
)
"""Both sides have one version."""
SETUPS = (
    *OF_ONE,
    *(replace(setup, of_two=True) for setup in OF_ONE),
    Setup("router", 1, "client"),
    Setup("router", 2, "client", of_two=True),
)


class Pair:
    """Both sides of a connection, to be told what to say and asked what they saw."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.sessions: set[str] = set()
        """Those that are open."""
        self.url = ""
        """Where the agent is on the network."""

    async def order(self, side: str, order: str, params: Json) -> Json:
        """Give an order to the agent or the client."""
        return await (self._ours if side == self.setup.ours else self._theirs)(order, params)

    async def _ours(self, order: str, params: Json) -> Json:
        raise NotImplementedError

    async def _theirs(self, order: str, params: Json) -> Json:
        raise NotImplementedError

    async def initialize(self, params: Json) -> Json:
        """Let the client send the first request: its outcome."""
        return await self.say("client", "initialize", params)

    async def open_session(self, name: str, params: Json) -> None:
        """Let the client open a session, unless it is open."""
        if name in self.sessions:
            return
        await self.order("agent", "reset", {"answers": {"session/new": {"result": {"sessionId": name}}}})
        outcome = await self.say("client", "session/new", params)
        assert "result" in outcome, outcome
        self.sessions.add(name)

    async def reset(self, **answers: Json) -> None:
        """Forget what was seen, and answer so from now on; the keys are methods."""
        for side in ("agent", "client"):
            await self.order(side, "reset", {"answers": answers})

    async def say(self, side: str, method: str, params: Json, **more: Json) -> Json:
        """Let `side` send a message; its `result`, its `error`, or nothing for a notification."""
        if method in ("session/close", "session/delete"):
            self.sessions.discard(params["sessionId"])
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


class OurClientOfTwo(OurClient):
    """The same with a client that has both versions: opening the pair has negotiated one of them."""

    async def initialize(self, params: Json) -> Json:
        return {"result": self._puppet.acp.encode(self._puppet.stub.negotiated)}


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
    offered: Mapping[int, Json]
    """The params with which a client of several versions starts, by version."""
    proxies: ModuleType | None = None
    """The package of the proxy between them."""
    other: tuple[tuple[str, ...], Path] | None = None
    """The command and the folder of the SDK that `agent_of` names."""
    trace: Path | None = None
    """Where our side records what is said."""

    def peer(self, setup: Setup) -> list[str]:
        """The command that starts the side of the peer."""
        is_remote = setup.transport != "stdio"
        role = {"agent": ("client", "remote_client"), "client": ("agent", "server")}[setup.ours][is_remote]
        script = HERE / {"ts": "ts_peer.mjs", "py": "remote_py_peer.py" if is_remote else "py_peer.py"}[setup.sdk]
        versions = "1,2" if setup.peer == "router" else str(setup.version)
        return [*self.command, str(script), role, versions, str(self.sdk), str(self.answers)]

    def our_agent(self, setup: Setup) -> list[str]:
        """The command that starts our agent."""
        if self.other is not None:
            command, sdk = self.other
            script = str(HERE / {"ts": "ts_peer.mjs", "py": "py_peer.py"}[setup.agent_of])
            return [*command, script, "agent", str(setup.version), str(sdk), str(self.answers)]
        assert self.acp.__file__ is not None
        package = Path(self.acp.__file__).parent
        command = [sys.executable, "-X", "dev", str(HERE / "our_agent.py")]
        version = [str(setup.version)] if setup.of_two else []
        return [*command, str(package.parent), package.name, str(self.answers), *version]

    def between(self, setup: Setup, *agent: str) -> list[str]:
        """The command that starts a proxy for an agent, a command or a URL; without a proxy, the agent itself."""
        if self.proxies is None:
            return [*agent]
        package = Path(str(self.proxies.__file__)).parent
        script = str(HERE / "our_proxy.py")
        return [sys.executable, "-X", "dev", script, str(package.parent), package.name, setup.proxy, *agent]

    def our_client(self, setup: Setup) -> Puppet:
        """Our client, of the version that both sides speak."""
        part = getattr(self.acp, f"v{setup.version}") if setup.of_two else self.acp
        return Puppet(part, "client", json.loads(self.answers.read_text(encoding="utf-8")))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of processes on stdio: both ours and theirs, which starts ours."""
        recording = {} if self.trace is None else {"ACP_TRACE": str(self.trace)}
        return {**os.environ, "PYTHONASYNCIODEBUG": "1", **recording}


@asynccontextmanager
async def open_pair(setup: Setup, stage: Stage) -> AsyncGenerator[Pair, None]:
    """Start both sides of `setup`. They have not said anything yet, but for a client of two versions."""
    if setup.ours == "client":

        def start(factory: Any, **more: Any) -> AbstractAsyncContextManager[Any]:
            found: AbstractAsyncContextManager[Any] = stage.acp.spawn_agent(
                factory, stage.between(setup, *stage.peer(setup)), stderr="log", **more
            )
            return found

        async with open_our_client(setup, stage, start) as client:
            yield client
        return
    with stage.stderr.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *stage.peer(setup),
            *stage.between(setup, *stage.our_agent(setup)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=stage.environment,
            limit=LIMIT,
        )
    pair = OurAgent(setup, process)
    try:
        yield pair
    finally:
        await pair.end()
        await process.wait()


@asynccontextmanager
async def open_our_client(setup: Setup, stage: Stage, start: Starter) -> AsyncGenerator[OurClient, None]:
    """Our client, and the agent that `start` connects it to."""
    puppet = stage.our_client(setup)
    start = partial(start, options=puppet.options(stage.acp, stage.trace))
    if not setup.of_two:
        async with start(puppet.factory):
            yield OurClient(setup, puppet)
        return

    def unwanted(agent: Any) -> Any:
        raise AssertionError("the agent has chosen another version")

    factories = {**dict.fromkeys(stage.offered, unwanted), setup.version: puppet.factory}
    params = {version: _first(stage.acp, version, each) for version, each in stage.offered.items()}
    async with start(factories, params=params) as stub:
        assert stub is puppet.stub
        yield OurClientOfTwo(setup, puppet)


def _first(acp: ModuleType, version: int, params: Json) -> Any:
    part = getattr(acp, f"v{version}")
    return part.decode(part.InitializeRequest, params)
