"""The overrides of a proxy: the class to extend, its methods for messages, and messages that they hand on unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeAlias

from ...errors import RequestError
from .._base import MISFITS, UNSET, UnsetType
from .._decode import DecodeError
from .._lenient import reporting_drops
from ..dispatch import Codec, ConnectionClosed, OnDrop, Remote, UnfitParams, call_handler, overrides
from ..log import logger
from ..message import Kind, Message
from ..records import Method, Payload, ProtocolInfo
from .passing import Passed, dumps_number, scan

__all__ = ["Call"]

if TYPE_CHECKING:
    from .sources import AnyAgent

Neighbour: TypeAlias = Literal["client", "agent"]

_SIDES: Final[tuple[Neighbour, ...]] = ("client", "agent")
_HOLD_SECONDS: Final = 5.0
"""The longest time that messages wait for a handler which has got the response to its call."""


class NeighbourConnection(Protocol):
    """One side of a proxy, as its overrides see it: the connection with a neighbour."""

    side: Neighbour

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result."""
        ...

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...

    def hand_over_reading(self) -> None:
        """Let another task read what this side says, if this one does so and handles a notification."""
        ...


class Call:
    """A message that `from_client` or `from_agent` handles. `params` is JSON, None for params that are absent."""

    def __init__(self, override: Override, target: NeighbourConnection) -> None:
        self._override = override
        self._message = override.message
        self._target = target
        self.method = self._message.method
        self.is_request = self._message.kind == "request"

    @cached_property
    def params(self) -> Any:
        """The params, read for this call alone: to change them does not change what `forward()` passes on."""
        text = self._message.payload
        return None if text is None else scan(text)[0]

    def __repr__(self) -> str:
        return f"Call({self.method[:80]!r})"

    async def forward(self, params: Any = UNSET, *, to: Remote | None = None) -> Any:
        """Pass the message on, as the text that came or with other params; returns the result of a request.

        `to` is the stub of another receiver, such as an agent that the proxy has opened. Raises the `RequestError` of
        the receiver, and `ConnectionClosed`.
        """
        given = self._message if isinstance(params, UnsetType) else params
        if to is not None:
            send = to.ext_method if self.is_request else to.ext_notification
        else:
            send = self._target.request if self.is_request else self._target.notify
        token = override_of.set(self._override)  # another task may call this, such as one that takes calls from a queue
        try:
            return await send(self.method, given)
        finally:
            override_of.reset(token)


