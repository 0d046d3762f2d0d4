"""When to connect again after a connection has ended, and when to give up."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, fields
from typing import Any, Literal

from .._decode import excerpt
from ..dispatch import ConnectionClosed

__all__: list[str] = []


class RecoveryError(ConnectionClosed):
    """A session, or all of a `SessionKeeper`, cannot be recovered; `reason` is what has prevented it.

    `SessionKeeper.reconnect` tries again.
    """

    def __init__(self, message: str, reason: Exception | None = None) -> None:
        super().__init__(message, **details_of(reason))
        self.reason = reason


def details_of(reason: Exception | None) -> dict[str, Any]:
    """What a `ConnectionClosed` says besides its text."""
    if not isinstance(reason, ConnectionClosed):
        return {}
    return {
        "status": reason.status,
        "is_permanent": reason.is_permanent,
        "exit_code": reason.exit_code,
        "stderr": reason.stderr,
        "stdout": reason.stdout,
    }


@dataclass(frozen=True, kw_only=True)
class RecoveryPolicy:
    """How a `SessionKeeper` connects again, and when it gives up.

    After an end, it tries at once, then after `first_seconds`, and each time `growth` times as long, at most
    `most_seconds`. It gives up after `attempts`, after so many `crashes` within `crash_seconds`, and if the agent or
    the server refuses.
    """

    attempts: int = 8
    """How many attempts to make after each end."""
    first_seconds: float = 1.0
    growth: float = 2.0
    most_seconds: float = 30.0
    attempt_seconds: float = 120.0
    """How long an attempt may take: to connect, to start, and to open the sessions again."""
    crashes: int = 2
    """How many ends within `crash_seconds` are a crash loop: of a connection that was in use, or of a process that was
    started."""
    crash_seconds: float = 60.0
    young_seconds: float = 60.0
    """How old a session must be before it is loaded: gemini-cli 0.61 cannot load one within the minute in which it was
    opened, and an attempt spoils it for good. A younger one is resumed, or opened anew if nothing was said in it; else
    its prompts wait."""
    anew: bool = False
    """Whether a session that can be opened again in no other way goes on as a new one, without its conversation. Where
    nothing was said in it, it always does."""
    prefer: Literal["resume", "load"] = "resume"
    """How to open sessions again if the agent can do both. By "resume" the state stays as it was shown; by "load" it is
    what the agent has kept, which tells whether it has an interrupted prompt."""

    def __post_init__(self) -> None:
        if self.prefer not in ("resume", "load"):
            raise ValueError(f"prefer is 'resume' or 'load', and not {excerpt(self.prefer)}")
        for each in fields(self):
            value: object = getattr(self, each.name)
            if each.name in ("prefer", "anew"):
                continue
            if not isinstance(value, (int, float)):
                raise TypeError(f"{each.name} is a number, and not {excerpt(value)}")
            least = 0 if each.name.endswith("seconds") else 1
            if not value >= least:
                raise ValueError(f"{each.name} must be at least {least}, and not {value}")


class Outages:
    """The attempts since the last end, and the last ends: what a policy decides by."""

    def __init__(self, policy: RecoveryPolicy) -> None:
        self._policy = policy
        self._ends = deque[float](maxlen=policy.crashes)
        self._pause = 0.0
        self.attempt = 0
        """The attempt that is next, from 1."""

    def forget(self) -> None:
        """Begin anew, as the user wants it."""
        self._ends.clear()
        self.attempt = 0

    def begin_anew(self) -> None:
        """Count the next attempt as the first one: the end before was wanted."""
        self.forget()
        self.attempt = 1

    def next(self, reason: Exception, *, was_up: bool) -> float:
        """The time before the next attempt, after an end or a failed one. Raises `RecoveryError` to give up."""
        policy = self._policy
        self.attempt = 1 if was_up else self.attempt + 1
        if getattr(reason, "is_permanent", False):
            raise RecoveryError(f"connecting again would end in the same way: {reason}", reason)
        if not isinstance(reason, (OSError, asyncio.TimeoutError)):
            raise RecoveryError(f"the connection cannot be made again: {reason}", reason)
        if self._is_loop(was_up or getattr(reason, "exit_code", None) is not None):
            text = f"the agent has ended {policy.crashes} times within {policy.crash_seconds:g} s, the last time: "
            raise RecoveryError(text + str(reason), reason)
        if self.attempt > policy.attempts:
            raise RecoveryError(f"{policy.attempts} attempts to connect again have failed, the last: {reason}", reason)
        return self._seconds()

    def _seconds(self) -> float:
        """The time before the next attempt: the first one is made at once."""
        policy = self._policy
        if self.attempt == 1:
            return 0.0
        longer = policy.first_seconds if self.attempt == 2 else self._pause * policy.growth
        self._pause = min(longer, policy.most_seconds)
        return self._pause

    def _is_loop(self, has_ended: bool) -> bool:
        if not has_ended:
            return False
        now = asyncio.get_running_loop().time()
        self._ends.append(now)
        is_full = len(self._ends) == self._policy.crashes
        return is_full and now - self._ends[0] <= self._policy.crash_seconds
