"""A small agent in raw messages, for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses.
"""

from __future__ import annotations

import json
import sys
from typing import Any

HELLO: Any = {"protocolVersion": 2, "info": {"name": "fake", "version": "1"}, "capabilities": {"session": {}}}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def say(text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "1", "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": "1", "update": update})


def tell_state(**state: str) -> None:
    send(method="session/update", params={"sessionId": "1", "update": {"sessionUpdate": "state_update", **state}})


def ask() -> None:
    options = [
        {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject once", "kind": "reject_once"},
    ]
    params = {"sessionId": "1", "title": "Edit notes.txt", "options": options}
    send(id="question", method="session/request_permission", params=params)


def main() -> None:
    is_busy = False
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                send(id=message["id"], result=HELLO)
            case "session/new":
                send(id=message["id"], result={"sessionId": "1"})
            case "session/prompt" if message["params"]["prompt"][0]["text"] == "fail":
                send(id=message["id"], error={"code": -32603, "message": "Not today"})
            case "session/prompt":
                is_busy = True
                send(id=message["id"], result={"messageId": "1"})
                tell_state(state="running")
                say("Hello. ")
                ask()
            case "session/cancel":
                say("Stopped. ")
                tell_state(state="idle", stopReason="cancelled")
                is_busy = False
            case None if is_busy:
                say(f"Got {message['result']['outcome'].get('optionId')}.")
                tell_state(state="idle", stopReason="end_turn")
            case _:
                pass


main()
