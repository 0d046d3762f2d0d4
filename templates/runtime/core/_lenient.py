"""Readers of JSON values of which not all has to fit: it is dropped, or another member of a union is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from ._base import UNSET, UnsetType
from ._decode import DecodeError, Reader, json_object, missing, unfit

__all__ = ["Drop"]

T = TypeVar("T")

# --- Leniency --------------------------------------------------------------------------------------------------------


class Drop(NamedTuple):
    """A value that did not fit, and was left out where the schema allows that."""

    path: tuple[str | int, ...]
    error: DecodeError


_Record: TypeAlias = tuple[dict[str, Any] | list[Any], str | int, DecodeError]
"""A container, the key in it, and the error for the value there."""


_records: ContextVar[list[_Record] | None] = ContextVar("_records", default=None)
_MAX_DROPS = 1000
"""The most drops that are reported for one value: a record takes far more memory than the dropped value."""


def drop(container: dict[str, Any] | list[Any], key: str | int, error: DecodeError) -> None:
    """Record that the value at `key` is left out; costs nothing without `on_drop`."""
    records = _records.get()
    if records is not None and len(records) < _MAX_DROPS:
        records.append((container, key, error))


def drops_belong_to(container: dict[str, Any], copy: dict[str, Any]) -> None:
    """Record the values that were left out of `copy` as left out of `container`, of which it is a copy."""
    records = _records.get()
    if records is not None:
        records[:] = [(container, *each[1:]) if each[0] is copy else each for each in records]


def lenient(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> T | UnsetType | None:
    """The property `key`, null or what `read` reads; anything else is dropped as if it were absent."""
    value = raw[key]
    try:
        return None if value is None else read(value)
    except DecodeError as error:
        drop(raw, key, error)
        return UNSET


def lenient_object(raw: dict[str, Any], key: str) -> dict[str, Any] | UnsetType | None:
    """The property `key`, an object or null; anything else is dropped as if it were absent."""
    value = raw[key]
    return value if value.__class__ is dict else lenient(raw, key, json_object)


def lenient_items(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> list[T] | UnsetType | None:
    """The property `key`, an array or null; what does not fit is dropped, an item or the whole."""
    return None if raw[key] is None else lenient_array(raw, key, read)


def lenient_array(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> list[T] | UnsetType:
    """The property `key`, an array; what does not fit is dropped, an item or the whole."""
    items: list[T] = []
    try:
        value = raw[key]
        if value.__class__ is list:
            for item in value:
                items.append(read(item))
            return items
    except KeyError:
        raise missing(key) from None
    except DecodeError as error:
        return with_rest(items, error, raw[key], read)
    return lenient_or(raw, key, lambda value: valid_items(value, read), UNSET)


def lenient_list(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> list[T]:
    """The property `key`, an array; what does not fit is dropped, an item or the whole, which is empty then."""
    items = lenient_array(raw, key, read)
    return [] if items is UNSET else items


@overload
def lenient_or(raw: dict[str, Any], key: str, read: Callable[[Any], T], default: UnsetType) -> T | UnsetType: ...
@overload
def lenient_or(raw: dict[str, Any], key: str, read: Callable[[Any], T], default: T) -> T: ...
def lenient_or(raw: dict[str, Any], key: str, read: Callable[[Any], T], default: Any) -> Any:
    """The property `key`; where it does not fit, it is dropped, and `default` replaces it."""
    try:
        return read(raw[key])
    except KeyError:
        raise missing(key) from None
    except DecodeError as error:
        drop(raw, key, error)
        return default


def lenient_or_made(raw: dict[str, Any], key: str, read: Callable[[Any], T], make: Callable[[], T]) -> T:
    """The property `key`; where it is absent, or dropped because it does not fit, the result of `make` replaces it."""
    try:
        return read(raw[key]) if key in raw else make()
    except DecodeError as error:
        drop(raw, key, error)
        return make()


def valid_items(value: Any, read: Callable[[Any], T], min_items: int = 0) -> list[T]:
    """An array without the items that do not fit, of which at least `min_items` must remain."""
    raw: Any = value
    if not isinstance(value, list):
        raise unfit("an array", value)
    items: list[T] = []
    try:
        for item in raw:
            items.append(read(item))
    except DecodeError as error:
        with_rest(items, error, raw, read)
    if len(items) < min_items:
        raise unfit(f"an array of {min_items} or more items that fit", value)
    return items


def with_rest(items: list[T], misfit: DecodeError, raw: list[Any], read: Callable[[Any], T]) -> list[T]:
    """Add to `items` those that fit of the rest of `raw`, after the first one that does not: `misfit` is its error."""
    first = len(items)
    drop(raw, first, misfit)
    for index in range(first + 1, len(raw)):
        try:
            items.append(read(raw[index]))
        except DecodeError as error:
            drop(raw, index, error)
    return items


def valid_members(value: Any, read: Callable[[Any], T]) -> dict[str, T]:
    """An object as a map without the values that do not fit."""
    raw = json_object(value)
    members: dict[str, T] = {}
    for name, item in raw.items():
        try:
            members[name] = read(item)
        except DecodeError as error:
            drop(raw, name, error)
    return members


def reporting_drops(read: Callable[[Any], T], raw: Any, on_drop: Callable[[Drop], object] | None) -> T:
    """`read(raw)`; `on_drop` is called for each value that was left out, 1000 at most, once the whole has been read."""
    try:
        return read(raw) if on_drop is None else _reading_with(read, raw, on_drop)
    except DecodeError as error:
        error.raw = raw
        raise


def _reading_with(read: Callable[[Any], T], raw: Any, on_drop: Callable[[Drop], object]) -> T:
    records: list[_Record] = []
    token = _records.set(records)
    try:
        result = read(raw)
    finally:
        _records.reset(token)
    for found in list(_drops(raw, records)) if records else ():
        on_drop(found)
    return result


def _drops(raw: Any, records: list[_Record]) -> Iterator[Drop]:
    """The records with their paths, found by a search for their containers; parts of a dropped value are left out."""
    errors: dict[int, dict[str | int, DecodeError]] = {}
    for container, key, error in records:
        errors.setdefault(id(container), {})[key] = error
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), raw)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, Drop):
            yield value
            continue
        dropped = errors.get(id(value), {})
        inside: list[tuple[tuple[str | int, ...], Any]] = []
        for key, member in members_of(value):
            if key in dropped:
                inside.append(((*path, key), Drop((*path, key), dropped[key])))
            elif _is_container(member):
                inside.append(((*path, key), member))
        pending += reversed(inside)


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list))


def members_of(container: Any) -> Iterable[tuple[str | int, Any]]:
    """The members of an object or the items of an array; nothing for a scalar."""
    found: Any = container
    if isinstance(container, dict):
        members: Mapping[str, Any] = found
        return members.items()
    if isinstance(container, (list, tuple)):  # a handler may have made it
        items: Sequence[Any] = found
        return enumerate(items)
    return ()


# --- Unions ----------------------------------------------------------------------------------------------------------

Candidate: TypeAlias = tuple[str, Callable[[Any], T], tuple[str, ...]]
"""A member of a union without a tag: its name, its reader, and the properties that an object must have for it."""


_opened: ContextVar[bool] = ContextVar("_opened", default=False)
"""True if a value that the schema does not list was read since this was last set to False: see `opened`."""


def opened(value: T) -> T:
    """Note that the schema does not list `value` or its tag, and that only this package accepts it; returns `value`."""
    _opened.set(True)
    return value


def open_choice(read: Callable[[Any], T], *values: T) -> Callable[[Any], T]:
    """The decoder of an enum with these constants, and all other values that `read` reads."""

    def read_choice(value: Any) -> T:
        found = read(value)
        return found if found in values else opened(found)

    return read_choice


def by_tag_or_fit(expected: str, tag: str, members: Mapping[Any, Reader[T]], *candidates: Candidate[T]) -> Reader[T]:
    """The decoder of a union whose member the property `tag` selects; if that does not fit, others are tried."""
    by_tag = {name: (("its tag says", read, ()), *candidates) for name, read in members.items()}

    def read(raw: Any) -> T:
        data: dict[str, Any] = raw if raw.__class__ is dict else json_object(raw)
        found = data.get(tag)
        return first_fit(data, expected, by_tag.get(found, candidates) if isinstance(found, str) else candidates)

    return read


def by_fit(expected: str, *candidates: Candidate[T]) -> Reader[T]:
    """The decoder of a union whose members are tried one after the other."""
    return lambda raw: first_fit(raw, expected, candidates)


def first_fit(value: Any, expected: str, candidates: tuple[Candidate[T], ...]) -> T:
    """The result of the first member of a union that `value` fits. Drops of the others are discarded.

    A member that `value` fits by the schema has precedence over one that only this package extends to it.
    """
    raw: Any = value
    reasons: list[DecodeError] = []
    records = _records.get()
    known = len(records) if records is not None else 0
    if was_opened := _opened.get():
        _opened.set(False)
    open_fit: tuple[T, list[_Record]] | None = None
    for name, read, required in candidates:
        try:
            for key in required if isinstance(value, dict) else ():
                if key not in raw:
                    raise lacking(required, raw)
            result = read(value)
            if not _opened.get():
                if was_opened:
                    _opened.set(True)
                return result
            open_fit = open_fit or (result, records[known:] if records else [])
        except DecodeError as error:
            error.member = name
            reasons.append(error)
        except RecursionError:  # in a type that contains itself
            reasons.append(DecodeError("a value that is nested less deep", "one that Python cannot read"))
        _opened.set(False)
        if records is not None:
            del records[known:]
    if open_fit is None:
        _opened.set(was_opened)
        raise unfit(expected, value, tuple(reasons))
    if records is not None:
        records += open_fit[1]
    return opened(open_fit[0])


def lacking(required: tuple[str, ...], raw: dict[str, Any]) -> DecodeError:
    """The error for an object that lacks some of the `required` properties of a member of a union."""
    absent = ", ".join(sorted(key for key in required if key not in raw))
    return DecodeError(f"an object with {absent}", "one without")


def kept_whole(value: Any, read: Callable[[Any], T], write: Callable[[T], Any]) -> T:
    """The result of `read` if nothing of `value` is lost in it; for classes in a union that accepts any JSON."""
    result = read(value)
    if _holds(write(result), value):
        return result
    raise unfit("a value of which nothing is left out", value)


def _holds(kept: Any, value: Any) -> bool:
    """True if all of the JSON `value` is in `kept`, which may have further properties with defaults."""
    raw: Any = value
    if kept is value:
        return True
    if isinstance(value, dict):
        return all(name in kept and _holds(kept[name], item) for name, item in raw.items())
    if isinstance(value, list):
        return len(kept) == len(raw) and all(map(_holds, kept, raw))
    return bool(kept == value)
