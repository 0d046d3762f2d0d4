"""What a comparison consists of: findings, each with a rule, a place, a message and two verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from acpgen.ir.model import Role


class Wire(Enum):
    """What becomes of a message when sender and reader are of different releases.

    The sender sends whatever its schema admits of the properties that it names, and nothing else; the reader decodes as
    generated packages do.
    """

    OK = "ok"
    """Every message is read as it was meant."""
    LOSES = "loses"
    """Every message is read, yet part of some is dropped, replaced by a default, or taken for something else."""
    BREAKS = "breaks"
    """Some messages are refused: they do not decode, or the method is not there."""

    @property
    def rank(self) -> int:
        """0 for the best."""
        return tuple(Wire).index(self)


class Source(Enum):
    """What becomes of code that was written against the package of the old release."""

    OK = "ok"
    """It type-checks and runs as before."""
    RISK = "risk"
    """Only code of a certain kind does not: a `match` meant to be exhaustive, reliance on a default, a base class."""
    BREAKS = "breaks"
    """Ordinary code does not: an import, the call of a constructor or method, the use of an attribute."""

    @property
    def rank(self) -> int:
        """0 for the best."""
        return tuple(Source).index(self)


class Use(Enum):
    """The kind of code that a change touches."""

    IMPORT = "import"
    """Names a class, an alias or an exception."""
    CONSTRUCT = "construct"
    """Makes a value to send."""
    READ = "read"
    """Uses an attribute of a value that was received."""
    MATCH = "match"
    """Tells the members of a union, or the values of an enum, apart, and means to know all of them."""
    CALL = "call"
    """Calls a method of the peer through its stub."""
    HANDLE = "handle"
    """Overrides the handler of a method."""


def worst_wire(verdicts: Iterable[Wire]) -> Wire:
    """The gravest of `verdicts`; OK where there are none."""
    return max(verdicts, key=lambda each: each.rank, default=Wire.OK)


def worst_source(verdicts: Iterable[Source]) -> Source:
    """The gravest of `verdicts`; OK where there are none."""
    return max(verdicts, key=lambda each: each.rank, default=Source.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A wire verdict apart from who sends: `forward` for old senders and new readers, `backward` for the reverse."""

    forward: Wire
    backward: Wire

    @property
    def worst(self) -> Wire:
        """The graver of both."""
        return worst_wire((self.forward, self.backward))


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """The wire verdicts for messages from `sender` to its peer.

    `old_to_new`: a sender of the old release, a reader of the new one. `new_to_old`: the reverse.
    """

    sender: Role
    old_to_new: Wire
    new_to_old: Wire

    @property
    def reader(self) -> Role:
        """Who decodes the messages."""
        return self.sender.peer

    @property
    def worst(self) -> Wire:
        """The graver of both."""
        return worst_wire((self.old_to_new, self.new_to_old))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a change is: a method, a type, or a member of a type (a property, a value, a tag); wire names.

    Names are those of NEW, but for what only OLD has. `was` is the name in OLD of what has another one now.
    """

    method: str | None = None
    type: str | None = None
    member: str | None = None
    was: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        parts = [part for part in (self.type, self.member) if part is not None]
        return ".".join(parts) if parts else self.method or "the protocol"

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """Order by method, type and member."""
        return (self.method or "", self.type or "", self.member or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change as seen where it is made: `effect` is None where messages do not come into it."""

    rule: str
    place: Place
    message: str
    effect: Effect | None
    source: Source
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A change with its consequences.

    `wire` has an entry for each direction in which messages with the changed part travel in both releases: none for a
    type that no such message reaches. `uses` says which kinds of code the source verdict is about, `methods` which
    methods of NEW (or else of OLD) carry the type.
    """

    rule: str
    place: Place
    message: str
    wire: tuple[Direction, ...]
    source: Source
    uses: tuple[Use, ...]
    methods: tuple[str, ...]

    @property
    def worst_wire(self) -> Wire:
        """The gravest wire verdict."""
        return worst_wire(direction.worst for direction in self.wire)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All findings; `old` and `new` name the models, `notes` say what could not be compared."""

    old: str
    new: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
