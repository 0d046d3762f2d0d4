"""Set the options of a session, and read them, for protocol 2: mode and model are options there."""

from __future__ import annotations

from typing import Any

from ..client import RemoteAgent
from ..codec import decode
from ..methods import AGENT_METHODS
from .session_choices import ChosenSetting, SettingKey, SettingValue, option_of
from .session_state import SessionState

__all__: list[str] = []

_SET_OPTION = "session/set_config_option"


def mode_setting(state: SessionState, mode_id: str) -> ChosenSetting:
    """What chooses a mode. Raises `ValueError` if the agent offers none."""
    return _of_category(state, "mode", mode_id)


def model_setting(state: SessionState, model_id: str) -> ChosenSetting:
    """What chooses a model. Raises `ValueError` if the agent offers none."""
    return _of_category(state, "model", model_id)


def _of_category(state: SessionState, category: str, value: str) -> ChosenSetting:
    option = option_of(state.config_options, category)
    if option is None:
        raise ValueError(f"the agent has no option of the category {category!r}")
    return ChosenSetting("option", option, value)


def settings_of(state: SessionState) -> dict[SettingKey, SettingValue]:
    """The values that are known."""
    found: dict[SettingKey, SettingValue] = {}
    for option in state.config_options:
        value: Any = getattr(option, "current_value", None)
        if isinstance(value, (str, bool)):
            found["option", option.config_id] = value
    return found


def is_gone(state: SessionState, setting: ChosenSetting) -> bool:
    """True if the agent lists what there is, and this is not among it."""
    known = [option.config_id for option in state.config_options]
    return bool(known) and setting.id not in known


async def send_setting(agent: RemoteAgent, session_id: str, setting: ChosenSetting) -> object:
    """Send the request that sets it; returns the result."""
    kind = "boolean" if isinstance(setting.value, bool) else "id"
    params: Any = {"sessionId": session_id, "configId": setting.id, "value": setting.value, "type": kind}
    stub: Any = agent
    return await stub.session_set_config_option(decode(AGENT_METHODS[_SET_OPTION].params, params))


def apply_setting(state: SessionState, setting: ChosenSetting, result: Any) -> None:
    """Apply what was set, as its result tells it, or as it was asked for."""
    if any(option.config_id == setting.id for option in result.config_options or ()):
        state.apply(result)
    else:
        state.set_option(setting.id, setting.value)
