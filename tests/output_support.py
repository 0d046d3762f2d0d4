"""What the tests of the output folder share: two packages, and how to look at a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.output import LOCK_NAME, OutputPlan, apply, plan
from acpgen.text import MARKER

HEAD: dict[str, object] = {"acpgen": "0.1.0", "options": {"role": "agent"}, "extensions": []}
OLD = {"__init__.py": f"{MARKER}\nold\n", "sub/codec.py": f"{MARKER}\nold\n", "gone.py": f"{MARKER}\n", "py.typed": ""}
NEW = {
    "__init__.py": f"{MARKER}\nnew\n",
    "sub/codec.py": f"{MARKER}\nnew é\n",
    "more/x.py": f"{MARKER}\n",
    "py.typed": "",
}

Snapshot = dict[str, tuple[bytes | None, int]]


def build(files: Mapping[str, str], folder: Path, head: Mapping[str, object] = HEAD) -> OutputPlan:
    """Plan and apply in one go."""
    made = plan(files, folder=folder, head=head)
    apply(made)
    return made


def snapshot(folder: Path) -> Snapshot:
    """Bytes and time stamp of every file below `folder`, and the name of every folder."""
    return {
        path.relative_to(folder).as_posix(): (
            (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else (None, 0)
        )
        for path in folder.rglob("*")
    }


def contents(folder: Path) -> dict[str, str]:
    """The text of every file below `folder` but the manifest."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in folder.rglob("*.*")}
    return {path: text for path, text in found.items() if path != LOCK_NAME}


def refusal(files: Mapping[str, str], folder: Path) -> tuple[Diagnostic, ...]:
    """The diagnostics with which a build fails; checks that the disk stays as it is."""
    before = snapshot(folder) if folder.is_dir() else {}
    with pytest.raises(InputError) as caught:
        build(files, folder)
    assert (snapshot(folder) if folder.is_dir() else {}) == before
    assert all(found.hint and found.severity is Severity.ERROR for found in caught.value.diagnostics)
    return caught.value.diagnostics


def codes(found: tuple[Diagnostic, ...]) -> list[str]:
    return [each.code for each in found]


def write_lock(folder: Path, files: object) -> None:
    """A manifest that says what the test wants it to say."""
    folder.mkdir(exist_ok=True)
    lock = {"//": MARKER.removeprefix("# "), **HEAD, "files": files}
    (folder / LOCK_NAME).write_text(json.dumps(lock, indent=2))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def old_package(folder: Path) -> Path:
    """An output folder that holds the old package and something of the user's."""
    build(OLD, folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.py").write_text("mine\n")
    return folder
