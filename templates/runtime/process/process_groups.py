"""The processes that a process leaves: those of its group, and on Linux those of its session."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from time import monotonic
from typing import Final

_SEARCH_SECONDS: Final = 0.5
_EMPTY_SEARCHES: Final = 3


def has_members(group: int) -> bool:
    """True if another process of the group is left after its leader was reaped."""
    if sys.platform == "win32":
        return False
    _reap_orphans(group)
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left
        return False
    if not _has_only_zombies(group):
        return True
    _reap_orphans(group)  # one may have ended since the first look
    return False


def members_of_session(session: int) -> list[int]:
    """The processes of a session that are no zombies, the latest first: they may live no longer than this takes."""
    found = list[int]()
    if sys.platform == "linux":
        for pid in sorted(_pids(), reverse=True):
            with contextlib.suppress(OSError):
                if os.getsid(pid) == session and _state_of(pid) not in (b"Z", b"X"):
                    found.append(pid)
    return found


def signal_session(session: int, number: signal.Signals) -> None:
    """Signal the processes of a session; kill them until there are none, for they may fork meanwhile, and end."""
    if sys.platform == "win32":
        return
    deadline, empty = monotonic() + _SEARCH_SECONDS, 0
    while empty < _EMPTY_SEARCHES and monotonic() < deadline:
        pids = members_of_session(session)
        for pid in pids:
            with contextlib.suppress(OSError):
                if number == signal.SIGKILL or os.getpgid(pid) != session:  # those of the first group have got it
                    os.kill(pid, number)
        if number != signal.SIGKILL:
            break
        empty = 0 if pids else empty + 1


def _reap_orphans(group: int) -> None:
    """Wait for ended members: orphans are children of this process where it is the first one of a container."""
    if sys.platform != "win32":
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-group, os.WNOHANG)[0]:
                pass


def _has_only_zombies(group: int) -> bool:
    """True if all are zombies. Their parent may never reap them, for example the first process of a container."""
    if sys.platform != "linux":
        return False
    states: set[bytes] = set()
    for pid in _pids():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == group:
                states.add(_state_of(pid))
    return bool(states) and states <= {b"Z", b"X"}


def _pids() -> list[int]:
    """All processes that can be seen; none in a sandbox without `/proc`."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _state_of(pid: int) -> bytes:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b") ")[2][:1]
