"""The option `trace`, and the variable ACP_TRACE: every message of a connection is in a file, without its secrets."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.roles import Role
from tests.command_line import run_acpgen
from tests.remote_support import Client, Server, agent_for
from tests.runtime_support import V1, V2, agent_of, client_of, pair, raw_peer, run
from tests.support import Packages, runtime_module

pytestmark = pytest.mark.every_python

Json = Any
SECRET = "sk-7d1"
SECONDS = 60


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def messages(path: Path, **wanted: Json) -> list[Json]:
    found = [line for line in lines(path) if "size" in line]
    return [line for line in found if wanted.items() <= line.items()]


def agent(acp: ModuleType) -> type[Any]:
    async def initialize(self: Any, params: Any) -> Any:
        mcp = acp.McpCapabilities(http=True)
        return acp.InitializeResponse(
            protocol_version=1, agent_capabilities=acp.AgentCapabilities(mcp_capabilities=mcp)
        )

    async def session_new(self: Any, params: Any) -> Any:
        return acp.NewSessionResponse(session_id="s")

    async def authenticate(self: Any, params: Any) -> Any:
        return acp.AuthenticateResponse(meta={"token": SECRET})

    async def session_prompt(self: Any, params: Any) -> Any:
        return acp.PromptResponse(stop_reason="end_turn")

    return agent_of(
        acp,
        initialize=initialize,
        session_new=session_new,
        authenticate=authenticate,
        session_prompt=session_prompt,
    )


async def talk(acp: ModuleType, stub: Any) -> None:
    """A conversation with secrets in it."""
    await stub.initialize(acp.InitializeRequest(protocol_version=1))
    servers = [
        acp.McpServerStdio(name="m", command="m", args=[], env=[acp.EnvVariable(name="KEY", value=SECRET)]),
        acp.McpServerHttp(name="h", url="https://a", headers=[acp.HttpHeader(name="X-Key", value=SECRET)]),
    ]
    await stub.session_new(acp.NewSessionRequest(cwd="/é", mcp_servers=servers))


class Wire:
    """The messages on the wire of one side."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes]] = []

    def __call__(self, direction: str, message: bytes) -> None:
        self.seen.append((direction, message))


# --- What is recorded ------------------------------------------------------------------------------------------------


def test_every_message_is_recorded(acp: ModuleType, tmp_path: Path) -> None:
    wire, path = Wire(), tmp_path / "trace"
    options = acp.ConnectionOptions(trace=path, trace_secrets=True, on_message=wire, check_capabilities=False)

    async def main() -> None:
        async with pair(acp, agent(acp), client_of(acp), agent_options=options) as both:
            await talk(acp, both.agent)
            await both.agent.ext_notification("_told", {"a": 1})
            with pytest.raises(acp.RequestError):
                await both.agent.ext_method("_missing", None)

    run(main())
    found = messages(path)
    assert [(line["dir"], line["msg"]) for line in found] == [(way, json.loads(text)) for way, text in wire.seen]
    assert [line["size"] for line in found] == [len(text) for _, text in wire.seen]
    head, *rest = lines(path)
    assert {line["connection"] for line in rest} == {head["connection"]}
    assert (head["acp_trace"], rest[-1]["end"]) == (1, True)
    assert [line["t"] for line in rest] == sorted(line["t"] for line in rest)


def test_both_sides_say_who_sent_what(acp: ModuleType, tmp_path: Path) -> None:
    paths = {side: tmp_path / side for side in ("agent", "client")}
    options = {side: acp.ConnectionOptions(trace=str(path)) for side, path in paths.items()}

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.ensure_future(acp.serve_agent(agent(acp), near, options=options["agent"]))
        async with acp.connect(client_of(acp), far, options=options["client"]) as stub:
            await talk(acp, stub)
        await serving

    run(main())
    kept = ("from", "to", "msg", "size")
    found = {side: [{name: line[name] for name in kept} for line in messages(path)] for side, path in paths.items()}
    assert found["agent"] == found["client"]
    senders = ["client", "agent"] * 2
    assert [line["from"] for line in found["agent"]] == senders
    assert {line["dir"] for line in messages(paths["agent"], **{"from": "agent"})} == {"out"}
    assert {line["dir"] for line in messages(paths["client"], **{"from": "agent"})} == {"in"}
    assert [lines(paths[side])[0]["peer"] for side in ("agent", "client")] == ["client", "agent"]


