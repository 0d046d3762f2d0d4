"""Readers of JSON values, for `codec`: each returns a value that fits its type, or raises `DecodeError`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import isfinite
from reprlib import Repr
from typing import Any, TypeAlias, TypeVar

from ._base import UNSET

__all__ = ["DecodeError"]

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


def tagged_at(  # keywords take time
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


# --- Tags ------------------------------------------------------------------------------------------------------------


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


def unknown_tag(union: str, tag: str, raw: dict[str, Any], known: Mapping[Any, Any]) -> DecodeError:
    """The error for an object whose tag no member of `union` has."""
    expected = f"one of {', '.join(map(repr, known))} ({union})"
    if tag not in raw:
        return DecodeError(expected, "nothing: the property is missing").at(tag)
    return unfit(expected, raw[tag]).at(tag)
