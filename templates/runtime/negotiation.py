"""The version of a connection: this side chooses it among several handlers, or learns which one the peer has chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._decode import DecodeError, at, excerpt, integer, json_object
from .capabilities import Capabilities
from .checks import misnamed_handlers
from .dispatch import ConnectionClosed, Handler, UnfitParams, unsupported_error
from .log import logger
from .protocol import Negotiation, ProtocolInfo

Factory = Callable[[Any], Handler]


def by_version(factory: Any) -> Mapping[int, Factory] | None:
    """The mapping of factories by version, if `factory` is one."""
    found: Any = factory
    return found if isinstance(factory, Mapping) else None


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
            _check_version(factory, version)


def _check_version(handler: Handler | type[Any], version: int) -> None:
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
        self.made: dict[int, Handler] = {}

    def choose(self, params: Any) -> Handler:
        """The handler for the version in the params of a request: for this version, or the highest below it.

        Raises `RequestError` for params without a version, and for one that cannot be met.
        """
        version = self._choose(params)
        if version not in self.made:
            handler = self._factories[version](self._stub(version))
            _check_version(handler, version)
            self.made[version] = handler
        return self.made[version]

    def _choose(self, params: Any) -> int:
        try:
            requested = at(json_object({} if params is None else params), self.negotiation.version, integer)
        except DecodeError as error:
            raise UnfitParams(error) from error
        if not_above := [version for version in self._protocols if version <= requested]:
            return max(not_above)
        unsupported = self.negotiation.unsupported
        if unsupported is not None and requested >= 0:  # the decoder refuses a negative number
            raise unsupported_error(unsupported, requested, list(self._protocols))
        return self._lowest


class LocalSide:
    """This side of a connection: its handler, and the capabilities that both sides have advertised.

    With `candidates`, the handler is known when the peer has chosen the version, and may change until the request that
    does so has succeeded.
    """

    def __init__(self, *, is_checked: bool) -> None:
        self._is_checked = is_checked
        self.candidates: Candidates | None = None
        self.use(Handler())

    def use(self, handler: Handler) -> None:
        """Let `handler` handle the messages of the peer from now on."""
        self.handler = handler
        self.capabilities = Capabilities(handler, is_checked=self._is_checked)
        self.cancellation = handler.PROTOCOL.cancellation
        self.null_ids = handler.PROTOCOL.null_ids
        for name, meant in misnamed_handlers(type(handler)):
            hint = f"is it meant to be {meant}? If not, begin its name with _"
            logger.warning("%s.%s handles nothing: %s", type(handler).__name__, name, hint)

    def offer(self, candidates: Candidates) -> None:
        """Let the peer choose the handler."""
        self.candidates = candidates
        self.null_ids = candidates.null_ids

    def choose(self, params: Any) -> None:
        """Use the handler that the params ask for. Raises `RequestError` if there is none."""
        if self.candidates is not None:
            handler = self.candidates.choose(params)
            if handler is not self.handler:
                self.use(handler)

    @property
    def handshake(self) -> str | None:
        """The request of the peer that must succeed first, if any."""
        if self.candidates is not None:
            return self.candidates.negotiation.method
        how = self.handler.PROTOCOL.negotiation
        return how.method if how is not None and self._is_checked and how.method in self.handler.REQUESTS else None

    @property
    def handlers(self) -> list[Handler]:
        """All handlers that were made."""
        return [self.handler] if self.candidates is None else list(self.candidates.made.values())


class Offer:
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

    def chosen(self, result: Any) -> int:
        """The version in the result of the peer. Raises `ConnectionClosed` if it was not offered."""
        found: Any = result
        version = found.get(self.negotiation.version) if isinstance(result, dict) else None
        if type(version) is not int or version not in self._versions:
            offered = _listed(self._versions)
            raise ConnectionClosed(
                f"the agent has chosen version {excerpt(version)} of the protocol; this side offered {offered}"
            )
        return version


class Answered:
    """A `Peer` that has answered a request already: the one that negotiated the version."""

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
