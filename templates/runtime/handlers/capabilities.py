"""What both sides of a connection have advertised, and how the peer has introduced itself."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Generic, Literal, TypeVar

from ._base import Record
from .advertising import warn_of_differences
from .closed_gates import Check, Place, checks, closed_places
from .dispatch import Handler
from .log import logger
from .message import loads_json
from .records import Gate, Introduction, ProtocolInfo, is_open

T = TypeVar("T")


class Advertised(Record):
    """What a message advertises: the gates that it opens, and the text by which the peer introduces itself."""

    kind: Any
    gates: frozenset[Gate]
    text: bytes | None = None


class Capabilities:
    """The capabilities that both peers have advertised, and the checks of messages that follow from them."""

    def __init__(self, handler: Handler, *, is_checked: bool, dumps: Callable[[Any], bytes]) -> None:
        self._handler = handler
        self._is_checked = is_checked
        self._dumps = dumps
        methods = (*handler.METHODS.values(), *handler.PEER_METHODS.values())
        self._gates_of_values = {values.capability for values in handler.GATED_VALUES}
        kinds = {method.capability.advertised_in for method in methods if method.capability is not None}
        kinds.update(gate.advertised_in for gate in self._gates_of_values)
        how = handler.PROTOCOL.negotiation
        self._advertising = {
            (method.name, part): kind
            for method in methods
            for part, kind in (("params", method.params), ("result", method.result))
            if kind in kinds or (how is not None and method.name == how.method)
        }
        self.methods = frozenset(name for name, _ in self._advertising)
        """The methods whose params or result advertise something."""
        self._request_gates = _gates_of_peer(handler, "request")
        self._notification_gates = _gates_of_peer(handler, "notification")
        self._advertised = {kind: Provisional[Advertised]() for kind in (*kinds, *self._advertising.values())}
        part: Literal["params", "result"] = "params" if how is not None and how.method in handler.METHODS else "result"
        self._introducing = self._advertising.get((how.method, part)) if how is not None else None
        self._names = names_in(handler.PROTOCOL, part)
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
        name: str | None = method
        methods = self._handler.PEER_METHODS
        if methods and (method.__class__ is not str or method not in methods):  # without any, nothing is known
            from .names import other_name

            name = other_name(methods, method, "the peer")
        gates = (self._request_gates.get(name or ""), self._notification_gates.get(name or ""))
        return name is not None and all(gate is None or self._allows(gate) for gate in gates)

    def _allows(self, gate: Gate) -> bool:
        """True if the message that decides about `gate` has been exchanged and opens it."""
        found = self._advertised[gate.advertised_in].latest
        return found is not None and gate in found.gates

    @property
    def announced(self) -> dict[str, Any] | None:
        """The properties by which the peer has introduced itself, as JSON; None before, and if they are too large."""
        kept = None if self._introducing is None else self._advertised[self._introducing].latest
        return None if kept is None else introduced(kept.text)

    def _read(self, kind: Any, raw: Any) -> Advertised:
        """What the message `raw`, of the type `kind`, advertises of the peer."""
        known = {*self._request_gates.values(), *self._notification_gates.values(), *self._gates_of_values}
        gates = frozenset(gate for gate in known if gate.advertised_in is kind and is_open(gate, raw))
        text = introduction_text(raw, self._names, self._dumps) if kind is self._introducing else None
        return Advertised(kind, gates, text)

    # --- Messages ------------------------------------------------------------------------------------------------

    def begin(self, method: str, params: Any) -> Advertised | None:
        """Keep what the params of a request of the peer advertise while its handler runs; None if that is nothing."""
        kind = self._advertising.get((method, "params"))
        if kind is None:
            return None
        found = self._read(kind, params)
        self._advertised[kind].begin(found)
        self._close()
        return found

    def end(self, advertised: Advertised, *, keep: bool) -> None:
        """Keep what a request has advertised that has succeeded, unless an earlier one has; forget that of others."""
        self._advertised[advertised.kind].end(advertised, keep=keep)
        self._close()

    def received_result(self, method: str, result: Any) -> None:
        """Keep what a result of the peer advertises."""
        kind = self._advertising.get((method, "result"))
        if kind is not None:
            self._advertised[kind].replace(self._read(kind, result))
            self._close()

    def sent(self, method: str, part: Literal["params", "result"], raw: Any) -> None:
        """Keep what a message of this side advertises; log where that differs from what the handler overrides."""
        kind = self._advertising.get((method, part))
        if kind is not None:
            self._advertised[kind].replace(self._read(kind, raw))
            self._close()
            warn_of_differences(self._handler, kind, raw)


def _gates_of_peer(handler: Handler, kind: Literal["request", "notification"]) -> dict[str, Gate]:
    """The gates of the methods that the peer handles, by name."""
    return {
        each.name: each.capability
        for method in handler.PEER_METHODS.values()
        for each in (method, method.notification)
        if each is not None and each.kind == kind and each.capability is not None
    }


# --- Introductions ---------------------------------------------------------------------------------------------------


_MAX_BYTES: Final = 2**16
"""The longest introduction that is kept, as text: a peer may write any amount. Known ones have less than 2 KiB."""


class Provisional(Generic[T]):
    """What the requests of a peer bring: it counts while one is handled, and after it if it is the first to succeed.

    The peer need not wait for the response before it sends more, and what it sends may need what it has advertised.
    """

    __slots__ = ("_handled", "_kept")

    def __init__(self) -> None:
        self._handled: list[T] = []
        self._kept: list[T] = []

    @property
    def latest(self) -> T | None:
        """What counts; None if nothing was brought yet."""
        found = self._kept or self._handled
        return found[-1] if found else None

    def begin(self, brought: T) -> None:
        """Take what a request brings that is handled now."""
        self._handled.append(brought)

    def end(self, brought: T, *, keep: bool) -> None:
        """Keep what a request has brought that has succeeded, unless an earlier one has; forget that of others."""
        if keep and not self._kept:
            self._kept = [brought]
        self._handled.remove(brought)

    def replace(self, brought: T) -> None:
        """Keep what a result has brought."""
        self._kept = [brought]


def introduction_text(raw: Any, names: Collection[str], dumps: Callable[[Any], bytes]) -> bytes | None:
    """The text of those properties of params or a result by which a peer introduces itself; None if it is too large."""
    found: Any = raw
    said = {name: found[name] for name in names if name in found} if isinstance(raw, dict) else {}
    reason: object
    try:
        if len(text := dumps(said)) <= _MAX_BYTES:
            return text
        reason = f"it has {len(text):,} bytes, and the limit is {_MAX_BYTES:,}"
    except (TypeError, ValueError, RecursionError) as error:
        reason = error
    logger.warning("how the peer introduced itself is not kept: %s", reason)
    return None


def introduced(text: bytes | None) -> dict[str, Any] | None:
    """The properties in such a text, read anew: whoever gets them may change them."""
    return None if text is None else loads_json(text)


def names_in(protocol: ProtocolInfo, part: Literal["params", "result"]) -> list[str]:
    """The names of these properties in the params or in the result of the request that negotiates the version."""
    how = protocol.negotiation
    said = Introduction() if how is None else how.params if part == "params" else how.result
    return [name for name in (said.capabilities, said.info) if name is not None]
