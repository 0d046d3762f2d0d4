"""What opens with a stored session and closes with it, and the tools of its MCP servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, run
from tests.stored_support import editor, helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def opening(acp: Any, file: Path, seen: list[str], *, bad: bool = False) -> type[Any]:
    """Agents that note what is opened and closed."""
    told = teller(acp, helpers_of(acp).SqliteStore(file))

    class Opening(told):  # type: ignore[misc, valid-type]
        async def on_open(self, session: Any, params: Any) -> None:
            assert self.session(session.id) is session
            seen.append(f"open {type(params).__name__}")

        async def on_close(self, session_id: str) -> None:
            seen.append("close")
            if bad:
                raise ValueError("it cannot be closed")

    return Opening


def test_a_session_opens_and_closes_what_is_its_own(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with editor(acp, opening(acp, tmp_path / "s.db", seen)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            await client.load(session)  # while it is open
            await client.ask("session/close", sessionId=session)
            await client.ask("session/resume", sessionId=session, cwd="/project", mcpServers=[])
            await client.ask("session/delete", sessionId=session)
            await client.ask("session/delete", sessionId=session)
            seen.append("end")
            await client.new()
            await client.new()

    run(main())
    loaded = "LoadSessionRequest" if acp.PROTOCOL_VERSION == 1 else "ResumeSessionRequest"
    assert seen == [
        *("open NewSessionRequest", "close", f"open {loaded}", "close"),
        *("open ResumeSessionRequest", "close", "end"),
        *("open NewSessionRequest", "open NewSessionRequest", "close", "close"),
    ]


def test_a_session_that_cannot_be_opened_can_be_opened_later(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    failing = [False, True, False]

    class Opening(opening(acp, tmp_path / "s.db", seen)):  # type: ignore[misc]
        async def on_open(self, session: Any, params: Any) -> None:
            if failing.pop(0):
                raise acp.InvalidParamsError("no such server")
            await super().on_open(session, params)

    async def main() -> None:
        async with editor(acp, Opening) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            resume = {"sessionId": session, "cwd": "/project", "mcpServers": []}
            refused = await client.ask("session/resume", **resume)
            assert refused["message"].endswith("no such server")
            assert "code" not in await client.ask("session/resume", **resume)
            await client.prompt(session, "again")

    run(main())
    assert seen == ["open NewSessionRequest", "close", "open ResumeSessionRequest", "close"]


def test_what_cannot_be_closed_is_logged(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def main() -> Any:
        async with editor(acp, opening(acp, tmp_path / "s.db", seen, bad=True)) as client:
            session = await client.new()
            return await client.ask("session/close", sessionId=session)

    with acp_log() as log:
        assert "code" not in run(main())
    assert seen == ["open NewSessionRequest", "close"]
    assert any("`on_close` has failed" in record.getMessage() for record in log)


def test_tool_calls_that_the_end_of_a_turn_ends_are_saved_before_the_answer(acp: Any, tmp_path: Path) -> None:
    helpers = helpers_of(acp)
    store = helpers.SqliteStore(tmp_path / "s.db")

    class Leaving(teller(acp, store)):  # type: ignore[misc]
        async def work(self, params: Any) -> None:
            await helpers.ToolCalls(self.client, params.session_id, self.turns).start("1", "Read")

    async def main() -> Any:
        async with editor(acp, Leaving) as client:
            session = await client.new()
            assert await client.prompt(session, "go") == "end_turn"
            return [json.loads(each) for each in await store.entries(session, 0, 100)]

    assert [each["status"] for each in run(main()) if "toolCallId" in each] == ["in_progress", "failed"]


# --- Tools of MCP servers --------------------------------------------------------------------------------------------


class SeveralErrors(Exception):  # noqa: N818
    """As a group of errors, which Python 3.10 does not have."""

    exceptions = (ValueError("it broke"),)


class Server:
    """A server of a library that stands in for `mcp`."""

    def __init__(self, program: Any) -> None:
        if program.command == "missing":
            raise FileNotFoundError("there is no such program")
        self.name = program.command

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *error: object) -> None:
        OPEN.remove(self.name)

    async def list_tools(self) -> Any:
        OPEN.append(self.name)
        found = [SimpleNamespace(name=name, description=None, input_schema={"type": "object"}) for name in "ab"]
        return SimpleNamespace(tools=found)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if arguments.get("how") == "raise":
            raise SeveralErrors
        content = [SimpleNamespace(type="text", text=f"{self.name} {name}"), SimpleNamespace(type="image")]
        return SimpleNamespace(content=content, is_error=arguments.get("how") == "fail")


OPEN: list[str] = []


@asynccontextmanager
async def session_tools(helpers: Any, *commands: str) -> AsyncGenerator[Any, None]:
    servers = [helpers.StdioParameters(name=each, command=each, args=[], env={}, cwd=None) for each in commands]
    tools = helpers.SessionTools(servers)
    yield tools
    await tools.close()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mcp")
    vars(module).update(Client=Server, StdioServerParameters=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "mcp", module)
    OPEN.clear()


@pytest.mark.usefixtures("library")
def test_tools_of_servers(packages: Packages) -> None:
    helpers = helpers_of(packages(V1))

    async def main() -> None:
        async with session_tools(helpers, "one", "missing", "two") as tools:
            found = {each.name: each for each in await tools.list()}
            assert [*found] == ["a", "b", "two_a", "two_b"]
            assert (found["two_a"].server, found["two_a"].description) == ("two", "")
            assert await found["two_a"]() == "two a\n[image]"
            assert tools.errors == {"missing": "there is no such program"}
            for how, text in (("fail", "one b"), ("raise", "it broke")):
                with pytest.raises(helpers.SessionToolError, match=text):
                    await found["b"](how=how)
            assert OPEN == ["one", "two"]
        assert OPEN == []
        with pytest.raises(helpers.SessionToolError, match="the server one is not connected"):
            await found["a"]()

    run(main())


def test_without_the_library_a_session_has_no_tools(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # type: ignore[arg-type]
    helpers = helpers_of(packages(V1))

    async def main() -> None:
        async with session_tools(helpers, "one") as tools:
            assert await tools.list() == []
            assert "pip install" in tools.errors["one"]
        async with session_tools(helpers) as tools:
            assert await tools.list() == []
            assert tools.errors == {}

    run(main())


@pytest.mark.usefixtures("library")
def test_a_call_is_cancelled_with_its_task(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = helpers_of(packages(V1))
    ended: list[str] = []

    async def call_tool(self: Any, name: str, arguments: dict[str, Any]) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    monkeypatch.setattr(Server, "call_tool", call_tool)

    async def main() -> None:
        async with session_tools(helpers, "one") as tools:
            first, _ = await tools.list()
            task = asyncio.ensure_future(first())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main())
    assert ended == ["a"]
