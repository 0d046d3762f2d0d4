"""What the tests of proxies share: packages, both neighbours of a proxy by hand, and programs that are components."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from acpgen.ir.model import Options
from acpgen.roles import Role
from tests.runtime_support import V1, V2
from tests.support import Packages

OPTIONS = Options(open=True, keep_unknown=True)
"""Those of a package with a proxy, if the user says nothing else."""
VERSIONS = {1: (V1,), 2: (V2,), 12: (V1, V2)}


def package(packages: Packages, version: int = 1) -> ModuleType:
    """A package for proxies: of one version, or of both (12)."""
    return packages(*VERSIONS[version], roles=(Role.PROXY,), options=OPTIONS)


def proxy_of(acp: ModuleType, **methods: Callable[..., Any]) -> type[Any]:
    """A class of proxies with these methods."""
    return type("TestProxy", (acp.Proxy,), methods)


def unchanged(acp: ModuleType) -> type[Any]:
    """A proxy that overrides every typed method, and hands all on unchanged."""

    def method(name: str, target: str) -> Callable[..., Any]:
        async def handed_on(self: Any, params: Any) -> Any:
            return await getattr(getattr(self, target), name)(params)

        return handed_on

    sides = {"agent": "client", "client": "agent"}
    tables = {"agent": acp.Proxy.FROM_CLIENT, "client": acp.Proxy.FROM_AGENT}
    found: dict[str, Callable[..., Any]] = {}
    for target, sender in sides.items():
        for record in tables[target].values():
            for each in filter(None, (record, record.notification)):
                for name in (each.handler, f"{each.handler}_from_{sender}"):
                    if hasattr(acp.Proxy, name):
                        found[name] = method(each.handler, target)
    return proxy_of(acp, **found)


def forwarding(acp: ModuleType) -> type[Any]:
    """A proxy that sees all as JSON, and hands it on."""

    async def forward(self: Any, call: Any) -> Any:
        assert call.params is None or isinstance(call.params, (dict, list, str, int, float))
        return await call.forward()

    return proxy_of(acp, from_client=forward, from_agent=forward)


# --- Neighbours by hand ----------------------------------------------------------------------------------------------


@dataclass
class End:
    """A neighbour of a proxy: it writes and reads text."""

    transport: Any
    ids: int = 0
    open: dict[str, Any] = field(default_factory=dict)
    """The ids of the requests that have arrived, by method."""

    async def send(self, text: str | bytes | dict[str, Any]) -> None:
        if isinstance(text, dict):
            text = json.dumps({"jsonrpc": "2.0", **text})
        await self.transport.write(text if isinstance(text, bytes) else text.encode())

    async def read(self) -> str | None:
        line = await self.transport.read()
        return None if line is None else line.decode()

    async def receive(self) -> Any:
        """The next message as JSON; None at the end."""
        line = await self.read()
        if line is None:
            return None
        message = json.loads(line)
        if "method" in message and "id" in message:
            self.open[message["method"]] = message["id"]
        return message

    async def request(self, method: str, params: Any = None, number: Any = None) -> Any:
        """Send a request; returns its id."""
        self.ids += 1
        number = f"{method} {self.ids}" if number is None else number
        await self.send({"id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    async def notify(self, method: str, params: Any = None) -> None:
        await self.send({"method": method, **({} if params is None else {"params": params})})

    async def answer(self, request: Any, **outcome: Any) -> None:
        """Answer a request that has arrived, with a `result` or an `error`."""
        await self.send({"id": request["id"], **(outcome or {"result": {}})})

    async def cancel(self, number: Any) -> None:
        await self.notify("$/cancel_request", {"requestId": number})

    async def close(self) -> None:
        await self.transport.close()


@dataclass
class Stage:
    """A client and an agent by hand, with proxies between."""

    client: End
    agent: End
    task: asyncio.Task[Any]

    async def asked(self, method: str = "session/prompt", params: Any = None) -> tuple[Any, Any]:
        """A request of the client that has arrived at the agent: the id of the client, and what the agent got."""
        number = await self.client.request(method, {"sessionId": "s", "prompt": []} if params is None else params)
        return number, await self.agent.receive()

    async def barrier(self) -> None:
        """Show that everything that was sent before has arrived, and nothing else: one more round trip."""
        number, request = await self.asked("_barrier", {})
        assert request["method"] == "_barrier", request
        await self.agent.answer(request)
        assert await self.client.receive() == {"jsonrpc": "2.0", "id": number, "result": {}}


@asynccontextmanager
async def between(
    acp: ModuleType, proxies: Sequence[Any], *, options: Any = None, max_messages: int = 256
) -> AsyncGenerator[Stage, None]:
    """Both neighbours of proxies that run in this process; afterwards all are closed."""
    (client, near), (far, agent) = acp.memory_transports(max_messages), acp.memory_transports(max_messages)
    task = asyncio.ensure_future(acp.serve_proxy(list(proxies), near, far, options=options))
    try:
        yield Stage(End(client), End(agent), task)
    finally:
        await client.close()
        await agent.close()
        await task


@asynccontextmanager
async def conducted(
    acp: ModuleType, proxies: Sequence[Any], agent: Sequence[str] | None, *, options: Any = None
) -> AsyncGenerator[End, None]:
    """A client by hand of a conductor in this process; afterwards all are closed, and the conductor has ended."""
    client, near = acp.memory_transports(256)
    task = asyncio.ensure_future(acp.serve_conductor(list(proxies), agent, near, options=options))
    try:
        yield End(client)
    finally:
        await client.close()
        await task


# --- Programs --------------------------------------------------------------------------------------------------------

AGENT = """
import json, os, signal, sys, time

