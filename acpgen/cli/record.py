"""Record a conversation, for `acpgen trace --out`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from acpgen.diagnostics import input_error

if TYPE_CHECKING:
    from acpgen.trace.relay import Address

_LIBRARIES = ("h11", "hpack", "hyperframe", "wsproto")
_SECURE = {"http": False, "ws": False, "https": True, "wss": True}


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


def record_remote(listen: str, connect: str, out: Path, *, shows_secrets: bool, max_mib: int) -> None:
    """Pass on what clients and a remote agent send, and record it, until a signal comes."""
    if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
        message = f"--listen needs {', '.join(missing)}"
        raise input_error("trace-missing", message, hint='pip install "acpgen[trace]"')
    from acpgen.trace.recorder import Recording
    from acpgen.trace.relay import run_relay

    here, remote = _listener(listen), _split(connect, "--connect")
    try:
        run_relay(here, remote, Recording(path=out, shows_secrets=shows_secrets, max_bytes=max_mib * 2**20))
    except OSError as error:
        what = f"write {out}" if error.filename == str(out) else f"listen at {listen}"
        raise input_error("not-started", f"cannot {what}: {error.strerror or error}") from None


def _listener(text: str) -> Address:
    found = _split(text if "://" in text else f"http://{text}", "--listen")
    if found.is_secure:
        raise input_error("usage", f"--listen takes HOST:PORT, not {text!r}", hint="its clients use no TLS")
    return found


def _split(text: str, option: str) -> Address:
    from acpgen.trace.relay import Address

    try:
        found: Any = urlsplit(text)
        port = found.port
    except ValueError:
        found, port = None, None
    if found is None or found.scheme not in _SECURE or not found.hostname or found.username is not None:
        raise input_error("usage", f"{option} does not take {text!r}", hint="http://HOST:PORT/PATH, for instance")
    is_secure = _SECURE[found.scheme]
    if port is None:
        port = 443 if is_secure else 80
    return Address(found.hostname, port, is_secure, found.path)
