"""Routes messages between a handler and any transport: raw JSON in, raw JSON out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from ..errors import InvalidParamsError, MethodNotFoundError, RequestError
from ._base import MISFITS, UNSET, Record
from ._decode import DecodeError, path_text
from ._lenient import Drop, drop, drops_belong_to, reporting_drops
from .peer_kind import PeerKind
from .places import caller
from .records import GatedValues, Method, Negotiation, Payload, ProtocolInfo, Unsupported, opens, value_at

__all__ = ["ConnectionClosed", "Peer", "dispatch_notification", "dispatch_request"]

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
R = TypeVar("R")
OnDrop = Callable[[Drop], object]
OnInvalid = Callable[[str, Any, DecodeError], object]


class UnfitParams(InvalidParamsError):
    """The params of a message do not fit their type, so no handler was called; `reason` says where and why."""

    def __init__(self, reason: DecodeError) -> None:
        data = {"path": path_text(reason.path), "expected": reason.expected, "found": reason.found}
        super().__init__(str(reason), data=data)
        self.reason = reason


class ConnectionClosed(ConnectionError):
    """The connection has ended, or could not be made: pending requests get no response.

    `is_permanent` is true if connecting again ends in the same way until somebody changes something, as for a wrong
    token. `status` is that of the HTTP response with which a server has refused.

    If the peer is a process that was started here, it also has `exit_code`, and the last lines that were written to
    `stderr`, and to `stdout` without being messages.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        is_permanent: bool = False,
        exit_code: int | None = None,
        stderr: tuple[str, ...] = (),
        stdout: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_permanent = is_permanent
        self.exit_code = exit_code
        self.stderr = stderr
        self.stdout = stdout

    def again(self) -> ConnectionClosed:
        """A copy, to be raised elsewhere."""
        return copy(self)


class Peer(Protocol):
    """Sends the messages of the stubs: anything that carries JSON-RPC requests and notifications.

    `request` returns the `result` of the response, or raises `RequestError.from_json(error)` for its `error`.
    """

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result."""
        ...

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        ...


class Codec(Record):
    """The functions of `codec.py` for one version of the protocol."""

    decode: Callable[..., Any]
    encode: Callable[[Any], Any]
    reflection: Callable[[], Any]


class Handler:
    """The base of `Agent` and `Client`: the tables of methods, and handlers for extension methods."""

    PROTOCOL: ClassVar[ProtocolInfo] = ProtocolInfo(version=0, null_ids=True)
    CODEC: ClassVar[Codec]
    METHODS: ClassVar[Mapping[str, Method]] = {}
    PEER_METHODS: ClassVar[Mapping[str, Method]] = {}
    REQUESTS: ClassVar[Mapping[str, Method]] = {}
    NOTIFICATIONS: ClassVar[Mapping[str, Method]] = {}
    GATED_VALUES: ClassVar[tuple[GatedValues, ...]] = ()
    ADVERTISES: ClassVar[tuple[str, ...]] = ()
    """Capabilities that do not follow from methods, such as `promptCapabilities.image`: `advertise` adds those of all
    classes that a class extends."""

    def __new__(cls, *stub: Any, **named: Any) -> Self:
        """Make an instance. Raises `TypeError` with a hint for `MyAgent()`, where `MyAgent` itself should be passed."""
        if not stub and not named and not overrides(cls, "__init__"):
            raise TypeError(
                f"{cls.__name__}() lacks the stub of its peer: pass the class {cls.__name__} without calling it"
            )
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (None,)  # so that `copy` and `pickle` can make an instance

    async def ext_method(self, method: str, params: Any) -> Any:
        """Handle a request whose name starts with `_` and that has no handler of its own, with raw JSON."""
        raise MethodNotFoundError(f"{method:.200}")

    async def ext_notification(self, method: str, params: Any) -> None:
        """The same for a notification; ignored by default."""

    async def fallback_request(self, method: str, params: Any) -> Any:
        """Handle a request that no other handler takes, with raw JSON: its method is unknown, or not overridden."""
        raise MethodNotFoundError(f"{method:.200}")

    async def fallback_notification(self, method: str, params: Any) -> None:
        """Handle a notification that no other handler takes, with raw JSON; ignored by default."""

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Called once, after all handlers have finished. Stop background work here."""


def overrides(handler: Handler | type[Handler], name: str) -> bool:
    """True if the class of `handler` overrides the generated method `name`."""
    kind = handler if isinstance(handler, type) else type(handler)
    owner = next((base for base in kind.__mro__ if name in vars(base)), None)
    return owner is not None and "METHODS" not in vars(owner)


def is_of_package(kind: type) -> bool:
    """True for a class of this package: it is generated, or one of its helpers."""
    return kind.__module__.startswith(__name__.rpartition("_runtime.")[0])


