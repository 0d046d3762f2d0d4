"""The version of a connection: this side chooses it among several handlers, or learns which one the peer has chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ._decode import DecodeError, at, excerpt, integer, json_object
from .capabilities import Capabilities
from .checks import misnamed_handlers
from .dispatch import ConnectionClosed, Handler, Peer, UnfitParams, overrides, unsupported_error
from .errors import InvalidRequestError
from .log import logger
from .protocol import Negotiation, ProtocolInfo

Factory = Callable[[Any], Handler]


class Connected(Peer, Protocol):
    """A connection: a `Peer` with a version and capabilities."""

    @property
    def version(self) -> int:
        """The version of the handler in effect."""
        ...

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        ...


def by_version(factory: Any) -> Mapping[int, Factory] | None:
    """The mapping of factories by version, if `factory` is one."""
    found: Any = factory
    return found if isinstance(factory, Mapping) else None


def check_factory(factory: Any, role: str, other: Any) -> None:
    """Raise `TypeError` if `factory` cannot make handlers; `other` is the argument after it."""
    factories = by_version(factory)
    for each in (factory,) if factories is None else factories.values():
        if isinstance(each, Handler):
            name = type(each).__name__
            raise TypeError(f"found an instance of {name}: pass the class {name}, which is called with the stub")
        if not callable(each):
            hint = f": the first argument is {other.__name__}" if isinstance(other, type) else ""
            raise TypeError(f"expected a subclass of {role}, or a function that makes one, found {excerpt(each)}{hint}")


def make_handler(factory: Factory, stub: Any) -> Any:
    """Call a factory, and return its `Handler`. Raises `TypeError` if it makes no handler that goes with `stub`."""
    found: Any = factory(stub)
    role = type(stub).__module__.rpartition(".")[2]  # the same for each version
    generated = (base.__module__ for base in type(found).__mro__ if "METHODS" in vars(base))
    if any(module.rpartition(".")[2] == role for module in generated):
        return found
    from .mistakes import hint_for, shown

    name = getattr(factory, "__qualname__", type(factory).__name__).rpartition("<locals>.")[2]
    hint = hint_for(found) or f": it must extend the class that goes with {type(stub).__name__}"
    raise TypeError(f"{name} made {shown(found)}{hint}")


def check_factories(factories: Mapping[int, Factory], protocols: Mapping[int, ProtocolInfo]) -> None:
    """Check factories by version.

    Raises `ValueError` for other versions than `protocols`, and `TypeError` for a class that is not of its version.
    """
    if not factories:
        raise ValueError("a mapping of factories must name at least one version of the protocol")
    for version, factory in factories.items():
        if version not in protocols:
            raise ValueError(f"this package has no version {version!r} of the protocol: it has {_listed(protocols)}")
        if isinstance(factory, type):
            check_version(factory, version)


def check_version(handler: Handler | type[Any], version: int) -> None:
    """Raise `TypeError` if `handler` is not for this version of the protocol."""
    kind = handler if isinstance(handler, type) else type(handler)
    info = getattr(kind, "PROTOCOL", None)
    found = info.version if isinstance(info, ProtocolInfo) else None
    if found != version:
        raise TypeError(f"{kind.__name__} does not handle version {version} of the protocol, but {found}")


def version_of(factory: Factory, protocols: Mapping[int, ProtocolInfo]) -> int:
    """The version of what a factory makes. Raises `TypeError` if it is not a class, and there are several versions."""
    if len(protocols) == 1:
        return max(protocols)
    info: object = getattr(factory, "PROTOCOL", None)
    if isinstance(info, ProtocolInfo):
        return info.version
    raise TypeError(f"the version of {factory!r} is not known: name it, as in {{{max(protocols)}: factory}}")


def _listed(versions: Mapping[int, Any]) -> str:
    return " and ".join(map(str, sorted(versions)))


def _negotiation(protocols: Mapping[int, ProtocolInfo], version: int) -> Negotiation:
    how = protocols[version].negotiation
    if how is None:
        raise TypeError(f"version {version} of the protocol does not negotiate its version: name one factory")
    return how


class Candidates:
    """The handlers of this side by version, each made when it is first needed. The peer's request chooses one."""

    def __init__(
        self, protocols: Mapping[int, ProtocolInfo], factories: Mapping[int, Factory], stub: Callable[[int], Any]
    ) -> None:
        check_factories(factories, protocols)
        self._protocols = {version: protocols[version] for version in sorted(factories)}
        self._factories = factories
        self._stub = stub
        self._lowest = min(factories)
        self.negotiation = _negotiation(protocols, self._lowest)
        self.null_ids = any(info.null_ids for info in self._protocols.values())
        self._by_version: dict[int, Handler] = {}
        self.made: list[Handler] = []

    def handler_for(self, version: int) -> Handler:
        """The handler for a version. Raises what its factory raises, and `TypeError` if it is for another version."""
        if version not in self._by_version:
            handler: Handler = make_handler(self._factories[version], self._stub(version))
            self.made.append(handler)
            check_version(handler, version)
            self._by_version[version] = handler
        return self._by_version[version]

    def version_in(self, params: Any, *, has_null_id: bool) -> int:
        """The version that a request asks for, or the highest below it.

        Raises `RequestError` for params without a version, and for a version that cannot be met.
        """
        try:
            requested = at(json_object({} if params is None else params), self.negotiation.version, integer)
        except DecodeError as error:
            raise UnfitParams(error) from error
        version = max((each for each in self._protocols if each <= requested), default=self._lowest)
        unsupported = self.negotiation.unsupported
        if 0 <= requested < version and unsupported is not None:  # the decoder refuses a negative number
            raise unsupported_error(unsupported, requested, list(self._protocols))
        if has_null_id and not self._protocols[version].null_ids:  # another version would allow it
            raise InvalidRequestError("Invalid request: `id` must be a string or an integer")
        return version


