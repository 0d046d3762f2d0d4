"""How a session is opened again, for protocol 1."""

from __future__ import annotations

from typing import Final, Literal

from ..client import RemoteAgent

__all__: list[str] = []

INTERRUPTED: Final = "failed"
"""The status of tool calls that nobody will end: protocol 1 has no other for it."""


def reopening_ways(agent: RemoteAgent) -> list[Literal["resume", "load"]]:
    """What the agent has to open a session again."""
    ways: list[Literal["resume", "load"]] = []
    if agent.supports("session/resume"):
        ways.append("resume")
    if agent.supports("session/load"):
        ways.append("load")
    return ways
