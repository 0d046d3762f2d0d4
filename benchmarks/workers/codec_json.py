"""Nothing but the standard library's JSON: what is left when nobody looks at the messages."""

import json
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from stopwatch import Calls, Message, main


def prepare(message: Message) -> Calls:
    """There is nothing to decode: a line becomes a dict, and a dict a line."""
    raw = message.around(message.payload)

    def encode_line() -> bytes:
        return (json.dumps(raw, separators=(",", ":")) + "\n").encode()

    return Calls(
        decode_dict=None,
        decode_line=partial(json.loads, message.line),
        encode_dict=None,
        encode_line=encode_line,
        back=lambda decoded: decoded["result" if message.kind == "response" else "params"],
    )


main(prepare)
