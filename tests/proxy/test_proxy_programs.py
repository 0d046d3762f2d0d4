"""Chains of programs: a conductor starts proxies and an agent, which answer, die, or hang."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.proxy.between import End, Programs, conducted, is_running, prompt, proxy_of
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


async def opened(client: End) -> Any:
    await client.request("initialize", {"protocolVersion": 1, "x": 1.0})
    return await client.receive()


async def said(client: End) -> list[Any]:
    """The texts of the updates of a prompt, and how it was answered."""
    found: list[Any] = []
    while "method" in (message := await client.receive()):
        found.append(message["params"]["update"]["content"]["text"])
    return [*found, message.get("result", message.get("error"))["stopReason" if "result" in message else "code"]]


CHAINS = {
    "none": (lambda p: [], ""),
    "here": (lambda p: [prefixing(p.acp)], ">"),
    "spawned": (lambda p: [p.prefixing], ">"),
    "two processes": (lambda p: [p.prefixing, p.prefixing], ">>"),
    "mixed": (lambda p: [prefixing(p.acp), p.prefixing, prefixing(p.acp), prefixing(p.acp)], ">>>>"),
    "nested": (lambda p: [p.conductor("[Prefixing, Prefixing]"), prefixing(p.acp)], ">>>"),
    "empty inner": (lambda p: [p.conductor("[]")], ""),
}


def prefixing(acp: ModuleType) -> type[Any]:
    async def session_update(self: Any, params: Any) -> None:
        params.update.content.text = f">{params.update.content.text}"
        await self.client.session_update(params)

    return proxy_of(acp, session_update=session_update)


@pytest.mark.parametrize("chain", [*CHAINS])
def test_07_08_09_10_11_a_prompt(acp: ModuleType, programs: Programs, chain: str) -> None:
    make, prefix = CHAINS[chain]

    async def main() -> None:
        async with conducted(acp, make(programs), programs.agent) as client:
            result = (await opened(client))["result"]
            assert (result["protocolVersion"], result["new"]) == (1, 1.0)
            await client.request("session/prompt", prompt("t"))
            assert await said(client) == [f"{prefix}Hello", "end_turn"]
            await client.request("session/prompt", prompt("ask"))
            request = await client.receive()
            assert request["method"] == "session/request_permission"
            await client.answer(request, result={"outcome": 1})
            assert (await client.receive())["result"]["_meta"] == {"answer": {"outcome": 1}}
            number = await client.request("session/prompt", prompt("park"))
            await client.receive()
            await client.cancel(number)
            assert (await client.receive())["error"]["code"] == -32800
            await client.request("_log")
            methods = [method for method, _ in (await client.receive())["result"]]
            assert methods == ["initialize", *["session/prompt"] * 3, "$/cancel_request"]

    run(main())


@pytest.mark.parametrize("chain", ["none", "here", "two processes", "nested"])
def test_42_an_agent_that_dies_in_a_prompt(acp: ModuleType, programs: Programs, chain: str) -> None:
    """Every request that is open gets an error with what the agent has said last; then the client's end comes."""

    async def main() -> None:
        async with conducted(acp, CHAINS[chain][0](programs), programs.agent) as client:
            await opened(client)
            await client.request("session/prompt", prompt("park"), "a")
            await client.receive()
            await client.request("session/prompt", prompt("die"), "b")
            answers = [await client.receive() for _ in range(2)]
            assert {each["id"] for each in answers} == {"a", "b"}
            for each in answers:
                error = each["error"]
                assert error["code"] == -32603
                assert error["message"].startswith("Internal error: the agent has ended with exit code 3")
                assert "last words" in error["message"]
                assert (error["data"]["exitCode"], error["data"]["stderr"]) == (3, ["last words"])
            assert await client.receive() is None

    run(main())


LOUD = """
import os, sys

sys.stdin.readline()
for number in range(30):
    print("x" * 60_000, file=sys.stderr)
sys.stderr.flush()
os._exit(3)
"""


def test_the_last_words_of_an_agent_are_cut(acp: ModuleType, programs: Programs) -> None:
    """Each request that is lost gets them, so they must not be long."""

    async def main() -> None:
        async with conducted(acp, [], programs.command(LOUD)) as client:
            await client.request("initialize", {"protocolVersion": 1})
            line = await client.read() or ""
            assert json.loads(line)["error"]["data"]["exitCode"] == 3
            assert len(line) < 40_000

    run(main())


