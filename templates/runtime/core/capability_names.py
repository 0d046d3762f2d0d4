"""The names of capabilities: paths of properties, each by its name on the wire or in Python.

Imported when a name is asked for that is none of a method.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from .reflection import Reflection

_MAX_DEPTH: Final = 8
_MOST: Final = 3


@lru_cache(maxsize=256)
def capability_path(
    types: Reflection, kind: Any, outer: str, name: str, *, allow_groups: bool = False
) -> tuple[str, ...] | None:
    """The path on the wire of a capability in the class `kind`, below the property `outer`; None if there is none.

    `name` may begin with that property, as in an error message. A group is an object that is there in any case: it says
    nothing itself.
    """
    parts = name.split(".")
    found = _followed(types, kind, parts, allow_groups)
    if found is None and len(parts) > 1 and _plain(parts[0]) == _plain(outer):
        found = _followed(types, kind, parts[1:], allow_groups)
    return None if found is None else (outer, *found)


def _followed(types: Reflection, kind: Any, parts: Sequence[str], allow_groups: bool) -> list[str] | None:
    kinds, path, is_group = [kind], list[str](), False
    for part in parts:
        properties = (each for owner in kinds for each in types.properties(owner))
        found = next((each for each in properties if part in each[:2]), None)
        if found is None:
            return None
        _, wire, inner, is_group = found
        path.append(wire)
        kinds = _classes(inner)
    return None if is_group and not allow_groups else path


def class_of(types: Reflection, kind: Any, wire: str) -> Any:
    """The class of the property `wire` of the class `kind`."""
    return next(kinds[0] for _, name, kinds, _ in types.properties(kind) if name == wire)


def capability_names(types: Reflection, kind: Any, depth: int = 0) -> Iterator[str]:
    """The names on the wire of all capabilities in the class `kind`."""
    for _, wire, kinds, is_group in types.properties(kind):
        if not is_group:
            yield wire
        for inner in _classes(kinds) if depth < _MAX_DEPTH else ():
            yield from (f"{wire}.{name}" for name in capability_names(types, inner, depth + 1))


def _classes(kinds: list[type]) -> list[type]:
    return [each for each in kinds if each not in (bool, list)]


def nearest_names(name: str, known: Collection[str]) -> list[str]:
    """The names that are probably meant: nearly the same, or with a part that is nearly the last one of `name`."""
    by_plain = {_plain(each): each for each in known}
    by_part = {_plain(part): each for each in reversed([*known]) for part in each.split(".")}
    last = _plain(name.rpartition(".")[2])
    close = get_close_matches(_plain(name), [*by_plain], n=_MOST, cutoff=0.7)
    parts = get_close_matches(last, [*by_part], n=_MOST, cutoff=0.75)
    return [*dict.fromkeys([by_plain[each] for each in close] + [by_part[each] for each in parts])][:_MOST]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
