"""What a permission is about: the subject of a question, and the part of it that is remembered.

`operation_facts` has the rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, cast

from ..decision import explains
from .operation_facts import FOR_ONE_FILE, ONLY_LOOKING, tells

__all__: list[str] = []

MAX_PATH: Final = 4096
"""The longest path that is looked at, in characters."""
_MAX_PATHS: Final = 256
_MAX_PATH_TEXT: Final = 2**16
"""The most paths of a subject that are looked at, and of their characters: those that follow count as unknown."""
_SEPARATORS: Final = os.sep + (os.altsep or "")
_MAX_SHOWN: Final = 500
_MAX_LINES: Final = 20
"""The most of one value, and of paths and of variables, that the lines about a question have."""
_MAX_COMMAND: Final = 1024
"""The longest command that is remembered as it is; of a longer one, a digest is."""


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
    """The path as it is now; None if it is not absolute, too long, or no path of this system."""
    if len(path) > MAX_PATH or not os.path.isabs(path):
        return None
    try:
        target = os.path.realpath(path)
        folder, last = os.path.split(path.rstrip(_SEPARATORS))
        is_name = last not in {"", os.curdir, os.pardir}
        name = os.path.join(os.path.realpath(folder), last) if is_name else target
        return PermissionPath(name, target, _sort(target))
    except (OSError, ValueError):
        return None


def resolve_paths(paths: tuple[str, ...]) -> tuple[PermissionPath | None, ...]:
    """The paths as they are now. Each takes a look at all its folders, so their number and length are bounded."""
    found, room = list[PermissionPath | None](), _MAX_PATH_TEXT
    for each in paths[:_MAX_PATHS]:
        room -= min(len(each), MAX_PATH)
        found.append(None if room < 0 else resolve_path(each))
    return (*found, *[None] * (len(paths) - len(found)))


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

    `input` is a digest of the input of a tool, for a command of what it has besides. `contrary` is what the report of
    the call says, where that contradicts the question.
    """

    kind: str | None = None
    tool: str | None = None
    files: tuple[PermissionPath, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    folder: PermissionPath | None = None
    env: tuple[tuple[str, str], ...] = ()
    input: str | None = None
    title: str | None = None
    contrary: PermissionRecord | None = None

    @property
    def readings(self) -> tuple[PermissionRecord, ...]:
        """The record, and its contrary if it has one."""
        return (self,) if self.contrary is None else (self, self.contrary)


@dataclass(frozen=True, kw_only=True)
class PermissionSubject:
    """The subject of a question, as the agent describes it: in the question, and in its reports of the tool call.

    None or empty if it does not say. `kind` is that of the tool, `tool` its name in code. `paths` are the files that it
    touches, or the folder of a command in protocol 2. `command` has the `args` and the variables `env` of the agent. It
    runs in `folder`, which is that of the session if the agent names none. `input` is a digest of the input of the
    tool, and `parts` has one for each of its keys that is no fact of its own. `title` is text of the model: it is
    remembered, and decides nothing.

    `contrary` is the other reading, if the reports contradict the question. `files` and `place` are `paths` and
    `folder` as they were when the subject was made.
    """

    kind: str | None = None
    tool: str | None = None
    paths: tuple[str, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    folder: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    input: str | None = None
    title: str | None = None
    parts: tuple[tuple[str, str], ...] = ()
    contrary: PermissionSubject | None = None
    files: tuple[PermissionPath | None, ...] = field(init=False)
    place: PermissionPath | None = field(init=False)

    @explains
    def __post_init__(self) -> None:
        other = self.contrary  # its paths were looked at before
        is_known = other is not None and other.paths == self.paths
        object.__setattr__(self, "files", other.files if other and is_known else resolve_paths(self.paths))
        place = None if self.folder is None else resolve_path(self.folder)
        if place is not None:  # a command runs in the same folder, by whatever links it was named
            place = replace(place, name=place.target)
        object.__setattr__(self, "place", place)

    @property
    def readings(self) -> tuple[PermissionSubject, ...]:
        """The subject, and its contrary if it has one."""
        return (self,) if self.contrary is None else (self, self.contrary)

    def differs(self, *others: PermissionSubject) -> bool:
        """True if there is something that this subject says, and none of the others."""
        names = [each.name for each in fields(self)]
        return any(all(getattr(self, name) != getattr(each, name) for each in others) for name in names)

    @property
    def is_told(self) -> bool:
        """True if a command, a path or the input tells the operation from others."""
        if self.command is not None or any(tells(name) for name, _ in self.parts):
            return True
        if self.input is not None and not self.parts:  # a subject that a program has made
            return True
        is_of_files = self.kind in FOR_ONE_FILE
        return any(is_of_files or not is_folder(each, self) for each in self.files)

    @property
    def lines(self) -> list[str]:
        """What to show besides a title, such as "command: rm -rf build": a line for each thing that is known.

        Line ends, and what would act on a terminal, are escaped. What is too long says how much of it is left out. What
        the agent has reported otherwise than it asks for is a line with "also".
        """
        found = self._facts()
        if self.contrary is not None:
            found += [f"also {each}" for each in self.contrary._facts() if each not in found]
        files = [_path_text(path, at) for path, at in zip(self.paths, self.files, strict=True) if path != self.folder]
        return found + _bounded("path", files)

    def _facts(self) -> list[str]:
        command = self.command
        if command is not None and self.args:
            command = shlex.join([command, *self.args])
        said = [("kind", self.kind), ("tool", self.tool), ("command", command)]
        if self.folder is not None:
            said.append(("in", _path_text(self.folder, self.place)))
        found = [f"{name}: {line_of(value)}" for name, value in said if value is not None]
        return found + _bounded("variable", [f"{name}={value}" for name, value in self.env])

    @cached_property
    def names(self) -> tuple[frozenset[str], ...]:
        """The names of each path, folded: as it was said, without links in its folders, and where it leads.

        Empty for one that is not known.
        """
        return tuple(
            frozenset() if at is None else frozenset(map(folded, (os.path.normpath(path), at.name, at.target)))
            for path, at in zip(self.paths, self.files, strict=True)
        )

    @cached_property
    def record(self) -> PermissionRecord | None:
        """What is remembered of an answer; None if the subject does not say enough, or no more than a relative path.

        A tool for files is remembered for a file, if it is one. Everything else is for the same command or input, with
        the same files and in the same folder, which has to be known and there.
        """
        found = [own for each in self.readings if (own := each._own_record()) is not None]
        if len(found) < len(self.readings):
            return None
        found.sort(key=lambda each: json.dumps(write_record(each), sort_keys=True))  # whichever source was newer
        return replace(found[0], contrary=found[1] if len(found) > 1 else None)

    def _own_record(self) -> PermissionRecord | None:
        files = tuple(each for each in self.files if each is not None and each.sort != "other")
        if len(files) < len(self.paths) or not self.is_told:
            return None
        said = PermissionRecord(kind=self.kind, tool=self.tool, title=self.title, files=files)
        if self.kind in FOR_ONE_FILE and len(files) == 1 and self.command is None and not self.env:
            return replace(said, input=self.input, folder=self.place) if self._is_looking else said
        if self.place is None or self.place.sort != "folder" or (self.command is None and self.input is None):
            return None
        said = replace(said, files=tuple(each for each in files if not is_folder(each, self)), folder=self.place)
        if self.command is None:
            return replace(said, input=self.input)
        if len(self.command) + sum(map(len, self.args)) > _MAX_COMMAND:
            return replace(said, input=digest([self.command, self.args, self.env, self.parts]))
        rest = digest(self.parts) if self.parts else None
        return replace(said, command=self.command, args=self.args, env=self.env, input=rest)

    @property
    def _is_looking(self) -> bool:
        return self.kind in ONLY_LOOKING and self.input is not None


def is_folder(file: PermissionPath | None, subject: PermissionSubject) -> bool:
    """True if a path leads to the folder of the subject."""
    return file is not None and subject.place is not None and file.target == subject.place.target


def why_once(subject: PermissionSubject) -> str:
    """Why an answer cannot be remembered, for the log."""
    if not all(each.is_told for each in subject.readings):
        return "no command, path or input tells the operation from others"
    return "it names no folder or file that is there"


def digest(value: object) -> str:
    """A text that stands for a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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
    if record.contrary is not None:
        raw["contrary"] = write_record(record.contrary)
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
    if "contrary" in found:
        found["contrary"] = read_record(found["contrary"])
    return PermissionRecord(**found)


def _has_only_texts(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_has_only_texts, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list):
        return all(map(_has_only_texts, cast("list[object]", value)))
    return isinstance(value, str)
