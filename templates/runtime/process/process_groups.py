"""The processes that a process leaves: those of its group, and on Linux those of its session, or with a mark."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final

_SEARCH_SECONDS: Final = 2.0
_EMPTY_SEARCHES: Final = 5
"""After so many searches in a row that find none, there is none: one that only forks is easily missed once."""


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


def members_of_session(session: int | None, mark: bytes | None = None) -> list[int]:
    """The processes of a session, and later ones with a variable "NAME=value" that is the mark; on Linux.

    Those that are no zombies, the latest first: they may live no longer than this takes. Without a session, all that
    have the mark.
    """
    found = list[int]()
    if sys.platform == "linux":
        for pid in sorted(_pids(), reverse=True):
            with contextlib.suppress(OSError):
                if _belongs(pid, session, mark) and _state_of(pid) not in (b"Z", b"X"):
                    found.append(pid)
    return found


def signal_session(session: int, number: signal.Signals) -> None:
    """Signal the processes in the other groups of a session, once."""
    if sys.platform != "win32":
        for pid in members_of_session(session):
            with contextlib.suppress(OSError):
                if os.getpgid(pid) != session:  # those of the first group have got it
                    os.kill(pid, number)


def kill_found(pids: list[int]) -> None:
    """Kill processes, of which some may have ended."""
    if sys.platform != "win32":
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


async def kill_until_gone(find: Callable[[], list[int]]) -> None:
    """Kill what `find` finds until it finds none, for they may fork meanwhile, and end. Other tasks run in between."""
    deadline, empty = monotonic() + _SEARCH_SECONDS, 0
    while empty < _EMPTY_SEARCHES and monotonic() < deadline:
        pids = find()
        kill_found(pids)
        empty = 0 if pids else empty + 1
        await asyncio.sleep(0)


def _belongs(pid: int, session: int | None, mark: bytes | None) -> bool:
    if sys.platform == "win32" or pid == os.getpid():
        return False
    if session is not None and os.getsid(pid) == session:
        return True
    if mark is None or (session is not None and pid < session):
        return False
    with open(f"/proc/{pid}/environ", "rb") as file:
        return mark in file.read().split(b"\0")


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