def test_a_client_on_the_network(acp: ModuleType, programs: Programs) -> None:
    """It does not learn what the agent has written, and cannot put itself in the place of the agent."""

    async def main() -> None:
        far, near = acp.memory_transports()
        near.peer_kind = "network"
        task = asyncio.ensure_future(acp.serve_conductor([acp.Proxy], programs.agent, near))
        client = End(far)
        for opening in ("proxy/initialize", "_proxy/initialize"):
            await client.request(opening, {"protocolVersion": 1})
            error = (await client.receive())["error"]
            assert (error["code"], "initialize must come first" in error["message"]) == (-32600, True)
        await client.request("initialize", {"protocolVersion": 1, "_meta": {"proxy": True}})
        assert (await client.receive())["error"]["code"] == -32600
        await client.request("initialize", {"protocolVersion": 1})
        assert "new" in (await client.receive())["result"]  # the agent has answered
        await client.request("session/prompt", prompt("die"))
        answer = await client.receive()
        assert answer["error"] == {"code": -32603, "message": "Internal error: the agent has closed the connection"}
        await task

    run(main())


KNOWING = """
import sys
from {package} import Agent, InitializeResponse, run_agent


class Knowing(Agent):
    async def initialize(self, params):
        return InitializeResponse(protocol_version=1, meta={{"kind": self.client.peer_kind}})


run_agent(Knowing)
"""


@pytest.mark.parametrize("kind", ["network", "process"])
def test_an_agent_knows_that_its_client_is_on_the_network(
    acp: ModuleType, packages: Packages, tmp_path: Path, kind: str
) -> None:
    """It is started as a process, by a proxy that serves the network."""
    (folder := tmp_path / "programs").mkdir()

    async def main() -> None:
        far, near = acp.memory_transports()
        near.peer_kind = kind
        agent = Programs(packages(V1, roles=(Role.AGENT,)), folder).command(KNOWING)
        task = asyncio.ensure_future(acp.serve_conductor([], agent, near))
        client = End(far)
        await client.request("initialize", {"protocolVersion": 1})
        assert (await client.receive())["result"]["_meta"] == {"kind": kind}
        await client.close()
        await task

    run(main())


@pytest.mark.parametrize("kind", ["network", "process"])
def test_a_path_is_for_local_clients(acp: ModuleType, kind: str) -> None:
    async def main() -> None:
        far, near = acp.memory_transports()
        near.peer_kind = kind
        task = asyncio.ensure_future(acp.serve_conductor([], ["/nowhere/agent"], near))
        client = End(far)
        await client.request("initialize", {"protocolVersion": 1})
        message = (await client.receive())["error"]["message"]
        assert ("/nowhere" in message) == (kind == "process")
        await client.close()
        await task

    run(main())


def test_an_override_of_a_prompt_in_which_the_agent_dies(acp: ModuleType, programs: Programs) -> None:
    """The same error as for one that is passed on."""

    async def session_prompt(self: Any, params: Any) -> Any:
        return await self.agent.session_prompt(params)

    async def main() -> None:
        async with conducted(acp, [proxy_of(acp, session_prompt=session_prompt)], programs.agent) as client:
            await opened(client)
            await client.request("session/prompt", prompt("die"))
            error = (await client.receive())["error"]
            assert (error["code"], error["data"]["stderr"]) == (-32603, ["last words"])
            assert await client.receive() is None

    with acp_log() as records:
        run(main())
    assert "Traceback" not in texts(records)


@pytest.mark.full
@pytest.mark.parametrize("chain", ["none", "two processes"])
def test_an_agent_that_closes_stdout_and_lives_on(acp: ModuleType, programs: Programs, chain: str) -> None:
    async def main() -> None:
        async with conducted(acp, CHAINS[chain][0](programs), programs.agent) as client:
            await opened(client)
            await client.request("_pid")
            pid = (await client.receive())["result"]
            await client.request("session/prompt", prompt("stop"))
            assert (await client.receive())["error"]["code"] == -32603
            assert await client.receive() is None
        assert not is_running(pid)

    run(main())


