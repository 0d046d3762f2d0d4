"""Records that describe a protocol: its methods, and the rules that differ between versions. `methods` has the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from ._base import Record
from ._decode import anything


class Cancellation(Record):
    """The notification `method` cancels a request; the property `key` of its params is the id of the request."""

    method: str
    key: str


class Unsupported(Record):
    """The error for an unsupported version; `requested` and `supported` name properties of its `data`."""

    code: int
    requested: str
    supported: str


class Negotiation(Record):
    """The request `method` negotiates the version, which is the property `version` of its params.

    `least` holds the smallest valid value of each other required property: params for a later version may lack them.
    Without `unsupported`, a request for an earlier version is answered with this version.
    """

    method: str
    version: str
    least: Mapping[str, Any]
    unsupported: Unsupported | None = None


class ProtocolInfo(Record):
    """The rules of one version of the protocol.

    `null_ids` allows null as the id of a request. Without `cancellation`, requests cannot be cancelled; without
    `negotiation`, any message may come first.
    """

    version: int
    null_ids: bool
    cancellation: Cancellation | None = None
    negotiation: Negotiation | None = None


class Gate(Record):
    """The capability that the peer must advertise before a method may be called.

    It is open if one of `paths`, wire names below the message `advertised_in`, leads to `true`, to an object (even an
    empty one) or to a non-empty array. `says_yes` is the smallest value that opens it; None where neither `true` nor
    `{}` does, as the value is an array or needs properties.
    """

    advertised_in: Any
    paths: tuple[tuple[str, ...], ...]
    says_yes: Literal["true", "{}"] | None


class Part(Record):
    """The params or the result of a method: the type, and the functions for the direction in which this package has it.

    `decode` is that of a side that receives it, `encode` that of one that sends it. With `is_object`, absent params and
    a result that is null stand for an empty object.
    """

    type: Any
    decode: Callable[[Any], Any] = anything
    encode: Callable[[Any], Any] = anything
    is_object: bool = True


NOTHING: Final = Part(None, is_object=False)
"""The result of a notification."""


class Method(Record):
    """A method: its name on the wire, its handler, what it takes and gives, and which side handles it.

    `notification` is the second half of a method that exists both as a request and as a notification.
    """

    name: str
    handler: str
    takes: Part
    gives: Part = NOTHING
    capability: Gate | None = None
    side: str = ""
    origin: str = ""
    notification: Method | None = None

    @property
    def kind(self) -> Literal["request", "notification"]:
        """Whether there is a response."""
        return "notification" if self.gives is NOTHING else "request"

    @property
    def params(self) -> Any:
        """The type of the params."""
        return self.takes.type

    @property
    def result(self) -> Any:
        """The type of the result; None for a notification."""
        return self.gives.type


def methods(side: str, origin: str, *records: Method) -> Mapping[str, Method]:
    """The records by name. `side` and `origin` are those of records that say nothing else.

    A notification with the name of a request becomes the second half of that.
    """
    found: dict[str, Method] = {}
    for record in records:
        whole = record.replaced(side=record.side or side, origin=record.origin or origin)
        first = found.get(record.name)
        found[record.name] = whole if first is None else first.replaced(notification=whole)
    return found


def requests(table: Mapping[str, Method]) -> dict[str, Method]:
    """The requests in `table`."""
    return {name: method for name, method in table.items() if method.kind == "request"}


def notifications(table: Mapping[str, Method]) -> dict[str, Method]:
    """The notifications in `table`, those among them that have the name of a request."""
    halves = {name: method.notification or method for name, method in table.items()}
    return {name: method for name, method in halves.items() if method.kind == "notification"}
