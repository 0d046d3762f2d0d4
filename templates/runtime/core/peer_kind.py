"""What the peer of a connection is: a process of this machine, anyone on the network, or a conductor."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Final, Literal, TypeAlias

__all__ = ["PeerKind", "current_peer_kind"]

PeerKind: TypeAlias = Literal["process", "network", "conductor"]
"""The transport knows it, as its attribute `peer_kind`:

* `process`: a process of this machine, which has started this one, or was started by it; or code of this process.
* `network`: anyone who can connect. So is the peer of a transport that does not say what it is.
* `conductor`: a process that has started this one as a proxy.

By default, it decides which MCP servers and envelopes of proxies are taken, and how much an error tells.
"""

PEER_KIND: Final = "ACP_PEER_KIND"
"""The environment variable of an agent that a proxy has started: "network" if it serves a client there."""


class CurrentPeerKind:
    """A context variable: the `PeerKind` of the connection whose message is being handled.

    Where that is not known, as in a thread without the context of a handler, the message may be one of any connection
    that this process has had: it is "network" if there was such a peer, and otherwise "process".
    """

    def __init__(self) -> None:
        self._known = ContextVar[PeerKind]("current_peer_kind")
        self._default: PeerKind = "process"

    def get(self) -> PeerKind:
        """What the peer is."""
        return self._known.get(self._default)

    def set(self, kind: PeerKind) -> Token[PeerKind]:
        """Handle messages of such a peer in this context, and in the tasks that it starts."""
        if kind == "network":
            self._default = kind
        return self._known.set(kind)

    def reset(self, token: Token[PeerKind]) -> None:
        """Undo `set`."""
        self._known.reset(token)


current_peer_kind: Final = CurrentPeerKind()


def peer_kind_of(transport: object) -> PeerKind:
    """What the peer at the other end of a transport is."""
    found: PeerKind = getattr(transport, "peer_kind", "network")
    return found
