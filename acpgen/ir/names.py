"""Python names from wire names: pure functions of the text, never of its position or of other names."""

from __future__ import annotations

import builtins
import keyword
import re

from acpgen.roles import Role, Side
from acpgen.runtime_modules import exported_names, runtime_sources

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

BUILTIN_TYPES = frozenset({"bool", "dict", "float", "int", "list", "str"})
"""Builtins that annotations in generated code use; a field with such a name hides the builtin in its class."""

_RESERVED_FIELDS = frozenset({"made", "mro", "self"})
"""Names that `__init__` and the bodies of generated classes use themselves, or that each class has: a dataclass takes
`type.mro` for the default of a field with this name."""
_RESERVED_METHODS = frozenset(
    {
        *(side.value for side in Side),  # the attributes for the stubs
        *("connection_closed", "ext_method", "ext_notification"),
        *("fallback_notification", "fallback_request"),
        *("capabilities", "info", "peer_kind", "supports"),  # of a stub
        *("agent_opener", "from_agent", "from_client", "open_agent"),  # of a proxy
    }
)
"""Names that the generated role classes define, or use where a method of that name would hide them."""


def words(text: str) -> list[str]:
    """Split `text` into words at case changes and at all characters but ASCII letters and digits."""
    return _WORD.findall(text)


def pascal(text: str) -> str:
    """`end_turn` → `EndTurn`, `searchAndReplace` → `SearchAndReplace`; empty where no letter or digit is left."""
    return "".join(word if word.isupper() and len(word) > 1 else word.capitalize() for word in words(text))


def snake(text: str) -> str:
    """`sessionId` → `session_id`, `document/didOpen` → `document_did_open`; empty where no letter or digit is left."""
    return "_".join(word.lower() for word in words(text))


def field_name(wire: str) -> str:
    """The attribute for the property `wire`; keywords get a trailing underscore. Empty if there is no name."""
    return _identifier(snake(wire), "field_")


def method_name(wire: str) -> str:
    """The handler for the method `wire`: `session/new` → `session_new`, `$/cancel_request` → `cancel_request`."""
    name = _identifier(snake(wire), "method_")
    return name + "_" if name in _RESERVED_METHODS else name


def class_name(definition: str) -> str:
    """The class for a definition: its name if that is an identifier, else in PascalCase. Empty if there is none."""
    if definition.isascii() and definition.isalnum() and definition[0].isupper():
        return definition
    name = pascal(definition)
    return name if name.isidentifier() else ""


def _identifier(name: str, prefix: str) -> str:
    """`name` as an identifier; `prefix` goes before a digit."""
    if not name:
        return ""
    if name[0].isdecimal():
        name = prefix + name
    if keyword.iskeyword(name) or name in _RESERVED_FIELDS:
        name += "_"
    return name


RESERVED_CLASSES = frozenset(
    {
        *(name for name in dir(builtins) if name[0].isupper()),
        # builtins of later Python versions: the names must not depend on the version that runs acpgen
        *("BaseExceptionGroup", "EncodingWarning", "ExceptionGroup", "PythonFinalizationError", "WindowsError"),
        *(f"{role.record.base}{end}" for role in Role for end in ("", "Factory")),
        *(name for module in runtime_sources() for name in exported_names(module)),
        *(name for side in Side for name in (side.stub, side.methods)),
        *("Bounds", "Handler", "LineBuffer", "PROTOCOL_VERSION", "PlainSchemaRoot", "ProcessTransport", "RequestError"),
        *("Annotated", "Any", "Callable", "ClassVar", "Final", "Literal", "Mapping", "Protocol", "TypeAlias", "Union"),
    }
)
"""Names that the generated modules use, or that would hide a builtin."""
