"""The choice of a version of the protocol: by this side among several handlers, or by the peer among those offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...errors import InvalidRequestError
from .._decode import DecodeError, at, excerpt, integer, json_object
from ..capabilities import Capabilities
from ..connection import Connection, Factory, make_handler
from ..dispatch import ConnectionClosed, Handler, Peer, UnfitParams, unsupported_error
from ..message import Message
from ..records import Negotiation, ProtocolInfo


class Connected(Peer, Protocol):
    """A connection: a `Peer` with a version and capabilities."""

    @property
    def version(self) -> int:
        """The version of the handler in effect."""
        ...

    @property
    def announced(self) -> Mapping[str, Any] | None:
        """The properties by which the peer has introduced itself, as JSON; None before."""
        ...

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        ...


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
        self._how = _negotiation(protocols, self._lowest)
        self.method = self._how.method
        self.null_ids = any(info.null_ids for info in self._protocols.values())
        self._by_version: dict[int, Handler] = {}
        self.made: list[Handler] = []

    def handler_for(self, message: Message) -> Handler:
        """The handler for the version that a request asks for, or the highest below it. Raises `RequestError`."""
        return self._handler_of(self._version_in(message.value, has_null_id=message.id is None))

    def _handler_of(self, version: int) -> Handler:
        """The handler for a version. Raises what its factory raises, and `TypeError` if it is for another version."""
        if version not in self._by_version:
            handler: Handler = make_handler(self._factories[version], self._stub(version))
            self.made.append(handler)
            check_version(handler, version)
            self._by_version[version] = handler
        return self._by_version[version]

    def _version_in(self, params: Any, *, has_null_id: bool) -> int:
        """The version that a request asks for, or the highest below it.

        Raises `RequestError` for params without a version, and for a version that no handler is for.
        """
        try:
            requested = at(json_object({} if params is None else params), self._how.version, integer)
        except DecodeError as error:
            raise UnfitParams(error) from error
        version = max((each for each in self._protocols if each <= requested), default=self._lowest)
        unsupported = self._how.unsupported
        if 0 <= requested < version and unsupported is not None:  # the decoder refuses a negative number
            raise unsupported_error(unsupported, requested, list(self._protocols))
        if has_null_id and not self._protocols[version].null_ids:  # another version would allow it
            raise InvalidRequestError("`id` must be a string or an integer")
        return version


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

    @property
    def announced(self) -> Mapping[str, Any] | None:
        """The properties by which the peer has introduced itself, as JSON; None before, and in another version."""
        return self._peer.announced if self._peer.version == self._version else None

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


# --- Starting --------------------------------------------------------------------------------------------------------


def serve_candidates(
    connection: Connection,
    protocols: Mapping[int, ProtocolInfo],
    factories: Mapping[int, Factory],
    make_stub: Callable[[int, Peer], Any],
) -> None:
    """Start a connection whose peer chooses the version."""

    def stub(version: int) -> Any:
        return make_stub(version, VersionPeer(connection, version))

    connection.start(Candidates(protocols, factories, stub))


async def negotiate(
    connection: Connection,
    protocols: Mapping[int, ProtocolInfo],
    *,
    factories: Mapping[int, Factory],
    params: Mapping[int, Any],
    make_stub: Callable[[int, Peer], Any],
) -> tuple[Handler, Any]:
    """Start a connection by letting the peer choose the version; returns the handler, and the stub for it."""
    stubs = {version: make_stub(version, VersionPeer(connection, version)) for version in params}
    proposal = Proposal(protocols, {version: stubs[version].CODEC.encode(params[version]) for version in params})

    def choose(result: Any) -> Handler:
        version = proposal.version_in(result)
        handler: Handler = make_handler(factories[version], stubs[version])
        check_version(handler, version)
        return handler

    method = proposal.negotiation.method
    handler, capabilities, result = await connection.start_with(method, proposal.params, choose)
    version = handler.PROTOCOL.version
    stub, again = stubs[version], make_stub(version, Answered(capabilities, result))
    stub.negotiated = await getattr(again, handler.PEER_METHODS[method].handler)(params[version])
    return handler, stub