@pytest.mark.parametrize("chain", ["none", "two processes", "nested"])
def test_client_eof_with_a_pending_request(acp: ModuleType, programs: Programs, chain: str) -> None:
    """All processes are gone when the conductor has ended."""

    async def main() -> None:
        async with conducted(acp, CHAINS[chain][0](programs), programs.agent) as client:
            await opened(client)
            await client.request("_pid")
            pid = (await client.receive())["result"]
            await client.request("session/prompt", prompt("park"))
            await client.receive()
            assert is_running(pid)
        assert not is_running(pid)

    run(main())


DEAF = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "_pid":
        import os
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": os.getpid()}), flush=True)
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}), flush=True)
time.sleep(60)
"""


@pytest.mark.full
@pytest.mark.parametrize("place", ["agent", "proxy"])
def test_a_program_that_ignores_its_end_is_killed(acp: ModuleType, programs: Programs, place: str) -> None:
    chain, agent = ([], programs.command(DEAF)) if place == "agent" else ([programs.command(DEAF)], programs.agent)

    async def main() -> None:
        async with conducted(acp, chain, agent) as client:
            await opened(client)
            await client.request("_pid")
            pid = (await client.receive())["result"]
        assert not is_running(pid)

    run(main())


EXITING = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}), flush=True)
sys.exit(5)
"""


@pytest.mark.parametrize("place", ["agent", "proxy"])
def test_an_exit_code_after_the_end_of_the_client_is_no_failure(
    acp: ModuleType, programs: Programs, place: str
) -> None:
    exiting = programs.command(EXITING)
    chain, agent = ([], exiting) if place == "agent" else ([exiting], programs.agent)

    async def main() -> None:
        async with conducted(acp, chain, agent) as client:
            await opened(client)

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


DYING = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "session/prompt":
        print("proxy says", file=sys.stderr, flush=True)
        os._exit(4)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}), flush=True)
"""


@pytest.mark.parametrize("place", [0, 1])
def test_a_proxy_that_dies(acp: ModuleType, programs: Programs, place: int) -> None:
    """The error names it, and the chain ends."""
    chain = [[programs.command(DYING), programs.prefixing], [prefixing(acp), programs.command(DYING)]][place]

    async def main() -> None:
        async with conducted(acp, chain, programs.agent) as client:
            await opened(client)
            await client.request("session/prompt", prompt("t"))
            error = (await client.receive())["error"]
            assert error["message"].startswith("Internal error: the proxy has ended with exit code 4")
            assert error["data"]["stderr"] == ["proxy says"]
            assert await client.receive() is None

    run(main())


@pytest.mark.parametrize("missing", ["agent", "first", "last"])
def test_a_missing_program(acp: ModuleType, programs: Programs, missing: str) -> None:
    """`initialize` is refused, and may be sent again. Nothing that was started is left."""
    nothing = ["/no/such/program"]
    chain = {"first": [nothing, programs.prefixing], "last": [programs.prefixing, nothing]}.get(missing, [])
    agent = nothing if missing == "agent" else programs.agent

    async def main() -> None:
        async with conducted(acp, chain, agent) as client:
            for _ in range(2):
                error = (await opened(client))["error"]
                assert error["code"] == -32603
                assert "/no/such/program" in error["message"]

    run(main())


def test_a_missing_program_under_a_conductor(acp: ModuleType) -> None:
    async def main() -> None:
        async with conducted(acp, [["/no/such/program"]], None) as conductor:
            for _ in range(3):
                await conductor.request("proxy/initialize", {"protocolVersion": 1})
                assert (await conductor.receive())["error"]["code"] == -32603

    run(main())


BAD = """
import json, sys
# a proxy that passes the request on that opened it
for line in sys.stdin:
    message = json.loads(line)
    if "initialize" in message.get("method", ""):
        inner = {"method": sys.argv[1] if len(sys.argv) > 1 else "proxy/initialize", "params": message["params"]}
        print(json.dumps({"jsonrpc": "2.0", "id": "i", "method": "proxy/successor", "params": inner}), flush=True)
        opening = message["id"]
    else:
        print(json.dumps({**message, "id": opening}), flush=True)