waiting = {}
asked = {}
log = []


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(text):
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": "s", "update": chunk})


for line in sys.stdin:
    message = json.loads(line)
    method, params, number = message.get("method"), message.get("params"), message.get("id")
    if method is None:
        if number in asked:
            send(id=asked.pop(number), result={"stopReason": "end_turn", "_meta": {"answer": message.get("result")}})
        continue
    log.append([method, number])
    if method == "initialize":
        version = params.get("protocolVersion", 1)
        send(id=number, result={"protocolVersion": version, "agentCapabilities": {}, "new": 1.0})
    elif method == "$/cancel_request":
        found = waiting.pop(params["requestId"], None)
        if found is not None:
            send(id=params["requestId"], error={"code": -32800, "message": "cancelled"})
    elif method == "session/prompt":
        text = params["prompt"][0]["text"] if params["prompt"] else ""
        if text == "park":
            waiting[number] = True
            update("parked")
        elif text == "ask":
            asked["q"] = number
            send(id="q", method="session/request_permission", params={"sessionId": "s"})
        elif text == "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        elif text == "stop":
            os.close(1)
            time.sleep(60)
        else:
            update("Hello")
            send(id=number, result={"stopReason": "end_turn", "_meta": params.get("_meta")})
    elif method == "_log":
        send(id=number, result=log[:-1])
    elif method == "_pid":
        send(id=number, result=os.getpid())
    elif number is not None:
        send(id=number, result={"method": method, "params": params})
"""
"""An agent without a package: it says what it got, and does what prompts tell it."""

PREFIXING = """
import sys
from {package} import Proxy, run_conductor, run_proxy


class Prefixing(Proxy):
    async def session_update(self, params):
        if getattr(getattr(params.update, "content", None), "text", None) is not None:
            params.update.content.text = ">" + params.update.content.text
        await self.client.session_update(params)


if __name__ == "__main__":
    {run}
"""
"""A proxy that changes the text of updates; `run` is how it is run."""


@dataclass
class Programs:
    """Components as commands."""

    acp: ModuleType
    folder: Path

    def command(self, text: str, *, run: str = "run_proxy(Prefixing)") -> list[str]:
        """The command of a program: `{package}` in it is the package, `{run}` its last line."""
        source = dedent(text)
        if "{package}" in source:
            source = source.format(package=self.acp.__name__, run=run)
        path = self.folder / f"program_{len(list(self.folder.iterdir()))}.py"
        home = Path(str(self.acp.__file__)).parent.parent
        path.write_text(f"import sys\nsys.path.insert(0, {str(home)!r})\n{source}", encoding="utf-8")
        return [sys.executable, str(path)]

    @property
    def agent(self) -> list[str]:
        return self.command(AGENT)

    @property
    def prefixing(self) -> list[str]:
        return self.command(PREFIXING)

    def conductor(self, proxies: str) -> list[str]:
        """A conductor without an agent; `proxies` is the source of its list."""
        return self.command(PREFIXING, run=f"run_conductor({proxies})")


def is_running(pid: int) -> bool:
    """True if there is a process that is no zombie."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def prompt(text: str, **more: Any) -> dict[str, Any]:
    """The params of a prompt."""
    return {"sessionId": "s", "prompt": [{"type": "text", "text": text}], **more}
