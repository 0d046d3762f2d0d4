"""The codec of a generated package, and JSON as its connections read and write it."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from stopwatch import Calls, Message, main

package = Path(sys.argv[3])
sys.path.insert(0, str(package.parent))
codec = importlib.import_module(f"{package.name}.codec")
options = importlib.import_module(f"{package.name}.options").ConnectionOptions()


def function(name: str) -> Callable[[Any], Any]:
    """A function of the codec; those for the other direction are in a module of their own."""
    module = codec if hasattr(codec, name) else importlib.import_module(f"{package.name}._other_direction")
    found: Callable[[Any], Any] = getattr(module, name)
    return found


def prepare(message: Message) -> Calls:
    """The functions that the routes of the package have for the type."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", message.type).lower()
    decode, encode = function(f"decode_{name}"), function(f"encode_{name}")
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


main(prepare)
