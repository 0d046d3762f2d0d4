"""The codec of a generated package, and JSON as its connections read and write it."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from stopwatch import Calls, Message, main

package = Path(sys.argv[3])
sys.path.insert(0, str(package.parent))
codec = importlib.import_module(f"{package.name}.codec")
options = importlib.import_module(package.name).ConnectionOptions()


def prepare(message: Message) -> Calls:
    """The functions that the routes of the package have for the type."""
    kind = getattr(codec.types, message.type)
    decode, encode = codec.DECODERS[kind], codec.ENCODERS[kind]
    loads, dumps = options.loads, options.dumps
    key = "result" if message.kind == "response" else "params"
    value = decode(message.payload)
    return Calls(
        decode_dict=lambda: decode(message.payload),
        decode_line=lambda: decode(loads(message.line)[key]),
        encode_dict=lambda: encode(value),
        encode_line=lambda: dumps(message.around(encode(value))) + b"\n",
        back=encode,
    )


LEFT_OUT = {
    "01_initialize_request": ("clientCapabilities/auth",),
    "02_initialize_response": ("agentCapabilities/promptCapabilities/audio", "agentCapabilities/mcpCapabilities/sse"),
}
"""Capabilities that are as by default: some editors take one that is false for one that is there."""

main(prepare, LEFT_OUT)
