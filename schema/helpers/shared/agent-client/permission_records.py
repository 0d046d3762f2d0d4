"""What a permission is about: the subject of a question, and the part of it that is remembered."""

from __future__ import annotations

import os
import shlex
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, cast

from ..decision import explains

__all__: list[str] = []

_SEPARATORS: Final = os.sep + (os.altsep or "")
_MAX_SHOWN: Final = 500
_MAX_LINES: Final = 20
"""The most of one value, and of paths and of variables, that the lines about a question have."""
_ONE_FILE: Final = frozenset({"read", "edit", "delete", "search"})
"""The kinds of tools that are remembered for a file. What is moved has a second one, which only the input has."""


@dataclass(frozen=True)
class PermissionPath:
    """A path as it was when a question was put: later, the same name may lead elsewhere.

    `name` has no links in its folders, and `target` none at all: they differ if `name` is a link. `sort` is what the
    target was: "file", "folder", "missing", or "other" for what is neither and what cannot be seen.
    """

    name: str
    target: str
    sort: str


def resolve_path(path: str) -> PermissionPath | None:
    """The path as it is now; None if it is not absolute, or no path of this system."""
    if not os.path.isabs(path):
        return None
    try:
        target = os.path.realpath(path)
        folder, last = os.path.split(path.rstrip(_SEPARATORS))
        is_name = last not in {"", os.curdir, os.pardir}
        name = os.path.join(os.path.realpath(folder), last) if is_name else target
        return PermissionPath(name, target, _sort(target))
    except (OSError, ValueError):
        return None


def _sort(target: str) -> str:
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "other"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def folded(name: str) -> str:
    """The text that all names have which a file system may take for this one: some ignore case and Unicode forms."""
    if name.isascii():
        return os.path.normcase(name).lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", os.path.normcase(name)).casefold())


@dataclass(frozen=True, kw_only=True)
class PermissionRecord:
    """The part of a subject that is remembered. It is for subjects with an equal one, and for no others.

    `input` is a digest of the input of a tool, and stands for command, arguments and environment, too.
    """

    kind: str | None = None
    tool: str | None = None
    files: tuple[PermissionPath, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    folder: PermissionPath | None = None
    env: tuple[tuple[str, str], ...] = ()
    input: str | None = None


@dataclass(frozen=True, kw_only=True)
class PermissionSubject:
    """The subject of a question, as the agent describes it. None or empty if it does not say.

    `kind` is that of the tool, `tool` its name in code. `paths` are the files that it touches, or the folder of a
    command in protocol 2. `command` has the `args` and the variables `env` of the agent, and runs in `folder`, which is
    that of the session if the agent names none. `input` is a digest of the input of the tool.

    `files` and `place` are `paths` and `folder` as they were when the subject was made.
    """

    kind: str | None = None
    tool: str | None = None
    paths: tuple[str, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    folder: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    input: str | None = None
    files: tuple[PermissionPath | None, ...] = field(init=False)
    place: PermissionPath | None = field(init=False)

    @explains
    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(resolve_path(each) for each in self.paths))
        place = None if self.folder is None else resolve_path(self.folder)
        if place is not None:  # a command runs in the same folder, by whatever links it was named
            place = replace(place, name=place.target)
        object.__setattr__(self, "place", place)

    def differs(self, *others: PermissionSubject) -> bool:
        """True if there is something that this subject says, and none of the others."""
        names = [each.name for each in fields(self)]
        return any(all(getattr(self, name) != getattr(each, name) for each in others) for name in names)

    @property
    def lines(self) -> list[str]:
        """What to show besides a title, such as "command: rm -rf build": a line for each thing that is known.

        Line ends, and what would act on a terminal, are escaped. What is too long says how much of it is left out.
        """
        command = self.command
        if command is not None and self.args:
            command = shlex.join([command, *self.args])
        said = [("kind", self.kind), ("tool", self.tool), ("command", command)]
        if self.folder is not None:
            said.append(("in", _path_text(self.folder, self.place)))
        found = [f"{name}: {line_of(value)}" for name, value in said if value is not None]
        found += _bounded("variable", [f"{name}={value}" for name, value in self.env])
        files = [_path_text(path, at) for path, at in zip(self.paths, self.files, strict=True) if path != self.folder]
        return found + _bounded("path", files)

    @cached_property
    def record(self) -> PermissionRecord | None:
        """What is remembered of an answer; None if the subject does not say enough, or no more than a relative path.

        A tool for files is remembered for a file, if it is one. Everything else is for the same command or input, with
        the same files and in the same folder, which has to be known and there.
        """
        files = tuple(each for each in self.files if each is not None and each.sort != "other")
        if len(files) < len(self.paths):
            return None
        if self.kind in _ONE_FILE and len(files) == 1 and self.command is None and not self.env:
            return PermissionRecord(kind=self.kind, tool=self.tool, files=files)
        if self.place is None or self.place.sort != "folder":
            return None
        files = tuple(each for path, each in zip(self.paths, files, strict=True) if path != self.folder)
        said = PermissionRecord(kind=self.kind, tool=self.tool, files=files, folder=self.place, input=self.input)
        if self.input is not None:
            return said
        if self.command is None:
            return None
        return replace(said, command=self.command, args=self.args, env=self.env)


# --- For people ------------------------------------------------------------------------------------------------------


def line_of(text: str) -> str:
    """The text in one line, of which a terminal shows all: other characters are escaped, and it is not too long."""
    head = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:_MAX_SHOWN])
    return f"{head} … ({len(text) - _MAX_SHOWN} more characters)" if len(text) > _MAX_SHOWN else head


def _path_text(path: str, at: PermissionPath | None) -> str:
    """A path, and where it leads."""
    is_itself = at is None or at.target in (path, os.path.normpath(path))
    return path if at is None or is_itself else f"{path} -> {at.target}"


def _bounded(name: str, values: list[str]) -> list[str]:
    found = [f"{name}: {line_of(each)}" for each in values[:_MAX_LINES]]
    return [*found, f"… and {len(values) - _MAX_LINES} more"] if len(values) > _MAX_LINES else found


# --- In a file -------------------------------------------------------------------------------------------------------


def write_record(record: PermissionRecord) -> dict[str, Any]:
    """The record as JSON, without what is empty."""
    raw: dict[str, Any] = {name: value for name, value in vars(record).items() if value}
    if record.files:
        raw["files"] = [vars(each) for each in record.files]
    if record.folder is not None:
        raw["folder"] = vars(record.folder)
    return raw


def read_record(raw: object) -> PermissionRecord:
    """The record in a JSON value. Raises `TypeError` and `ValueError` for what has none."""
    if not isinstance(raw, dict) or not _has_only_texts(cast("object", raw)):
        raise ValueError("a value is not text")
    found = cast("dict[str, Any]", {**raw})
    found["files"] = tuple(PermissionPath(**each) for each in found.get("files", ()))
    found["args"] = tuple(found.get("args", ()))
    found["env"] = tuple((name, value) for name, value in found.get("env", ()))
    if "folder" in found:
        found["folder"] = PermissionPath(**found["folder"])
    return PermissionRecord(**found)


def _has_only_texts(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_has_only_texts, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list):
        return all(map(_has_only_texts, cast("list[object]", value)))
    return isinstance(value, str)
