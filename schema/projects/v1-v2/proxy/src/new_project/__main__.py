"""Run the proxy on stdin and stdout, with the agent whose command it gets, in the version that both sides choose."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .acp import run_proxy

if TYPE_CHECKING:
    from .acp import v1, v2


# a connection uses one version, and the modules of the other are never imported


def guard_v1(client: v1.RemoteClient, agent: v1.RemoteAgent) -> v1.Proxy:
    """The proxy for version 1."""
    from .guard_v1 import GuardV1

    return GuardV1(client, agent)


def guard_v2(client: v2.RemoteClient, agent: v2.RemoteAgent) -> v2.Proxy:
    """The proxy for version 2."""
    from .guard_v2 import GuardV2

    return GuardV2(client, agent)


GUARDS: Mapping[int, Callable[..., v1.Proxy | v2.Proxy]] = {1: guard_v1, 2: guard_v2}


def main() -> None:
    """Run until the client closes the connection. Without a command, the proxy waits for a conductor, which has one."""
    run_proxy(GUARDS, sys.argv[1:] or None)


if __name__ == "__main__":
    main()
