"""A running `acpgen trace --listen`, and what it has recorded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command_line import run_acpgen

Json = Any
SECONDS = 120


@dataclass
class Relay:
    """A running `acpgen trace --listen`."""

    port: int
    file: Path
    process: asyncio.subprocess.Process


@contextlib.asynccontextmanager
async def relay(url: str, file: Path, *options: str, **variables: str) -> AsyncGenerator[Relay, None]:
    """Record what passes to a URL."""
    given = ("--listen", "127.0.0.1:0", "--connect", url, "--out", str(file), *options)
    command = [sys.executable, "-m", "acpgen", "trace", *given]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stderr=pipe, env={**os.environ, **variables})
    assert process.stderr is not None
    try:
        started = (await process.stderr.readline()).decode()
        assert started.startswith("acpgen trace: recording from http://127.0.0.1:"), started
        yield Relay(int(started.split("127.0.0.1:")[1].split("/")[0].split()[0]), file, process)
        process.send_signal(signal.SIGTERM)
        rest = await asyncio.wait_for(process.stderr.read(), SECONDS)
        assert (await process.wait(), rest.decode()) == (0, "")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def lines(file: Path) -> list[Json]:
    # not those of `str.splitlines`, which also splits where a text has U+2028
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def said(file: Path) -> dict[str, list[Json]]:
    """The messages of each sender, in their order; those that answer at the same time have none."""
    found = [line for line in lines(file) if "msg" in line]
    by_side = {side: [line["msg"] for line in found if line["from"] == side] for side in ("client", "agent")}
    return {side: sorted(each, key=json.dumps) for side, each in by_side.items()}


def checked(file: Path) -> list[Json]:
    found: list[Json] = json.loads(run_acpgen("trace", file, "--format", "json", cwd=file.parent).stderr)
    return found