class Remote:
    """A stub: its methods call those of the peer. `on_drop` is called for each value that decoding a result drops."""

    CODEC: ClassVar[Codec]
    METHODS: ClassVar[Mapping[str, Method]] = {}
    CAPABILITIES: ClassVar[tuple[str, Any] | None] = None
    """The property in which the peer says what it can do, and its type; None if the schema has none."""

    def __init__(self, peer: Peer, *, on_drop: OnDrop | None = None) -> None:
        self._peer = peer
        self._on_drop = on_drop

    async def ext_method(self, method: str, params: Any) -> Any:
        """Call an extension method; its name is sent as it is, and should start with `_`."""
        check_name(method)
        return await self._peer.request(method, params)

    async def ext_notification(self, method: str, params: Any) -> None:
        """Send an extension notification; its name is sent as it is, and should start with `_`."""
        check_name(method)
        await self._peer.notify(method, params)

    def supports(self, name: str) -> bool:
        """True if the peer can do something: a method of this class, or a capability.

        A method is named as on the wire or as in Python. The peer has advertised the capability that it needs, or it
        needs none. A capability is named by its path in `capabilities`, on the wire or in Python, as in error messages
        or without their first part: `promptCapabilities.image`. There, the peer has `true`, an object, or an array that
        is not empty.

        False for what only another version of the protocol has. True for an extension that the schema does not have,
        which is never refused here: what the peer has of these is in its `_meta`. Raises `ValueError` for other names.
        """
        found: str | tuple[str, ...] | None = name
        if name.__class__ is not str or name not in self.METHODS:
            from .names import meant_by

            found = meant_by(type(self), name)
        if isinstance(found, tuple):
            return opens(value_at(self._announced(), found))
        supports: Callable[[str], bool] | None = getattr(self._peer, "supports", None)
        return found is not None and (supports is None or supports(found))

    def _announced(self) -> Mapping[str, Any] | None:
        """How the peer introduced itself, as JSON."""
        found: Mapping[str, Any] | None = getattr(self._peer, "announced", None)
        return found

    def _said(self, name: str, kind: type[T]) -> T | None:
        """A property by which the peer introduced itself; None before. What does not fit is as if it were absent."""
        if (said := self._announced()) is not None:
            values: tuple[Any, ...] = (said.get(name), {})
            for raw in values:
                with suppress(DecodeError):
                    found: T = self.CODEC.decode(kind, raw)
                    return found
        return None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from .names import no_attribute

            raise no_attribute(self, name)

    @property
    def peer_kind(self) -> PeerKind:
        """What the peer is, as its transport says: "process", "network" (anyone who can connect), or "conductor"."""
        kind: PeerKind = getattr(self._peer, "peer_kind", "network")
        return kind

    async def _call(self, method: str, params: Any) -> R:  # pyright: ignore[reportInvalidTypeVarUse]
        """Send a request. The annotation of the caller says what the result is."""
        record = self.METHODS[method]
        try:
            raw = record.takes.encode(params)
        except MISFITS as error:
            raise self._wrong(record, params, error) from error
        result = await self._peer.request(method, raw)
        try:
            found: R = _decoded(record.gives, result, self._on_drop)
        except DecodeError as error:
            error.is_from_peer = True
            raise
        return found

    def _notify(self, method: str, params: Any) -> Awaitable[None]:
        record = self.METHODS[method]
        record = record.notification or record
        try:
            raw = record.takes.encode(params)
        except MISFITS as error:
            raise self._wrong(record, params, error) from error
        return self._peer.notify(method, raw)

    def _wrong(self, record: Method, params: Any, error: Exception) -> Exception:
        from .mistakes import in_call

        return in_call(type(self), record, params, error)


def check_name(method: object) -> None:
    """Raise `TypeError` for what is no name of a method: the peer could not say which request it refuses."""
    if not isinstance(method, str):
        from .mistakes import shown

        raise TypeError(f"the method{caller()} is {shown(method)}; expected its name")


async def dispatch_request(handler: Handler, method: str, params: Any, *, on_drop: OnDrop | None = None) -> Any:
    """Call the handler of a request; `params` and the result are raw JSON, None stands for absent params.

    Raises `RequestError`: that of the handler, "method not found", or "invalid params" with the path in `data`. Raises
    `TypeError` for a handler that is no coroutine of one argument, and for a result that is not of its type.
    """
    record = handler.REQUESTS.get(method)
    if record is None or (
        type(handler).fallback_request is not Handler.fallback_request and not overrides(handler, record.handler)
    ):
        name = "ext_method" if record is None and method.startswith("_") else "fallback_request"
        return await call_handler(handler, name, method, params)
    found: Any = UNSET
    try:  # `call_handler`, inlined: each request comes here
        found = getattr(handler, record.handler)(_params(record, params, on_drop))
        result = await found
    except Exception as error:
        _explain(handler, record.handler, found, error)
        raise
    try:
        return record.gives.encode(result)
    except MISFITS as error:
        from .mistakes import in_result

        raise in_result(handler, record, result, error, name=record.handler) from error


