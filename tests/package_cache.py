"""Packages on disk, and the text of models, made once for all test processes, test runs and versions of Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import acpgen.emit.flavours.models
import acpgen.pipeline
from acpgen.emit.flavours.generator import Library
from acpgen.emit.flavours.models import render_library_types
from acpgen.emit.source import Code
from acpgen.ir.model import Model, Options
from acpgen.pipeline import Compiled
from acpgen.schema.data import data_folder
from acpgen.sources.inputs import File, Inputs

REPOSITORY = Path(__file__).resolve().parent.parent
HOME = REPOSITORY / ".pytest_cache" / "d" / "packages"  # .cache is that of the site: a build of docs/ empties it
"""One folder per state of acpgen; in it, one folder per package."""
KEPT_STATES = 3
STARTED = time.time()
WRITTEN = 1_000_000_000
"""The time of each file in the cache."""
IN_USE_SECONDS = 3600.0
"""Another test run may still read a state that was used so recently."""


def folder(key: str, build: Callable[[], Mapping[str, str]]) -> Path:
    """The folder with the files that `build` returns; `key` names everything that they depend on, except acpgen."""
    home = HOME / _state()
    found = home / hashlib.sha256(key.encode()).hexdigest()[:16] / "package"
    if not found.is_dir():
        _write(build(), found.parent)
    return found


def types_of(model: Model, views: Mapping[str, object], library: Library) -> Code:
    """What `render_library_types` returns, which takes seconds."""
    key = f"types of {model!r} for {library}"
    home = folder(key, lambda: {"types.txt": render_library_types(model, views, library)})
    return Code((home / "types.txt").read_text(encoding="utf-8"))


def speed_up_builds() -> None:
    """Let this process take the text of models from here, and compile what is bundled once."""
    _state()  # as early as possible: it stands for the code that is imported
    acpgen.emit.flavours.models.render_library_types = types_of
    acpgen.pipeline.compile_protocol = _compile


_COMPILED: dict[object, Compiled] = {}
_compile_anew = acpgen.pipeline.compile_protocol


def _compile(inputs: Inputs, options: Options) -> Compiled:
    """What `compile_protocol` returns; for the inputs that are bundled, the same as before."""
    if inputs.release is None or any(isinstance(each.source, File) for each in inputs.extensions):
        return _compile_anew(inputs, options)
    key = (inputs.release, tuple(each.digest for each in inputs.extensions), options)
    if key not in _COMPILED:
        _COMPILED[key] = _compile_anew(inputs, options)
    return _COMPILED[key]


def prune(*, now: float | None = None) -> None:
    """Delete all but the newest states of acpgen."""
    states = sorted(HOME.glob("*/"), key=lambda path: path.stat().st_mtime, reverse=True)
    limit = (time.time() if now is None else now) - IN_USE_SECONDS
    for state in states[KEPT_STATES:]:
        if state.stat().st_mtime < limit:
            shutil.rmtree(state, ignore_errors=True)


@cache
def _state() -> str:
    """The digest with which this process began; marks it as used."""
    state = _digest()
    (HOME / state).mkdir(parents=True, exist_ok=True)
    os.utime(HOME / state)
    return state


def _digest() -> str:
    """The digest of everything that decides the bytes of a package."""
    digest = hashlib.sha256()
    for name in ("black", "datamodel-code-generator", "jinja2"):
        digest.update(f"{name}=={version(name)}\n".encode())
    for path in _sources():
        digest.update(f"{path.as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


@cache
def _sources() -> list[Path]:
    """The files of acpgen that decide the bytes of a package: those that there are when this process begins."""
    code = sorted((REPOSITORY / "acpgen").rglob("*.py"))
    data = sorted(path for name in ("schema", "templates") for path in (data_folder() / name).rglob("*"))
    return [path for path in (*code, *data) if path.is_file() and "__pycache__" not in path.parts]


def _share_bytecode(folder: Path, texts: list[str], home: Path) -> None:
    """Compile folders with the same modules once: most have the same runtime. Bytecode has the time of its source."""
    compiled = home / hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    compiled.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # Windows allows links to few users
        (folder / "__pycache__").symlink_to(compiled, target_is_directory=True)


def _write(files: Mapping[str, str], target: Path) -> None:
    """Write a package to another name, then rename it: other processes see all of it or nothing.

    Raises `RuntimeError` if acpgen was edited meanwhile: nobody knows which state has built the package.
    """
    if any(path.stat().st_mtime > STARTED for path in _sources()):
        raise RuntimeError("acpgen has changed since the tests began: run them again")
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    modules: defaultdict[Path, list[str]] = defaultdict(list)
    for path, text in files.items():
        file = temporary / "package" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (WRITTEN, WRITTEN))
        modules[file.parent] += [f"{file.name}\0{text}"]
    for home, texts in modules.items():
        _share_bytecode(home, sorted(texts), target.parent / "bytecode")
    try:
        temporary.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(temporary)
        assert target.is_dir()
