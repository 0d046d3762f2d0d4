"""Runs an agent of examples/frameworks/ which also tells, by `_alive`, what runs in it: tasks, and child processes.

python frameworks_watched.py SCRIPT STORE
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

script = Path(sys.argv[1])
sys.argv = sys.argv[1:]
sys.path.insert(0, str(script.parent))
acp = importlib.import_module("acp_frameworks")
example = importlib.import_module(script.stem)
(base,) = [each for each in vars(example).values() if isinstance(each, type) and issubclass(each, acp.Agent)]


def children() -> list[str]:
    """The processes that this one has started, where the system lists them."""
    return [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]


class Watched(base):  # type: ignore[misc, valid-type]
    async def ext_method(self, method: str, params: Any) -> Any:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        names = [str(getattr(each.get_coro(), "__qualname__", each.get_coro())) for each in tasks]
        return {"tasks": sorted(names), "children": sorted(children())}


acp.run_agent(Watched, options=acp.ConnectionOptions(cleanup_seconds=10.0))
