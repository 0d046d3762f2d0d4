"""The tools of the MCP servers of a session: of servers that stand in for a library, and of programs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.needs import need
from tests.runtime_support import V1, acp_log, run
from tests.support import Packages
from tests.turns_support import helpers_of


class SeveralErrors(Exception):  # noqa: N818
    """As a group of errors, which Python 3.10 does not have."""

    exceptions = (ValueError("it broke"),)


class Server:
    """A client of a library that stands in for `mcp`; its server is what `SERVERS` has for the command."""

    def __init__(self, program: Any) -> None:
        if program.command not in SERVERS:
            raise FileNotFoundError("there is no such program")
        self.name = program.command
        self.lists = SERVERS[self.name]

    async def __aenter__(self) -> Server:
        OPEN.append(self.name)
        return self

    async def __aexit__(self, *error: object) -> None:
        OPEN.remove(self.name)

    async def list_tools(self, *, cursor: str | None = None) -> Any:
        found = self.lists(cursor)
        if asyncio.iscoroutine(found):
            found = await found
        return SimpleNamespace(tools=found[0], next_cursor=found[1])

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if arguments.get("how") == "wait":
            try:
                await asyncio.Event().wait()
            finally:
                OPEN.append("the call has ended")
        if arguments.get("how") == "raise":
            raise SeveralErrors
        text = str(arguments.get("self", f"{self.name} {name}"))
        content = [SimpleNamespace(type="text", text=text), SimpleNamespace(type="image")]
        return SimpleNamespace(content=content, is_error=arguments.get("how") == "fail")


OPEN: list[str] = []
SERVERS: dict[str, Callable[[str | None], Any]] = {}


def tool(name: str, description: str | None = None) -> Any:
    return SimpleNamespace(name=name, description=description, input_schema={"type": "object"})


def server(command: str, *names: str) -> None:
    """Let there be a server with these tools."""
    SERVERS[command] = lambda _: ([tool(name) for name in names], None)


def parameters(helpers: Any, name: str, *command: str) -> Any:
    program, *args = command or (name,)
    return helpers.StdioParameters(name=name, command=program, args=args, env={}, cwd=None)


@asynccontextmanager
async def session_tools(helpers: Any, *servers: Any, **options: Any) -> AsyncGenerator[Any, None]:
    found = [each if not isinstance(each, str) else parameters(helpers, each) for each in servers]
    tools = helpers.SessionTools(found, **options)
    try:
        yield tools
    finally:
        await tools.close()


@pytest.fixture(name="helpers")
def helpers_of_package(packages: Packages) -> Any:
    return helpers_of(packages(V1))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mcp")
    vars(module).update(Client=Server, StdioServerParameters=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "mcp", module)
    OPEN.clear()
    SERVERS.clear()


def names_of(helpers: Any, *servers: Any) -> dict[str, tuple[str, str]]:
    """The servers and the original names of tools by their names."""

    async def main() -> Any:
        async with session_tools(helpers, *servers) as tools:
            found = await tools.list()
            assert len({each.name for each in found}) == len(found)
            assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each.name) for each in found)
            return {each.name: (each.server, each.original_name) for each in found}

    return dict(run(main()))


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_tools_of_servers(helpers: Any) -> None:
    server("one", "a", "b")
    server("two", "b", "c")

    async def main() -> None:
        async with session_tools(helpers, "one", "missing", "two") as tools:
            found = {each.name: each for each in await tools.list()}
            assert [*found] == ["a", "one_b", "two_b", "c"]
            assert (found["two_b"].server, found["two_b"].original_name) == ("two", "b")
            assert (found["two_b"].description, found["two_b"].input_schema) == ("", {"type": "object"})
            assert await found["two_b"]() == "two b\n[image]"
            assert [*tools.errors] == [("missing", "there is no such program")]
            for how, text in (("fail", "one b"), ("raise", "it broke")):
                with pytest.raises(helpers.SessionToolError, match=text):
                    await found["one_b"](how=how)
            assert OPEN == ["one", "two"]
        assert OPEN == []
        with pytest.raises(helpers.SessionToolError, match="the server one is not connected"):
            await found["a"]()

    with acp_log() as log:
        run(main())
    assert ["'missing' cannot be used: there is no" in record.getMessage() for record in log] == [True]


@pytest.mark.every_python
def test_without_the_library_a_session_has_no_tools(helpers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # type: ignore[arg-type]

    async def main() -> None:
        async with session_tools(helpers, "one", "one") as tools:
            assert await tools.list() == []
            assert ["pip install" in why for _, why in tools.errors] == [True, True]
        async with session_tools(helpers) as tools:
            assert await tools.list() == []
            assert [*tools.errors] == []

    with acp_log():
        run(main())


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_a_call_is_cancelled_with_its_task(helpers: Any) -> None:
    server("one", "a")

    async def main() -> None:
        async with session_tools(helpers, "one") as tools:
            (first,) = await tools.list()
            task = asyncio.ensure_future(first(how="wait"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert OPEN == ["one", "the call has ended"]

    run(main())


# --- Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_names_are_such_as_models_take(helpers: Any) -> None:
    long = "x" * 80
    server("one", "read.file", "größe", "", long, "plain-1")
    assert names_of(helpers, "one") == {
        "read_file": ("one", "read.file"),
        "gr__e": ("one", "größe"),
        "tool": ("one", ""),
        "x" * 64: ("one", long),
        "plain-1": ("one", "plain-1"),
    }


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_names_that_become_equal_stay_apart(helpers: Any) -> None:
    server("one", "a.b", "a b", "c", f"{'x' * 64}1", f"{'x' * 64}2", "twice", "twice")
    server("two", "c")
    same = [parameters(helpers, "two"), parameters(helpers, "two")]
    found = names_of(helpers, "one", *same)
    assert sorted(found.values()) == sorted([
        *(("one", name) for name in ("a.b", "a b", "c", f"{'x' * 64}1", f"{'x' * 64}2", "twice")),
        *(("two", "c"), ("two", "c")),
    ])  # fmt: skip
    assert found["one_c"] == ("one", "c")
    assert names_of(helpers, *same, "one") == found
    assert sum(bool(re.fullmatch("two_c_[0-9a-f]{8}", name)) for name in found) == 2


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_a_server_cannot_take_the_name_of_a_tool_of_another(helpers: Any) -> None:
    server("one", "a.b", "a_b")
    marked = [name for name, (_, original) in names_of(helpers, "one").items() if original == "a.b"]
    server("two", *marked)
    found = names_of(helpers, "one", "two")
    assert sorted(found.values()) == [("one", "a.b"), ("one", "a_b"), ("two", *marked)]


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_an_argument_may_be_called_self(helpers: Any) -> None:
    server("one", "a")

    async def main() -> None:
        async with session_tools(helpers, "one") as tools:
            (first,) = await tools.list()
            assert await first(self="me") == "me\n[image]"

    run(main())


# --- Servers that send too much, or nothing --------------------------------------------------------------------------


def listed(helpers: Any, lists: Callable[[str | None], Any]) -> tuple[int, list[str]]:
    """How many tools of a server are used, and what is logged."""
    SERVERS["one"] = lists
    with acp_log() as log:
        found = names_of(helpers, "one")
    return len(found), [record.getMessage() for record in log]


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_all_pages_are_read(helpers: Any) -> None:
    asked: list[str | None] = []

    def lists(cursor: str | None) -> Any:
        asked.append(cursor)
        return [tool(f"tool-{len(asked)}")], {1: "", 2: "b"}.get(len(asked))

    assert listed(helpers, lists) == (3, [])
    assert asked == [None, "", "b"]


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_a_cursor_that_repeats_ends_the_list(helpers: Any) -> None:
    following = {None: "a", "a": "b", "b": "a"}
    assert listed(helpers, lambda cursor: ([tool(f"tool-{cursor}")], following[cursor])) == (3, [])


BIG = "x" * 2**20
FLOODS: dict[str, tuple[Callable[[Sequence[int]], Any], range]] = {
    "pages": (lambda count: ([tool(f"{len(count)}")], f"{len(count)}"), range(10, 101)),
    "cursors": (lambda count: ([tool(f"{len(count)}")], f"{len(count)}{BIG}"), range(1, 2)),
    "tools": (lambda count: ([tool(f"{len(count)}-{at}") for at in range(5_000)], "x"), range(1_000, 1_001)),
    "bytes": (lambda count: ([tool(f"{len(count)}", f"{len(count)}{BIG}")], f"{len(count)}"), range(5, 9)),
}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.every_python
def test_a_flood_of_tools_is_cut(helpers: Any, flood: str) -> None:
    count: list[int] = []
    make, expected = FLOODS[flood]

    def lists(_: str | None) -> Any:
        count.append(1)
        return make(count)

    used, log = listed(helpers, lists)
    assert used in expected
    assert log == [f"the MCP server 'one' has too many tools: {used} of them are used"]


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_a_large_result_is_cut(helpers: Any) -> None:
    server("one", "a")

    async def main() -> None:
        async with session_tools(helpers, "one") as tools:
            (first,) = await tools.list()
            text = await first(self="x" * 2**21)
            assert len(text) < 2**20 + 100
            assert text.endswith("x\n[the rest is left out: a result may have 1048576 characters]")
            with pytest.raises(helpers.SessionToolError) as error:
                await first(self="x" * 2**21, how="fail")
            assert len(str(error.value)) < 2**20 + 100

    run(main())


@pytest.mark.usefixtures("library")
@pytest.mark.every_python
def test_a_server_that_hangs_holds_up_the_others_for_a_while(helpers: Any) -> None:
    server("one", "a")

    async def hangs() -> Any:
        await asyncio.Event().wait()

    SERVERS["two"] = lambda _: hangs()

    async def main() -> None:
        async with session_tools(helpers, "two", "one", connect_seconds=0.05) as tools:
            assert [each.name for each in await tools.list()] == ["a"]
            assert [*tools.errors] == [("two", "it was not ready after 0.05 seconds")]
            await asyncio.sleep(0)
            assert OPEN == ["one"]
        async with session_tools(helpers, "two"):
            pass  # it has not begun

    with acp_log() as log:
        run(main())
    assert len(log) == 1


HANGS = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(1000)
"""


def test_a_program_that_hangs_is_ended(helpers: Any, tmp_path: Path) -> None:
    need("mcp")
    file = tmp_path / "pid"

    async def main() -> None:
        hanging = parameters(helpers, "hanging", sys.executable, "-c", HANGS, str(file))
        async with session_tools(helpers, hanging, connect_seconds=5) as tools:
            assert await tools.list() == []
            assert [name for name, _ in tools.errors] == ["hanging"]

    with acp_log():
        run(main(), seconds=100)
    if file.exists():  # it may have been ended before it has begun
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)