class LocalSide:
    """This side of a connection: its handler, and the capabilities that both sides have advertised.

    With `candidates`, the handler is known when the peer has chosen the version, and may change until the request that
    does so has succeeded.
    """

    def __init__(self, *, is_checked: bool) -> None:
        self._is_checked = is_checked
        self._is_settled = True
        self.candidates: Candidates | None = None
        self.use(Handler())

    def use(self, handler: Handler) -> None:
        """Let `handler` handle the messages of the peer from now on."""
        self.handler = handler
        self.capabilities = Capabilities(handler, is_checked=self._is_checked)
        self.cancellation = handler.PROTOCOL.cancellation
        for name, meant in misnamed_handlers(type(handler)):
            hint = f"is it meant to be {meant}? If not, begin its name with _"
            logger.warning("%s.%s handles nothing: %s", type(handler).__name__, name, hint)

    def let_peer_choose(self, candidates: Candidates) -> None:
        """Let the requests of the peer choose the handler, until one of them has succeeded."""
        self.candidates = candidates
        self._is_settled = False

    def choose(self, params: Any, *, has_null_id: bool) -> None:
        """Use the handler that a request chooses. Raises `RequestError` if there is none."""
        if self.candidates is not None and not self._is_settled:
            handler = self.candidates.handler_for(self.candidates.version_in(params, has_null_id=has_null_id))
            if handler is not self.handler:
                self.use(handler)

    def settle(self) -> None:
        """Keep the handler: the request that has chosen it has succeeded."""
        self._is_settled = True

    def check_version(self, method: str, result: Any) -> None:
        """Put the version of the handler in the result that negotiates it, and log where the handler had another."""
        protocol, answer = self.handler.PROTOCOL, result
        how = protocol.negotiation
        if how is None or method != how.method or not isinstance(result, dict):
            return
        if answer.get(how.version) != protocol.version:
            text = "%s answered %s with version %s, and handles version %d, which is sent"
            name, found = type(self.handler).__name__, excerpt(answer.get(how.version))
            logger.error(text, name, method, found, protocol.version)
            answer[how.version] = protocol.version

    @property
    def null_ids(self) -> bool:
        """True if the id of a request may be null."""
        if self.candidates is not None and not self._is_settled:
            return self.candidates.null_ids
        return self.handler.PROTOCOL.null_ids

    @property
    def handshake(self) -> str | None:
        """The request of the peer that must succeed first, if any."""
        if self.candidates is not None:
            return self.candidates.negotiation.method
        how = self.handler.PROTOCOL.negotiation
        return how.method if how is not None and self._is_checked and not self._lacks(how.method) else None

    def _lacks(self, method: str) -> bool:
        """True if the class of the handler leaves out the request `method`."""
        route, kind = self.handler.REQUESTS.get(method), type(self.handler)
        return route is None or not (overrides(kind, route.handler) or overrides(kind, "fallback_request"))

    def log_refused(self, method: str) -> None:
        """Log that this side has refused a request if that is the one which each peer sends first."""
        how, name = self.handler.PROTOCOL.negotiation, type(self.handler).__name__
        if how is not None and method == how.method and self._lacks(method):
            text = "%s does not override %s, which every peer calls first, so that no peer can use it"
            logger.error(text, name, self.handler.METHODS[method].handler)

    @property
    def handlers(self) -> list[Handler]:
        """All handlers that were made."""
        return [self.handler] if self.candidates is None else self.candidates.made


class VersionPeer:
    """The `Peer` of the stub for one of several versions: it can be used while that version is in effect."""

    def __init__(self, peer: Connected, version: int) -> None:
        self._peer = peer
        self._version = version

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result."""
        self._check()
        return await self._peer.request(method, params)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._check()
        await self._peer.notify(method, params)

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        return self._peer.version == self._version and self._peer.supports(method)

    def _check(self) -> None:
        if self._peer.version != self._version:
            raise ConnectionClosed(f"the connection has another version of the protocol than {self._version}")


class Proposal:
    """The versions that this side can speak, for a peer that chooses one: the encoded params of each."""

    def __init__(self, protocols: Mapping[int, ProtocolInfo], params: Mapping[int, Any]) -> None:
        self._versions = params
        self._highest = max(params)
        self.negotiation = _negotiation(protocols, self._highest)

    @property
    def params(self) -> dict[str, Any]:
        """The params of all versions side by side: of a property that several have, the highest version's."""
        merged: dict[str, Any] = {}
        for version in sorted(self._versions):
            merged.update(self._versions[version])
        return {**merged, self.negotiation.version: self._highest}

    def version_in(self, result: Any) -> int:
        """The version in the result of the peer. Raises `ConnectionClosed` if it was not offered."""
        found: Any = result
        version: Any = found.get(self.negotiation.version) if isinstance(result, dict) else None
        if type(version) in (int, float) and version in self._versions:
            return int(version)
        offered = _listed(self._versions)
        raise ConnectionClosed(
            f"the agent has chosen version {excerpt(version)} of the protocol; this side offered {offered}",
            is_permanent=True,
        )


class Answered:
    """A `Peer` that replays the result of the negotiation, so that a stub decodes it."""

    def __init__(self, capabilities: Capabilities, result: Any) -> None:
        self._capabilities = capabilities
        self._result = result

    async def request(self, method: str, params: Any) -> Any:
        """The result of the request; what both sides advertise in it counts from now on."""
        self._capabilities.sent(method, "params", params)
        self._capabilities.received_result(method, self._result)
        return self._result

    async def notify(self, method: str, params: Any) -> None:
        """Nothing is sent."""
