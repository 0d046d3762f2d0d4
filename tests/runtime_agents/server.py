"""The puppet on a socket that it inherits, with `serve_agent`: `server.py DESCRIPTOR`."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys

from puppet import Puppet, acp, note


async def main(descriptor: str) -> None:
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=int(descriptor)))
    options = acp.ConnectionOptions(**json.loads(os.environ.get("ACP_OPTIONS", "{}")))
    transport = acp.StreamTransport(reader, writer, max_message_bytes=options.max_message_bytes)
    await acp.serve_agent(Puppet, transport, options=options)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    note("returned")
