"""The capabilities that both sides of a connection have advertised."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal, TypeVar

from ._base import MISFITS, Gate, Method, Struct
from ._decode import DecodeError, Drop
from .closed_gates import Check, Place, checks, closed_places
from .decision import explains
from .dispatch import Codec, Handler, overrides, wire_name
from .log import logger

T = TypeVar("T")


class ProvisionalCapabilities:
    """The gates that the params of a request open. They count while its handler runs, and after it if it succeeds."""

    __slots__ = ("gates", "kind")

    def __init__(self, kind: Any, gates: frozenset[Gate]) -> None:
        self.kind = kind
        self.gates = gates


class Capabilities:
    """The capabilities that both peers have advertised.

    Of each message that advertises some, only the gates are kept that it opens: a peer may write any amount.
    """

    def __init__(self, handler: Handler, *, is_checked: bool) -> None:
        self._handler = handler
        self._is_checked = is_checked
        methods = (*handler.METHODS.values(), *handler.PEER_METHODS.values())
        self._gates_of_values = {values.capability for values in handler.GATED_VALUES}
        kinds = {method.capability.advertised_in for method in methods if method.capability is not None}
        kinds.update(gate.advertised_in for gate in self._gates_of_values)
        self._advertising = {
            (method.name, part): kind
            for method in methods
            for part, kind in (("params", method.params), ("result", method.result))
            if kind in kinds
        }
        self.methods = frozenset(name for name, _ in self._advertising)
        """The methods whose params or result advertise something."""
        self._request_gates = _gates_of_peer(handler, "request")
        self._notification_gates = _gates_of_peer(handler, "notification")
        self._open: dict[Any, frozenset[Gate]] = {}
        self._provisional: list[ProvisionalCapabilities] = []
        self.request_checks: dict[str, Check] = {}
        """The checks of requests that may need what the peer has not advertised, by their methods."""
        self.notification_checks: dict[str, Check] = {}
        self.closed_results: dict[str, list[Place]] = {}
        """The places in results that the peer has not advertised."""
        self._close()

    # --- Gates ---------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """Find out what is closed, after a change of what is open. What is not checked is open."""
        if self._is_checked:
            requests, notifications, self.closed_results = (
                closed_places(kind, self._handler.GATED_VALUES, self._allows)
                for kind in ("request", "notification", "result")
            )
            self.request_checks = checks(self._closed(self._request_gates), requests)
            self.notification_checks = checks(self._closed(self._notification_gates), notifications)

    def _closed(self, gates: dict[str, Gate]) -> dict[str, Gate]:
        return {method: gate for method, gate in gates.items() if not self._allows(gate)}

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none.

        Raises `ValueError` for a name that no method of the peer has.
        """
        methods = self._handler.PEER_METHODS
        name = wire_name(methods, method, "the peer") if methods else method  # without any, nothing is known
        gates = (self._request_gates.get(name or ""), self._notification_gates.get(name or ""))
        return name is not None and all(gate is None or self._allows(gate) for gate in gates)

    def _allows(self, gate: Gate) -> bool:
        """True if the message that decides about `gate` has been exchanged and opens it."""
        kind = gate.advertised_in
        latest = next((each.gates for each in reversed(self._provisional) if each.kind is kind), frozenset[Gate]())
        return gate in self._open.get(kind, latest)

    def _opened(self, kind: Any, raw: Any) -> frozenset[Gate]:
        """The gates of the peer that the message `raw`, of the type `kind`, opens."""
        gates = {*self._request_gates.values(), *self._notification_gates.values(), *self._gates_of_values}
        return frozenset(gate for gate in gates if gate.advertised_in is kind and is_open(gate, raw))

    # --- Messages ------------------------------------------------------------------------------------------------

    def begin(self, method: str, params: Any) -> ProvisionalCapabilities | None:
        """Keep what the params of a request of the peer open while its handler runs; None if they advertise nothing."""
        kind = self._advertising.get((method, "params"))
        if kind is None:
            return None
        self._provisional.append(ProvisionalCapabilities(kind, self._opened(kind, params)))
        self._close()
        return self._provisional[-1]

    def end(self, provisional: ProvisionalCapabilities, *, keep: bool) -> None:
        """Keep what a request that has succeeded opens, unless an earlier one has; forget that of others."""
        if keep:
            self._open.setdefault(provisional.kind, provisional.gates)
        self._provisional.remove(provisional)
        self._close()

    def received_result(self, method: str, result: Any) -> None:
        """Keep what a result of the peer advertises."""
        kind = self._advertising.get((method, "result"))
        if kind is not None:
            self._open[kind] = self._opened(kind, result)
            self._close()

    def sent(self, method: str, part: Literal["params", "result"], raw: Any) -> None:
        """Keep what a message of this side advertises; log where that differs from what the handler overrides."""
        kind = self._advertising.get((method, part))
        if kind is None:
            return
        self._open[kind] = self._opened(kind, raw)
        self._close()
        name = type(self._handler).__name__
        if missing := without_handler(self._handler, kind, raw):
            logger.warning("advertised, but not overridden in %s: %s", name, ", ".join(missing))
        if hidden := not_advertised(self._handler, kind, raw):
            logger.warning("overridden in %s, but not advertised: %s; use advertise()", name, ", ".join(hidden))


