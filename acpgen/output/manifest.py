"""The manifest `acpgen.lock`: the inputs and options of a package, and the hash of each of its files.

It has no time stamp and no absolute path, so that the same input gives the same bytes. A manifest from disk is
untrusted: no file is deleted, and `check` accepts no file, because of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from acpgen.diagnostics import InputError, Location, input_error
from acpgen.output.folder import LOCK_NAME, StrPath, foreign_file, has_conflict, path_flaw, read_below, shown
from acpgen.text import MARKER, digest

_NOTE_KEY = "//"
_FILES_KEY = "files"
_OWN_KEYS = frozenset({_NOTE_KEY, _FILES_KEY, "names"})
"""The keys that are not of the head. Former versions wrote `names`, the public names of the package."""
_MOST_READ = 16 * 1024 * 1024
"""The largest manifest, in bytes; that of the largest bundled schema has 10 KiB."""
_NOTE_START = MARKER.removeprefix("# ")
_NOTE = f"{_NOTE_START} Commit it with the package: it says what the package was made from."
_SHA256 = re.compile("[0-9a-f]{64}")
_RECORD = re.compile(r'^    "([^"\\]+\.[^"\\]+)": "([0-9a-f]{64})"', re.MULTILINE)
"""A file, in the layout of acpgen."""
_BROKEN_HINT = f"delete {LOCK_NAME} and build again: the first line of a file shows that it is generated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest from disk. `head` has the inputs and options of the build, `files` the SHA-256 of each file by path.

    One `in_conflict` has the files of both sides of a merge, and no `head`.
    """

    head: Mapping[str, object]
    files: Mapping[str, str]
    in_conflict: bool = False


def is_manifest(data: bytes) -> bool:
    """Whether `data` has the note of a manifest."""
    return _NOTE_START.encode() in data


def render_manifest(head: Mapping[str, object], files: Mapping[str, str]) -> str:
    """Write the manifest for `files` (path to text). `head` is JSON, and has no key of the manifest itself."""
    hashes = {path: digest(files[path].encode()) for path in sorted(files)}
    content = {_NOTE_KEY: _NOTE, **json.loads(_canonical(head)), _FILES_KEY: hashes}
    return json.dumps(content, indent=2) + "\n"


def read_manifest(folder: StrPath) -> Manifest | None:
    """Read the manifest in `folder`; None if there is none.

    Raises `InputError`: `foreign-file` or `symlink-in-output` for a file that is not a manifest, `manifest-broken` for
    a manifest that cannot be parsed.
    """
    data = read_below(folder, LOCK_NAME, limit=_MOST_READ + 1)
    return None if data is None else parse_manifest(data, folder)


def usable_manifest(folder: StrPath) -> Manifest | None:
    """Read the manifest in `folder`; None if there is none or if it is broken. The plan reports a broken one."""
    try:
        return read_manifest(folder)
    except InputError:
        return None


def unchanged(folder: StrPath, head: Mapping[str, object]) -> bool:
    """Whether `folder` holds a package that was built from `head`, according to its manifest; False if in doubt.

    A manifest can be forged. Only `build` relies on this, to skip its work; `check` compiles.
    """
    try:
        manifest = read_manifest(folder)
        if manifest is None or not same_head(manifest.head, head):
            return False
        found = ((read_below(folder, path), wanted) for path, wanted in manifest.files.items())
        return all(data is not None and digest(data) == wanted for data, wanted in found)
    except InputError:
        return False


def same_head(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two heads are equal; False if one of them is not JSON."""
    try:
        # Compared as text: in Python, `1 == True`, and a tuple differs from the list that it is written as.
        return _canonical(one) == _canonical(other)
    except (ValueError, RecursionError):
        # A manifest may have `NaN` or deep nesting, which `json.loads` accepts and `json.dumps` refuses.
        return False


def _canonical(head: Mapping[str, object]) -> str:
    return json.dumps(dict(head), sort_keys=True, allow_nan=False)


def parse_manifest(data: bytes, folder: StrPath) -> Manifest:
    """Parse the manifest `data` of `folder`. Raises `InputError` as `read_manifest` does."""
    # The bytes are searched first: a manifest with a merge conflict is not foreign.
    if not is_manifest(data):
        raise foreign_file(folder, LOCK_NAME)
    if len(data) > _MOST_READ:
        raise _broken(folder, f"it is larger than {_MOST_READ // 1024**2} MiB")
    if has_conflict(data):
        found = _RECORD.findall(data.decode(errors="replace"))
        return Manifest(head={}, files={path: sha for path, sha in found if not path_flaw(path)}, in_conflict=True)
    try:
        raw = json.loads(data.decode())
    except json.JSONDecodeError as error:
        raise _broken(folder, error.msg, line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        raise _broken(folder, str(error)) from error
    note = raw.get(_NOTE_KEY) if isinstance(raw, dict) else None
    if not isinstance(note, str) or not note.startswith(_NOTE_START):
        raise foreign_file(folder, LOCK_NAME)
    head = {key: value for key, value in raw.items() if key not in _OWN_KEYS}
    return Manifest(head=head, files=_parse_files(raw.get(_FILES_KEY), folder=folder))


def _parse_files(raw: object, *, folder: StrPath) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise _broken(folder, "`files` is not an object", pointer=f"/{_FILES_KEY}")
    files: dict[str, str] = {}
    for path, recorded in raw.items():
        flaw = path_flaw(path)
        if flaw is None and not (isinstance(recorded, str) and _SHA256.fullmatch(recorded)):
            flaw = "its hash is not a SHA-256 in lower-case hexadecimal"
        if flaw is not None:
            # The pointer ends at the object, because a hostile path must not reach a terminal.
            raise _broken(folder, f"{path!a}: {flaw}", pointer=f"/{_FILES_KEY}")
        files[path] = recorded
    return files


def _broken(folder: StrPath, what: str, *, line: int = 1, column: int = 1, pointer: str | None = None) -> InputError:
    name = shown(folder, LOCK_NAME)
    message, place = f"the manifest {name} cannot be used: {what}", Location(name, line, column)
    return input_error("manifest-broken", message, location=place, pointer=pointer, hint=_BROKEN_HINT)
