"""Find, read and check `[tool.acpgen]` in a `pyproject.toml`. Errors have the place in the file."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acpgen.config.keys import FORMER_KEYS, KEYS, OUTPUTS, flaw
from acpgen.diagnostics import Location, Report, input_error
from acpgen.files import read_file
from acpgen.parts import default_parts
from acpgen.roles import RoleChoice
from acpgen.schema.document import join, split
from acpgen.text import did_you_mean

NAME = "pyproject.toml"
TABLE = ("tool", "acpgen")

_MOST_READ = 1024 * 1024
"""The largest file in bytes; that of a large project has 50 KiB."""
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"\\]*"|'[^']*'))*)\s*=""")
_HEAD = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_PART = re.compile(r"""[\w-]+|"[^"\\]*"|'[^']*'""")
_LINE_AND_COLUMN = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """The checked table of acpgen in a file: the keys for all outputs, and those of each output by its name."""

    path: Path
    shared: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, Any]]
    text: str = field(repr=False)

    @property
    def folder(self) -> Path:
        """The folder that paths in the file are relative to."""
        return self.path.parent

    def place(self, *keys: str) -> Location:
        """The place of a key below the table of acpgen."""
        return _place(self.path, self.text, (*TABLE, *keys))


def find_config(start: Path) -> ConfigFile | None:
    """Find the nearest file with a table for acpgen: in `start` or above it, up to the top of its checkout.

    Raises `InputError` for a file that cannot be read, and for mistakes in the table.
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
    """The path relative to the working folder, for messages, if there is one."""
    try:
        return Path(os.path.relpath(path))
    except ValueError:  # on another drive of Windows
        return path


def read_config(path: Path) -> ConfigFile:
    """Read the table for acpgen in a file. Raises `InputError` if there is none, and for mistakes in it."""
    found = _read(path)
    if found is None:
        raise input_error(
            "config-missing",
            f"{path.as_posix()} has no table [{'.'.join(TABLE)}]",
            hint="add the table, with at least `out`",
        )
    return found


def _read(path: Path) -> ConfigFile | None:
    data = read_file(path, label=path.as_posix(), most=_MOST_READ, code="unreadable")
    if b"acpgen" not in data:  # most files have no table for acpgen, and parsing takes time
        return None
    text = _decoded(data, path)
    root = _parsed(text, path)
    table = root.get(TABLE[0])
    table = table.get(TABLE[1]) if isinstance(table, dict) else None
    if table is None:
        return None
    _check(table, path, text)
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
        # another file may be in its place, through a link, and have secrets
        excerpt = _line(text, line) if f"[{'.'.join(TABLE)}" in text else ""
        location = Location(path.as_posix(), line, column, excerpt)
        in_conflict = re.search(r"^<{7} ", text, re.MULTILINE) is not None
        hint = "resolve the conflict of the merge in this file, and build again" if in_conflict else None
        raise input_error("bad-toml", f"not TOML: {message}", location=location, hint=hint) from None


def _check(table: object, path: Path, text: str) -> None:
    """Raise `InputError` with all mistakes in the table of acpgen."""
    top = join("", *TABLE)
    report = Report(locate=lambda pointer: (_place(path, text, tuple(split(pointer))), pointer))
    if not isinstance(table, dict):
        report.error("config-bad-value", f"[{'.'.join(TABLE)}] must be a table", at=top)
    else:
        _check_keys({key: value for key, value in table.items() if key != OUTPUTS}, report, at=top)
        _check_outputs(table, report, at=join(top, OUTPUTS))
    report.raise_errors()


def _check_outputs(table: Mapping[str, Any], report: Report, *, at: str) -> None:
    outputs = table.get(OUTPUTS, {})
    if not isinstance(outputs, dict) or not all(isinstance(each, dict) for each in outputs.values()):
        report.error("config-bad-value", f"`{OUTPUTS}` must be a table of tables, one for each output", at=at)
        return
    if outputs and "out" in table:
        message = f"`out` is for one output, and the table `{OUTPUTS}` for several"
        hint = f"move `out` into a table below `{OUTPUTS}`"
        report.error("config-bad-value", message, at=join("", *TABLE, "out"), hint=hint)
    for name, output in outputs.items():
        _check_keys(output, report, at=join(at, name))
        if "out" not in output:
            message = f"the output {name!r} has no `out`"
            report.error("config-bad-value", message, at=join(at, name), hint="add the folder of its package as `out`")


def _check_keys(table: Mapping[str, object], report: Report, *, at: str) -> None:
    for name, value in table.items():
        here = join(at, name)
        key = KEYS.get(name)
        if key is None:
            hint = _unknown_hint(name, table, is_top=at == join("", *TABLE))
            report.error("config-unknown-key", f"unknown key {name!r}", at=here, hint=hint)
        elif what := flaw(key, value):
            report.error("config-bad-value", f"`{name}`: {what}", at=here, hint=key.help)
        elif isinstance(value, str) and isinstance(table.get(key.excludes or ""), str) and name < (key.excludes or ""):
            report.error("config-bad-value", f"`{name}` and `{key.excludes}` exclude each other", at=here)


def _unknown_hint(name: str, table: Mapping[str, object], *, is_top: bool) -> str:
    if name in FORMER_KEYS:
        role = table.get("role")
        roles = RoleChoice(role).roles if role in KEYS["role"].choices else RoleChoice.AGENT.roles
        return FORMER_KEYS[name].format(parts=f"with = {json.dumps([*default_parts(roles), name])}")
    known = [*KEYS, *([OUTPUTS] if is_top else [])]
    return did_you_mean(name, known) or f"the keys are: {', '.join(known)}"


def _place(path: Path, text: str, keys: tuple[str, ...]) -> Location:
    """The place of `keys`, or of the most of them that can be found: the parser has no places, and layouts differ."""
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
