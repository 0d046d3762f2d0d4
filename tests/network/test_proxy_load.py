"""Much at a time through a proxy: clients that read nothing, many updates, and a thousand sessions."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.network.proxies import Lines, bridge, raw_agent, serving
from tests.runtime_agents import PATIENCE

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("linux"),
]

MIB = 2**20
UPDATE = 10_000
"""The bytes of an update."""
UPDATES = 20_000
MOST = 100 * MIB
"""The most memory of a process; what is sent takes twice as much."""
PROXY = "import sys, acp_proxy; acp_proxy.run_proxy({1: acp_proxy.v1.Proxy, 2: acp_proxy.v2.Proxy}, sys.argv[1:])"


def resident(process: int) -> int:
    """The memory of a process, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii").split()
    return int(status[status.index("VmRSS:") + 1]) * 1024


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()]


def settled(value: Callable[[], int]) -> int:
    """Wait until a number does not change for a second; returns it."""
    deadline, last, since = time.monotonic() + PATIENCE, value(), time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < 1:
        time.sleep(0.05)
        if (now := value()) != last:
            last, since = now, time.monotonic()
    return last


def written(process: int) -> int:
    """The bytes that a process has written."""
    io = Path(f"/proc/{process}/io").read_text(encoding="ascii").split()
    return int(io[io.index("wchar:") + 1])


@pytest.fixture(params=["stdio", "ws", "http"])
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Lines, Callable[[], list[int]]]]:
    """A client of an agent behind a proxy, and what returns the processes between them, and that of the agent."""
    if request.param == "stdio":
        with Lines(sys.executable, "-c", PROXY, *raw_agent()) as client:
            client.initialize()
            yield client, lambda: [client.pid, *children(client.pid)]
        return
    with serving("hypercorn", tmp_path) as server, bridge(server.url(request.param)) as client:
        client.initialize()
        yield client, lambda: [client.pid, server.process.pid, *children(server.process.pid)]


def test_a_client_that_reads_nothing_holds_the_agent_back(chain: tuple[Lines, Callable[[], list[int]]]) -> None:
    client, processes = chain
    client.ask(1, "session/new", {"cwd": "/", "mcpServers": []})
    params = {"sessionId": "s", "prompt": [], "_meta": {"count": UPDATES, "pad": "x" * UPDATE}}
    client.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
    *between, agent = processes()
    sent = settled(lambda: written(agent))
    assert 10 * UPDATE < sent < MOST
    assert all(resident(each) < MOST for each in between)
    numbers = [json.loads(client.read())["params"]["number"] for _ in range(UPDATES)]
    assert numbers == list(range(UPDATES))
    assert json.loads(client.read())["id"] == 2
    assert all(resident(each) < MOST for each in between)


def test_a_thousand_sessions_at_a_time() -> None:
    with Lines(sys.executable, "-c", PROXY, *raw_agent()) as client:
        client.initialize()
        count = 1000
        for number in range(1, count + 1):
            client.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "_hold", "params": {"n": number}}))
        client.write('{"jsonrpc":"2.0","id":"release","method":"_release","params":{}}')
        answers = [json.loads(client.read()) for _ in range(count + 1)]
        assert {each["id"]: each["result"] for each in answers} == {
            **{number: {"n": number} for number in range(1, count + 1)},
            "release": {},
        }
        before = resident(client.pid)
        for number in range(1, 10 * count):
            assert client.ask(number, "_echo", {})["id"] == number
        assert resident(client.pid) < before + 10 * MIB
        assert client.ended() == (0, "")
