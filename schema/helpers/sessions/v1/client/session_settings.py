"""Set the mode, the model and the options of a session, and read them, for protocol 1."""

from __future__ import annotations

from typing import Any

from ..client import RemoteAgent
from ..codec import decode
from ..methods import AGENT_METHODS
from ..types import SetSessionModeRequest
from .session_choices import ChosenSetting, SettingKey, SettingValue, option_of
from .session_state import SessionState

__all__: list[str] = []

_SET_OPTION, _SET_MODEL = "session/set_config_option", "session/set_model"


def mode_setting(state: SessionState, mode_id: str) -> ChosenSetting:
    """What chooses a mode: an option where the agent has one for it, and lists no modes."""
    option = None if state.available_modes else option_of(state.config_options, "mode")
    return ChosenSetting("mode", "", mode_id) if option is None else ChosenSetting("option", option, mode_id)


def model_setting(state: SessionState, model_id: str) -> ChosenSetting:
    """What chooses a model. Raises `ValueError` if the agent offers none."""
    option = option_of(state.config_options, "model")
    if _SET_MODEL in AGENT_METHODS and (state.available_models or option is None):
        return ChosenSetting("model", "", model_id)
    if option is None:
        raise ValueError("the agent has no option for the model; `session/set_model` is of the extension session-model")
    return ChosenSetting("option", option, model_id)


def settings_of(state: SessionState) -> dict[SettingKey, SettingValue]:
    """The values that are known, options first: they may decide about the others."""
    found: dict[SettingKey, SettingValue] = {}
    for option in state.config_options:
        value: Any = getattr(option, "current_value", None)
        if isinstance(value, (str, bool)):
            found["option", option.id] = value
    if state.current_model_id is not None:
        found["model", ""] = state.current_model_id
    if state.current_mode_id is not None:
        found["mode", ""] = state.current_mode_id
    return found


def is_gone(state: SessionState, setting: ChosenSetting) -> bool:
    """True if the agent lists what there is, and this is not among it."""
    match setting.kind:
        case "mode":
            known = [mode.id for mode in state.available_modes]
            return bool(known) and setting.value not in known
        case "model":
            known = [model.model_id for model in state.available_models]
            return bool(known) and setting.value not in known
        case _:
            known = [option.id for option in state.config_options]
            return bool(known) and setting.id not in known


async def send_setting(agent: RemoteAgent, session_id: str, setting: ChosenSetting) -> object:
    """Send the request that sets it; returns the result."""
    stub: Any = agent  # not every release and package has all of them
    match setting.kind:
        case "mode":
            return await stub.session_set_mode(SetSessionModeRequest(session_id=session_id, mode_id=str(setting.value)))
        case "model":
            params: Any = {"sessionId": session_id, "modelId": setting.value}
            return await stub.session_set_model(decode(AGENT_METHODS[_SET_MODEL].params, params))
        case _:
            kind: Any = {"type": "boolean"} if isinstance(setting.value, bool) else {}
            params = {"sessionId": session_id, "configId": setting.id, "value": setting.value, **kind}
            return await stub.session_set_config_option(decode(AGENT_METHODS[_SET_OPTION].params, params))


def apply_setting(state: SessionState, setting: ChosenSetting, result: Any) -> None:
    """Apply what was set, as its result tells it, or as it was asked for."""
    match setting.kind:
        case "mode":
            state.set_mode(SetSessionModeRequest(session_id=state.session_id, mode_id=str(setting.value)))
        case "model":
            state.choose_model(str(setting.value))
        case _ if any(option.id == setting.id for option in result.config_options or ()):
            state.apply(result)
        case _:
            state.set_option(setting.id, setting.value)