"""


@pytest.mark.parametrize("next_one", ["agent", "proxy"])
@pytest.mark.parametrize("method", ["proxy/initialize", "_proxy/initialize"])
def test_05_06_a_bad_proxy(acp: ModuleType, programs: Programs, next_one: str, method: str) -> None:
    """`proxy/initialize` never leaves a proxy, however it is spelled."""
    chain = [[*programs.command(BAD), method], *([programs.prefixing] if next_one == "proxy" else [])]

    async def main() -> None:
        async with conducted(acp, chain, programs.agent) as client:
            error = (await opened(client))["error"]
            assert error["code"] == -32600
            assert method in error["message"]

    run(main())


RUNNING = """
import sys
from {package} import Proxy, run_proxy
run_proxy(Proxy, sys.argv[1:] or None)
"""


async def started(programs: Programs, *arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = [*programs.command(RUNNING), *arguments]
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize("end", ["eof", "term", "agent"])
def test_run_proxy(programs: Programs, end: str) -> None:
    """The program ends well with its client, and with a message if the agent has failed."""

    async def main() -> None:
        process = await started(programs, *programs.agent)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None

        async def ask(method: str, params: Any = None) -> Any:
            line = json_line(method, params)
            process.stdin.write(line)
            return json_of(await process.stdout.readline())

        assert (await ask("initialize", {"protocolVersion": 1}))["result"]["protocolVersion"] == 1
        pid = (await ask("_pid"))["result"]
        if end == "agent":
            assert "last words" in (await ask("session/prompt", prompt("die")))["error"]["message"]
        elif end == "term":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        stdout, stderr = await asyncio.gather(process.stdout.read(), process.stderr.read())
        code = await process.wait()
        assert stdout == b""
        assert not is_running(pid)
        if end == "agent":
            assert code == 1
            assert b"the agent has ended with exit code 3" in stderr
        else:
            assert (code, stderr) == (0, b"")

    run(main())


def json_line(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"


def json_of(line: bytes) -> Any:
    return json.loads(line)


def test_a_killed_proxy_leaves_no_agent(programs: Programs) -> None:
    async def main() -> None:
        process = await started(programs, *programs.agent)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json_line("initialize", {"protocolVersion": 1}))
        await process.stdout.readline()
        process.stdin.write(json_line("_pid", None))
        pid = json_of(await process.stdout.readline())["result"]
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        process.stdin.close()
        while is_running(pid):
            await asyncio.sleep(0.01)

    run(main())


def test_44_a_message_at_the_limit(acp: ModuleType, programs: Programs) -> None:
    """A proxy that is started gets it wrapped, with a longer id."""
    limit = 2**16
    options = acp.ConnectionOptions(max_message_bytes=limit)

    async def main() -> None:
        async with conducted(acp, [programs.conductor("[]")], programs.agent, options=options) as client:
            await opened(client)
            params = prompt("")
            text = "x" * (limit - len(json_line("session/prompt", params)) + 1)
            params["prompt"][0]["text"] = text
            await client.send(json_line("session/prompt", params)[:-1])
            assert await said(client) == ["Hello", "end_turn"]

    run(main())


FLOOD = """
import json, sys

# reads a message, then writes some large ones, and only then reads the next one: as most agents do
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        for number in range(5):
            note = {"jsonrpc": "2.0", "method": "_note", "params": {"text": "x" * 100000}}
            print(json.dumps(note), flush=True)
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}), flush=True)
"""


@pytest.mark.parametrize(
    "chain", ["spawned", *(pytest.param(each, marks=pytest.mark.full) for each in ("here", "two processes"))]
)
def test_43_floods_of_both_sides(acp: ModuleType, programs: Programs, chain: str) -> None:
    """One pipe has the messages of both neighbours: neither direction may wait for the other one."""
    count = 8

    async def main() -> None:
        async with conducted(acp, CHAINS[chain][0](programs), programs.command(FLOOD)) as client:
            await opened(client)

            async def write() -> None:
                for _ in range(count):
                    for _ in range(3):
                        await client.notify("_note", {"text": "y" * 200000})

            writing = asyncio.ensure_future(write())
            for _ in range(count * 15):
                assert (await client.receive())["method"] == "_note"
            await writing
            await client.request("_end")
            assert "result" in await client.receive()

    run(main())


def test_a_command_is_a_list(acp: ModuleType) -> None:
    for proxies, agent in (([], "agent"), (["proxy"], ["agent"]), ([acp.Proxy], b"agent")):
        with pytest.raises(TypeError, match=r"a command is a list"):
            run(acp.serve_conductor(proxies, agent, acp.memory_transports()[0]))
