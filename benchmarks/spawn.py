"""Start processes with as little as possible between the clock and them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path


def environment() -> dict[str, str]:
    """The environment of all contenders: nothing that changes how Python reads or writes bytecode."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONDEVMODE", "PYTHONWARNINGS", "COVERAGE_RUN")
    return {name: value for name, value in os.environ.items() if name not in unwanted}


class FailedError(Exception):
    """A contender ended with an error."""


def run_timed(command: Sequence[str | Path], *, log: Path) -> float:
    """Run `command`, its output going to `log`: the seconds until it has ended.

    Raises `FailedError` with the end of the log where the exit code is not 0.
    """
    argv = [os.fspath(part) for part in command]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, descriptor, 1),
        (os.POSIX_SPAWN_DUP2, descriptor, 2),
    ]
    variables = environment()
    try:
        start = time.perf_counter()
        process = os.posix_spawn(argv[0], argv, variables, file_actions=actions)
        _, status = os.waitpid(process, 0)
        seconds = time.perf_counter() - start
    finally:
        os.close(descriptor)
    if status:
        raise FailedError(f"{' '.join(argv)}\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
    return seconds


def run_for_output(command: Sequence[str | Path]) -> str:
    """What `command` prints; raises `FailedError` where it ends with an error."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise FailedError(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout
