"""A client that sends much to an agent: `flood.py SIZE COUNT COMMAND-AS-JSON`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from puppet import acp, note


async def main(size: str, count: str, command: str) -> None:
    async with acp.spawn_agent(acp.Client, json.loads(command), terminate_seconds=60) as agent:
        text = "x" * int(size)
        for _ in range(int(count)):
            await agent.ext_notification("_x", text)
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    note(next(line for line in status if line.startswith("VmHWM")))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