def test_what_is_recorded_can_be_checked(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        near, far = acp.memory_transports()
        options = acp.ConnectionOptions(trace=path)
        serving = asyncio.ensure_future(acp.serve_agent(agent(acp), near, options=options))
        async with acp.connect(client_of(acp), far) as stub:
            await talk(acp, stub)
        await serving

    run(main())
    ran = run_acpgen("trace", path, cwd=tmp_path)
    assert (ran.code, ran.stderr) == (0, "")
    assert "session/new" in ran.stdout


def test_what_is_no_message_is_recorded(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        async with raw_peer(acp, agent(acp), options=acp.ConnectionOptions(trace=path)) as peer:
            for line in (b"no JSON", b"\xff", b'{"jsonrpc":"2.0","method":5}', b"[1]"):
                await peer.send_line(line)
                await peer.receive()

    run(main())
    found = messages(path, dir="in")
    assert [line.get("raw", line.get("raw64", line.get("msg"))) for line in found] == [
        "no JSON",
        "/w==",
        {"jsonrpc": "2.0", "method": 5},
        [1],
    ]
    assert len(messages(path, dir="out")) == 4


def test_a_message_that_cannot_be_sent_is_not_recorded(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        options = acp.ConnectionOptions(trace=path, max_message_bytes=1000)
        async with raw_peer(acp, agent(acp), options=options) as peer:
            with pytest.raises(acp.MessageTooLarge):
                await peer.stub.ext_notification("_big", "x" * 1000)
            with pytest.raises(TypeError):
                await peer.stub.ext_notification("_set", {1, 2})
            await peer.stub.ext_notification("_small", 1)
            await peer.receive()

    run(main())
    assert [line["msg"]["method"] for line in messages(path)] == ["_small"]


# --- Secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shows", [False, True])
def test_secrets_are_masked(acp: ModuleType, tmp_path: Path, shows: bool) -> None:
    path = tmp_path / "trace"

    async def main() -> None:
        options = acp.ConnectionOptions(trace=path, trace_secrets=shows, check_capabilities=False)
        lax = acp.ConnectionOptions(check_capabilities=False)
        async with pair(acp, agent(acp), client_of(acp), agent_options=options, client_options=lax) as both:
            await talk(acp, both.agent)
            login = acp.AuthenticateRequest(method_id="key", meta={"pin": SECRET})
            result = await both.agent.authenticate(login)
            assert result.meta == {"token": SECRET}  # the peer gets all of it

    run(main())
    text = path.read_text(encoding="utf-8")
    assert text.count(SECRET) == (4 if shows else 0)
    assert len(messages(path, masked=True)) == (0 if shows else 3)
    assert {"KEY", "X-Key", "key"} <= set(text.split('"'))


def test_the_places_of_secrets_are_data_of_the_package(packages: Packages, tmp_path: Path) -> None:
    """Those of all versions: a message does not say its own."""
    acp = packages(V1, V2)
    path = tmp_path / "trace"

    async def main() -> None:
        near, far = acp.memory_transports()
        connection = acp.Connection(near, acp.ConnectionOptions(trace=path))
        connection.start(agent_of(acp.v2)(None))
        params = {"methodId": "key", "_meta": {"pin": SECRET}}
        await far.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "auth/login", "params": params}).encode())
        await far.read()
        await connection.close()
        await far.close()

    run(main())
    assert SECRET not in path.read_text(encoding="utf-8")
    assert messages(path)[0]["msg"]["params"] == {"methodId": "key", "_meta": {"pin": "***"}}


# --- The file --------------------------------------------------------------------------------------------------------


