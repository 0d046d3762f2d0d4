"""Find and read `[tool.acpgen]` in a `pyproject.toml`; what is wrong with it is told with its place."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acpgen.config.keys import FORMER, KEYS, OUTPUTS, flaw
from acpgen.diagnostics import Diagnostic, InputError, Location, Severity, input_error
from acpgen.schema.document import join
from acpgen.text import did_you_mean

NAME = "pyproject.toml"
TABLE = ("tool", "acpgen")

_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"\\]*"|'[^']*'))*)\s*=""")
_HEAD = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_PART = re.compile(r"""[\w-]+|"[^"\\]*"|'[^']*'""")
_LINE_AND_COLUMN = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file with a table for acpgen: what holds for all outputs, and the outputs by name. Both are checked."""

    path: Path
    shared: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, Any]]
    text: str = field(repr=False)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return self.path.parent

    def place(self, *keys: str) -> Location:
        """Where a key below the table of acpgen stands."""
        return _place(self.path, self.text, (*TABLE, *keys))


def find_config(start: Path) -> ConfigFile | None:
    """The nearest file with a table for acpgen, in `start` or above it, up to the top of its checkout.

    Raises `InputError` for a file that cannot be read, or whose table is not as it should be.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        path = from_here(folder / NAME)
        if path.is_file() and (found := _read(path)) is not None:
            return found
        if (folder / ".git").exists():
            return None
    return None


def from_here(path: Path) -> Path:
    """How messages name a path: relative to the working directory, where that is possible."""
    try:
        return Path(os.path.relpath(path))
    except ValueError:  # on another drive of Windows
        return path


def read_config(path: Path) -> ConfigFile:
    """The table for acpgen in a file. Raises `InputError` if it has none, or one that is not as it should be."""
    found = _read(path)
    if found is None:
        raise input_error(
            "config-missing",
            f"{path.as_posix()} has no table [{'.'.join(TABLE)}]",
            hint="add one, with at least `out`",
        )
    return found


def _read(path: Path) -> ConfigFile | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise input_error("unreadable", f"cannot read {path.as_posix()}: {error.strerror or error}") from error
    if b"acpgen" not in data:  # most are somebody else's, and parsing takes time
        return None
    text = _decoded(data, path)
    root = _parsed(text, path)
    table = root.get(TABLE[0])
    table = table.get(TABLE[1]) if isinstance(table, dict) else None
    if table is None:
        return None
    found = list(_problems(path, text, table))
    if found:
        raise InputError(found)
    shared = {key: value for key, value in table.items() if key != OUTPUTS}
    return ConfigFile(path=path, shared=shared, outputs=table.get(OUTPUTS, {}), text=text)


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise input_error("bad-toml", f"{path.as_posix()} is not UTF-8: {error}") from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = str(error)
        line, column = 1, 1
        if match := _LINE_AND_COLUMN.search(message):
            message, line, column = message[: match.start()], int(match[1]), int(match[2])
        location = Location(path.as_posix(), line, column, _line(text, line))
        raise input_error("bad-toml", f"not TOML: {message}", location=location) from None


def _problems(path: Path, text: str, table: object) -> Iterator[Diagnostic]:
    if not isinstance(table, dict):
        yield _problem(path, text, (), message=f"[{'.'.join(TABLE)}] must be a table")
        return
    yield from _table_problems(path, text, {key: value for key, value in table.items() if key != OUTPUTS}, above=())
    outputs = table.get(OUTPUTS, {})
    if not isinstance(outputs, dict) or not all(isinstance(each, dict) for each in outputs.values()):
        message = f"`{OUTPUTS}` must be a table of tables, one for each output"
        yield _problem(path, text, (OUTPUTS,), message=message)
        return
    if outputs and "out" in table:
        message = f"there is an `out` for one output, and a table `{OUTPUTS}` for several"
        yield _problem(path, text, ("out",), message=message, hint="move it into the table of an output")
    for name, output in outputs.items():
        yield from _table_problems(path, text, output, above=(OUTPUTS, name))
        if "out" not in output:
            message = f"the output {name!r} has no `out`"
            yield _problem(path, text, (OUTPUTS, name), message=message, hint="say in which folder its package is")


def _table_problems(
    path: Path, text: str, table: Mapping[str, object], *, above: tuple[str, ...]
) -> Iterator[Diagnostic]:
    for name, value in table.items():
        key = KEYS.get(name)
        if key is None:
            known = [*KEYS, *([] if above else [OUTPUTS])]
            former = f"it is called `{FORMER[name]}` now" if name in FORMER else None
            hint = former or did_you_mean(name, known) or f"there are: {', '.join(known)}"
            yield _problem(
                path,
                text,
                (*above, name),
                message=f"acpgen knows no key {name!r}",
                hint=hint,
                code="config-unknown-key",
            )
        elif what := flaw(key, value):
            yield _problem(path, text, (*above, name), message=f"`{name}`: {what}", hint=key.doc)
        elif key.excludes in table and name < (key.excludes or ""):
            message = f"`{name}` and `{key.excludes}` exclude each other"
            yield _problem(path, text, (*above, name), message=message)


def _problem(
    path: Path,
    text: str,
    keys: tuple[str, ...],
    *,
    message: str,
    hint: str | None = None,
    code: str = "config-bad-value",
) -> Diagnostic:
    return Diagnostic(
        code=code,
        severity=Severity.ERROR,
        message=message,
        location=_place(path, text, (*TABLE, *keys)),
        pointer=join("", *TABLE, *keys),
        hint=hint,
    )


def _place(path: Path, text: str, keys: tuple[str, ...]) -> Location:
    """Where `keys` stand, or as much of them as can be found: the parser does not tell, and layouts differ."""
    best, found = 0, (1, 1)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _HEAD.match(line):
            here = table = _parts(head[1])
        elif key := _KEY.match(line):
            here = (*table, *_parts(key[1]))
        else:
            continue
        depth = len(here) if keys[: len(here)] == here else 0
        if depth > best:
            best, found = depth, (number, len(line) - len(line.lstrip()) + 1)
    return Location(path.as_posix(), *found, _line(text, found[0]))


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1][:200] if 0 < number <= len(lines) else ""
