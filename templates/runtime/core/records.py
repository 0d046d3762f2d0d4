"""The records in `methods` and `_details`: what differs between schemas at run time, and which JSON opens a gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from ._base import Record

__all__ = ["Gate", "Method"]


class Cancellation(Record):
    """The notification `method` cancels a request; the property `key` of its params is the id of the request."""

    method: str
    key: str


class Unsupported(Record):
    """The error for an unsupported version; `requested` and `supported` name properties of its `data`."""

    code: int
    requested: str
    supported: str


class Introduction(Record):
    """The properties of a message in which a peer says what it can do, and which program it is, if any."""

    capabilities: str | None = None
    info: str | None = None


class Negotiation(Record):
    """The request `method` negotiates the version, which is the property `version` of its params.

    `least` holds the smallest valid value of each other required property: params for a later version may lack them.
    Without `unsupported`, a request for an earlier version is answered with this version. Its `params` and its `result`
    introduce a peer each.
    """

    method: str
    version: str
    least: Mapping[str, Any]
    params: Introduction = Introduction()
    result: Introduction = Introduction()
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


# --- Gates -----------------------------------------------------------------------------------------------------------


class Gate(Record):
    """The capability that the peer must advertise before a method may be called.

    It is open if one of `paths`, wire names below the message `advertised_in`, leads to `true`, to an object (even an
    empty one) or to a non-empty array. `says_yes` is the smallest value that opens it; None where neither `true` nor
    `{}` does, as the value is an array or needs properties. Items of an array do not count whose property `but[0]` is
    one of `but[1]`.
    """

    advertised_in: Any
    paths: tuple[tuple[str, ...], ...]
    says_yes: Literal["true", "{}"] | None
    but: tuple[str, tuple[str, ...]] | None = None

    def __str__(self) -> str:
        others = "" if self.but is None else f" (other than {' and '.join(self.but[1])})"
        return " or ".join(".".join(path) for path in self.paths) + others


Step: TypeAlias = "str | tuple[str | None, str] | None"
"""The property of this name; or a tag and its text, which is that of the value itself without a tag; or, for None, each
item of an array or a map."""


class GatedValues(Record):
    """Values that may be sent only if the peer has advertised a capability.

    Each of the `places` is the kind and the method of a message, and the steps to the value from the params or the
    result. Null and an empty array say nothing, and need no capability.
    """

    capability: Gate
    places: tuple[tuple[Literal["request", "notification", "result"], str, tuple[Step, ...]], ...]


def is_open(gate: Gate, raw: Any) -> bool:
    """True if the raw JSON of a message opens `gate`."""
    return any(opens(value_at(raw, path), gate.but) for path in gate.paths)


def value_at(raw: Any, path: Sequence[str]) -> Any:
    """The value at a path of property names in raw JSON; None if there is none."""
    value: Any = raw
    for name in path:
        inner: Any = value
        if not isinstance(value, dict):
            return None
        value = inner.get(name)
    return value


def opens(value: Any, but: tuple[str, Sequence[str]] | None = None) -> bool:
    """True for `true`, an object, and an array with an item whose property `but[0]` is none of `but[1]`."""
    found: Any = value
    if isinstance(value, list):
        return any(but is None or value_at(item, but[:1]) not in but[1] for item in found)
    return value is True or isinstance(value, dict)


# --- Methods ---------------------------------------------------------------------------------------------------------


def _as_it_is(value: Any) -> Any:
    return value


class Payload(Record):
    """The params or the result of a method: the type, and the functions for the direction in which this package has it.

    `decode` is set where this side receives it, and `encode` where this side sends it. With `is_object`, absent params
    and a result that is null stand for an empty object.
    """

    type: Any
    decode: Callable[[Any], Any] = _as_it_is
    encode: Callable[[Any], Any] = _as_it_is
    is_object: bool = True


NOTHING: Final = Payload(None, is_object=False)
"""The result of a notification."""


class Method(Record):
    """A method: its name on the wire, its handler, its params and result, and which side handles it.

    `notification` is the second half of a method that exists both as a request and as a notification.
    """

    name: str
    handler: str
    takes: Payload
    gives: Payload = NOTHING
    capability: Gate | None = None
    side: str = ""
    origin: str = ""
    notification: Method | None = None

    @property
    def kind(self) -> Literal["request", "notification"]:
        """The kind of its messages: a request has a response."""
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


# --- Types ------------------------------------------------------------------------------------------------------------


class TypeDetails(Record):
    """What annotations do not say. A property is named by its attribute, or "Class.attribute" where classes differ."""

    base: str = ""  # the base that most classes share, and which is no type itself
    names: Mapping[str, str] = {}  # on the wire, where they are not the attributes in camel case
    strict: Collection[str] = ()  # optional ones that must fit: others are left out where they do not
    lenient: Collection[str] = ()  # required ones that are replaced where they do not fit: others must
    skipping: Collection[str] = ()  # arrays and maps that are read without the items that do not fit
    default_on_null: Collection[str] = ()  # null stands for the default
    nulls: Collection[str] | None = None  # written where they are null: other optional ones are not; by default all are
    omitting: Collection[str] = ()  # not written where they are as by default
    optional: Collection[str] = ()  # constants that may be absent: others are tags
    required: Collection[str] = ()  # those that the class requires, and its base does not
    defaults: Mapping[str, Callable[[], Any]] = {}  # of required ones that are lenient, where they are not empty
    order: Mapping[str, int] = {}  # by class: the place of the property of that base, where it is not the last
    hints: Mapping[str, str] = {}  # annotations with limits, of members of unions, too; and of aliases of unions
    # unions: the tag, the member for other tags or "", and what is tried where the tag does not decide; or nothing
    unions: Mapping[str, tuple[str, ...]] = {}
    members: Mapping[str, tuple[str, ...]] = {}  # where not all are classes: Python shows those of a union inside
    keys: Mapping[str, tuple[str, ...]] = {}  # to try an object as a member; by default, what its class requires
    choices: Collection[str] = ()  # enumerations of one constant
    reporting: Collection[str] = ()  # what tells that the schema does not list a value which it accepts
    rejected: Mapping[str, Callable[[dict[str, Any]], object]] = {}  # by default, known tags where there are other ones
