"""Readers of JSON values, for `codec`: each returns a value that fits its type, or raises `DecodeError`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from math import isfinite
from reprlib import Repr
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from ._base import UNSET, UnsetType

T = TypeVar("T")
N = TypeVar("N", int, float)
Reader: TypeAlias = Callable[[Any], T]
"""Decodes a JSON value."""


class _Excerpt(Repr):
    """The start of a JSON value. The limits bound the time that it takes, too."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlevel = 2

    def repr_bool(self, x: bool, level: int) -> str:
        """Spell a boolean as JSON does."""
        return "true" if x else "false"

    def repr_NoneType(self, x: None, level: int) -> str:
        """Spell null as JSON does."""
        return "null"

    def repr_int(self, x: int, level: int) -> str:
        """Show an integer, unless Python refuses to print it: it has a limit of some thousand digits."""
        return super().repr_int(x, level) if x.bit_length() < _MAX_BITS else "a number of very many digits"


_shown = _Excerpt()
_MAX_SHOWN = 160
_MAX_BITS = 4096
_MOST_LINES = 50
"""Of an error: one in a type that contains itself would have some for each level."""


class DecodeError(ValueError):
    """A JSON value does not fit its type: `path` leads to it, `expected` and `found` say how.

    For a union whose members were tried in turn, `reasons` holds the error of each member, and `member` its name.
    `raw` is the whole value that `decode`, a stub or a connection could not read; `UNSET` where none of them did.
    `is_from_peer` is true where a stub could not read the result of a request.
    """

    is_from_peer: bool = False

    def __init__(self, expected: str, found: str, *, reasons: tuple[DecodeError, ...] = (), member: str = "") -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found
        self.reasons = reasons
        self.member = member
        self.raw: Any = UNSET
        self._reversed_path: list[str | int] = []

    @property
    def path(self) -> tuple[str | int, ...]:
        """The property names and array indexes from the decoded value to the one that does not fit."""
        return tuple(reversed(self._reversed_path))

    def at(self, key: str | int) -> DecodeError:
        """This error, seen from one level further out."""
        self._reversed_path.append(key)
        return self

    def __str__(self) -> str:
        *lines, last = islice(self._lines(()), _MOST_LINES + 1)
        return "\n".join([*lines, last if len(lines) < _MOST_LINES else "…"])

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({next(self._lines(()))!r})"

    def _lines(self, outer: tuple[str | int, ...]) -> Iterator[str]:
        """The message, followed by one for each reason; `outer` leads to the value that was read."""
        path = (*outer, *self.path)
        member = f"as {self.member}: " if self.member else ""
        yield f"{member}{path_text(path)}: expected {self.expected}, found {self.found}"
        for reason in self.reasons:
            yield from ("  " + line for line in reason._lines(path))


def path_text(path: tuple[str | int, ...]) -> str:
    """A path as messages show it: `$.prompt[0].text`, `$.env['a b']`."""
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, str) and step.isidentifier() and len(step) <= _shown.maxstring:
        return f".{step}"
    return f"[{_shown.repr(step)}]"


def excerpt(value: Any) -> str:
    """The start of a JSON value for messages and logs: short and on one line, however large and deep the value is."""
    try:
        text = _shown.repr(value)
    except Exception:  # of a value of the user's, or of an integer with too many digits
        text = f"a value of the class {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def unfit(expected: str, value: Any, reasons: tuple[DecodeError, ...] = ()) -> DecodeError:
    """The error for a value that is not what was expected."""
    kind = "an object " if isinstance(value, dict) else "an array " if isinstance(value, list) else ""
    return DecodeError(expected, kind + excerpt(value), reasons=reasons)


def missing(key: str) -> DecodeError:
    """The error for a required property that is absent."""
    return DecodeError("a value", "nothing: the property is missing").at(key)


# --- Scalars and containers ------------------------------------------------------------------------------------------


def string(value: Any) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise unfit("a string", value)


def long_string(value: Any, min_length: int) -> str:
    """A string of at least `min_length` characters."""
    if len(text := string(value)) < min_length:
        raise unfit(f"a string of {min_length} or more characters", value)
    return text


def boolean(value: Any) -> bool:
    """`true` or `false`."""
    if value is True or value is False:
        return bool(value)
    raise unfit("true or false", value)


