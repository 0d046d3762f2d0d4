"""A small agent in raw messages, for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def say(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": "1", "update": update})


def ask() -> None:
    call = {"toolCallId": "1", "title": "Edit notes.txt"}
    options = [
        {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject once", "kind": "reject_once"},
    ]
    send(
        id="question",
        method="session/request_permission",
        params={"sessionId": "1", "toolCall": call, "options": options},
    )


def main() -> None:
    prompt: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                send(id=message["id"], result={"protocolVersion": 1})
            case "session/new":
                send(id=message["id"], result={"sessionId": "1"})
            case "session/prompt" if message["params"]["prompt"][0]["text"] == "fail":
                send(id=message["id"], error={"code": -32603, "message": "Not today"})
            case "session/prompt":
                prompt = message["id"]
                say("Hello. ")
                ask()
            case "session/cancel":
                say("Stopped. ")
                send(id=prompt, result={"stopReason": "cancelled"})
                prompt = None
            case None if prompt is not None:
                say(f"Got {message['result']['outcome'].get('optionId')}.")
                send(id=prompt, result={"stopReason": "end_turn"})
            case _:
                pass


main()
