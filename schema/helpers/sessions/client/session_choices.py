"""What can be chosen in a session: its mode, its model, its options.

The agent has the truth about them, and tells it in three ways: in the result that opens the session, in updates, and in
the result of what sets an option. Not all agents tell all of it: some send no update after a mode or a model was set,
and nothing when a session is opened again. So two things are kept.

* The state of the session has each value as it was last: set from here, or reported by the agent, as after a command
  that the user has typed.
* `chosen` of the session has what was set from here. A value is the choice of this side as long as the state has it,
  too: once the agent has reported another one, that came later, and counts.

When a session is opened again, the first is what it should have. A value that the agent reports otherwise is set again.
One about which it reports nothing is set again if it is the choice of this side, and is otherwise left alone. What an
attempt reports which fails later is never in either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__: list[str] = []

SettingKind: TypeAlias = Literal["mode", "model", "option"]
SettingKey: TypeAlias = tuple[SettingKind, str]
"""A kind, and the id of an option."""
SettingValue: TypeAlias = str | bool


@dataclass(frozen=True)
class ChosenSetting:
    """A mode, a model or an option, and a value of it."""

    kind: SettingKind
    id: str
    """The id of an option; empty for mode and model."""
    value: SettingValue

    @property
    def key(self) -> SettingKey:
        """What it is a value of."""
        return self.kind, self.id


def option_of(options: Iterable[object], category: str) -> str | None:
    """The id of the option of a category; None if there is none."""
    for option in options:
        if getattr(option, "category", None) == category:
            option_id = getattr(option, "id", None) or getattr(option, "config_id", None)
            return option_id if isinstance(option_id, str) else None
    return None
