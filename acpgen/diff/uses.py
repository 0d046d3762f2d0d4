"""Which messages carry a type: by method, by part, and by who sends; and what a reader forgives on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acpgen.diff.findings import Wire
from acpgen.diff.wire import Acceptance, forgives, leaves_out_items
from acpgen.ir.methods import Message, messages
from acpgen.ir.model import (
    Alias,
    Candidate,
    Enum,
    Field,
    Model,
    OtherVariant,
    Ref,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import references

Uses = Mapping[str, Mapping[Message, bool]]
"""By definition, the messages that carry it; the flag says whether some reader of it forgives nothing on the way."""


def uses_of(model: Model) -> Uses:
    """The messages by the definitions that they carry, directly or inside of others."""
    walk = _Walk(model, Acceptance(model, model, {name: name for name in model.by_name}))
    for message, expression in messages(model):
        walk.enter(message, expression, strict=True)
    walk.run()
    return walk.found


@dataclass(slots=True)
class _Walk:
    """Goes from messages into the types that they carry."""

    model: Model
    own: Acceptance
    found: dict[str, dict[Message, bool]] = field(default_factory=dict)
    _open: list[tuple[Message, str, bool]] = field(default_factory=list)
    _caught: dict[tuple[str, str], bool] = field(default_factory=dict)

    def enter(self, message: Message, expression: TypeExpr, *, strict: bool) -> None:
        """Put the definitions in a type on the list of those to go into."""
        self._open += [(message, name, strict) for name in references(expression)]

    def run(self) -> None:
        """Go into everything that is on the list; definitions may be chained longer than Python's stack is."""
        while self._open:
            message, name, strict = self._open.pop()
            self._definition(message, name, strict=strict)

    def _definition(self, message: Message, name: str, *, strict: bool) -> None:
        known = self.found.setdefault(name, {})
        if known.get(message) in (True, strict):
            return
        known[message] = strict
        match self.model.by_name[name]:
            case Struct(fields=fields, base=base):
                if base is not None:
                    self.enter(message, Ref(base), strict=strict)
                for each in fields:
                    self._field(message, each, strict=strict)
            case TaggedUnion() as union:
                for variant in union.variants:
                    is_caught = self._is_caught(union, variant.target)
                    self.enter(message, Ref(variant.target), strict=strict and not is_caught)
                self._fallbacks(message, union.name, union.fallbacks, strict=strict)
            case UntaggedUnion(name=union_name, members=members):
                self._fallbacks(message, union_name, members, strict=strict)
            case Alias(type=expression):
                self.enter(message, expression, strict=strict)
            case Enum():
                return

    def _fallbacks(
        self, message: Message, union: str, members: tuple[Candidate | OtherVariant, ...], *, strict: bool
    ) -> None:
        for member in members:
            expression = member.type if isinstance(member, Candidate) else Ref(member.target)
            others = [other.type for other in members if isinstance(other, Candidate) and other is not member]
            key = (union, str(expression))
            if key not in self._caught:
                self._caught[key] = any(self.own.accepts(expression, other) is not Wire.BREAKS for other in others)
            self.enter(message, expression, strict=strict and not self._caught[key])

    def _is_caught(self, union: TaggedUnion, target: str) -> bool:
        """Whether what is no good as the member `target` is read as one without a tag instead of being refused."""
        key = (union.name, target)
        if key not in self._caught:
            self._caught[key] = any(
                self.own.accepts(Ref(target), other.type) is not Wire.BREAKS for other in union.untagged
            )
        return self._caught[key]

    def _field(self, message: Message, field: Field, *, strict: bool) -> None:
        is_soft = forgives(field, self.model) or leaves_out_items(field, self.model)
        self.enter(message, field.type, strict=strict and not is_soft)
