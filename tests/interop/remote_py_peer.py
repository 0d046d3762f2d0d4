"""The Python SDK on the network.

python remote_py_peer.py server VERSION SDK-FOLDER ANSWERS TRANSPORT, which writes {port} to stdout
python remote_py_peer.py remote_client VERSION SDK-FOLDER ANSWERS TRANSPORT URL

Both end with stdin. The orders are those of `py_peer.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
from acp import connect_to_agent
from acp.http import create_http_stream
from acp.http.asgi import create_asgi_app
from acp.ws.client import create_websocket_stream
from py_peer import AGENT, CLIENT, Json, Puppet, obey_lines
from remote_asgi import Journal, serving


class Server(Puppet):
    """An agent that knows the requests that were made to it."""

    journal: Journal

    async def order_requests(self, _params: Json) -> Json:
        return {"requests": self.journal.requests}


async def server(answers: dict[str, Json], _transport: str) -> None:
    puppet = Server(AGENT, CLIENT, answers)

    def factory(connection: Any) -> Puppet:
        puppet.on_connect(connection)
        return puppet

    puppet.journal = Journal(create_asgi_app(factory))
    async with serving(puppet.journal) as port:
        print(json.dumps({"port": port}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def remote_client(answers: dict[str, Json], transport: str, url: str) -> None:
    puppet = Puppet(CLIENT, AGENT, answers)
    stream = await open_stream(transport, url)
    connect_to_agent(puppet, stream, use_unstable_protocol=True)
    await obey_lines(puppet)
    await stream.close()


async def open_stream(transport: str, url: str) -> Any:
    if transport == "websocket":
        return await create_websocket_stream(url.replace("http", "ws", 1))
    if transport == "http1":
        return create_http_stream(url)
    return create_http_stream(url, client=httpx.AsyncClient(http1=False, http2=True, timeout=None))


def main(role: str, _version: str, _folder: str, answers: str, *more: str) -> None:
    loaded = json.loads(Path(answers).read_text(encoding="utf-8"))
    asyncio.run({"server": server, "remote_client": remote_client}[role](loaded, *more))


if __name__ == "__main__":
    main(*sys.argv[1:])
