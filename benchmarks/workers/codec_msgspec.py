"""msgspec, a codec in C: what could be had if a package needed more than the standard library."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import msgspec
from msgspec_types import PAYLOADS, Envelope, Result
from stopwatch import Calls, Message, main

encoder = msgspec.json.Encoder()


def prepare(message: Message) -> Calls:
    """Its lines never become dicts: it decodes and encodes them at once."""
    payload_type = PAYLOADS[message.type]
    envelope = (Result if message.kind == "response" else Envelope)[payload_type]
    read = msgspec.json.Decoder(envelope).decode
    value = msgspec.convert(message.payload, payload_type)
    whole = read(message.line)
    return Calls(
        decode_dict=lambda: msgspec.convert(message.payload, payload_type),
        decode_line=lambda: read(message.line),
        encode_dict=lambda: msgspec.to_builtins(value),
        encode_line=lambda: encoder.encode(whole) + b"\n",
    )


main(prepare)
