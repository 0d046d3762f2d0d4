"""Capabilities: what each peer has advertised, and what that allows. `methods` has the gates as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Literal, TypeVar

from . import codec
from ._wire import DecodeError
from .dispatch import Handler
from .protocol import Gate, Method

T = TypeVar("T")


class CapabilityError(Exception):
    """The peer has not advertised the capability that `method` needs, so nothing was sent."""

    def __init__(self, method: str, gate: Gate) -> None:
        self.method = method
        self.gate = gate
        paths = " or ".join(".".join(path) for path in gate.paths)
        super().__init__(f"{method} needs {paths}, which the peer has not advertised in {gate.advertised_in.__name__}")


def _advertising(methods: tuple[Method, ...]) -> dict[str, tuple[Any, Any]]:
    """The params and result types that advertise capabilities, by method; None for a type that does not."""
    types = {method.capability.advertised_in for method in methods if method.capability is not None}
    found: dict[str, tuple[Any, Any]] = {}
    for method in methods:
        params, result = (half if half in types else None for half in (method.params, method.result))
        if params is not None or result is not None:
            found[method.name] = (params, result)
    return found


class Trial:
    """The params of a request that advertise something, while its handler runs."""

    __slots__ = ("kind", "raw")

    def __init__(self, kind: Any, raw: Any) -> None:
        self.kind = kind
        self.raw = raw


class Advertised:
    """What the two peers of a connection have told each other, as raw JSON by the type of the message."""

    def __init__(self, methods: Iterable[Method] = ()) -> None:
        self._advertising = _advertising(tuple(methods))
        self._messages: dict[Any, Any] = {}
        self._trials: list[Trial] = []

    def begin(self, method: str, params: Any) -> Trial | None:
        """Keep the params of a request that came in until `end`; None where they advertise nothing."""
        types = self._advertising.get(method)
        if types is None or types[0] is None:
            return None
        self._trials.append(Trial(types[0], params))
        return self._trials[-1]

    def settle(self, trial: Trial) -> None:
        """Keep the params of a request that has succeeded; the first such request decides."""
        self._messages.setdefault(trial.kind, trial.raw)

    def end(self, trial: Trial) -> None:
        """Forget the params of a request that has ended, unless they were settled."""
        self._trials.remove(trial)

    def note_params(self, method: str, params: Any) -> Any:
        """Keep the params of a request that is sent; returns their type where they advertise something."""
        return self._note(method, 0, params)

    def note_result(self, method: str, result: Any) -> Any:
        """Keep the result of a request; returns its type where it advertises something."""
        return self._note(method, 1, result)

    def _note(self, method: str, half: int, raw: Any) -> Any:
        types = self._advertising.get(method)
        if types is None or types[half] is None:
            return None
        self._messages[types[half]] = raw
        return types[half]

    def allows(self, gate: Gate) -> bool:
        """Whether the message that tells about `gate` has been exchanged, and opens it."""
        kind = gate.advertised_in
        raw = next((trial.raw for trial in reversed(self._trials) if trial.kind is kind), None)
        return is_open(gate, self._messages.get(kind, raw))


def gates_of(methods: Mapping[str, Method], kind: Literal["request", "notification"]) -> dict[str, Gate]:
    """The capabilities that the peer that handles `methods` must have advertised, by what is sent to it."""
    found: dict[str, Gate] = {}
    for name, method in methods.items():
        for each in (method, method.notification):
            if each is not None and each.kind == kind and each.capability is not None:
                found[name] = each.capability
    return found


def is_open(gate: Gate, raw: Any) -> bool:
    """Whether the raw JSON of a message opens `gate`."""
    return any(_opens(_at(raw, path)) for path in gate.paths)


def _at(raw: Any, path: tuple[str, ...]) -> Any:
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


def overrides(handler: Handler | type[Handler], name: str) -> bool:
    """Whether the class of `handler` has its own method `name`, rather than the one that answers "method not found"."""
    kind = handler if isinstance(handler, type) else type(handler)
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and "METHODS" not in vars(owner)


def advertise(handler: Handler | type[Handler], message: T) -> T:
    """A copy of `message` that advertises what `handler` can do, judged by the methods that its class overrides.

    What `message` says already stays as it is, but for `False`, which is the default. Left to you is what methods do
    not tell: a capability with several forms, and one that is a list.

        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION))
    """
    raw: Any = codec.encode(message)
    for method in _gated(handler, type(message)):
        gate = _simple_gate(handler, method)
        if gate is not None:
            told = deepcopy(raw)
            if _tell(told, gate.paths[0], True if gate.says_yes == "true" else {}) and _fits(type(message), told):
                raw = told
    return codec.decode(type(message), raw)


def _tell(raw: Any, path: tuple[str, ...], value: Any) -> bool:
    """Put `value` where `path` leads, unless something other than false is there."""
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


def _fits(kind: Any, raw: Any) -> bool:
    try:
        codec.decode(kind, raw)
    except DecodeError:
        return False
    return True


def without_handler(handler: Handler, kind: Any, raw: Any) -> list[str]:
    """The methods that the message `raw`, of the type `kind`, advertises, and that `handler` does not override."""
    return [
        method.name
        for method in _gated(handler, kind)
        if method.capability is not None and is_open(method.capability, raw) and not overrides(handler, method.handler)
    ]


def not_advertised(handler: Handler, kind: Any, raw: Any) -> list[str]:
    """The methods that `handler` overrides, and that the message `raw`, of the type `kind`, could advertise."""
    return [
        method.name
        for method in _gated(handler, kind)
        if (gate := _simple_gate(handler, method)) is not None and not is_open(gate, raw)
    ]


def _simple_gate(handler: Handler | type[Handler], method: Method) -> Gate | None:
    """The capability to advertise because `handler` overrides `method`, if that is enough to know its form."""
    gate = method.capability
    simple = gate is not None and len(gate.paths) == 1 and gate.says_yes is not None
    return gate if simple and overrides(handler, method.handler) else None


def _gated(handler: Handler | type[Handler], kind: Any) -> Iterator[Method]:
    """The methods of `handler` whose capability is advertised in messages of the type `kind`."""
    for method in handler.METHODS.values():
        for each in (method, method.notification):
            if each is not None and each.capability is not None and each.capability.advertised_in is kind:
                yield each
