"""Run the agent on stdin and stdout, in the version of the protocol that the editor chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .acp import run_agent

if TYPE_CHECKING:
    from .acp import v1, v2


# a connection uses one version, and the modules of the other are never imported


def agent_v1(client: v1.RemoteClient) -> v1.Agent:
    """The agent for an editor that has chosen version 1."""
    from .agent_v1 import AgentV1

    return AgentV1(client)


def agent_v2(client: v2.RemoteClient) -> v2.Agent:
    """The agent for an editor that has chosen version 2."""
    from .agent_v2 import AgentV2

    return AgentV2(client)


def main() -> None:
    """Run until the editor closes the connection."""
    run_agent({1: agent_v1, 2: agent_v2})


if __name__ == "__main__":
    main()
