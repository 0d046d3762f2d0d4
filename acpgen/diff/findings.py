"""The parts of a comparison: findings, each with a rule, a place, a message and two verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from acpgen.diff.rules import Rule
from acpgen.ir.model import Role


class Wire(Enum):
    """The wire verdict: the fate of messages between a sender and a reader of different releases.

    The sender sends everything that its schema admits of the properties that it names, and nothing else. The reader
    decodes as generated packages do.
    """

    OK = "ok"
    """Every message is read as it was meant."""
    LOSES = "loses"
    """Every message is read, but a part of some is dropped, replaced by a default, or read as something else."""
    BREAKS = "breaks"
    """Some messages are refused: they do not decode, or the method does not exist."""

    @property
    def rank(self) -> int:
        """0 for the best."""
        return tuple(Wire).index(self)


class SourceVerdict(Enum):
    """The source verdict: the fate of code that was written against the package of the old release."""

    OK = "ok"
    """It type-checks and runs as before."""
    RISK = "risk"
    """Only special code fails: an exhaustive `match`, code that relies on a default or a base class."""
    BREAKS = "breaks"
    """Ordinary code fails: an import, the call of a constructor or method, the use of an attribute."""

    @property
    def rank(self) -> int:
        """0 for the best."""
        return tuple(SourceVerdict).index(self)


class Use(Enum):
    """The kind of code that a change affects."""

    IMPORT = "import"
    """Names a class, an alias or an exception."""
    CONSTRUCT = "construct"
    """Makes a value to send."""
    READ = "read"
    """Uses an attribute of a received value."""
    MATCH = "match"
    """Distinguishes all members of a union, or all values of an enum."""
    CALL = "call"
    """Calls a method of the peer through its stub."""
    HANDLE = "handle"
    """Overrides the handler of a method."""


def worst_wire(verdicts: Iterable[Wire]) -> Wire:
    """The gravest of `verdicts`; OK if there are none."""
    return max(verdicts, key=lambda each: each.rank, default=Wire.OK)


def worst_source(verdicts: Iterable[SourceVerdict]) -> SourceVerdict:
    """The gravest of `verdicts`; OK if there are none."""
    return max(verdicts, key=lambda each: each.rank, default=SourceVerdict.OK)


@dataclass(frozen=True, slots=True)
class Effect:
    """The wire verdicts for one type: `forward` from old senders to new readers, `backward` the reverse."""

    forward: Wire
    backward: Wire


FINE = Effect(Wire.OK, Wire.OK)


@dataclass(frozen=True, slots=True)
class SourceEffect:
    """A source verdict with the kinds of code that it is about."""

    verdict: SourceVerdict
    uses: tuple[Use, ...] = ()


SOURCE_OK = SourceEffect(SourceVerdict.OK)


def breaks(*uses: Use) -> SourceEffect:
    """Ordinary code of these kinds fails."""
    return SourceEffect(SourceVerdict.BREAKS, uses)


def risks(*uses: Use) -> SourceEffect:
    """Special code of these kinds fails."""
    return SourceEffect(SourceVerdict.RISK, uses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """The wire verdicts for messages from `sender` to its peer.

    `old_to_new`: the sender has the old release, the reader the new one. `new_to_old`: the reverse.
    """

    sender: Role
    old_to_new: Wire
    new_to_old: Wire

    @property
    def reader(self) -> Role:
        """The peer that decodes the messages."""
        return self.sender.peer

    @property
    def worst(self) -> Wire:
        """The graver of both verdicts."""
        return worst_wire((self.old_to_new, self.new_to_old))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a change: a method, a type, or a member of a type (a property, a value, a tag); wire names.

    The names are those of NEW, except for things that only OLD has. `was` is the old name of a renamed thing.
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


@dataclass(frozen=True, slots=True)
class Delta:
    """One difference between two definitions or methods; `effect` is None if it does not concern messages."""

    rule: Rule
    place: Place
    message: str
    effect: Effect | None = None
    source: SourceEffect = SOURCE_OK


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFinding:
    """A difference with its consequences.

    `wire` has an entry for each direction in which messages of both releases carry the changed part; it is empty for a
    type that no such message carries. `methods` are the methods of NEW (or else of OLD) that carry the type.
    """

    rule: Rule
    place: Place
    message: str
    wire: tuple[Direction, ...]
    source: SourceVerdict
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
    findings: tuple[DiffFinding, ...]
    notes: tuple[str, ...] = ()
