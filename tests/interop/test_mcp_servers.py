"""MCP servers of `mcp` and `fastmcp`, reached by the records that helpers make of the entries of a session."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.needs import need
from tests.runtime_support import run

pytestmark = pytest.mark.full

SERVER = Path(__file__).resolve().parent / "mcp_server.py"


@pytest.fixture(scope="module", params=[1, 2])
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package of a new project."""
    name = f"agent_for_mcp_{request.param}"
    folder = tmp_path_factory.mktemp("project") / name
    assert run_acpgen("init", folder, f"--protocol={request.param}", cwd=folder.parent).code == 0
    sys.path.insert(0, str(folder / "src"))
    yield importlib.import_module(name)
    sys.path.remove(str(folder / "src"))


@contextmanager
def entry(library: str, transport: str, protocol: int) -> Iterator[dict[str, Any]]:
    """A server, as it is named in `mcpServers`."""
    need(library)
    if transport == "stdio":
        kind = {"type": "stdio"} if protocol == 2 else {}
        yield {**kind, "name": "one", "command": sys.executable, "args": [str(SERVER), library, "stdio"], "env": []}
        return
    need("uvicorn")
    command = [sys.executable, str(SERVER), library, "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield {"type": "http", "name": "one", "url": f"http://127.0.0.1:{port}/mcp", "headers": []}
        finally:
            process.kill()


def parameters(project: ModuleType, given: dict[str, Any]) -> Any:
    """The record that the agent makes of an entry."""
    acp = importlib.import_module(f"{project.__name__}.acp")
    helpers = importlib.import_module(f"{project.__name__}.acp.helpers")
    request = acp.decode(acp.NewSessionRequest, {"cwd": str(SERVER.parent), "mcpServers": [given]})
    (found,) = helpers.mcp_parameters(request.mcp_servers, cwd=request.cwd)
    return found


@asynccontextmanager
async def connected(server: Any) -> AsyncGenerator[Any, None]:
    """A client of the official SDK, connected to the server of a record."""
    mcp = importlib.import_module("mcp")
    if hasattr(server, "command"):
        program = mcp.StdioServerParameters(command=server.command, args=server.args, env=server.env, cwd=server.cwd)
        async with mcp.Client(program) as client:
            yield client
        return
    httpx, transport = importlib.import_module("httpx2"), importlib.import_module("mcp.client.streamable_http")
    http = httpx.AsyncClient(headers=server.headers, timeout=httpx.Timeout(30, read=300))
    async with http, mcp.Client(transport.streamable_http_client(server.url, http_client=http)) as client:
        yield client


SERVERS = [
    # both libraries over both transports; and the entries of both transports, whose forms differ in both protocols
    (1, "mcp", "stdio"),
    (1, "fastmcp", "http"),
    (2, "mcp", "http"),
    (2, "fastmcp", "stdio"),
    pytest.param(1, "mcp", "http", marks=pytest.mark.deep),
    pytest.param(1, "fastmcp", "stdio", marks=pytest.mark.deep),
    pytest.param(2, "mcp", "stdio", marks=pytest.mark.deep),
    pytest.param(2, "fastmcp", "http", marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("project", "library", "transport"), SERVERS, indirect=["project"])
def test_all_that_a_server_has(project: ModuleType, library: str, transport: str) -> None:
    acp = importlib.import_module(f"{project.__name__}.acp")

    async def main(given: dict[str, Any]) -> None:
        async with connected(parameters(project, given)) as client:
            await calls(client)
            await errors(client)
            await cancellation(client)
            await subscription(client, library)

    with entry(library, transport, acp.PROTOCOL_VERSION) as given:
        run(main(given))


def test_a_tool_may_take_its_time(project: ModuleType) -> None:
    """More than the 5 seconds that the HTTP library waits by itself."""
    acp = importlib.import_module(f"{project.__name__}.acp")

    async def main(given: dict[str, Any]) -> None:
        async with connected(parameters(project, given)) as client:
            assert text(await client.call_tool("sleep", {"seconds": 7})) == "slept"

    with entry("mcp", "http", acp.PROTOCOL_VERSION) as given:
        run(main(given))


async def calls(client: Any) -> None:
    names = {each.name for each in (await client.list_tools()).tools}
    assert {"echo", "count", "wait", "broken"} < names
    assert text(await client.call_tool("echo", {"text": "snow \u2603"})) == "snow \u2603"
    seen = list[float]()

    async def report(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    assert text(await client.call_tool("count", {"to": 5}, progress_callback=report)) == "counted"
    for _ in range(1000):
        if len(seen) == 5:
            break
        await asyncio.sleep(0.01)
    assert seen == [1, 2, 3, 4, 5]
    assert (await client.read_resource("note://one")).contents[0].text == "a note"
    assert "Ada" in (await client.get_prompt("hello", {"name": "Ada"})).messages[0].content.text


async def errors(client: Any) -> None:
    import mcp

    assert (await client.call_tool("broken", {})).is_error
    assert (await client.call_tool("echo", {})).is_error
    with pytest.raises(mcp.MCPError):
        await client.read_resource("note://two")
    with pytest.raises(mcp.MCPError):
        await client.get_prompt("nobody", {})


async def cancellation(client: Any) -> None:
    """The tool learns of it, and the connection goes on."""
    call = asyncio.ensure_future(client.call_tool("wait", {}))
    await asyncio.sleep(0.5)
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    for _ in range(1000):
        if text(await client.call_tool("cancelled", {})):
            break
        await asyncio.sleep(0.01)
    assert text(await client.call_tool("cancelled", {})) == "wait"


async def subscription(client: Any, library: str) -> None:
    import mcp

    async def event() -> Any:
        async with client.listen(tools_list_changed=True) as events:
            await client.call_tool("publish", {})
            async for each in events:
                return type(each).__name__
        return None

    if library == "mcp":
        assert await event() == "ToolsListChanged"
    else:
        with pytest.raises(mcp.MCPError) as error:
            await event()
        assert error.value.code == -32601


def text(result: Any) -> str:
    return "".join(each.text for each in result.content)