def integer(value: Any) -> int:
    """A whole number. JSON Schema counts `1.0` among them, but not `true`."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise unfit("an integer", value)


def number(value: Any) -> float:
    """A number: neither `true`, nor the infinite or undefined float that Python reads for `1e400` and `NaN`."""
    if type(value) is int or (type(value) is float and isfinite(value)):
        return value
    raise unfit("a number", value)


def bounded(value: N, minimum: float | None, maximum: float | None) -> N:
    """A number within bounds, both inclusive."""
    if minimum is not None and value < minimum:
        raise unfit(f"{minimum} or more", value)
    if maximum is not None and value > maximum:
        raise unfit(f"{maximum} or less", value)
    return value


def null(value: Any) -> None:
    """Null."""
    if value is not None:
        raise unfit("null", value)


def anything(value: Any) -> Any:
    """Any JSON value, as it is."""
    return value


def constant(value: Any, only: T) -> T:
    """The one value that is allowed."""
    if value == only and (value.__class__ is only.__class__ or isinstance(value, bool) is isinstance(only, bool)):
        return only
    raise unfit(repr(only), value)


def one_of(values: tuple[T, ...]) -> Callable[[Any], T]:
    """The decoder of an enum with these constants."""
    known = constants(*values)
    return lambda value: choice(value, known)


def constants(*values: T) -> dict[Any, T]:
    """The constants of an enum, as `choice` looks them up."""
    return {value: value for value in values}


def choice(value: Any, known: Mapping[Any, T]) -> T:
    """One of the constants of an enum; `1.0` is the integer 1, but `true` is not."""
    if isinstance(value, str) or type(value) in (int, float):
        found = known.get(value)
        if found is not None:
            return found
    raise unfit("one of " + ", ".join(map(repr, known)), value)


def json_object(value: Any) -> dict[str, Any]:
    """An object, as it is."""
    raw: Any = value
    if isinstance(value, dict):
        return raw  # type: ignore[no-any-return]
    raise unfit("an object", value)


def array(value: Any, read: Callable[[Any], T]) -> list[T]:
    """An array with every item read by `read`."""
    raw: Any = value
    if not isinstance(value, list):
        raise unfit("an array", value)
    items: list[T] = []
    try:
        for item in raw:
            items.append(read(item))
    except DecodeError as error:
        raise error.at(len(items)) from None
    return items


def array_of(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """The reader of arrays with items read by `read`."""
    return lambda value: array(value, read)


def long_array(value: Any, read: Callable[[Any], T], min_items: int) -> list[T]:
    """An array of at least `min_items` items."""
    items = array(value, read)
    if len(items) < min_items:
        raise unfit(f"an array of {min_items} or more items", value)
    return items


def mapping(value: Any, read: Callable[[Any], T]) -> dict[str, T]:
    """An object as a map, with every value read by `read`."""
    members: dict[str, T] = {}
    for name, item in json_object(value).items():
        try:
            members[name] = read(item)
        except DecodeError as error:
            raise error.at(name) from None
    return members


def nullable(value: Any, read: Callable[[Any], T]) -> T | None:
    """Null, or what `read` reads."""
    return None if value is None else read(value)


# --- Properties ------------------------------------------------------------------------------------------------------


def at(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> T:
    """The property `key`, read by `read`."""
    try:
        return read(raw[key])
    except KeyError:
        raise missing(key) from None
    except DecodeError as error:
        raise error.at(key) from None


def tagged_at(  # noqa: PLR0917 - keywords take time
    raw: dict[str, Any], key: str, tag: str, members: Mapping[str, Reader[T]], read: Reader[T]
) -> T:
    """The property `key`, read by the one of `members` that its `tag` selects; `read` handles all other cases."""
    try:
        value = raw[key]
        return members[value[tag]](value)
    except DecodeError as error:
        raise error.at(key) from None
    except (KeyError, TypeError):
        return at(raw, key, read)


def nullable_at(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> T | None:
    """The property `key`, null or read by `read`."""
    return None if key in raw and raw[key] is None else at(raw, key, read)


def string_at(raw: dict[str, Any], key: str) -> str:
    """The property `key`, a string."""
    try:
        if isinstance(value := raw[key], str):
            return value
    except KeyError:
        raise missing(key) from None
    raise unfit("a string", value).at(key)


def constant_at(raw: dict[str, Any], key: str, only: T) -> T:
    """The property `key`, whose one allowed value is the string `only`."""
    try:
        if raw[key] == only:
            return only
    except KeyError:
        raise missing(key) from None
    raise unfit(repr(only), raw[key]).at(key)


def array_at(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> list[T]:
    """The property `key`, an array with every item read by `read`."""
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
        raise error.at(len(items)).at(key) from None
    return at(raw, key, array_of(read))


def nullable_array_at(raw: dict[str, Any], key: str, read: Callable[[Any], T]) -> list[T] | None:
    """The property `key`, null or an array with every item read by `read`."""
    return None if key in raw and raw[key] is None else array_at(raw, key, read)


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
        for key, member in _members(value):
            if key in dropped:
                inside.append(((*path, key), Drop((*path, key), dropped[key])))
            elif _is_container(member):
                inside.append(((*path, key), member))
        pending += reversed(inside)


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _members(container: Any) -> Iterator[tuple[str | int, Any]]:
    """The members of an object or the items of an array; nothing for a scalar."""
    members: Any = container
    if isinstance(container, dict):
        yield from members.items()
    elif isinstance(container, list):
        yield from enumerate(members)


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


def by_tag(union: str, tag: str, members: Mapping[Any, Reader[T]], other: Reader[T] | None = None) -> Reader[T]:
    """The decoder of a union whose member the property `tag` selects; `other` decodes objects with any other tag."""

    def read(raw: Any) -> T:
        try:
            read_member = members[raw[tag]]
        except (KeyError, TypeError):
            if other is not None:
                return other(json_object(raw))
            raise unknown_tag(union, tag, json_object(raw), members) from None
        return read_member(raw)

    return read


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


def unknown_tag(union: str, tag: str, raw: dict[str, Any], known: Mapping[Any, Any]) -> DecodeError:
    """The error for an object whose tag no member of `union` has."""
    expected = f"one of {', '.join(map(repr, known))} ({union})"
    if tag not in raw:
        return DecodeError(expected, "nothing: the property is missing").at(tag)
    return unfit(expected, raw[tag]).at(tag)


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
