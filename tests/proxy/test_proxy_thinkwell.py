"""Proxies under the conductor in TypeScript that is on npm: the third form of the wire, without cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.interop import peers
from tests.needs import lacks
from tests.proxy.between import End, Programs, prompt
from tests.runtime_support import run

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("posix"),
]

SCRIPT = """
import { createInterface } from "node:readline";
import { Conductor, fromCommands } from "@thinkwell/conductor";

const lines = createInterface({ input: process.stdin });
async function* messages() {
  for await (const line of lines) yield JSON.parse(line);
}
const connection = {
  send: (message) => process.stdout.write(JSON.stringify(message) + "\\n"),
  messages: messages(),
  close: async () => lines.close(),
};
const instantiator = fromCommands(JSON.parse(process.argv[2]));
await new Conductor({ instantiator, mcpBridgeMode: "disabled" }).connect({ connect: async () => connection });
process.exit(0);
"""


@pytest.fixture
def conductor(request: pytest.FixtureRequest) -> list[str]:
    """The command of the conductor, but for its components."""
    try:
        cache = request.config.cache
        assert cache is not None
        node, folder = peers.conductor(peers.home(Path(cache.mkdir("interop-peers"))))
    except peers.MissingPeerError as error:
        lacks("registry", error)
    script = folder / "conductor.mjs"
    if not script.is_file() or script.read_text(encoding="utf-8") != SCRIPT:
        script.write_text(SCRIPT, encoding="utf-8")
    return [*node, str(script)]


@dataclass
class Pipe:
    """The lines of a process, as a transport."""

    process: asyncio.subprocess.Process

    async def read(self) -> bytes | None:
        assert self.process.stdout is not None
        return await self.process.stdout.readline() or None

    async def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()


@asynccontextmanager
async def client_of(conductor: list[str], components: list[list[str]]) -> AsyncGenerator[End, None]:
    commands = json.dumps([" ".join(each) for each in components])
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*conductor, commands, stdin=pipe, stdout=pipe, limit=2**25)
    try:
        yield End(Pipe(process))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


CHAINS = {
    "one": (lambda p: [p.prefixing], ">"),
    "three": (lambda p: [p.prefixing, p.conductor("[Prefixing]"), p.prefixing], ">>>"),
    "several in a process": (lambda p: [p.conductor("[Prefixing, Prefixing]")], ">>"),
    "nested": (lambda p: [p.conductor(f"[Prefixing, {p.prefixing!r}]"), p.conductor("[]")], ">>"),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_conversation(acp: ModuleType, programs: Programs, conductor: list[str], chain: str) -> None:
    make, prefix = CHAINS[chain]

    async def main() -> None:
        async with client_of(conductor, [*make(programs), programs.agent]) as client:
            await client.request("initialize", {"protocolVersion": 1, "own": None})
            result = (await client.receive())["result"]
            assert (result["protocolVersion"], result["new"]) == (1, 1)
            for meta in (None, {"own": [None, "\u2028"]}):
                number = await client.request("session/prompt", prompt("t", _meta=meta))
                update = await client.receive()
                assert update["params"]["update"]["content"]["text"] == f"{prefix}Hello"
                found = await client.receive()
                assert (found["id"], found["result"]) == (number, {"stopReason": "end_turn", "_meta": meta})
            await client.request("session/prompt", prompt("ask"))
            request = await client.receive()
            assert request["method"] == "session/request_permission"
            await client.answer(request, result={"outcome": {"own": 1}})
            assert (await client.receive())["result"]["_meta"]["answer"] == {"outcome": {"own": 1}}
            number = await client.request("_own/method", {"a": [1, {"b": None}]})
            found = {"method": "_own/method", "params": {"a": [1, {"b": None}]}}
            assert await client.receive() == {"jsonrpc": "2.0", "id": number, "result": found}
            await client.request("_large", {"text": "x" * 10**6})
            assert len((await client.receive())["result"]["params"]["text"]) == 10**6

    run(main())


def test_many_prompts_keep_their_order(acp: ModuleType, programs: Programs, conductor: list[str]) -> None:
    async def main() -> None:
        async with client_of(conductor, [programs.prefixing, programs.prefixing, programs.agent]) as client:
            await client.request("initialize", {"protocolVersion": 1})
            await client.receive()
            numbers = [await client.request("session/prompt", prompt("t")) for _ in range(100)]
            for number in numbers:
                update = await client.receive()
                assert update["params"]["update"]["content"]["text"] == ">>Hello"
                assert (await client.receive())["id"] == number

    run(main())


def test_an_error_of_the_agent(acp: ModuleType, programs: Programs, conductor: list[str]) -> None:
    """With its code and its data, as the agent has written it."""
    failing = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and message["method"] == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}), flush=True)
    elif "id" in message:
        error = {"code": -32000, "message": "no key", "data": {"own": [None]}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""

    async def main() -> None:
        async with client_of(conductor, [programs.prefixing, programs.command(failing)]) as client:
            await client.request("initialize", {"protocolVersion": 1})
            await client.receive()
            await client.request("session/new", {"cwd": "/", "mcpServers": []})
            found: Any = (await client.receive())["error"]
            assert found == {"code": -32000, "message": "no key", "data": {"own": [None]}}

    run(main())
