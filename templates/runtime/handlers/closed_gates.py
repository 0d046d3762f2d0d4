"""What this side must not send, as the peer has not advertised the capability for it: methods, and values in messages.

A value is found by look-ups alone: of properties, of tags, in each item of an array. So all that is sent is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from ._decode import path_text
from ._lenient import members_of
from .records import Gate, GatedValues, Step, value_at

__all__ = ["CapabilityError"]

Kind: TypeAlias = Literal["request", "notification", "result"]
Place: TypeAlias = "tuple[tuple[Step, ...], Gate]"
"""The steps to a value in a message, and the gate that it has."""
Check: TypeAlias = Callable[[Any], None]
"""Raises `CapabilityError` for params that must not be sent."""


class CapabilityError(Exception):
    """The peer has not advertised the capability that `method` needs, or a value for it, so nothing was sent.

    `path` leads to the value in the params; it is None if it is the method that needs the capability.
    """

    def __init__(self, method: str, gate: Gate, *, value: ClosedValue | None = None, subject: str = "") -> None:
        self.method = method
        self.gate = gate
        self.path = None if value is None else value.path
        what = f"{subject or method}{'' if value is None else value}"
        super().__init__(f"{what} needs {gate}, which the peer has not advertised in {gate.advertised_in.__name__}")


class ClosedValue:
    """A value in a message whose gate is closed: its path, and the tag that tells what it is."""

    __slots__ = ("gate", "path", "tag")

    def __init__(self, gate: Gate, path: tuple[str | int, ...], tag: Step) -> None:
        self.gate = gate
        self.path = path
        self.tag = tag

    def __str__(self) -> str:
        place = f": {path_text(self.path)}" if self.path else ""
        if not isinstance(self.tag, tuple):
            return place
        key, text = self.tag
        return f"{place} with the {f'{key} ' if key else 'value '}{text!r}"


def closed_places(kind: Kind, values: Iterable[GatedValues], is_open: Callable[[Gate], bool]) -> dict[str, list[Place]]:
    """The places in messages of a kind whose gates are closed, by method."""
    found: dict[str, list[Place]] = {}
    for each in values:
        if not is_open(each.capability):
            for of_kind, method, steps in each.places:
                if of_kind == kind:
                    found.setdefault(method, []).append((steps, each.capability))
    return found


def find_closed(message: Any, places: Iterable[Place]) -> Iterator[ClosedValue]:
    """The values at these places in the params or the result of a message."""
    for steps, gate in places:
        yield from (ClosedValue(gate, path, steps[-1]) for path in _paths(message, steps))


def checks(gates: Mapping[str, Gate], places: Mapping[str, Sequence[Place]]) -> dict[str, Check]:
    """The checks of params by method: of those whose gate is closed, and of those that may have a closed value."""
    return {
        **{method: _check_of_tag(method, each) for method, each in places.items()},
        **{method: partial(_refuse, method, gate) for method, gate in gates.items()},
    }


def _refuse(method: str, gate: Gate, _params: Any) -> None:
    raise CapabilityError(method, gate)


def _check_places(method: str, places: Sequence[Place], params: Any) -> None:
    for value in find_closed(params, places):
        raise CapabilityError(method, value.gate, value=value)


def _check_of_tag(method: str, places: Sequence[Place]) -> Check:
    """A check that asks first for a tag, if all places begin with a property and a tag in it, or in its items.

    It is quick for what is sent most: updates of a session, and prompts with blocks of content.
    """
    check = partial(_check_places, method, places)
    beginnings = {_beginning(steps) for steps, _ in places}
    (name, in_items, tag), *others = {(name, in_items, tag) for name, in_items, tag, _ in beginnings}
    if others or not tag:
        return check
    texts = frozenset(text for *_, text in beginnings)

    def check_tag(params: Any) -> None:
        try:
            for value in params[name] if in_items else (params[name],):
                if value[tag] in texts:
                    break
            else:
                return
        except (KeyError, IndexError, TypeError):  # no such property, or another value than the schema has there
            pass
        check(params)

    return check_tag


def _beginning(steps: tuple[Step, ...]) -> tuple[str, bool, str, str]:
    """What comes first: a property, whether its items follow, and a tag with its text; empty if other steps do."""
    match steps:
        case (str(name), (str(tag), text), *_):
            return name, False, tag, text
        case (str(name), None, (str(tag), text), *_):
            return name, True, tag, text
        case _:
            return "", False, "", ""


def _paths(value: Any, steps: tuple[Step, ...]) -> Iterator[tuple[str | int, ...]]:
    """The paths of the values to which steps lead. Null and an empty array say nothing."""
    if not steps:
        if value is not None and not (isinstance(value, (list, tuple)) and not value):
            yield ()
        return
    step, rest = steps[0], steps[1:]
    if isinstance(step, tuple):
        key, text = step
        if (value if key is None else value_at(value, (key,))) == text:
            yield from _paths(value, rest)
    elif step is None:
        yield from ((key, *path) for key, each in members_of(value) for path in _paths(each, rest))
    elif isinstance(value, dict) and step in value:
        yield from ((step, *path) for path in _paths(value[step], rest))
