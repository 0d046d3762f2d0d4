"""Tables of rules. Each rule is one record: its texts, and the function that finds its changes and judges them.

The modules `*_rules` have the rules; `compare` looks for them in a `ModelPair`. The function computes the verdicts of
each change from the types in it, and `compare` softens them where every reader forgives a misfit. The texts are for
`acpgen diff --explain`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeAlias

from acpgen.diff.findings import DiffFinding, Effect, Found, Rule, Shown, SourceEffect
from acpgen.diff.pairing import Pairs, pair
from acpgen.diff.type_forms import PythonTypes, source_of, spelled
from acpgen.diff.wire import Acceptance
from acpgen.ir import model as ir

P = ParamSpec("P")
"""What is compared, for example two models and two paired enums in them."""

NO_MESSAGES = "none: not about messages"
BY_TYPE = "computed from the types: the values of the sender's type, decoded as the reader's"
DOCS = "ok: only docstrings differ"
UNCHECKED = "ok: constructors check nothing"
MATCH = "risk: an exhaustive `match` is incomplete"
ATTRIBUTE_GONE = "breaks: argument and attribute are gone"
IMPORT = "breaks: the name is gone (import)"


_Decorator: TypeAlias = Callable[[Callable[P, Iterable[Found]]], None]

Texts: TypeAlias = tuple[str, str, str]
"""The id of a rule, its meaning, and the reasons for its source verdict."""


def mirrored(wire: str) -> str:
    """The text of a wire verdict for the reverse of its rule."""
    return re.sub(r"\b(?:old|new)\b", lambda word: "new" if word[0] == "old" else "old", wire)


class RuleTable(Generic[P]):
    """The rules about one kind of thing."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self._finders: list[Callable[P, Iterable[DiffFinding]]] = []

    def rule(self, name: str, meaning: str, *, wire: str, source: str, shown: Shown = Shown.EACH) -> _Decorator[P]:
        """Add a rule that is its own reverse; the decorated function finds its changes."""
        rule = Rule(id=name, meaning=meaning, wire=wire, source=source, reverse=name, shown=shown)
        return self._adding(rule, rule)

    def pair(self, one: Texts, other: Texts, *, wire: str, shown: Shown = Shown.EACH) -> _Decorator[P]:
        """Add two rules that are each other's reverse; `wire` and `shown` are those of `one`."""
        forth = Rule(id=one[0], meaning=one[1], wire=wire, source=one[2], reverse=other[0], shown=shown)
        back = Rule(id=other[0], meaning=other[1], wire=mirrored(wire), source=other[2], reverse=one[0])
        return self._adding(forth, back)

    def _adding(self, rule: Rule, reverse: Rule) -> _Decorator[P]:
        def add(find: Callable[P, Iterable[Found]]) -> None:
            def finder(*things: P.args, **more: P.kwargs) -> Iterator[DiffFinding]:
                for found in find(*things, **more):
                    yield found.by(reverse if found.is_reverse else rule)

            self.include(dict.fromkeys((rule, reverse)), finder)

        return add

    def include(self, rules: Iterable[Rule], finder: Callable[P, Iterable[DiffFinding]]) -> None:
        """Add a function that finds the changes of several rules."""
        self.rules += rules
        self._finders.append(finder)

    def find(self, *things: P.args, **more: P.kwargs) -> Iterator[DiffFinding]:
        """The changes that the rules find."""
        for finder in self._finders:
            yield from finder(*things, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two models to compare. `forward` judges old senders and new readers, `backward` the reverse."""

    old: ir.Model
    new: ir.Model
    pairs: Pairs
    forward: Acceptance
    backward: Acceptance
    old_types: PythonTypes
    new_types: PythonTypes

    @staticmethod
    def of(old: ir.Model, new: ir.Model) -> ModelPair:
        """Pair two models and prepare their comparison."""
        pairs = pair(old, new)
        return ModelPair(
            old=old,
            new=new,
            pairs=pairs,
            forward=Acceptance(old, new, pairs.forward),
            backward=Acceptance(new, old, pairs.backward),
            old_types=PythonTypes(model=old, shared=pairs.forward.get),
            new_types=PythonTypes(model=new, shared=lambda name: name if name in pairs.backward else None),
        )

    def old_name(self, name: str) -> str:
        """The name that an old definition has in NEW; a name that NEW cannot have, if it is gone."""
        return self.pairs.forward.get(name, f"old {name}")

    def agree(self, old: ir.TypeExpr, new: ir.TypeExpr) -> bool:
        """Whether two types are the same, apart from renames and from changes inside of paired definitions."""
        return spelled(old, self.old_name) == spelled(new, str)

    def effect(self, old: ir.TypeExpr, new: ir.TypeExpr) -> Effect:
        """The wire verdicts on two types in the same place."""
        return Effect(self.forward.accepts(old, new), self.backward.accepts(new, old))

    def effect_inside(self, old: str, new: str) -> Effect:
        """The wire verdicts on two definitions, even if they are paired."""
        return Effect(self.forward.afresh(old, new), self.backward.afresh(new, old))

    def source(self, old: ir.TypeExpr, new: ir.TypeExpr) -> SourceEffect:
        """The source verdict on two types in the same place."""
        return source_of(self.old_types.atoms(old), self.new_types.atoms(new))


MODELS = RuleTable[ModelPair]()
"""Rules about what has no counterpart, and about parts of the protocol that are neither methods nor types."""
