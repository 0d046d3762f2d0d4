"""Times a client that receives plans over a socket, and the same with `loads` and `decode` alone.

Usage: python receiving.py FOLDER_OF_THE_PACKAGE BYTES ENTRIES...; prints microseconds of CPU time by update, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

REPEATS = 5


def line_of(entries: int) -> bytes:
    """An update whose plan has so many entries."""
    plan = [{"content": f"step number {i} of it", "priority": "medium", "status": "pending"} for i in range(entries)]
    update = {"sessionUpdate": "plan", "entries": plan}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    return json.dumps(message, separators=(",", ":")).encode()


async def received(acp: Any, line: bytes, count: int) -> float:
    """The seconds of CPU time for `count` updates, which another thread sends."""
    done, missing = asyncio.Event(), count

    class Client(acp.Client):  # type: ignore[misc]
        async def session_update(self, params: Any) -> None:
            nonlocal missing
            missing -= params.update.session_update == "plan"
            if not missing:
                done.set()

    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=here)
    connection = acp.Connection(acp.StreamTransport(reader, writer), acp.ConnectionOptions(check_capabilities=False))
    sending = threading.Thread(target=there.sendall, args=((line + b"\n") * count,))
    start = time.thread_time()
    connection.start(Client(acp.RemoteAgent(connection)))
    sending.start()
    await done.wait()
    taken = time.thread_time() - start
    sending.join()
    await connection.close()
    there.close()
    return taken


def alone(acp: Any, line: bytes, count: int) -> float:
    """The seconds of CPU time for reading and decoding as many updates."""
    start = time.thread_time()
    for _ in range(count):
        acp.decode(acp.SessionNotification, json.loads(line)["params"])
    return time.thread_time() - start


def main() -> None:
    """Take the best of some repeats for each size, the two in turn."""
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    sys.path.insert(0, str(folder.parent))
    acp: Any = __import__(folder.name)
    found: dict[str, list[float]] = {"received": [], "alone": []}
    for entries in map(int, sys.argv[3:]):
        line = line_of(entries)
        count = max(1, size // len(line))
        pairs = [(asyncio.run(received(acp, line, count)), alone(acp, line, count)) for _ in range(REPEATS)]
        for name, seconds in zip(found, zip(*pairs, strict=True), strict=True):
            found[name].append(min(seconds) / count * 1e6)
    print(json.dumps(found))


main()
