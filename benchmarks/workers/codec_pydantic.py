"""The models of the official Python SDK, used as its connection uses them."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from acp import schema
from stopwatch import Calls, Message, main

LEFT_OUT = {"request": "exclude_defaults", "notification": "exclude_defaults", "response": "exclude_unset"}
"""What the SDK leaves out of what it sends, beside None: not the same for params and results."""

DEFAULTS = {"01_initialize_request": ["clientCapabilities/auth/terminal"]}
"""What it does not send for that."""


def prepare(message: Message) -> Calls:
    """Validation of what is received; a dump of what is sent."""
    model = getattr(schema, message.type)
    value = model.model_validate(message.payload)
    options = {"mode": "json", "by_alias": True, "exclude_none": True, LEFT_OUT[message.kind]: True}
    key = "result" if message.kind == "response" else "params"

    def encode_line() -> bytes:
        return (json.dumps(message.around(value.model_dump(**options)), separators=(",", ":")) + "\n").encode()

    return Calls(
        decode_dict=lambda: model.model_validate(message.payload),
        decode_line=lambda: model.model_validate(json.loads(message.line)[key]),
        encode_dict=lambda: value.model_dump(**options),
        encode_line=encode_line,
        back=lambda decoded: decoded.model_dump(**options),
    )


main(prepare, DEFAULTS)
