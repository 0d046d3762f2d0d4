"""What a message of this side advertises: what follows from its handler, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from ._base import MISFITS, Struct
from ._decode import DecodeError
from ._lenient import Drop
from .decision import explains
from .dispatch import Codec, Handler, is_of_package, overrides
from .log import logger
from .records import Gate, Method, is_open, value_at

__all__ = ["advertise"]

T = TypeVar("T")
Path: TypeAlias = tuple[str, ...]
"""Names of properties on the wire, one inside the other."""

_LEFT_OUT: Final = WeakKeyDictionary[type, frozenset[Path]]()
"""The capabilities that are not advertised because a call of `advertise` says so, by the class of the handler."""


@explains
def advertise(handler: Handler | type[Handler], message: T, **decided: Any) -> T:
    """A copy of `message` that advertises what the class of `handler` can do.

    That is what `message` has already, the methods that the class overrides, and the `ADVERTISES` of the class and its
    bases. A keyword decides about one capability, by a name as for `supports`: True, False, or its value.

        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION), load_session=self.keeps_sessions)

    In `message`, `False` is the default of a boolean and decides nothing, `None` for an object does. A capability that
    has several forms, is a list or needs properties is left to you.

    Raises `TypeError` for arguments of other types, and for a value that is not of its type; `ValueError` for a name
    that no capability has.
    """
    _check_arguments(handler, message)
    try:
        raw: Any = handler.CODEC.encode(message)
    except MISFITS as error:
        from .mistakes import in_message

        raise in_message(_called(handler), message, error) from error
    draft = _Draft(handler, type(message), raw)
    if _has_none(message):
        draft.closed |= {*_paths_of_none(message, handler.CODEC.reflection())}
    draft.decide(decided)
    for method in _gated(handler, type(message)):
        if (gate := _simple_gate(handler, method)) is not None:
            draft.open(gate.paths[0])
    for path in _declared(handler, type(message)):
        draft.open(path)
    _LEFT_OUT[handler if isinstance(handler, type) else type(handler)] = draft.closed
    found: T = draft.message()
    return found


def _has_none(value: Any) -> bool:
    found = (getattr(value, name) for name in value.__class__._slotted)
    return any(each is None or (isinstance(each, Struct) and _has_none(each)) for each in found)


def _paths_of_none(value: Any, types: Any, path: Path = ()) -> Iterator[Path]:
    """The places of None in a message, which is not on the wire; `types` know the names there."""
    for name, wire, *_ in types.properties(type(value)):
        each: Any = getattr(value, name)
        if each is None:
            yield (*path, wire)
        elif isinstance(each, Struct):
            yield from _paths_of_none(each, types, (*path, wire))


class _Draft:
    """A message of the type `kind` in the making, as JSON."""

    def __init__(self, handler: Handler | type[Handler], kind: Any, raw: Any) -> None:
        self.closed: frozenset[Path] = frozenset()
        """What is not advertised by decision."""
        self._handler = handler
        self._codec: Codec = handler.CODEC
        self._kind = kind
        self._raw = raw
        self._decided: set[Path] = set()

    def decide(self, decided: Mapping[str, Any]) -> None:
        """Set the capabilities that a caller decides about."""
        for name, value in decided.items():
            paths = _paths_of(name, self._handler, self._kind, allow_groups=value is not True)
            if value is False or value is None:
                self.closed |= {*paths}
                for path in paths:
                    _remove(self._raw, path)
            elif len(paths) > 1:
                ways = " or ".join(".".join(path[1:]) for path in paths)
                raise ValueError(f"{_called(self._handler)} got {name}={value!r}: say which of its ways, {ways}")
            elif value is True:
                self._open(paths[0], wins=True)
            else:
                self._raw = _with(self._raw, paths[0], self._codec.encode(value), wins=True) or self._raw
            self._decided.update(paths)

    def open(self, path: Path) -> None:
        """Advertise a capability, unless it is decided otherwise."""
        if not any(path[: len(each)] == each for each in self.closed | self._decided):
            self._open(path, wins=False)

    def _open(self, path: Path, *, wins: bool) -> None:
        smallest: tuple[Any, ...] = (True, {})
        for value in smallest:
            opened = _with(self._raw, path, value, wins=wins)
            if opened is None:  # it is said already
                return
            if _is_kept(self._codec, self._kind, opened, path):
                self._raw = opened
                return

    def message(self) -> Any:
        """The message. Raises `TypeError` for a value that does not fit."""
        misfits: list[Drop] = []
        try:
            found = self._codec.decode(self._kind, self._raw, on_drop=misfits.append)
            if not misfits:
                return found
        except DecodeError as error:
            misfits.append(Drop((), error))
        from .sent import not_of_type

        path, reason = misfits[0]
        raise not_of_type(f"{_called(self._handler)} got a message", path + reason.path, reason)


def _check_arguments(handler: Any, message: Any) -> None:
    if hasattr(handler, "CODEC") and isinstance(message, Struct):
        return
    from .mistakes import hint_for, shown

    if hasattr(message, "CODEC"):
        name = getattr(message, "__name__", type(message).__name__)
        raise TypeError(f"expected advertise({name}, message), found {shown(handler)} first")
    raise TypeError(f"{_called(handler)} got {shown(message)}{hint_for(message)}")


def _called(handler: Any) -> str:
    """The call of `advertise`, for messages."""
    return f"advertise({getattr(handler, '__name__', type(handler).__name__)}, ...)"


# --- JSON in the making ----------------------------------------------------------------------------------------------


def _with(raw: Any, path: Path, value: Any, *, wins: bool) -> Any:
    """A copy of `raw` with `value` at `path`; None if there is a value other than false, unless this one `wins`."""
    copied: Any = deepcopy(raw)
    *parents, last = path
    outer = copied
    for name in parents:
        if wins and outer.get(name) is None:
            outer[name] = {}
        outer = outer.setdefault(name, {})
        if not _is_object(outer):
            return None
    if not wins and outer.get(last, False) is not False:
        return None
    outer[last] = value
    return copied


def _remove(raw: Any, path: Path) -> None:
    outer: Any = value_at(raw, path[:-1])
    if _is_object(outer):
        outer.pop(path[-1], None)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_kept(codec: Codec, kind: Any, raw: Any, path: Path) -> bool:
    """True if `raw` can be read, and what is at `path` is not left out."""
    drops: list[Drop] = []
    try:
        codec.decode(kind, raw, on_drop=drops.append)
    except DecodeError:
        return False
    return not any((at + reason.path)[: len(path)] == path for at, reason in drops)


# --- Capabilities of a handler ---------------------------------------------------------------------------------------


def _declared(handler: Handler | type[Handler], kind: Any) -> Iterator[Path]:
    """The capabilities that the class and its bases name in `ADVERTISES`.

    Raises `ValueError` for a name that none has. The helpers of this package also name those of other schemas.
    """
    for base in (handler if isinstance(handler, type) else type(handler)).__mro__:
        names: Any = vars(base).get("ADVERTISES", ())
        listed: Any = names
        if isinstance(names, str):
            raise TypeError(f"ADVERTISES of {base.__name__} is a str: write a tuple, as in ({names!r},)")
        for name in listed if isinstance(names, (tuple, list)) else ():
            try:
                yield from _paths_of(name, handler, kind, owner=base)
            except ValueError:
                if not is_of_package(base):
                    raise


def _paths_of(
    name: str, handler: Handler | type[Handler], kind: Any, *, owner: type | None = None, allow_groups: bool = False
) -> list[Path]:
    """The paths of the capability `name` in a message of the type `kind`, or of those that open the method `name`."""
    methods = [*_gated(handler, kind)]
    for method in methods:
        if name in (method.name, method.handler) and method.capability is not None:
            return [*method.capability.paths]
    from .names import capability_names, capability_path, class_of, nearest_names
    from .places import caller

    names, outer = [method.handler for method in methods], _property_in(handler, kind)
    if outer is not None:
        types = handler.CODEC.reflection()
        able = class_of(types, kind, outer)
        if (path := capability_path(types, able, outer, name, allow_groups=allow_groups)) is not None:
            return [path]
        names += capability_names(types, able)
    subject = f"{_called(handler)}{caller()}" if owner is None else f"ADVERTISES of {owner.__name__}"
    expected = " or ".join(nearest_names(name, names) or names) or "none, as it has no capabilities"
    raise ValueError(f"{subject} has {name!r}, which is no capability: expected {expected}")


def _property_in(handler: Handler | type[Handler], kind: Any) -> str | None:
    """The property of a message of the type `kind` that has the capabilities of this side, if it has them."""
    how = handler.PROTOCOL.negotiation
    if how is None:
        return None
    own = handler.METHODS.get(how.method)
    if own is not None:
        return how.result.capabilities if kind is own.result else None
    return how.params.capabilities if kind is handler.PEER_METHODS[how.method].params else None


def _simple_gate(handler: Handler | type[Handler], method: Method) -> Gate | None:
    """The gate of a method that `handler` overrides, if it has a single form."""
    gate = method.capability
    simple = gate is not None and len(gate.paths) == 1 and gate.says_yes is not None
    return gate if simple and overrides(handler, method.handler) else None


def _gated(handler: Handler | type[Handler], kind: Any) -> Iterator[Method]:
    """The methods of `handler` whose capability is advertised in messages of the type `kind`."""
    for method in handler.METHODS.values():
        for each in (method, method.notification):
            if each is not None and each.capability is not None and each.capability.advertised_in is kind:
                yield each


# --- Differences -----------------------------------------------------------------------------------------------------


def warn_of_differences(handler: Handler, kind: Any, raw: Any) -> None:
    """Log where the message `raw`, of the type `kind`, does not advertise what `handler` overrides."""
    name = type(handler).__name__
    if missing := _without_handler(handler, kind, raw):
        logger.warning("advertised, but not overridden in %s: %s", name, ", ".join(missing))
    if hidden := _not_advertised(handler, kind, raw):
        methods = ", ".join(each.name for each in hidden)
        way = f"use advertise(), with {hidden[0].handler}=False for what is left out on purpose"
        logger.warning("overridden in %s, but not advertised: %s; %s", name, methods, way)


def _without_handler(handler: Handler, kind: Any, raw: Any) -> list[str]:
    """The methods that a message advertises, and that `handler` does not override.

    A capability that also opens a method of the peer may be advertised for that alone.
    """
    of_peer = [method.capability for method in handler.PEER_METHODS.values()]
    return [
        method.name
        for method in _gated(handler, kind)
        if method.capability is not None
        and method.capability not in of_peer
        and is_open(method.capability, raw)
        and not overrides(handler, method.handler)
    ]


def _not_advertised(handler: Handler, kind: Any, raw: Any) -> list[Method]:
    """The methods that `handler` overrides, and that a message could advertise; but not by decision."""
    return [
        method
        for method in _gated(handler, kind)
        if (gate := _simple_gate(handler, method)) is not None
        and not is_open(gate, raw)
        and not _is_left_out(handler, raw, gate.paths[0])
    ]


def _is_left_out(handler: Handler, raw: Any, path: Path) -> bool:
    """True if a caller of `advertise` has decided so, or the message has null for the capability or what it is in."""
    found = (_LEFT_OUT[base] for base in type(handler).__mro__ if base in _LEFT_OUT)
    decided = next(found, frozenset[Path]())
    ends = range(1, len(path) + 1)
    return any(path[:end] in decided or _is_null(raw, path[:end]) for end in ends)


def _is_null(raw: Any, path: Path) -> bool:
    outer: Any = value_at(raw, path[:-1])
    return isinstance(outer, dict) and path[-1] in outer and outer[path[-1]] is None