def _gates_of_peer(handler: Handler, kind: Literal["request", "notification"]) -> dict[str, Gate]:
    """The gates of the methods that the peer handles, by name."""
    return {
        each.name: each.capability
        for method in handler.PEER_METHODS.values()
        for each in (method, method.notification)
        if each is not None and each.kind == kind and each.capability is not None
    }


def is_open(gate: Gate, raw: Any) -> bool:
    """True if the raw JSON of a message opens `gate`."""
    return any(_opens(value_at(raw, path)) for path in gate.paths)


def value_at(raw: Any, path: tuple[str, ...]) -> Any:
    """The value at a path of property names in raw JSON; None if there is none."""
    value: Any = raw
    for name in path:
        inner: Any = value
        if not isinstance(value, dict):
            return None
        value = inner.get(name)
    return value


def _opens(value: Any) -> bool:
    found: Any = value
    return value is True or isinstance(value, dict) or (isinstance(value, list) and bool(found))


@explains
def advertise(handler: Handler | type[Handler], message: T) -> T:
    """A copy of `message` that advertises the methods that the class of `handler` overrides.

    What `message` advertises already is kept; `False` is not, as it is the default. A capability that has several
    forms, is a list or needs properties is left to you.

        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION))

    Raises `TypeError` for arguments of other types, and for a value in `message` that is not of its type.
    """
    _check_arguments(handler, message)
    codec = handler.CODEC
    try:
        raw: Any = codec.encode(message)
    except MISFITS as error:
        from .mistakes import in_message

        raise in_message(_called(handler), message, error) from error
    for method in _gated(handler, type(message)):
        gate = _simple_gate(handler, method)
        if gate is not None:
            opened = deepcopy(raw)
            if _put(opened, gate.paths[0], True if gate.says_yes == "true" else {}) and _fits(
                codec, type(message), opened
            ):
                raw = opened
    misfits: list[Drop] = []
    try:
        found: T = codec.decode(type(message), raw, on_drop=misfits.append)
        if not misfits:
            return found
    except DecodeError as error:
        misfits.append(Drop((), error))
    from .sent import not_of_type

    path, reason = misfits[0]
    raise not_of_type(f"{_called(handler)} got a message", path + reason.path, reason)


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


def _put(raw: Any, path: tuple[str, ...], value: Any) -> bool:
    """Put `value` at `path`, unless there is a value other than false."""
    *parents, last = path
    outer: Any = raw
    for name in parents:
        outer = outer.setdefault(name, {})
        if not _is_object(outer):
            return False
    if outer.get(last, False) is not False:
        return False
    outer[last] = value
    return True


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _fits(codec: Codec, kind: Any, raw: Any) -> bool:
    try:
        codec.decode(kind, raw)
    except DecodeError:
        return False
    return True


def without_handler(handler: Handler, kind: Any, raw: Any) -> list[str]:
    """The methods that the message `raw`, of the type `kind`, advertises, and that `handler` does not override.

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


def not_advertised(handler: Handler, kind: Any, raw: Any) -> list[str]:
    """The methods that `handler` overrides, and that the message `raw`, of the type `kind`, could advertise."""
    return [
        method.name
        for method in _gated(handler, kind)
        if (gate := _simple_gate(handler, method)) is not None and not is_open(gate, raw)
    ]


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
