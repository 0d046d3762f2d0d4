"""Spoil values: one change at a time, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeAlias

from tests.fidelity.expecting import Path
from tests.fidelity.schemas import Schema, nodes

WRONG = (None, True, False, 0, 1, -1, 1.5, "", "zzz", [], {}, [None], {"": None}, 2**70, 1e300)
"""Something of every type, to put where another is expected."""
Change: TypeAlias = Callable[[Any], Any]


class Mutator:
    """Makes mutants of values of one schema: it knows the constants and the bounds that matter there."""

    def __init__(self, schema: Schema) -> None:
        self._constants: dict[str, set[str]] = {}
        bounds: set[float] = set()
        for definition in schema.definitions.values():
            for node in nodes(definition):
                bounds.update(node[key] for key in ("minimum", "maximum") if key in node)
                for wire, child in node.get("properties", {}).items():
                    self._constants.setdefault(wire, set()).update(_constants(child, schema))
        self._numbers = tuple(sorted({bound + step for bound in bounds for step in (-1, 0, 1)}))

    def mutants(self, value: Any, random: Random, count: int) -> Iterator[Any]:
        """`count` mutants of `value`, some of them the same, and some of them valid."""
        places = list(_places(value))
        for _ in range(count):
            path = random.choice(places)
            yield _changed(value, path, lambda old, path=path: self._spoiled(old, path, value, random))

    def _spoiled(self, old: Any, path: Path, whole: Any, random: Random) -> Any:
        changes: list[Change] = [lambda old: random.choice(WRONG)]
        match old:
            case bool():
                changes.append(int)
            case int() | float():
                changes += [float, str, lambda old: old + 0.5, lambda old: random.choice(self._numbers or (0,))]
                changes.append(lambda old: old in (0, 1))
            case str():
                constants = sorted(self._constants.get(str(path[-1]) if path else "", ()))
                changes += [lambda old: random.choice([*constants, "_unknown"])] * (3 if constants else 1)
                changes += [lambda old: "", lambda old: old + "x", lambda old: [old]]
            case list():
                changes += [lambda old: old[1:], lambda old: [*old, random.choice(WRONG)], lambda old: old * 2]
                changes.append(lambda old: dict(enumerate_text(old)))
            case dict():
                changes += [lambda old: _without(old, random)] * 4
                changes += [lambda old: {**old, random.choice(KEYS): random.choice(WRONG)}]
                changes += [lambda old: self._retagged(old, random), lambda old: list(old.values())]
                changes += [lambda old: _mixed(old, whole, random), lambda old: _nulled(old, random)]
        change = random.choice(changes)
        try:
            return change(old)
        except (OverflowError, ValueError):
            return None

    def _retagged(self, old: dict[str, Any], random: Random) -> dict[str, Any]:
        """`old` with another constant at a property that has some, or at one that it lacks."""
        wire = random.choice(sorted(key for key, constants in self._constants.items() if constants) or ["type"])
        known = [key for key in old if self._constants.get(key)]
        wire = random.choice(known) if known else wire
        return {**old, wire: random.choice([*sorted(self._constants.get(wire, ())), "_unknown", "", None])}


KEYS = ("_meta", "type", "id", "sessionId", "extra", "", "unheard")


def enumerate_text(items: list[Any]) -> Iterator[tuple[str, Any]]:
    """The items of a list by their indexes, as text."""
    return ((str(index), item) for index, item in enumerate(items))


def _constants(node: Any, schema: Schema) -> Iterator[str]:
    for each in nodes(node):
        listed = [each["const"]] if "const" in each else each.get("enum", [])
        yield from (constant for constant in listed if isinstance(constant, str))
        if "$ref" in each:
            target = schema.target(each)
            if isinstance(target, dict) and not target.get("properties"):
                yield from (part["const"] for part in nodes(target) if isinstance(part.get("const"), str))


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _changed(value: Any, path: Path, change: Change) -> Any:
    """`value` with the part at `path` changed; the original stays as it is."""
    if not path:
        return change(value)
    step, rest = path[0], path[1:]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = _changed(value[step], rest, change)
    return copy


def _without(old: dict[str, Any], random: Random) -> dict[str, Any]:
    gone = random.choice(list(old)) if old else None
    return {key: item for key, item in old.items() if key != gone}


def _nulled(old: dict[str, Any], random: Random) -> dict[str, Any]:
    return {**old, random.choice(list(old)): None} if old else old


def _mixed(old: dict[str, Any], whole: Any, random: Random) -> dict[str, Any]:
    """`old` with properties of another object of the same value."""
    parts = [_at(whole, path) for path in _places(whole)]
    return {**old, **random.choice([part for part in parts if isinstance(part, dict)])}


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value
