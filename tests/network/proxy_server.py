"""Offers a command on the network: `proxy_server.py SERVER DESCRIPTOR COMMAND ...`, with that of a listening socket."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

from acp_proxy.asgi_proxy import RemoteLimits, proxy_app  # type: ignore[import-not-found]

TOKEN = os.environ["TOKEN_OF_THE_TEST"]


def authorize(scope: Any) -> str | None:
    sent = dict(scope["headers"]).get(b"authorization", b"").decode()
    return "somebody" if sent == (f"Bearer {TOKEN}" if TOKEN else "") else None


def main(kind: str, descriptor: str, *command: str) -> None:
    limits = RemoteLimits(idle_seconds=10)  # a test waits until a client that was killed is missed
    app = proxy_app([], command, authorize=authorize, limits=limits)
    if kind == "uvicorn":
        import uvicorn

        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([socket.socket(fileno=int(descriptor))])
        return
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    asyncio.run(serve(app, Config.from_mapping({"bind": f"fd://{descriptor}", "loglevel": "WARNING"})))


if __name__ == "__main__":
    main(*sys.argv[1:])
