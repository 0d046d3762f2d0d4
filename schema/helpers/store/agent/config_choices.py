"""What the user may choose for the configuration options of a session, and where it is kept."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..errors import InvalidParamsError
from ..types import SessionConfigOption, SessionConfigOptionSelect
from .active_session import ActiveSession
from .memory import shortened

__all__: list[str] = []


def check_choice(option: SessionConfigOption | None, config_id: str, value: object) -> str | bool:
    """The value, if the option offers it. Raises `InvalidParamsError` for any other, and without an option."""
    if option is None:
        raise InvalidParamsError("the session has no such option", data={"configId": shortened(config_id)})
    if isinstance(value, (str, bool)) and value in _offered(option):
        return value
    raise InvalidParamsError("the option has no such value", data={"configId": shortened(config_id)})


def _offered(option: SessionConfigOption) -> Collection[str | bool]:
    if isinstance(option, SessionConfigOptionSelect):
        groups = [getattr(each, "options", [each]) for each in option.options]
        return [choice.value for group in groups for choice in group]
    is_switch = isinstance(getattr(option, "current_value", None), bool)  # not one of a type that is unknown here
    return (False, True) if is_switch else ()


def keep_choice(session: ActiveSession, config_id: str, value: str | bool) -> None:
    """Keep a value in the data of a session: in the same object, as a turn may be using it."""
    data: Any = session.data
    if not isinstance(data, dict):
        raise TypeError("session.data is no dict: set it in `on_open`, or keep the option in `on_config_option`")
    data[config_id] = value
