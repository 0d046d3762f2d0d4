"""The options that decide the types of a model. The command line needs them before there is a model."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.roles import Role, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options for types.

    `open` makes closed unions accept unknown tags, and closed enums unknown values, in what one of `receivers` may
    receive: what these only send stays closed. `keep_unknown` gives every class the attribute `extra`.
    """

    open: bool = False
    receivers: tuple[Side, ...] = tuple(Side)
    keep_unknown: bool = False

    @classmethod
    def for_roles(cls, roles: tuple[Role, ...], *, open: bool, keep_unknown: bool = False) -> Options:  # noqa: A002
        """The options of a package for `roles`."""
        received = {side for role in roles for side in role.record.sides}
        receivers = tuple(side for side in Side if side in received or not open)
        return cls(open=open, receivers=receivers, keep_unknown=keep_unknown)
