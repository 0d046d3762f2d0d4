"""The sides of a connection, and the roles: what a user writes with a package.

All that acpgen knows of a role is in its record. What a role handles, calls and receives, the files of its package, and
the texts about it follow from there. Adding a role starts here: see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Side(Enum):
    """The two peers of a connection. A method is handled on one of the sides, or on both."""

    AGENT = "agent"
    CLIENT = "client"

    @property
    def peer(self) -> Side:
        """The side at the other end."""
        return Side.CLIENT if self is Side.AGENT else Side.AGENT

    @property
    def stub(self) -> str:
        """The class with which the peer calls this side."""
        return f"Remote{self.value.capitalize()}"

    @property
    def methods(self) -> str:
        """The table of the methods that this side handles."""
        return f"{self.value.upper()}_METHODS"


HANDLERS: Mapping[str, tuple[Side, ...]] = {
    "agent": (Side.AGENT,),
    "client": (Side.CLIENT,),
    "both": (Side.AGENT, Side.CLIENT),
    "protocol": (Side.AGENT, Side.CLIENT),
    "proxy": (),
}
"""The sides that handle a method, by the value of `x-side`. The runtime of a proxy handles those of a proxy itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRecord:
    """What is known of a role. `name` is also that of its module, of its helpers and of its project.

    A role handles the methods of `sides`, and calls those of their peers. `spawns` says that it starts its peer, and
    `needs_runtime` that its class is of no use without the runtime.
    `is_open` and `keeps_unknown` are the defaults of these options. `template` is that of its module. `starts` is the
    module of the runtime that starts it: a package has what that imports. `parts` are those of a package whose project
    names none: what the first example of the role uses.
    """

    name: str
    sides: tuple[Side, ...]
    spawns: bool
    needs_runtime: bool = False
    is_open: bool
    keeps_unknown: bool = False
    template: str = "role"
    starts: str
    parts: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The class to extend."""
        return self.name.capitalize()

    @property
    def noun(self) -> str:
        """The name in texts, with its article."""
        return with_article(self.name)

    @property
    def passes(self) -> bool:
        """Whether it passes messages on: it handles those of both sides."""
        return len(self.sides) > 1

    @property
    def called(self) -> tuple[Side, ...]:
        """The sides that its stubs call."""
        return tuple(side.peer for side in self.sides)


class Role(Enum):
    """What a user writes: a class to extend, in a module of its own with the stubs that it calls."""

    AGENT = "agent"
    CLIENT = "client"
    PROXY = "proxy"

    @property
    def record(self) -> RoleRecord:
        """What is known of the role."""
        return _RECORDS[self]


class RoleChoice(str, Enum):
    """The values of the option `role`: a role, or the roles of both sides in one package."""

    AGENT = "agent"
    CLIENT = "client"
    PROXY = "proxy"
    BOTH = "both"

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles to generate."""
        return (Role.AGENT, Role.CLIENT) if self is RoleChoice.BOTH else (Role(self.value),)


def with_article(noun: str) -> str:
    """Return `noun` with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


_RECORDS: Mapping[Role, RoleRecord] = {
    Role.AGENT: RoleRecord(
        name="agent",
        sides=(Side.AGENT,),
        spawns=False,
        is_open=False,
        parts=("turns",),
        starts="stdio",
    ),
    Role.CLIENT: RoleRecord(
        name="client",
        sides=(Side.CLIENT,),
        spawns=True,
        is_open=True,  # clients of today talk to agents of tomorrow
        parts=("sessions",),
        starts="spawn",
    ),
    Role.PROXY: RoleRecord(
        name="proxy",
        sides=(Side.AGENT, Side.CLIENT),
        spawns=False,
        is_open=True,  # both sides may be of tomorrow
        keeps_unknown=True,
        needs_runtime=True,
        template="proxy",
        starts="conductor",
    ),
}
