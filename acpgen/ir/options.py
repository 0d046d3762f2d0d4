"""The options that decide the types of a model. The command line needs them before there is a model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The two peers of a connection."""

    AGENT = "agent"
    CLIENT = "client"

    @property
    def peer(self) -> Role:
        """The role at the other end."""
        return Role.CLIENT if self is Role.AGENT else Role.AGENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for types.

    `open` makes closed unions accept unknown tags, and closed enums unknown values, in what one of `receivers` may
    receive: what these only send stays closed. `keep_unknown` gives every class the attribute `extra`.
    """

    open: bool = False
    receivers: tuple[Role, ...] = tuple(Role)
    keep_unknown: bool = False

    @classmethod
    def for_roles(cls, roles: tuple[Role, ...], *, open: bool, keep_unknown: bool = False) -> Options:  # noqa: A002
        """The options of a package for `roles`."""
        return cls(open=open, receivers=roles if open else tuple(Role), keep_unknown=keep_unknown)
