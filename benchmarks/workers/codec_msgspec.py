"""msgspec, a codec in C: what could be had if a package needed more than the standard library."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
from msgspec_types import PAYLOADS, Envelope, Result
from stopwatch import Calls, Message, main

encoder = msgspec.json.Encoder()
DEFAULTS = {
    "01_initialize_request": ["clientCapabilities/auth/terminal"],
    "02_initialize_response": [
        "agentCapabilities/promptCapabilities/audio",
        "agentCapabilities/mcpCapabilities/sse",
    ],
}
"""What it does not send, as the types here are to leave out defaults."""


def prepare(message: Message) -> Calls:
    """Its lines never become dicts: it decodes and encodes them at once."""
    payload_type = PAYLOADS[message.type]
    envelope = (Result if message.kind == "response" else Envelope)[payload_type]
    read = msgspec.json.Decoder(envelope).decode
    value = msgspec.convert(message.payload, payload_type)
    whole = read(message.line)

    def back(decoded: Any) -> Any:
        match decoded:
            case Envelope(params=payload) | Result(result=payload):
                return msgspec.to_builtins(payload)
        return msgspec.to_builtins(decoded)

    return Calls(
        decode_dict=lambda: msgspec.convert(message.payload, payload_type),
        decode_line=lambda: read(message.line),
        encode_dict=lambda: msgspec.to_builtins(value),
        encode_line=lambda: encoder.encode(whole) + b"\n",
        back=back,
    )


main(prepare, DEFAULTS)
