"""The login methods of protocol 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..client import RemoteAgent
from ..decision import explains
from ..types import (
    AuthCapabilities,
    AuthenticateRequest,
    AuthMethodAgent,
    AuthMethodId,
    AuthMethodTerminal,
    InitializeRequest,
)

__all__ = ["offer_terminal_login"]


@explains
def offer_terminal_login(message: InitializeRequest) -> InitializeRequest:
    """A copy of the message that says that the client can log in in a terminal."""
    capabilities = message.client_capabilities
    auth = replace(capabilities.auth or AuthCapabilities(), terminal=True)
    return replace(message, client_capabilities=replace(capabilities, auth=auth))


async def authenticate(agent: RemoteAgent, method: AuthMethodAgent) -> None:
    """Let the agent log in."""
    method_id: AuthMethodId = method.id
    await agent.authenticate(AuthenticateRequest(method_id=method_id))


def terminal_env(method: AuthMethodTerminal) -> Mapping[str, str]:
    """The variables for a login in a terminal."""
    return method.env or {}
