"""Who needs a type: the definitions that mention it, and the shortest way to it from each message."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

from acpgen.ir.methods import messages
from acpgen.ir.model import Alias, Definition, Enum, Model, Struct, TaggedUnion, UntaggedUnion
from acpgen.ir.order import needs, references
from acpgen.show.entries import Carrier, Step, Uses

_WAY = 20
"""More steps than this are cut in the middle; published schemas need ten."""


class Users:
    """The references between the definitions of a model, backwards."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._steps: defaultdict[str, list[Step]] = defaultdict(list)
        self._inherited: set[Step] = set()
        for definition in model.definitions:
            fields = definition.fields if isinstance(definition, Struct) else ()
            self._inherited.update(Step(definition.name, field.name) for field in fields if field.inherited)
            for step, target in _steps(definition):
                self._steps[target].append(step)

    def of(self, name: str) -> Uses:
        """Who needs the type `name`."""
        users = list(dict.fromkeys(step.type for step in self._steps[name] if step.field is None))
        by_name = self._model.by_name
        return Uses(
            fields=tuple(
                f"{step.type}.{step.field}"
                for step in self._steps[name]
                if step.field is not None and step not in self._inherited
            ),
            unions=tuple(user for user in users if isinstance(by_name[user], (TaggedUnion, UntaggedUnion))),
            aliases=tuple(user for user in users if isinstance(by_name[user], Alias)),
            subclasses=tuple(user for user in users if isinstance(by_name[user], Struct)),
            messages=tuple(self._carriers(name)),
        )

    def _carriers(self, name: str) -> Iterator[Carrier]:
        ways = self._ways(name)
        gates = {method.wire: str(method.gate) for method in self._model.methods if method.gate is not None}
        for message, expression in messages(self._model):
            found = [ways[root] for root in references(expression) if root in ways]
            if found:
                yield Carrier(
                    method=message.method,
                    part=message.part,
                    sender=message.sender,
                    way=_shortened((*min(found, key=len), Step(name))),
                    gate=gates.get(message.method),
                )

    def _ways(self, name: str) -> Mapping[str, tuple[Step, ...]]:
        """The shortest way to the type `name` from each definition that leads there."""
        next_steps: dict[str, tuple[Step, str] | None] = {name: None}
        queue = deque([name])
        while queue:
            target = queue.popleft()
            for step in self._steps[target]:
                if step.type not in next_steps:
                    next_steps[step.type] = (step, target)
                    queue.append(step.type)
        roots = {root for _, expression in messages(self._model) for root in references(expression)}
        return {root: tuple(_follow(root, next_steps)) for root in roots if root in next_steps}


def _follow(start: str, next_steps: Mapping[str, tuple[Step, str] | None]) -> Iterator[Step]:
    while (found := next_steps[start]) is not None:
        step, start = found
        yield step


def _steps(definition: Definition) -> Iterator[tuple[Step, str]]:
    """What `definition` mentions, by the step that leads there."""
    match definition:
        case Struct(name=name, fields=fields):
            for field in fields:
                yield from ((Step(name, field.name), target) for target in references(field.type))
        case Enum():
            return
    yield from ((Step(definition.name), target) for target in needs(definition))


def _shortened(way: tuple[Step, ...]) -> tuple[Step, ...]:
    if len(way) <= _WAY:
        return way
    return (*way[: _WAY // 2], Step("…"), *way[-_WAY // 2 :])
