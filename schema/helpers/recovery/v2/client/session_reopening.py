"""How a session is opened again, for protocol 2."""

from __future__ import annotations

from typing import Final, Literal

from ..client import RemoteAgent

__all__: list[str] = []

INTERRUPTED: Final = "cancelled"
"""The status of tool calls that nobody will end."""


def reopening_ways(agent: RemoteAgent) -> list[Literal["resume", "load"]]:
    """What the agent has to open a session again: it resumes with a replay, or without."""
    return ["resume", "load"] if agent.supports("session/resume") else []
