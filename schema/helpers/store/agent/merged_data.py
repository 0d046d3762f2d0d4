"""Merging of JSON that two writers have changed: each key by itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

__all__: list[str] = []

_ABSENT: Final = object()


def merged(mine: Any, theirs: Any, *, opened: Any, known: Any) -> Any:
    """What `mine` becomes if the store, where `known` was, has `theirs` now. `opened` is `mine` before it was changed.

    What only one side has changed is as that side has it. Where both have, dicts are merged key by key; lists have what
    either has added, and not what either has removed; anything else is as it is here, as the change here is the later
    one. `opened` may have more than `known`: what an agent fills in when it opens a session is no change.
    """
    if _is_same(theirs, known):
        return mine
    my_keys, their_keys = _dict(mine), _dict(theirs)
    if my_keys is not None and their_keys is not None:
        return _merged_keys(my_keys, their_keys, opened=_dict(opened) or {}, known=_dict(known) or {})
    if _is_same(mine, opened):
        return theirs
    my_items, their_items = _list(mine), _list(theirs)
    if my_items is not None and their_items is not None:
        return _merged_items(my_items, their_items, opened=_list(opened) or [], known=_list(known) or [])
    return mine


def put_into(place: Any, value: Any) -> Any:
    """`value`, as far as possible in the dicts and lists that are at a place already: others may hold them."""
    old, new = _dict(place), _dict(value)
    if old is not None and new is not None:
        for key in [key for key in old if key not in new]:
            del old[key]
        old.update({key: put_into(old.get(key), each) for key, each in new.items()})
        return place
    items, others = _list(place), _list(value)
    if items is not None and others is not None:
        items[:] = [put_into(items[at] if at < len(items) else None, each) for at, each in enumerate(others)]
        return place
    return value


def _merged_keys(
    mine: dict[str, Any], theirs: dict[str, Any], *, opened: dict[str, Any], known: dict[str, Any]
) -> dict[str, Any]:
    found = dict[str, Any]()
    for key in {**mine, **theirs}:
        was, before = opened.get(key, _ABSENT), known.get(key, _ABSENT)
        value = merged(mine.get(key, _ABSENT), theirs.get(key, _ABSENT), opened=was, known=before)
        if value is not _ABSENT:
            found[key] = value
    return found


def _merged_items(mine: Iterable[Any], theirs: list[Any], *, opened: list[Any], known: list[Any]) -> list[Any]:
    added = _without(_without(mine, opened), _without(theirs, known))
    return [*_without(theirs, _without(opened, mine)), *added]


def _without(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Items without those that are among the others, as often as they are there."""
    rest = Counter(map(_text, others))
    found = list[Any]()
    for item in items:
        if rest[text := _text(item)]:
            rest[text] -= 1
        else:
            found.append(item)
    return found


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return one is not _ABSENT and other is not _ABSENT and _text(one) == _text(other)


def _text(value: Any) -> str:
    """For comparing: in Python, True is 1."""
    return json.dumps(value, sort_keys=True)


def _dict(value: Any) -> dict[str, Any] | None:
    same: Any = value  # of which type checkers know no less than before
    return same if isinstance(value, dict) else None


def _list(value: Any) -> list[Any] | None:
    same: Any = value
    return same if isinstance(value, list) else None
