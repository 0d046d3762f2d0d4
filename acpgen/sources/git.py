"""Reads files from a revision of a git repository, with the installed git."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.schema.document import check_size

_INERT = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""The configuration of a repository cannot name programs to run."""
_QUIET = {"LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
"""No translated messages, no network, no locks, no questions."""


def read_in_revision(spec: str, *, in_folder: str) -> tuple[str, bytes]:
    """Read the file `spec`, which is `REV:PATH`; for a folder, the file `in_folder` in it. Returns its spec, too.

    As always in git, PATH starts at the top of the repository, and `./PATH` in the working folder. Raises `InputError`
    if there is no git, no repository, no such revision or no such file.
    """
    revision, _, path = spec.partition(":")
    _check(spec, revision)
    commit = _resolve(f"{revision}^{{commit}}")
    if commit is None:
        raise _no_revision(spec, revision)
    blob, kind = _object(commit, path.rstrip("/"))
    if kind == "tree":
        spec = f"{spec.rstrip('/')}{'' if spec.endswith(':') else '/'}{in_folder}"
        blob, kind = _object(commit, spec.partition(":")[2])
    if blob is None:
        raise input_error(
            "no-such-file",
            f"the revision {revision!r} has no {spec.partition(':')[2]!r}",
            hint="paths start at the top of the repository, and with ./ in the working folder",
        )
    if kind != "blob":
        raise input_error("no-such-file", f"{spec!r} is not a file, but a {kind}")
    check_size(int(_git("cat-file", "-s", blob)), spec)
    return spec, _git("cat-file", "blob", blob)


def is_ignored(path: Path) -> bool:
    """Whether git leaves the file `path` out of commits. False if it is tracked, or without git or a repository."""
    folder = next((each for each in path.parents if each.is_dir()), None)
    if folder is None or shutil.which("git") is None:
        return False
    with suppress(InputError):
        name = os.path.relpath(path, folder)
        return _run("-C", str(folder), *_INERT, "check-ignore", "--quiet", "--", name).returncode == 0
    return False


def _check(spec: str, revision: str) -> None:
    """Raise `InputError` for a spec that git would read as an option, or without a revision."""
    if not revision or revision.startswith("-") or not spec.isprintable():
        raise input_error(
            "bad-revision", f"{spec!r} does not start with a revision", hint="write REV:PATH, such as HEAD:src/app/acp"
        )


def _object(commit: str, path: str) -> tuple[str | None, str]:
    """The id and the kind of the object at `path`; None and an empty text if there is none."""
    found = _resolve(f"{commit}:{path}")
    return found, (_git("cat-file", "-t", found).decode().strip() if found is not None else "")


def _resolve(name: str) -> str | None:
    """The id of the object `name`; None if there is none."""
    ran = _run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    return ran.stdout.decode().strip() if ran.returncode == 0 else None


def _git(*arguments: str) -> bytes:
    """Run git and return its stdout. Raises `InputError` with its error message."""
    ran = _run(*arguments)
    if ran.returncode:
        raise input_error("git-failed", f"git {arguments[0]} failed: {_complaint(ran)}")
    return ran.stdout


def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git")
    if git is None:
        raise input_error("no-git", "git is not installed, or not on the PATH", hint="install git: REV:PATH needs it")
    environment = {**os.environ, **_QUIET}
    try:
        return subprocess.run(  # noqa: S603 - no shell, and no argument that git would read as an option
            [git, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except OSError as error:
        raise input_error("git-failed", f"git cannot be run: {error}") from None


def _complaint(ran: subprocess.CompletedProcess[bytes]) -> str:
    lines = ran.stderr.decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"exit code {ran.returncode}"


def _no_revision(spec: str, revision: str) -> InputError:
    """The error for an unknown revision, or for a folder that is not in a repository."""
    ran = _run("rev-parse", "--git-dir")
    if ran.returncode:
        return input_error("no-repository", f"cannot look up {spec!r}: {_complaint(ran)}")
    return input_error(
        "no-revision",
        f"unknown revision {revision!r}",
        hint="write ./ before the name of a file that has a colon",
    )
