"""A small agent in raw messages, for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses. Its argument is the version of the protocol that it speaks, by default 2.
"""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = 1 if "1" in sys.argv[1:] else 2
HELLO: Any = {"protocolVersion": VERSION, "info": {"name": "fake", "version": "1"}, "capabilities": {"session": {}}}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tell(**update: Any) -> None:
    send(method="session/update", params={"sessionId": "1", "update": update})


def say(text: str) -> None:
    tell(sessionUpdate="agent_message_chunk", messageId="1", content={"type": "text", "text": text})


def ask() -> None:
    options = [
        {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject once", "kind": "reject_once"},
    ]
    call = {"toolCallId": "1", "title": "Edit notes.txt"}  # version 2 has the title only
    params = {"sessionId": "1", "title": call["title"], "toolCall": call, "options": options}
    send(id="question", method="session/request_permission", params=params)


def begin(number: Any) -> None:
    """Version 2 answers a prompt at once."""
    if VERSION == 2:
        send(id=number, result={"messageId": "1"})
        tell(sessionUpdate="state_update", state="running")


def end(number: Any, reason: str) -> None:
    """Version 1 answers a prompt at the end."""
    if VERSION == 2:
        tell(sessionUpdate="state_update", state="idle", stopReason=reason)
    else:
        send(id=number, result={"stopReason": reason})


def main() -> None:
    prompt: Any = None
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
                prompt = message["id"]
                begin(prompt)
                say("Hello. ")
                ask()
            case "session/cancel":
                say("Stopped. ")
                end(prompt, "cancelled")
                prompt = None
            case None if prompt is not None:
                say(f"Got {message['result']['outcome'].get('optionId')}.")
                end(prompt, "end_turn")
            case _:
                pass


main()
