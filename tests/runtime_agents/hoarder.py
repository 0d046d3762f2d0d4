"""One side with helpers, on stdin and stdout, whose memory is measured: `hoarder.py agent|waiting|client FOLDER`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
helpers: Any = importlib.import_module(os.environ["ACP_PACKAGE"] + ".helpers")
role, folder = sys.argv[1], Path(sys.argv[2])
ids = {} if acp.PROTOCOL_VERSION == 1 else {"message_id": "m"}
STATE_BYTES = 2**21


def agent() -> type[Any]:
    """An agent that stores its sessions, asks for permission, and keeps nothing by itself."""

    class Hoarder(helpers.StoredAgent):  # type: ignore[name-defined, misc]
        store = helpers.SqliteStore(folder / "sessions.db")
        save_seconds = 0.01

        async def initialize(self, params: Any) -> Any:
            info = acp.Implementation(name="hoarder", version="1")
            named = {} if acp.PROTOCOL_VERSION == 1 else {"info": info}
            return acp.advertise(self, acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **named))

        async def work(self, params: Any) -> None:
            self.session(params.session_id).data = len(params.prompt)
            async with helpers.tool_call(self.client, params.session_id, "Edit", status="pending") as call:
                await call.permission()
            await self.client.session_update(helpers.agent_message(params.session_id, "done", **ids))

        async def ext_method(self, method: str, params: Any) -> Any:
            gc.collect()

    return Hoarder


def waiting() -> type[Any]:
    """An agent whose turns end when they are cancelled."""

    class Waiting(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def initialize(self, params: Any) -> Any:
            info = acp.Implementation(name="waiting", version="1")
            return acp.InitializeResponse(protocol_version=2, info=info, capabilities=acp.AgentCapabilities())

        async def work(self, params: Any) -> None:
            await asyncio.Event().wait()

        async def ext_method(self, method: str, params: Any) -> Any:
            await self.turns.close_all()

    return Waiting


def client() -> type[Any]:
    """A client with all of its parts, which opens a session, and reads none of the changes of a turn."""
    parts = [
        getattr(helpers, each, None) for each in ("PermissionClient", "LoginClient", "FileClient", "TerminalClient")
    ]
    helpers.Turn.max_pending_bytes = 2**21

    class Hoarder(helpers.SessionClient, *filter(None, parts)):  # type: ignore[name-defined, misc]
        max_state_bytes = STATE_BYTES
        turn: Any = None

        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            if hasattr(helpers, "Terminals"):
                self.terminals = helpers.Terminals(max_terminals=1_000)

        async def ask_permission(self, question: Any) -> str:
            return "allow_always"

        async def ext_method(self, method: str, params: Any) -> Any:
            """Begin what makes requests of the client; the answers are for the test to give."""
            if method == "_do":
                self.doing = asyncio.ensure_future(getattr(self, params)())
            gc.collect()

        async def begin(self) -> None:
            """A turn that nobody reads."""
            with contextlib.suppress(Exception):
                session = await self.open(str(folder))
                self.turn = session.prompt("hello")
                async with self.turn:
                    await asyncio.Event().wait()

        async def open_and_list(self) -> None:
            """What opens and lists sessions, and logs in."""
            for call in (self.start("a", "1"), self.open("/"), self.resume("s", "/"), self.load("s", "/")):
                with contextlib.suppress(Exception):
                    await call
            with contextlib.suppress(Exception):
                async for _ in self.listed():
                    break
            with contextlib.suppress(Exception):
                await self.log_in()

    return Hoarder


class Stdio:
    """Lines on stdin and stdout."""

    async def read(self) -> bytes | None:
        return await asyncio.to_thread(sys.stdin.buffer.readline) or None

    async def write(self, message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    async def close(self) -> None:
        pass


async def serve() -> None:
    options = acp.ConnectionOptions(max_in_flight_bytes=2**24, check_capabilities=False)
    connection = acp.Connection(Stdio(), options)
    kind = {"agent": agent, "client": client, "waiting": waiting}[role]()
    stub = (acp.RemoteAgent if role == "client" else acp.RemoteClient)(connection)
    connection.start(kind(stub))
    await connection.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve())
