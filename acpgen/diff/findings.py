"""The parts of a comparison: findings, each with a rule, a place, a message and two verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeVar

from acpgen.roles import Side

_Kind = TypeVar("_Kind", bound="Verdict")


class Verdict(Enum):
    """A verdict. The members of each kind are in the order of gravity, and the first is OK."""

    @cached_property
    def rank(self) -> int:
        """0 for the best."""
        return tuple(type(self)).index(self)

    @classmethod
    def worst(cls: type[_Kind], verdicts: Iterable[_Kind]) -> _Kind:
        """The gravest of `verdicts`; OK if there are none."""
        return max(verdicts, key=lambda each: each.rank, default=next(iter(cls)))


class WireVerdict(Verdict):
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


class SourceVerdict(Verdict):
    """The source verdict: the fate of code that was written against the package of the old release."""

    OK = "ok"
    """It type-checks and runs as before."""
    RISK = "risk"
    """Only special code fails: an exhaustive `match`, code that relies on a default or a base class."""
    BREAKS = "breaks"
    """Ordinary code fails: an import, the call of a constructor or method, the use of an attribute."""


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


@dataclass(frozen=True, slots=True)
class Effect:
    """The wire verdicts on both directions: `old_to_new` from old senders to new readers, and the reverse."""

    old_to_new: WireVerdict
    new_to_old: WireVerdict

    @property
    def worst(self) -> WireVerdict:
        """The graver of both verdicts."""
        return WireVerdict.worst((self.old_to_new, self.new_to_old))


FINE = Effect(WireVerdict.OK, WireVerdict.OK)


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
class ChangePlace:
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


class Shown(Enum):
    """The way in which a report shows the findings of a rule."""

    EACH = "each"
    """Each in its place."""
    COUNTED = "counted"
    """Each if it has an effect; else it needs no action, and is only counted, unless all are requested."""
    PROSE = "prose"
    """The same, and the summary leaves it out."""
    NAMED = "named"
    """By name, in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A kind of finding: its meaning, and the reasons for its verdicts, which `acpgen diff --explain` prints.

    `reverse` is the id of the rule for the same change with OLD and NEW exchanged.
    """

    id: str
    meaning: str
    wire: str
    source: str
    reverse: str
    shown: Shown = Shown.EACH


@dataclass(frozen=True, slots=True)
class Found:
    """A difference as a rule finds it.

    `effect` is the verdict on the changed part by itself; None if it does not concern messages. `wire` has the verdicts
    by the sender of messages of both releases that carry the part; for types, `compare` finds it. `is_reverse` tells
    the second rule of a pair from the first.
    """

    place: ChangePlace
    message: str
    effect: Effect | None = None
    source: SourceEffect = SOURCE_OK
    wire: Mapping[Side, Effect] = field(default_factory=dict)
    is_reverse: bool = field(default=False, kw_only=True)

    def sent_by(self, senders: Iterable[Side]) -> Found:
        """The same about messages of these senders, with the same verdicts for all."""
        return replace(self, wire=dict.fromkeys(senders, self.effect) if self.effect is not None else {})

    def by(self, rule: Rule) -> DiffFinding:
        """The finding of `rule`."""
        return DiffFinding(self.place, self.message, self.effect, self.source, self.wire, rule=rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFinding(Found):
    """A difference with its rule. `carriers` are the methods of NEW (or else of OLD) that carry a type."""

    rule: Rule
    carriers: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that are concerned."""
        return self.carriers if self.place.method is None else (self.place.method,)

    @property
    def worst_wire(self) -> WireVerdict:
        """The gravest wire verdict."""
        return WireVerdict.worst(effect.worst for effect in self.wire.values())

    @property
    def breaks(self) -> bool:
        """Whether messages or ordinary code break."""
        return self.worst_wire is WireVerdict.BREAKS or self.source.verdict is SourceVerdict.BREAKS

    @property
    def is_harmless(self) -> bool:
        """Whether the difference has no effect on messages or code."""
        return self.worst_wire is WireVerdict.OK and self.source.verdict is SourceVerdict.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All findings; `old` and `new` name the models, `notes` say what could not be compared."""

    old: str
    new: str
    findings: tuple[DiffFinding, ...]
    notes: tuple[str, ...] = ()
