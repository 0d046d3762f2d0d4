"""Set the mode, the model and the options of a session again, after it was opened again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..client import RemoteAgent
from ..errors import RequestError
from .recovery_changes import SettingLost
from .session_choices import ChosenSetting, SettingKey, SettingValue
from .session_core import logger
from .session_settings import apply_setting, is_gone, send_setting, settings_of
from .session_state import SessionState

__all__: list[str] = []


async def restore_settings(
    agent: RemoteAgent, now: SessionState, before: SessionState, chosen: Mapping[SettingKey, SettingValue]
) -> Sequence[SettingLost]:
    """Set what `now`, which the agent has reported, has otherwise than `before`; returns what could not be set.

    Each is set by itself. What the agent does not report is set if it was `chosen`.
    """
    lost = list[SettingLost]()
    for setting in _wanted(before, chosen):
        found = settings_of(now).get(setting.key)
        is_chosen = chosen.get(setting.key) == setting.value
        if found == setting.value or (found is None and not is_chosen):
            continue
        try:
            if is_gone(now, setting):
                lost.append(_lost(setting, found, None))
            else:
                apply_setting(now, setting, await send_setting(agent, now.session_id, setting))
        except RequestError as error:
            lost.append(_lost(setting, found, error))
    return lost


def _wanted(before: SessionState, chosen: Mapping[SettingKey, SettingValue]) -> Sequence[ChosenSetting]:
    """What the session had, and what was chosen of which its state knows nothing."""
    values = settings_of(before)
    missing = {key: value for key, value in chosen.items() if key not in values}
    return [ChosenSetting(kind, name, value) for (kind, name), value in {**missing, **values}.items()]


def _lost(setting: ChosenSetting, now: SettingValue | None, error: RequestError | None) -> SettingLost:
    logger.warning("the %s of a session cannot be set again as it was", setting.kind)
    return SettingLost(kind=setting.kind, id=setting.id, value=setting.value, now=now, error=error)
