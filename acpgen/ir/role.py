"""The two sides of the protocol. Apart from the model, because those who only look at options need no model."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """The two peers of a connection."""

    AGENT = "agent"
    CLIENT = "client"

    @property
    def peer(self) -> Role:
        """The one at the other end."""
        return Role.CLIENT if self is Role.AGENT else Role.AGENT
