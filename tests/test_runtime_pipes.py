"""The two pipes of an agent: nothing that was written is lost, and neither stays open."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V1, over_pipes, run
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


@dataclass
class Ends:
    """The descriptors of the agent, and those of its client."""

    stdin: int
    stdout: int
    to_agent: int
    from_agent: int


def pipes() -> Ends:
    stdin, to_agent = os.pipe()
    from_agent, stdout = os.pipe()
    return Ends(stdin, stdout, to_agent, from_agent)


class Counting:
    """A mixin for agents that count the characters of notifications, and take their time."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)  # type: ignore[call-arg]
        self.sizes: asyncio.Queue[int] = asyncio.Queue()

    async def ext_notification(self, method: str, params: Any) -> None:
        await asyncio.sleep(0.01)  # the client is faster
        self.sizes.put_nowait(len(params))


async def opened(acp: ModuleType, ends: Ends, **options: int) -> tuple[Any, Any]:
    kind = type("CountingAgent", (Counting, acp.Agent), {})
    return await over_pipes(acp, kind, ends.stdin, ends.stdout, **options)


def note(size: int) -> bytes:
    """A line of so many bytes."""
    start, end = b'{"jsonrpc":"2.0","method":"_n","params":"', b'"}'
    return start + b"x" * (size - len(start + end)) + end


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def are_closed(ends: Ends) -> bool:
    """Whether the agent has let go of both; the client does so here."""
    os.close(ends.from_agent)
    return not (is_open(ends.stdin) or is_open(ends.stdout))


def test_what_is_read_comes_whole(acp: ModuleType) -> None:
    lines = [note(size) for size in (43, 2**16 - 1, 2**16, 2**16 + 1, 500_000)]

    async def main() -> list[int]:
        ends = pipes()
        connection, agent = await opened(acp, ends)
        connection.start(agent)
        with os.fdopen(ends.to_agent, "wb") as wire:
            writing = asyncio.to_thread(lambda: (wire.write(b"\n".join(lines)), wire.close()))
            task = asyncio.create_task(writing)
            await connection.wait_closed()
            await task
        os.close(ends.from_agent)
        return [len(note(0)) + agent.sizes.get_nowait() for _ in range(agent.sizes.qsize())]

    assert run(main()) == [len(line) for line in lines]


@pytest.mark.parametrize("read", [0, 1, 2], ids=["before all", "while more is there", "at the end"])
def test_both_are_closed(acp: ModuleType, read: int) -> None:
    async def main() -> Ends:
        ends = pipes()
        connection, agent = await opened(acp, ends)
        os.write(ends.to_agent, note(50) + b"\n")
        if read:
            connection.start(agent)
            await agent.sizes.get()
        if read == 2:
            os.close(ends.to_agent)
            await connection.wait_closed()
        await connection.close()
        await asyncio.sleep(0.01)
        return ends

    ends = run(main())
    assert are_closed(ends)
    if read < 2:
        with pytest.raises(BrokenPipeError):
            os.write(ends.to_agent, b"two\n")
        os.close(ends.to_agent)
