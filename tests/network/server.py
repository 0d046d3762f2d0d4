"""Serves the agent of these tests: `server.py SERVER NUMBER`, with that of a socket that listens, or a port.

`/state` answers what is left in this process, over HTTP/1.1.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from agents import Notes, counting_agent  # type: ignore[import-not-found]

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
asgi: Any = importlib.import_module(f"{acp.__name__}.asgi")
SETTINGS: Any = json.loads(os.environ.get("ACP_SETTINGS", "{}"))


class Measured:
    """An application beside which `/state` is answered."""

    def __init__(self) -> None:
        self.notes = Notes()
        self.app = asgi.asgi_app(
            counting_agent(acp, self.notes),
            limits=asgi.RemoteLimits(**SETTINGS.get("limits", {})),
            options=acp.ConnectionOptions(**SETTINGS.get("options", {})),
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/state":
            await self.app(scope, receive, send)
            return
        body = json.dumps(self.state()).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def state(self) -> dict[str, Any]:
        gc.collect()
        status = Path("/proc/self/status").read_text(encoding="ascii").split()
        return {
            "connections": self.app.connections,
            "tasks": sorted(task.get_coro().__qualname__ for task in asyncio.all_tasks()),  # type: ignore[union-attr]
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "resident_kib": int(status[status.index("VmRSS:") + 1]),
            **self.notes.as_json(),
        }


app = Measured()


def run_hypercorn(descriptor: int) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    settings = {
        "bind": f"fd://{descriptor}",
        "loglevel": "WARNING",
        "backlog": 1024,
        "keep_alive_timeout": 1,
        **SETTINGS.get("server", {}),
    }

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

        async def end() -> None:
            await stop.wait()
            await app.app.close()  # hypercorn itself would cut the connections first

        await serve(app, Config.from_mapping(settings), shutdown_trigger=end)

    asyncio.run(main())


def run_uvicorn(descriptor: int) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", **SETTINGS.get("server", {}))
    uvicorn.Server(config).run([socket.socket(fileno=descriptor)])


def run_granian(port: int) -> None:
    from granian.constants import Interfaces
    from granian.log import LogLevels
    from granian.server import Server

    settings = {"interface": Interfaces.ASGI, "log_level": LogLevels.warning, **SETTINGS.get("server", {})}
    Server("server:app", port=port, **settings).serve()


if __name__ == "__main__":
    {"hypercorn": run_hypercorn, "uvicorn": run_uvicorn, "granian": run_granian}[sys.argv[1]](int(sys.argv[2]))
