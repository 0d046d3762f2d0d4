"""How a session is opened again, and gets its options back, for protocol 2."""

from __future__ import annotations

from typing import Final, Literal

from ..client import RemoteAgent
from ..types import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SetSessionConfigOptionRequest,
    SetSessionConfigOptionRequestBoolean,
    SetSessionConfigOptionRequestId,
)
from .session_state import SessionState

__all__: list[str] = []

INTERRUPTED: Final = "cancelled"
"""The status of tool calls that nobody will end."""


def reopening_ways(agent: RemoteAgent) -> list[Literal["resume", "load"]]:
    """What the agent has to open a session again: it resumes with a replay, or without."""
    return ["resume", "load"] if agent.supports("session/resume") else []


class SessionSettings:
    """The options of a session, as they were at some time."""

    def __init__(self, state: SessionState) -> None:
        self._options = [*state.config_options]

    async def restore(self, agent: RemoteAgent, state: SessionState) -> None:
        """Set again what the agent says is otherwise now. Raises `RequestError`."""
        for option in self._options:
            request = _request(state, option)
            if request is not None:
                state.apply(await agent.session_set_config_option(request))


def _request(state: SessionState, option: object) -> SetSessionConfigOptionRequest | None:
    """What sets an option as it was; None if it is so, or is not there any more."""
    for now in state.config_options:
        match option, now:
            case SessionConfigOptionBoolean(), SessionConfigOptionBoolean() if option.config_id == now.config_id:
                if option.current_value != now.current_value:
                    return SetSessionConfigOptionRequestBoolean(
                        session_id=state.session_id, config_id=option.config_id, value=option.current_value
                    )
            case SessionConfigOptionSelect(), SessionConfigOptionSelect() if option.config_id == now.config_id:
                if option.current_value != now.current_value:
                    return SetSessionConfigOptionRequestId(
                        session_id=state.session_id, config_id=option.config_id, value=option.current_value
                    )
            case _:
                pass
    return None
