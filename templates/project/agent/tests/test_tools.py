"""The tools of a session: of MCP servers that can be reached, and of others."""

from __future__ import annotations

import sys
import unittest
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, patch

from new_project.tools import SessionTools


@asynccontextmanager
async def weather(server: Any) -> AsyncGenerator[Any, None]:
    """A connection to a server with two tools; there is none to other servers than "weather"."""
    if server.name != "weather":
        raise FileNotFoundError(f"no program {server.name}")
    found = SimpleNamespace(tools=[SimpleNamespace(name=name) for name in ("forecast", "history")])
    yield SimpleNamespace(list_tools=AsyncMock(return_value=found))


async def described(*names: str) -> str:
    """What is shown of a session with these servers."""
    servers: Any = [SimpleNamespace(name=name) for name in names]
    tools = SessionTools(servers)
    try:
        return await tools.describe()
    finally:
        await tools.close()


class SessionToolsTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_tools_of_each_server_are_shown(self) -> None:
        with patch("new_project.tools.connected", weather):
            found = await described("weather", "lost")
        self.assertEqual(found, "weather: forecast, history\nlost: no program lost")

    async def test_it_does_without_tools(self) -> None:
        self.assertIn("no MCP servers", await described())
        with patch.dict(sys.modules, {"mcp": None}):
            self.assertIn("weather: its tools need the package mcp", await described("weather"))


if __name__ == "__main__":
    unittest.main()
