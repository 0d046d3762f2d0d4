"""The kinds of values that options have: all that is known of a kind, from a file and from the command line.

To add one, add it to `ValueKind`, and to each function below that treats it in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from keyword import iskeyword
from pathlib import Path
from typing import Any

from acpgen.diagnostics import input_error
from acpgen.parts import NO_PART
from acpgen.schema.bundled import is_path

_RESERVED = {"TYPE_CHECKING"}
"""Names that the generated package uses itself."""


class ValueKind(Enum):
    """The values that a key may hold. Paths in a file are relative to its folder."""

    PATH = "a string with a path"
    CHOICE = "one of the choices"
    PROTOCOLS = "a whole number above 0, or an array of such numbers"
    NAME_BY_PROTOCOL = "a string, or a table of strings by protocol"
    PATH_BY_PROTOCOL = "a string with a path, or a table of them by protocol"
    FLAG = "true or false"
    SPECS = "an array of strings"
    PARTS = "an array of names of parts"
    NAMES = "a table of names"

    def option(self, name: str) -> str | None:
        """The option of the command line for a key, as typer declares it; None if only a file can have the key."""
        match self:
            case ValueKind.FLAG:
                return f"--{name}/--no-{name}"
            case ValueKind.SPECS:
                return f"--{name.removesuffix('s')}"
            case ValueKind.NAMES:
                return None
            case _:
                return f"--{name}"

    @property
    def parameter(self) -> Any:
        """The type of that option for typer; a `CHOICE` has its enum instead."""
        match self:
            case ValueKind.PATH:
                return Path
            case ValueKind.PROTOCOLS:
                return list[int]
            case ValueKind.FLAG:
                return bool
            case _:
                return list[str]


# --- In a file -------------------------------------------------------------------------------------------------------


def is_valid(kind: ValueKind, value: object) -> bool:
    """Whether a file may have `value` for a key of this kind. The values of a `CHOICE` are those of its key."""
    match kind:
        case ValueKind.PATH | ValueKind.CHOICE:
            return _is_usable(value)
        case ValueKind.NAME_BY_PROTOCOL | ValueKind.PATH_BY_PROTOCOL:
            table = value if isinstance(value, dict) else {"1": value}
            return all(map(_is_number, table)) and all(map(_is_usable, table.values()))
        case ValueKind.PROTOCOLS:
            numbers = value if isinstance(value, list) else [value]
            return bool(numbers) and all(type(each) is int and each > 0 for each in numbers)
        case ValueKind.FLAG:
            return isinstance(value, bool)
        case ValueKind.SPECS | ValueKind.PARTS:
            return isinstance(value, list) and all(map(_is_usable, value))
        case ValueKind.NAMES:
            return isinstance(value, dict) and all(map(_is_name, (*value.keys(), *value.values())))


def from_file(kind: ValueKind, value: Any, folder: Path) -> Any:
    """The value of a key, from a valid one of a file in `folder`."""
    match kind:
        case ValueKind.PATH_BY_PROTOCOL | ValueKind.NAME_BY_PROTOCOL if isinstance(value, dict):
            return {int(number): from_file(kind, each, folder) for number, each in value.items()}
        case ValueKind.PATH | ValueKind.PATH_BY_PROTOCOL:
            return folder / value
        case ValueKind.PROTOCOLS | ValueKind.PARTS if isinstance(value, list):
            return tuple(value)
        case ValueKind.SPECS:
            return tuple(_spec(each, folder) for each in value)
        case _:
            return value


def _spec(value: str, folder: Path) -> str:
    if not is_path(value):
        return value
    path = (folder / value).as_posix()
    return path if is_path(path) else f"./{path}"


def _is_usable(value: object) -> bool:
    """Whether `value` can be a name or a path. `~` is refused: without a shell, it is not the home folder."""
    return isinstance(value, str) and value != "" and "\0" not in value and not value.startswith("~")


def _is_number(name: str) -> bool:
    """Whether a name in a table is the number of a protocol."""
    return re.fullmatch(r"[1-9][0-9]{0,3}", name) is not None


def _is_name(value: object) -> bool:
    """Whether `value` can be a public name of a package: ASCII, and a letter first."""
    if not isinstance(value, str) or value.startswith("_") or iskeyword(value) or value in _RESERVED:
        return False
    return value.isidentifier() and value.isascii()


# --- On the command line ---------------------------------------------------------------------------------------------


def from_command_line(kind: ValueKind, given: Any, option: str) -> Any:
    """The value of a key, from what typer gives for its `option`; None if that is not given."""
    if given is None or given in ((), []):
        return None
    match kind:
        case ValueKind.CHOICE:
            return given.value
        case ValueKind.PROTOCOLS:
            numbers = tuple(map(int, given))
            return numbers[0] if len(numbers) == 1 else numbers
        case ValueKind.NAME_BY_PROTOCOL:
            return _by_protocol(given, option)
        case ValueKind.PATH_BY_PROTOCOL:
            paths = _by_protocol(given, option)
            if isinstance(paths, dict):
                return {number: Path(path) for number, path in paths.items()}
            return Path(paths)
        case ValueKind.SPECS:
            return tuple(given)
        case ValueKind.PARTS:
            return _named_parts(given, option)
        case _:
            return given


def to_command_line(kind: ValueKind, value: Any, option: str) -> list[str]:
    """The words of a command for a value of a key."""
    match value:
        case bool():
            return [option.split("/")[0 if value else 1]]
        case () if kind is ValueKind.PARTS:
            return [option, NO_PART]
        case tuple():
            return [word for each in value for word in (option, str(each))]
        case dict():
            return [word for number, each in value.items() for word in (option, f"{number}={each}")]
        case Path():
            return [option, value.as_posix()]
        case _:
            return [option, str(value)]


def _named_parts(given: Sequence[str], option: str) -> tuple[str, ...]:
    if NO_PART not in given:
        return tuple(given)
    if len(given) > 1:
        raise input_error("usage", f"{option} {NO_PART} is for a package without parts", hint="give it alone")
    return ()


_OF_PROTOCOL = re.compile(r"([1-9][0-9]{0,3})=(.+)")


def _by_protocol(values: Sequence[str], option: str) -> str | dict[int, str]:
    """The one value of an option, or a table of those in the form `N=VALUE`."""
    matches = [_OF_PROTOCOL.fullmatch(value) for value in values]
    table = {int(match[1]): match[2] for match in matches if match}
    if len(table) == len(matches):
        return table
    if len(matches) == 1:
        return values[0]
    hint = f"with several, write {option} 1=… {option} 2=…, one for each protocol"
    raise input_error("usage", f"{option} is given {len(matches)} times", hint=hint)
