"""The login methods of protocol 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..client import RemoteAgent
from ..decision import explains
from ..types import (
    AuthMethodAgent,
    AuthMethodTerminal,
    ClientAuthCapabilities,
    InitializeRequest,
    LoginAuthRequest,
    TerminalAuthCapabilities,
)

__all__ = ["offer_terminal_login"]


@explains
def offer_terminal_login(message: InitializeRequest) -> InitializeRequest:
    """A copy of the message that says that the client can log in in a terminal."""
    auth = replace(message.capabilities.auth or ClientAuthCapabilities(), terminal=TerminalAuthCapabilities())
    return replace(message, capabilities=replace(message.capabilities, auth=auth))


async def authenticate(agent: RemoteAgent, method: AuthMethodAgent) -> None:
    """Let the agent log in."""
    await agent.auth_login(LoginAuthRequest(method_id=method.method_id))


def terminal_env(method: AuthMethodTerminal) -> Mapping[str, str]:
    """The variables for a login in a terminal."""
    return {each.name: each.value for each in method.env or ()}
