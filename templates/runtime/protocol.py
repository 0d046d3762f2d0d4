"""Records that describe a protocol: its methods, and the rules that differ between versions. `methods` has the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Cancellation(NamedTuple):
    """The notification `method` cancels a request; the property `key` of its params is the id of the request."""

    method: str
    key: str


class Unsupported(NamedTuple):
    """The error for an unsupported version; `requested` and `supported` name properties of its `data`."""

    code: int
    requested: str
    supported: str


class Negotiation(NamedTuple):
    """The request `method` negotiates the version, which is the property `version` of its params.

    `least` holds the smallest valid value of each other required property: params for a later version may lack them.
    Without `unsupported`, a request for an earlier version is answered with this version.
    """

    method: str
    version: str
    least: Mapping[str, Any]
    unsupported: Unsupported | None = None


class ProtocolInfo(NamedTuple):
    """The rules of one version of the protocol.

    `null_ids` allows null as the id of a request. Without `cancellation`, requests cannot be cancelled; without
    `negotiation`, any message may come first.
    """

    version: int
    null_ids: bool
    cancellation: Cancellation | None = None
    negotiation: Negotiation | None = None


class Gate(NamedTuple):
    """The capability that the peer must advertise before a method may be called.

    It is open if one of `paths`, wire names below the message `advertised_in`, leads to `true`, to an object (even an
    empty one) or to a non-empty array. `says_yes` is the smallest value that opens it; None where neither `true` nor
    `{}` does, as the value is an array or needs properties.
    """

    advertised_in: Any
    paths: tuple[tuple[str, ...], ...]
    says_yes: Literal["true", "{}"] | None


class Method(NamedTuple):
    """A method: its name on the wire, which side handles it and how.

    `params` and `result` are types of this package; `result` is None for a notification. `notification` is the second
    half of a method that exists both as a request and as a notification.
    """

    name: str
    handler: str
    kind: Literal["request", "notification"]
    params: Any
    result: Any
    side: str
    origin: str
    capability: Gate | None = None
    notification: Method | None = None
