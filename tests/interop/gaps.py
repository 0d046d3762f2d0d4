"""What the official SDKs lack. A gap that is closed turns its tests red: then take it out of here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.interop.pairs import Setup


@dataclass(frozen=True)
class Gap:
    """A flow that does not work with a peer, and what the failure has to look like."""

    flow: str
    """A regular expression for the whole name of the flow."""
    peer: str
    """A regular expression for the name of the setup, without its transport, and without what follows it if our side
    has both versions."""
    shows: str
    """A regular expression for a part of the failure."""
    reason: str
    transport: str = ".*"
    """A regular expression for the transports."""
    ends: bool = False
    """Whether the connection ends with it."""

    def is_met(self, flow: str, setup: Setup) -> bool:
        """Whether `flow` meets the gap with `setup`."""
        found = (self.flow, flow), (self.peer, setup.without_transport), (self.transport, setup.transport)
        return all(re.fullmatch(pattern, name) for pattern, name in found)


GAPS = (
    Gap(
        "authentication: logout|sessions: session/delete",
        "py-.*",
        "the SDK has no (logout|session/delete)|Method not found",
        "the Python SDK has neither",
    ),
    Gap(
        r"session/update: (notice|compaction_\w+)",
        "py-v1-our_client",
        "union_tag_invalid",
        "the Python SDK is of a release of the schema that lacks these updates, and cannot send them",
    ),
    Gap(
        r"session/update: (notice|compaction_\w+)",
        "py-v1-our_agent",
        r"assert \[\] ==",
        "the same, and drops them when they come in",
    ),
    Gap(
        "session/update: session_info_update clears",
        "py-v1-our_client",
        r"'update': \{'sessionUpdate': '\w+'\}",
        "the Python SDK leaves out what is null when it sends",
    ),
    Gap(
        r"\$/cancel_request: \w+",
        "py-.*",
        "not cancelled",
        "the Python SDK neither sends nor understands it",
    ),
    Gap(
        "sessions: session/(resume|close)",
        "py-v1-our_client",
        "Method not found",
        "the Python SDK's server has no option for what its schema calls unstable",
        transport="websocket|http.",
    ),
    Gap(
        "a session is taken up: session/load",
        "py-v1-our_client",
        "404",
        "the Python SDK's server knows no session but those that it has opened on the connection",
        transport="http.",
    ),
    Gap(
        "a session is taken up: session/resume",
        "py-v1-our_client",
        "404|Method not found",
        "the same, and over WebSocket it has no such method",
        transport="websocket|http.",
    ),
    Gap(
        "a large message",
        "py-v1-our_agent",
        "failure",
        "the Python SDK's client takes no frame above 1 MiB, and has no option for it",
        transport="websocket",
        ends=True,
    ),
    Gap(
        "initialize: version 7",
        "ts-v2-.*",
        "'protocolVersion': 2",
        "the TypeScript SDK makes 2 of every later version: its client sends that, and its agent passes it on",
    ),
)


def gap_of(flow: str, setup: Setup) -> Gap | None:
    """The gap that `flow` meets, if any."""
    found = [gap for gap in GAPS if gap.is_met(flow, setup)]
    assert len(found) <= 1, found
    return found[0] if found else None


@dataclass(frozen=True)
class Difference:
    """A first request that our agent of two versions answers in another way than the TypeScript SDK's router."""

    asked: str
    """The version, as JSON."""
    form: str
    """The form of the params."""
    ours: int
    """The version chosen, or the code of the error."""
    router: int
    reason: str


_NOTHING_BELOW = (
    "no version is at or below 0: our agent answers with its lowest one, as version 1 of the protocol asks for; "
    "the router answers as version 2 does"
)
DIFFERENCES = tuple(
    Difference("0", form, ours=1, router=-32022, reason=_NOTHING_BELOW) for form in ("of v1", "of v2", "of both")
)
