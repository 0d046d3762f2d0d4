"""A PostgreSQL server of one's own, in a folder of its own, reached by a socket there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import find_initdb, need

SECONDS = 120


def _programs() -> Path:
    """The folder of its programs."""
    need("initdb")
    found = find_initdb()
    assert found is not None
    return found.parent


@contextmanager
def postgres() -> Generator[str, None, None]:
    """The URL of a server that runs during the block. It does not run as root, so another user is taken for that."""
    programs = _programs()
    home = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a path of a socket has a limit
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(home, user)

    def run(*arguments: str | Path) -> None:
        with (home.parent / f"{home.name}.log").open("ab") as log:
            subprocess.run(arguments, user=user, cwd=home, stdout=log, stderr=log, check=True, timeout=SECONDS)

    options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
    try:
        run(programs / "initdb", "-D", home / "data", "-U", "tester", "--auth", "trust", "-E", "UTF8", "--locale", "C")
        run(programs / "pg_ctl", "-D", home / "data", "-w", "-o", options, "start")
        try:
            yield f"postgresql://tester@/postgres?host={home}"
        finally:
            run(programs / "pg_ctl", "-D", home / "data", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
        (home.parent / f"{home.name}.log").unlink(missing_ok=True)
