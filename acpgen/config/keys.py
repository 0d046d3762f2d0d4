"""The keys of `[tool.acpgen]`: what each may hold, what it is by default, and what it is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from keyword import iskeyword, kwlist
from pathlib import Path
from typing import Any

from acpgen.ir.model import Options, Role

DEFAULT_PROTOCOL = 1


def is_open_by_default(roles: tuple[Role, ...]) -> bool:
    """Whether a package takes values that are not known yet: agents of tomorrow talk to the clients of today."""
    return Role.CLIENT in roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Which schema to read: a bundled one by `protocol` and `release`, or the file `schema`, and the extensions."""

    protocol: int = DEFAULT_PROTOCOL
    release: str | None = None
    schema: Path | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Everything that decides the bytes of the output, and where it goes.

    `runtime` adds the modules that talk JSON-RPC. `renames` has pairs of a name that the package had, and the name that
    it has now. `strict` turns warnings into errors; it decides whether there is an
    output, not what is in it.
    """

    sources: Sources
    roles: tuple[Role, ...]
    out: Path
    types: Options = field(default_factory=Options)
    runtime: bool = True
    renames: tuple[tuple[str, str], ...] = ()
    strict: bool = False


_TAKEN = {"TYPE_CHECKING"}
"""What the package itself uses."""

FORMER = {"open-unions": "open"}
"""Keys that are called otherwise now."""

OUTPUTS = "outputs"
"""The table of named outputs below `[tool.acpgen]`."""


class Kind(Enum):
    """What a key may hold. In a file, paths are relative to the folder of that file."""

    PATH = "a string with a path"
    TEXT = "a string"
    CHOICE = "one of the choices"
    NUMBER = "a whole number above 0"
    FLAG = "true or false"
    SPECS = "an array of strings"
    NAMES = "a table of names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. `choices` are what a `CHOICE` may be, `excludes` the key that cannot be there, too."""

    name: str
    kind: Kind
    doc: str
    default: Any = None
    choices: tuple[str, ...] = ()
    excludes: str | None = None


KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key(name="out", kind=Kind.PATH, doc="The folder of the package, relative to this file."),
        Key(
            name="role",
            kind=Kind.CHOICE,
            doc="What you write: an agent, a client, or both.",
            default="agent",
            choices=("agent", "client", "both"),
        ),
        Key(name="protocol", kind=Kind.NUMBER, doc="The version of the protocol.", default=DEFAULT_PROTOCOL),
        Key(
            name="release",
            kind=Kind.TEXT,
            doc="A bundled schema by its release; the newest by default.",
            excludes="schema",
        ),
        Key(
            name="schema",
            kind=Kind.PATH,
            doc="A schema file to use instead of a bundled one, relative to this file.",
            excludes="release",
        ),
        Key(
            name="extensions",
            kind=Kind.SPECS,
            doc="Extensions to compose with the schema: NAME or NAME@REVISION of a bundled one, or the path of a file.",
            default=(),
        ),
        Key(
            name="open",
            kind=Kind.FLAG,
            doc="Take tags and enumeration values that are not known yet; on by default unless the role is agent.",
        ),
        Key(
            name="keep-unknown",
            kind=Kind.FLAG,
            doc="Keep properties that the schema does not name in `extra`.",
            default=False,
        ),
        Key(
            name="runtime",
            kind=Kind.FLAG,
            doc="Add what talks JSON-RPC over stdio and other transports.",
            default=True,
        ),
        Key(name="strict", kind=Kind.FLAG, doc="Treat warnings about the schema as errors.", default=False),
        Key(
            name="renames",
            kind=Kind.NAMES,
            doc="Names that the package had, each with the name that it has now: the old one stays, and warns.",
            default={},
        ),
    )
}


def flaw(key: Key, value: object) -> str | None:
    """What a value from a file lacks to be one of `key`, or None if it is one."""
    match key.kind:
        case Kind.PATH | Kind.TEXT:
            sound = isinstance(value, str) and _is_usable(value)
        case Kind.CHOICE:
            if value in key.choices:
                return None
            return f"expected one of {', '.join(map(repr, key.choices))}, found {_shown(value)}"
        case Kind.NUMBER:
            sound = isinstance(value, int) and not isinstance(value, bool) and value > 0
        case Kind.FLAG:
            sound = isinstance(value, bool)
        case Kind.SPECS:
            sound = isinstance(value, list) and all(isinstance(each, str) and _is_usable(each) for each in value)
        case Kind.NAMES:
            sound = isinstance(value, dict) and all(map(_is_name, _flat(value)))
    return None if sound else f"expected {key.kind.value}, found {_shown(value)}"


def _is_usable(text: str) -> bool:
    """Whether it can be a name or a path; no shell is there to read `~` as the home folder."""
    return text != "" and "\0" not in text and not text.startswith("~")


def _flat(table: Mapping[str, object]) -> Iterator[object]:
    yield from table.keys()
    yield from table.values()


def _is_name(value: object) -> bool:
    """Whether it can be a public name of a package: those are ASCII, and start with a letter."""
    if not isinstance(value, str) or value.startswith("_") or iskeyword(value) or value in _TAKEN:
        return False
    return value.isidentifier() and value.isascii()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


_TEXT: dict[str, object] = {"type": "string", "pattern": "^[^~\u0000][^\u0000]*$"}


def config_schema() -> dict[str, object]:
    """The JSON Schema of `[tool.acpgen]`, for editors."""
    properties = {key.name: _schema_of(key) for key in KEYS.values()}
    output = {"type": "object", "properties": properties, "additionalProperties": False, **_exclusive()}
    outputs: dict[str, object] = {
        "description": "Several outputs by name; each takes what it does not say itself from the table around it.",
        "type": "object",
        "additionalProperties": {**output, "required": ["out"]},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "[tool.acpgen]",
        "description": "What `acpgen build` builds when it is not told on the command line.",
        **output,
        "properties": {**properties, OUTPUTS: outputs},
        "dependentSchemas": {"out": {"not": {"required": [OUTPUTS]}}},
    }


def _exclusive() -> dict[str, object]:
    pairs = {tuple(sorted((key.name, key.excludes))) for key in KEYS.values() if key.excludes}
    return {"allOf": [{"not": {"required": list(pair)}} for pair in sorted(pairs)]}


def _schema_of(key: Key) -> dict[str, object]:
    shape: dict[str, object] = {"description": key.doc}
    match key.kind:
        case Kind.PATH | Kind.TEXT:
            shape |= _TEXT
        case Kind.CHOICE:
            shape |= {"enum": list(key.choices)}
        case Kind.NUMBER:
            shape |= {"type": "integer", "minimum": 1}
        case Kind.FLAG:
            shape |= {"type": "boolean"}
        case Kind.SPECS:
            shape |= {"type": "array", "items": _TEXT}
        case Kind.NAMES:
            name = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$", "not": {"enum": sorted([*kwlist, *_TAKEN])}}
            shape |= {"type": "object", "propertyNames": name, "additionalProperties": name}
    if key.default is not None:
        shape["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    return shape
