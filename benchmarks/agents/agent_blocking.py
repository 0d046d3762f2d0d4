"""The same agent on blocking files, written plainly: a write and a flush for each message, no types, no checks.

It never waits for two things at once, and has no loop to give up: updates one a turn are the same to it.
"""

import json
import sys


def send(message: object) -> None:
    sys.stdout.buffer.write((json.dumps(message, separators=(",", ":")) + "\n").encode())
    sys.stdout.buffer.flush()


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"]}
    if method == "session/new":
        return {"sessionId": "session-1"}
    label, count, *_ = params["prompt"][0]["text"].split()
    for at in range(int(count)):
        content = {"type": "text", "text": f"{label}: piece {at} of what the agent has to say about it. "}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "session-1", "update": update}})
    return {"stopReason": "end_turn"}


for line in sys.stdin.buffer:
    message = json.loads(line)
    send({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message["params"])})