async def dispatch_notification(handler: Handler, method: str, params: Any, *, on_drop: OnDrop | None = None) -> None:
    """Call the handler of a notification; an unknown one is ignored, as is one that cancels a request.

    Raises `UnfitParams` if the params do not fit: log it, as a notification has no response. Raises `TypeError` for a
    handler that is no coroutine of one argument.
    """
    record = handler.NOTIFICATIONS.get(method)
    if record is None or (
        type(handler).fallback_notification is not Handler.fallback_notification
        and not overrides(handler, record.handler)
    ):
        cancellation = handler.PROTOCOL.cancellation
        if cancellation is None or method != cancellation.method:
            name = "ext_notification" if record is None and method.startswith("_") else "fallback_notification"
            await call_handler(handler, name, method, params)
        return
    found: Any = UNSET
    try:  # `call_handler`, inlined: each request comes here
        found = getattr(handler, record.handler)(_params(record, params, on_drop))
        await found
    except Exception as error:
        _explain(handler, record.handler, found, error)
        raise


async def call_handler(handler: Handler, name: str, *values: Any) -> Any:
    """Call the method `name` of a handler. Raises `TypeError` if it has another signature, or is not `async`."""
    found: Any = UNSET
    try:
        found = getattr(handler, name)(*values)
        return await found
    except Exception as error:
        _explain(handler, name, found, error)
        raise


def _explain(handler: Handler, name: str, found: Any, error: Exception) -> None:
    """Raise a clearer error than `error` if there is one. `found` is what the method `name` returned, or `UNSET`."""
    if isinstance(error, (RequestError, OSError)):  # they say what is wrong, and are no mistakes of the code
        return
    from .mistakes import in_handler

    mistake = in_handler(handler, name, found, error)
    if mistake is not None:
        raise mistake from error


def _params(record: Method, params: Any, on_drop: OnDrop | None) -> Any:
    try:
        return _decoded(record.takes, params, on_drop)
    except DecodeError as error:
        raise UnfitParams(error) from error


def _decoded(part: Payload, raw: Any, on_drop: OnDrop | None) -> Any:
    if raw is None and part.is_object:
        raw = {}
    if on_drop is not None:
        return reporting_drops(part.decode, raw, on_drop)
    try:  # `reporting_drops`, inlined: each message comes here
        return part.decode(raw)
    except DecodeError as error:
        error.raw = raw
        raise


# --- Negotiation -----------------------------------------------------------------------------------------------------


def negotiated(protocol: ProtocolInfo, decode: Callable[[Any], T]) -> Callable[[Any], T]:
    """A decoder for the params of the request that negotiates the version; `decode` reads those for this version.

    In params for a later version, properties that do not fit this version are ignored. An earlier version raises the
    error that the protocol has for it; without such an error, it is read as this version.
    """
    how = protocol.negotiation
    return decode if how is None else partial(_decode_negotiated, decode, how, protocol.version)


def _decode_negotiated(decode: Callable[[Any], T], how: Negotiation, supported: int, raw: Any) -> T:
    params: Any = raw
    requested = params.get(how.version) if isinstance(raw, dict) else None
    if type(requested) is not int or requested == supported:
        return decode(raw)
    decode({**how.least, how.version: requested})  # raises for a number that is no version
    if requested > supported:
        return _decode_later(decode, params, how.least)
    if how.unsupported is not None:
        raise unsupported_error(how.unsupported, requested, [supported])
    return decode(raw)


def _decode_later(decode: Callable[[Any], T], raw: dict[str, Any], least: Mapping[str, Any]) -> T:
    """Decode `raw` without the properties that do not fit; required ones get their `least` value."""
    kept, changed = dict(raw), set[str]()
    while True:
        try:
            result = decode(kept)
            drops_belong_to(raw, kept)
            return result
        except DecodeError as error:
            name = str(error.path[0]) if error.path else ""
            if name in changed or name not in {*raw, *least}:
                raise
            drop(raw, name, error)
        changed.add(name)
        kept.pop(name, None)
        if name in least:
            kept[name] = least[name]


def unsupported_error(error: Unsupported, requested: int, supported: list[int]) -> RequestError:
    """The error of the protocol for a version that this side does not have."""
    data = {error.requested: requested, error.supported: supported}
    message = f"Unsupported protocol version: {requested}"
    return RequestError.from_json({"code": error.code, "message": message, "data": data})
