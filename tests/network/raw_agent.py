"""An agent in lines of JSON, without a package: what it answers has the text of the params that it got.

`session/prompt` sends the number of updates in `_meta.count` first, each with `_meta.pad`; `_die` ends it with a line
on stderr and code 7; `_wait` is never answered, and `_hold` not before `_release`. Each other request is answered by a
result with its params.
"""

from __future__ import annotations

import json
import sys


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


HELD: list[str] = []


def release() -> None:
    for each in HELD:
        answer(each.replace("_hold", "_echo"))
    HELD.clear()


def answer(line: str) -> None:
    message = json.loads(line)
    if "id" not in message or message["method"] == "_wait":
        return
    number, method, params = message["id"], message["method"], message.get("params") or {}
    if method == "initialize":
        say(f'{{"jsonrpc":"2.0","id":{number},"result":{{"protocolVersion":1, "exact": 1.50}}}}')
    elif method == "_die":
        print("a reason to die", file=sys.stderr)
        raise SystemExit(7)
    elif method == "_hold":
        HELD.append(line)
    elif method == "session/new":
        say(f'{{"jsonrpc":"2.0","id":{number},"result":{{"sessionId":"s"}}}}')
    else:
        meta = params.get("_meta", {})
        pad = f', "pad":"{meta["pad"]}"' if "pad" in meta else ""
        for each in range(meta.get("count", 0)):
            say(f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s", "number": {each}.0{pad}}}}}')
        if method == "_release":
            release()
        start = line.index('"params"')
        say(f'{{"jsonrpc":"2.0","id":{number},"result"{line[start + 8 : line.rindex("}")]}}}')


if __name__ == "__main__":
    for each in sys.stdin:
        answer(each)
