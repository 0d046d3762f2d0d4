"""Record a conversation, for `acpgen trace --out`."""

from __future__ import annotations

import sys
from pathlib import Path

from acpgen.diagnostics import input_error


def record(command: tuple[str, ...], out: Path, *, shows_secrets: bool, max_mib: int) -> int:
    """Run a command between the client and the agent that it is, and record it; returns its exit code."""
    if sys.platform == "win32":
        raise input_error("usage", "a command can be recorded on systems with POSIX signals only")
    from acpgen.trace.recorder import Recorder
    from acpgen.trace.tee import run_recorded

    try:
        recorder = Recorder(out, command, max_bytes=max_mib * 2**20, shows_secrets=shows_secrets)
        return run_recorded(command, recorder)
    except OSError as error:
        what = "write" if error.filename == str(out) else "run"
        reason = error.strerror or str(error)
        raise input_error("not-started", f"cannot {what} {error.filename or command[0]}: {reason}") from None
