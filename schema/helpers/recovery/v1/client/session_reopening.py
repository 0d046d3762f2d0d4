"""How a session is opened again, and gets its mode and options back, for protocol 1."""

from __future__ import annotations

from typing import Final, Literal

from ..client import RemoteAgent
from ..types import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SetSessionConfigOptionRequest,
    SetSessionConfigOptionRequestBoolean,
    SetSessionConfigOptionRequestValueId,
    SetSessionModeRequest,
)
from .session_state import SessionState

__all__: list[str] = []

INTERRUPTED: Final = "failed"
"""The status of tool calls that nobody will end: protocol 1 has no other for it."""


def reopening_ways(agent: RemoteAgent) -> list[Literal["resume", "load"]]:
    """What the agent has to open a session again."""
    ways: list[Literal["resume", "load"]] = []
    if agent.supports("session/resume"):
        ways.append("resume")
    if agent.supports("session/load"):
        ways.append("load")
    return ways


class SessionSettings:
    """The mode and the options of a session, as they were at some time."""

    def __init__(self, state: SessionState) -> None:
        self._mode_id = state.current_mode_id
        self._options = [*state.config_options]

    async def restore(self, agent: RemoteAgent, state: SessionState) -> None:
        """Set again what the agent says is otherwise now. Raises `RequestError`."""
        for option in self._options:
            request = _request(state, option)
            if request is not None:
                state.apply(await agent.session_set_config_option(request))
        known = {mode.id for mode in state.available_modes}
        if self._mode_id in known and self._mode_id != state.current_mode_id:
            mode = SetSessionModeRequest(session_id=state.session_id, mode_id=self._mode_id)
            await agent.session_set_mode(mode)
            state.set_mode(mode)


def _request(state: SessionState, option: object) -> SetSessionConfigOptionRequest | None:
    """What sets an option as it was; None if it is so, or is not there any more."""
    for now in state.config_options:
        match option, now:
            case SessionConfigOptionBoolean(), SessionConfigOptionBoolean() if option.id == now.id:
                if option.current_value != now.current_value:
                    return SetSessionConfigOptionRequestBoolean(
                        session_id=state.session_id, config_id=option.id, value=option.current_value
                    )
            case SessionConfigOptionSelect(), SessionConfigOptionSelect() if option.id == now.id:
                if option.current_value != now.current_value:
                    return SetSessionConfigOptionRequestValueId(
                        session_id=state.session_id, config_id=option.id, value=option.current_value
                    )
            case _:
                pass
    return None