class Passing:
    """The base of `Proxy`: messages that it does not override are passed on as they came."""

    PROTOCOL: ClassVar[ProtocolInfo]
    CODEC: ClassVar[Codec]
    METHODS: ClassVar[Mapping[str, Method]] = {}
    FROM_CLIENT: ClassVar[Mapping[str, Method]] = {}
    FROM_AGENT: ClassVar[Mapping[str, Method]] = {}

    async def from_client(self, call: Call) -> Any:
        """Handle a message of the client that no other method does: pass it on, or return a result of your own."""
        return await call.forward()

    async def from_agent(self, call: Call) -> Any:
        """Handle a message of the agent that no other method does, like `from_client`."""
        return await call.forward()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Called once, after all handlers have finished. Stop background work here."""

    agent_opener: Callable[[AnyAgent], Awaitable[Any]]
    """Set by the connection: what `open_agent` calls."""


class Route:
    """The method of a proxy that handles a message. `record` is None for `from_client` and `from_agent`."""

    __slots__ = ("name", "record")

    def __init__(self, name: str, record: Method | None = None) -> None:
        self.name = name
        self.record = record


def routes_of(kind: type[Passing], side: Neighbour) -> Callable[[Message], Route | None]:
    """A function that finds the route of a message from `side`: None for one that is passed on."""
    found: dict[tuple[str, str], Route] = {
        (method.kind, method.name): Route(name, method) for name, method in _named(kind, side) if _overrides(kind, name)
    }
    rest = Route(f"from_{side}") if _overrides(kind, f"from_{side}") else None
    return lambda message: found.get((message.kind, message.method), rest)


def names_of(kind: type[Passing]) -> set[str]:
    """The methods of a proxy that handle messages with a type."""
    return {name for side in _SIDES for name, _ in _named(kind, side)}


def _named(kind: type[Passing], side: Neighbour) -> list[tuple[str, Method]]:
    """The methods for messages from `side`: their names have it if the other side sends such messages, too."""
    tables = {"client": both(kind.FROM_CLIENT), "agent": both(kind.FROM_AGENT)}
    names = [{each.handler for each in table} for table in tables.values()]
    return [
        (f"{each.handler}_from_{side}" if all(each.handler in known for known in names) else each.handler, each)
        for each in tables[side]
    ]


def both(table: Mapping[str, Method]) -> list[Method]:
    """The methods of a table, each before the notification of its name."""
    return [each for method in table.values() for each in (method, method.notification) if each is not None]


def _overrides(kind: type[Passing], name: str) -> bool:
    found: Any = kind
    return overrides(found, name) and getattr(kind, name) is not getattr(Passing, name, None)


# --- A message that is overridden ------------------------------------------------------------------------------------


class Override:
    """A message that a method of the proxy handles, and the response to its latest call of the same method."""

    def __init__(self, hop: NeighbourConnection, message: Passed, route: Route) -> None:
        self.hop = hop
        self.message = message
        self.route = route
        self.response: Passed | None = None
        self.agreed: Any = UNSET  # the result of the call that has changed the version
        self.waiting = 0
        """The calls of the handler whose response it does not have."""
        self._held: asyncio.Future[None] | None = None
        self._is_over = False

    async def call(self, proxy: Any, target: NeighbourConnection, on_drop: OnDrop | None) -> Any:
        """Call the method of the proxy; returns the result as JSON, None for a notification."""
        message, route = self.message, self.route
        if route.record is None:
            return await call_handler(proxy, route.name, Call(self, target))
        takes, gives = route.record.takes, route.record.gives
        raw: Any = {} if message.value is None and takes.is_object else message.value
        try:
            params = reporting_drops(takes.decode, raw, on_drop or (lambda _: None))
        except DecodeError as error:
            raise UnfitParams(error) from error
        result = await call_handler(proxy, route.name, params)
        if message.kind == "notification":
            return None
        try:
            return gives.encode(result)
        except MISFITS as error:
            from ..mistakes import in_result

            raise in_result(proxy, route.record, result, error, name=route.name) from error

    def hold(self) -> Awaitable[None] | None:
        """Return what the read loop has to await after the response to a call; None if it may go on.

        A handler that has made several calls at once may wait for all of them, which have to be read.
        """
        if self._is_over or self.waiting > 1:
            return None
        self._held = self._held or asyncio.get_running_loop().create_future()
        return self._wait(self._held)

    async def _wait(self, held: asyncio.Future[None]) -> None:
        await asyncio.wait({held}, timeout=_HOLD_SECONDS)
        if not held.done():
            text = "the handler of %.200s still runs, %.0f seconds after the response to its call: messages go on"
            logger.warning(text, self.message.method, _HOLD_SECONDS)

    def release(self) -> None:
        """Let the messages go on that wait for the handler."""
        if self._held is not None and not self._held.done():
            self._held.set_result(None)
        self._held = None

    def end(self, _: object = None) -> None:
        """Note that the handler has returned, and that its response was sent."""
        self._is_over = True
        self.release()

    def original(self, message: Message, target: NeighbourConnection) -> Passed | None:
        """The message that came, if `message` hands it on unchanged."""
        if message.kind in ("request", "notification"):
            record, source = self.route.record, self.message
            fits = self.hop.side != target.side and source.kind == message.kind and source.method == message.method
            part = None if record is None else record.takes
        else:
            found = self.response
            if found is None or found.kind != message.kind:
                return None
            source, part, fits = found, self._result_part(message.kind), self.hop is target
        return source if fits and _is_same(source, message.value, part) else None

    def _result_part(self, kind: Kind) -> Payload | None:
        return self.route.record.gives if self.route.record is not None and kind == "result" else None


override_of: ContextVar[Override | None] = ContextVar("override_of", default=None)
"""The one in whose handler the code runs; tasks that the handler starts inherit it."""


def _is_same(source: Passed, value: Any, part: Payload | None) -> bool:
    """True if `value` is what the types of the package make of the text of `source`."""
    text = source.payload
    try:
        raw = None if text is None else scan(text)[0]  # the handler may have changed what was parsed before
        if source.kind == "error":
            raw = RequestError.from_json(raw).to_json()
        elif part is not None:
            raw = part.encode(part.decode({} if raw is None and part.is_object else raw))
        return dumps_number(raw) == dumps_number(value)
    except (DecodeError, TypeError, ValueError):
        return False
