"""Models of pydantic: those of a package with this flavour, or with no file `acp.schema`; both used in the same way."""

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from stopwatch import Calls, Message, main

file = Path(sys.argv[3]) if len(sys.argv) > 3 else None
if file:
    sys.path.insert(0, str(file.parent))
models = importlib.import_module(file.stem if file else "acp.schema")
by_alias = {} if file else {"by_alias": True}
"""The models of acpgen write the names on the wire by themselves."""


def prepare(message: Message) -> Calls:
    """Validation and dumps of what stands in the message; pydantic reads and writes the text itself."""
    model = getattr(models, message.type)
    key = "result" if message.kind == "response" else "params"
    text = json.dumps(message.payload, separators=(",", ":")).encode()
    start = json.dumps(message.envelope, separators=(",", ":")).encode()[:-1] + f',"{key}":'.encode()
    value = model.model_validate(message.payload)

    def encode_line() -> bytes:
        written: str = value.model_dump_json(exclude_unset=True, **by_alias)
        return start + written.encode() + b"}\n"

    return Calls(
        decode_dict=lambda: model.model_validate(message.payload),
        decode_line=lambda: model.model_validate_json(text),
        encode_dict=lambda: value.model_dump(mode="json", exclude_unset=True, **by_alias),
        encode_line=encode_line,
        back=lambda decoded: decoded.model_dump(mode="json", exclude_unset=True, **by_alias),
    )


main(prepare)