def test_the_owner_alone_can_read_it(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.touch(0o644)

    async def main() -> None:
        async with raw_peer(acp, agent(acp), options=acp.ConnectionOptions(trace=path)) as peer:
            await peer.ping()

    run(main())
    assert stat.S_IMODE(path.stat().st_mode) == (0o600 if os.name == "posix" else 0o666)


def test_a_file_that_cannot_be_written_is_logged(
    acp: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(trace=tmp_path / "missing" / "trace")
        async with raw_peer(acp, agent(acp), options=options) as peer:
            await peer.ping()

    run(main())
    (error,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert "are not recorded" in error.getMessage()


@pytest.mark.needs("posix")
def test_a_file_that_cannot_grow_ends_no_connection(
    acp: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import resource

    path = tmp_path / "trace"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def main() -> None:
        async with raw_peer(acp, agent(acp), options=acp.ConnectionOptions(trace=path)) as peer:
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
            try:
                for _ in range(100):
                    await peer.ping()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

    run(main())
    assert caplog.text.count("no longer recorded") == 1
    assert path.stat().st_size <= 2_000


def test_connections_share_a_file(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def ping(options: Any) -> None:
        async with raw_peer(acp, agent(acp), options=options) as peer:
            for _ in range(20):
                await peer.ping()

    async def main() -> None:
        options = acp.ConnectionOptions(trace=path)
        await asyncio.gather(*(ping(options) for _ in range(5)))

    run(main())
    connections = [line["connection"] for line in lines(path)]
    assert sorted(connections.count(each) for each in set(connections)) == [42] * 5


def test_a_connection_that_was_quiet_finds_the_file(acp: ModuleType, tmp_path: Path) -> None:
    """Meanwhile, another one has filled two files, and the one that it knows is gone."""
    module = runtime_module(acp, "trace_file")
    path = tmp_path / "trace"
    quiet, other = (module.TraceFile(path, max_bytes=5_000, mask=None, name=each) for each in ("quiet", "other"))
    for number in range(100):
        other.message(b'{"text":"%s"}' % (b"x" * 500), sender="agent", to="client", at=number, size=512)
    quiet.message(b'{"a":1}', sender="client", to="agent", at=101, size=7)
    for each in (quiet, other):
        each.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["trace", "trace.1"]
    found = [line for each in ("trace.1", "trace") for line in lines(tmp_path / each)]
    assert found[-1]["msg"] == {"a": 1}
    assert [line["name"] for line in found if "acp_trace" in line][-1] == "quiet"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a":\r\n1,\n"b":"\u2028"}\n', '"msg":{"a":  1, "b":"\u2028"}'),
        ('{"a":NaN}', '"raw":"{\\"a\\":NaN}"'),
        ("[Infinity]", '"raw":"[Infinity]"'),
    ],
)
def test_a_message_is_one_line_of_json(acp: ModuleType, text: str, line: str) -> None:
    """Over HTTP and WebSocket, a message may have several lines."""
    module = runtime_module(acp, "trace_file")
    assert module.payload(text.encode(), None, sender="agent", to="client") == line


# --- Every transport, by the environment -----------------------------------------------------------------------------


def test_an_agent_over_http_and_websocket(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acp, path = packages(SchemaChoice(), remote=True), tmp_path / "trace"
    monkeypatch.setenv("ACP_TRACE", str(path))

    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                await client.new_session(stream)
            await client.delete()
            async with Client(server.app).socket() as socket:
                await socket.ask("s", "session/new", {"cwd": "/", "mcpServers": []})

    run(main())
    connections = list(dict.fromkeys(line["connection"] for line in messages(path)))
    assert len(connections) == 2
    for each in connections:
        found = messages(path, connection=each)
        assert [line["from"] for line in found][:4] == ["client", "agent"] * 2
        assert [line["msg"].get("method") for line in found][:4:2] == ["initialize", "session/new"]


def test_a_proxy_records_both_sides(packages: Packages, tmp_path: Path) -> None:
    acp = packages(V1, roles=(Role.PROXY,), options=Options(open=True, keep_unknown=True))
    path = tmp_path / "trace"
    hello = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1},"more": 1e2}'

    async def main() -> None:
        (client, near), (far, behind) = acp.memory_transports(), acp.memory_transports()
        options = acp.ConnectionOptions(trace=path)
        proxy = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far, options=options))
        await client.write(hello)
        number = json.loads(await behind.read())["id"]
        await behind.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": 1}}).encode())
        await client.read()
        await client.close()
        await behind.close()
        await proxy

    run(main())
    heads = {line["connection"]: line["peer"] for line in lines(path) if "acp_trace" in line}
    found = [(heads[line["connection"]], line["dir"], line["from"]) for line in messages(path)]
    assert found == [
        ("client", "in", "client"),
        ("agent", "out", "client"),
        ("agent", "in", "agent"),
        ("client", "out", "agent"),
    ]
    assert '"more": 1e2' in path.read_text(encoding="utf-8").splitlines()[2]  # the text is that of the wire


AGENT = """
import asyncio, sys
import {acp} as acp
class Agent(acp.Agent):
    async def initialize(self, params):
        return acp.InitializeResponse(protocol_version=1)
acp.run_agent(Agent)
print(sorted(name for name in sys.modules if "trace_file" in name or name.endswith("trace.trace")), file=sys.stderr)
"""


@pytest.mark.parametrize("name", ["", "trace"])
def test_an_agent_on_stdio(acp: ModuleType, tmp_path: Path, name: str) -> None:
    """Without the variable, no module for it is imported."""
    folder = Path(str(acp.__file__)).parent
    variables = {**os.environ, "PYTHONPATH": str(folder.parent), "ACP_TRACE": name and str(tmp_path / name)}
    hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    command = [sys.executable, "-c", AGENT.format(acp=acp.__name__)]
    ran = subprocess.run(command, input=hello, env=variables, capture_output=True, timeout=SECONDS, check=True)
    modules = [f"{acp.__name__}._runtime.trace.{each}" for each in ("trace", "trace_file")]
    assert ran.stderr.decode().splitlines()[-1] == str(modules if name else [])
    if name:
        assert [line["msg"] for line in messages(tmp_path / name)] == list(map(json.loads, [hello, ran.stdout]))
    else:
        assert list(tmp_path.iterdir()) == []


def test_a_client_of_a_process(acp: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    extra = {"PYTHONPATH": str(Path(str(acp.__file__)).parent.parent)}
    command = [sys.executable, "-c", AGENT.format(acp=acp.__name__)]

    async def main() -> None:
        options = acp.ConnectionOptions(trace=path)
        async with acp.spawn_agent(client_of(acp), command, extra_env=extra, options=options) as stub:
            await stub.initialize(acp.InitializeRequest(protocol_version=1))

    run(main())
    assert [(line["from"], line["dir"]) for line in messages(path)] == [("client", "out"), ("agent", "in")]
