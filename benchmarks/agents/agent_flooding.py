"""An agent in blocking Python that answers one request, sends updates, and ends.

Usage: python agent_flooding.py ENTRIES COUNT RATE

Each update is a plan with so many entries, which has the time of its sending, in nanoseconds of the monotonic clock.
`RATE` is how many are sent in a second; 0 stands for as many as can be written.
"""

from __future__ import annotations

import json
import sys
import time

TIME = b'"_t":'


def main() -> None:
    """Wait for a request, answer it, and send all updates."""
    entries, count, rate = map(int, sys.argv[1:])
    request = json.loads(sys.stdin.buffer.readline())
    out = sys.stdout.buffer
    out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocolVersion": 1}}).encode() + b"\n")
    plan = [{"content": f"step number {i} of it", "priority": "medium", "status": "pending"} for i in range(entries)]
    update = {"sessionUpdate": "plan", "entries": plan}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    line = json.dumps(message, separators=(",", ":")).encode()[:-1]
    start = time.monotonic()
    for number in range(count):
        if rate:
            out.flush()
            if (left := start + number / rate - time.monotonic()) > 0:
                time.sleep(left)
        out.write(line + b"," + TIME + b"%d}\n" % time.monotonic_ns())
    out.flush()


main()
