"""Record a conversation, for `acpgen trace --out`."""

from __future__ import annotations

import sys
from pathlib import Path

from acpgen.diagnostics import input_error


def record(command: tuple[str, ...], out: Path, *, shows_secrets: bool, max_mib: int) -> int:
    """Run a command between the client and the agent that it is, and record it; returns its exit code."""
    if sys.platform == "win32":
        raise input_error("usage", "a command can be recorded on systems with POSIX signals only")
    from acpgen.trace.pump import run_recorded
    from acpgen.trace.recorder import Recording

    try:
        return run_recorded(command, Recording(path=out, shows_secrets=shows_secrets, max_bytes=max_mib * 2**20))
    except OSError as error:
        what = "write" if error.filename == str(out) else "run"
        reason = error.strerror or str(error)
        raise input_error("not-started", f"cannot {what} {error.filename or command[0]}: {reason}") from None
