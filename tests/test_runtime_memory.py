"""Backpressure: if a peer reads slowly, the other side waits, and its memory does not grow."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.runtime_agents import AgentProcess, Diary, command, complaints, environment
from tests.support import Packages
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("linux"),
]

SIZE = 60_000_000
MOST_KIB = 50_000_000 // 1024
"""A process has 28,000 KiB before it sends; without backpressure, it would have what it sends as well."""


def peak(status: str) -> int:
    """The most memory that a process ever had, in KiB, from its status in /proc."""
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def read_slowly(descriptor: int, size: int) -> int:
    """Read so many bytes at least: after a while, and a little at a time. Returns how many."""
    time.sleep(1)
    total = 0
    while total < size:
        chunk = os.read(descriptor, 2**16)
        assert chunk, f"the agent ended after {total} bytes"
        total += len(chunk)
        time.sleep(0.0005)
    return total


@pytest.mark.parametrize(
    ("length", "prompts"),
    [(4_000, 20), *(pytest.param(*each, marks=pytest.mark.deep) for each in ((100_000, 1), (100_000, 20), (4_000, 1)))],
)
def test_an_agent_that_streams_to_a_slow_client(packages: Packages, tmp_path: Path, length: int, prompts: int) -> None:
    """With one prompt, or with several that stream at the same time."""
    env = environment(packages(SOURCES[1]))
    with AgentProcess(command("puppet.py"), env, tmp_path / "stderr") as agent:
        for _ in range(prompts):
            agent.prompt(f"stream {length} {SIZE // length // prompts}")
        assert agent.process.stdout is not None
        total = read_slowly(agent.process.stdout.fileno(), SIZE)
        used = peak(Path(f"/proc/{agent.process.pid}/status").read_text(encoding="utf-8"))
        print(f"memory: an agent that streamed {total:,} bytes in {prompts} prompts had at most {used:,} KiB")
        assert used < MOST_KIB
        agent.close_stdin()
        while os.read(agent.process.stdout.fileno(), 2**16):
            pass
        assert agent.end() == 0
        assert complaints(agent.stderr) == []


def test_a_client_that_sends_to_a_slow_agent(packages: Packages, tmp_path: Path) -> None:
    diary = Diary(tmp_path)
    env = environment(packages(SOURCES[1]), ACP_DIARY=str(diary.path))
    argv = command("flood.py", "100000", str(SIZE // 100_000), json.dumps(command("odd.py", "reads_slowly")))
    with AgentProcess(argv, env, tmp_path / "stderr") as client:
        assert client.end() == 0, client.stderr
        read, used = diary.rest()
        diary.close()
        total = int(read.removeprefix("read "))
        print(f"memory: a client that sent {total:,} bytes had at most {peak(used):,} KiB")
        assert total > SIZE
        assert peak(used) < MOST_KIB
        assert complaints(client.stderr) == []
