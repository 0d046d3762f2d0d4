"""Usage of types: the references between definitions, and the messages that carry each type."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum as PythonEnum

from acpgen.ir import model as ir
from acpgen.ir.leniency import replaces_misfits, skips_misfits
from acpgen.ir.methods import MessageType, messages
from acpgen.ir.order import members, references, untagged, untagged_for
from acpgen.ir.relations import Coverage

_LONGEST_PATH = 20
"""Longer paths are cut in the middle; published schemas need ten steps."""


class MisfitEffect(PythonEnum):
    """The effect on a message of a value in it that does not fit its type."""

    REFUSED = "refused"
    """Some reader refuses the message."""
    FORGIVEN = "forgiven"
    """Every reader replaces or skips the value, or reads it as another member of a union."""

    def inside(self, outer: MisfitEffect) -> MisfitEffect:
        """The effect of a misfit in a part: forgiven if the reader of the part (`self`) or one around it forgives."""
        return MisfitEffect.FORGIVEN if MisfitEffect.FORGIVEN in (self, outer) else MisfitEffect.REFUSED


@dataclass(frozen=True, slots=True)
class Step:
    """A step on the path to a type: an attribute of `type`, or a member, base class or target of it."""

    type: str
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A message that carries a type, the shortest path there, and the capability that the method needs."""

    method: str
    part: str
    sender: str
    way: tuple[Step, ...]
    gate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The users of a type: attributes, definitions by kind, and messages."""

    fields: tuple[str, ...] = ()
    unions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    subclasses: tuple[str, ...] = ()
    messages: tuple[Carrier, ...] = ()


NO_USES = Uses()


@dataclass(frozen=True, slots=True)
class _Edge:
    """A reference from one definition to another; `misfit` is FORGIVEN if a misfit of the target goes no further."""

    step: Step
    target: str
    misfit: MisfitEffect
    inherited: bool = False


class TypeUsage:
    """The references between the definitions of a model, in both directions."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._coverage = Coverage(model.by_name)
        self._from = {each.name: tuple(self._edges(each)) for each in model.definitions}
        self._gates = {method.wire: str(method.gate) for method in model.methods if method.gate is not None}
        self._messages = [(message, tuple(references(each))) for message, each in messages(model)]
        self._roots: defaultdict[str, list[int]] = defaultdict(list)
        for at, (_, roots) in enumerate(self._messages):
            for root in roots:
                self._roots[root].append(at)
        self._to: defaultdict[str, list[_Edge]] = defaultdict(list)
        for edges in self._from.values():
            for edge in edges:
                self._to[edge.target].append(edge)

    def _edges(self, definition: ir.Definition) -> Iterator[_Edge]:
        name = definition.name
        match definition:
            case ir.Struct(fields=fields, base=base):
                for field in fields:
                    forgives = replaces_misfits(field, self._model) or skips_misfits(field, self._model)
                    misfit = MisfitEffect.FORGIVEN if forgives else MisfitEffect.REFUSED
                    for target in references(field.type):
                        yield _Edge(Step(name, field.name), target, misfit, field.inherited)
                if base is not None:
                    yield _Edge(Step(name), base, MisfitEffect.REFUSED)
            case ir.TaggedUnion() | ir.UntaggedUnion():
                for member in members(definition):
                    misfit = self._misfit_of_member(member, definition)
                    yield from (_Edge(Step(name), target, misfit) for target in references(member))
            case ir.Alias(type=expression):
                yield from (_Edge(Step(name), target, MisfitEffect.REFUSED) for target in references(expression))
            case ir.Enum():
                return

    def _misfit_of_member(self, member: ir.TypeExpr, union: ir.TaggedUnion | ir.UntaggedUnion) -> MisfitEffect:
        """FORGIVEN if another member, which needs no tag, reads every value of the member."""
        definition = self._model.definition(member)
        others = untagged_for(definition, union) if isinstance(definition, ir.Struct) else untagged(union)
        caught = any(each != member and self._coverage.covers(each, member) for each in others)
        return MisfitEffect.FORGIVEN if caught else MisfitEffect.REFUSED

    def misfits(self) -> Mapping[str, Mapping[MessageType, MisfitEffect]]:
        """The messages that carry each definition, with the effect of a misfit: REFUSED if any path refuses it."""
        found: dict[str, dict[MessageType, MisfitEffect]] = {}
        # a loop, not recursion: definitions may form a chain longer than Python's stack
        todo = [(message, name, MisfitEffect.REFUSED) for message, roots in self._messages for name in roots]
        while todo:
            message, name, misfit = todo.pop()
            known = found.setdefault(name, {})
            if known.get(message) not in (MisfitEffect.REFUSED, misfit):
                known[message] = misfit
                todo += [(message, each.target, each.misfit.inside(misfit)) for each in self._from[name]]
        return found

    def of(self, name: str) -> Uses:
        """The users of the type `name`."""
        steps = [edge.step for edge in self._to[name] if not edge.inherited]
        users = [self._model.by_name[each] for each in dict.fromkeys(step.type for step in steps if step.field is None)]
        return Uses(
            fields=tuple(dict.fromkeys(f"{step.type}.{step.field}" for step in steps if step.field is not None)),
            unions=tuple(user.name for user in users if isinstance(user, (ir.TaggedUnion, ir.UntaggedUnion))),
            aliases=tuple(user.name for user in users if isinstance(user, ir.Alias)),
            subclasses=tuple(user.name for user in users if isinstance(user, ir.Struct)),
            messages=tuple(self._carriers(name)),
        )

    def _carriers(self, name: str) -> Iterator[Carrier]:
        edges = self._ways_to(name)
        # by an index: most types are in few of the messages
        for at in sorted({at for root in edges if root in self._roots for at in self._roots[root]}):
            message, roots = self._messages[at]
            paths = (tuple(_follow(root, edges)) for root in roots if root in edges)
            yield Carrier(
                method=message.method,
                part=message.part,
                sender=message.sender,
                way=_shortened((*min(paths, key=len), Step(name))),
                gate=self._gates.get(message.method),
            )

    def _ways_to(self, name: str) -> Mapping[str, _Edge | None]:
        """The next edge on a shortest path to the type `name` from each type that reaches it."""
        edges: dict[str, _Edge | None] = {name: None}
        queue = deque([name])
        while queue:
            for edge in self._to[queue.popleft()]:
                if edge.step.type not in edges:
                    edges[edge.step.type] = edge
                    queue.append(edge.step.type)
        return edges


def _follow(start: str, edges: Mapping[str, _Edge | None]) -> Iterator[Step]:
    while (edge := edges[start]) is not None:
        yield edge.step
        start = edge.target


def _shortened(path: tuple[Step, ...]) -> tuple[Step, ...]:
    if len(path) <= _LONGEST_PATH:
        return path
    return (*path[: _LONGEST_PATH // 2], Step("…"), *path[-_LONGEST_PATH // 2 :])
