"""Updates of a session: each function returns the params of `session/update`.

A message is made of pieces with the same `message_id`, which the agent chooses for each message, such as
`uuid4().hex`. The functions `whole_…` replace all that was sent of a message before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._base import UNSET, UnsetType
from ..types import (
    AvailableCommand,
    AvailableCommandCommand,
    AvailableCommandInputText,
    ContentBlock,
    PlanEntry,
    PlanUpdateContentItems,
    SessionConfigOption,
    SessionUpdateAgentMessage,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThought,
    SessionUpdateAgentThoughtChunk,
    SessionUpdateAvailableCommandsUpdate,
    SessionUpdateConfigOptionUpdate,
    SessionUpdatePlanUpdate,
    SessionUpdateUserMessage,
    SessionUpdateUserMessageChunk,
)
from .content import as_block, items_of
from .notification import UpdateParams, session_update
from .plan_entries import as_entry

__all__ = [
    "agent_message",
    "agent_thought",
    "command",
    "commands",
    "config_options",
    "plan",
    "user_message",
    "whole_agent_message",
    "whole_agent_thought",
    "whole_user_message",
]


# --- Messages --------------------------------------------------------------------------------------------------------


def agent_message(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of the agent's message `message_id`."""
    update = SessionUpdateAgentMessageChunk(message_id=message_id, content=as_block(content), meta=meta)
    return session_update(session_id, update)


def agent_thought(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of the agent's thought `message_id`."""
    update = SessionUpdateAgentThoughtChunk(message_id=message_id, content=as_block(content), meta=meta)
    return session_update(session_id, update)


def user_message(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of the user's message `message_id`."""
    update = SessionUpdateUserMessageChunk(message_id=message_id, content=as_block(content), meta=meta)
    return session_update(session_id, update)


def whole_agent_message(
    session_id: str,
    content: Iterable[str | ContentBlock],
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The agent's message `message_id` as a whole."""
    update = SessionUpdateAgentMessage(message_id=message_id, content=_blocks(content), meta=meta)
    return session_update(session_id, update)


def whole_agent_thought(
    session_id: str,
    content: Iterable[str | ContentBlock],
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The agent's thought `message_id` as a whole."""
    update = SessionUpdateAgentThought(message_id=message_id, content=_blocks(content), meta=meta)
    return session_update(session_id, update)


def whole_user_message(
    session_id: str,
    content: Iterable[str | ContentBlock],
    *,
    message_id: str,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The user's message `message_id` as a whole: send it when a prompt is accepted, and to replay a session."""
    update = SessionUpdateUserMessage(message_id=message_id, content=_blocks(content), meta=meta)
    return session_update(session_id, update)


def _blocks(content: Iterable[str | ContentBlock]) -> list[ContentBlock]:
    return [as_block(each) for each in ([content] if isinstance(content, str) else items_of(content, "content"))]


# --- Other updates ---------------------------------------------------------------------------------------------------


def plan(
    session_id: str,
    entries: Iterable[str | PlanEntry],
    *,
    plan_id: str = "plan",
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """A plan, in the place of the one with the same id. A str is an entry that is pending, of medium priority."""
    items = PlanUpdateContentItems(plan_id=plan_id, entries=[as_entry(entry) for entry in items_of(entries, "entries")])
    return session_update(session_id, SessionUpdatePlanUpdate(plan=items, meta=meta))


def commands(
    session_id: str, commands: Iterable[AvailableCommand], *, meta: dict[str, Any] | UnsetType = UNSET
) -> UpdateParams:
    """The commands that the user can run now, in the place of those before; `command` makes one."""
    given = items_of(commands, "commands")
    return session_update(session_id, SessionUpdateAvailableCommandsUpdate(available_commands=given, meta=meta))


def command(
    name: str, description: str, *, hint: str | None = None, meta: dict[str, Any] | UnsetType = UNSET
) -> AvailableCommandCommand:
    """A command. With a hint it takes input: the hint is shown where the user may type it."""
    given = UNSET if hint is None else AvailableCommandInputText(hint=hint)
    return AvailableCommandCommand(name=name, description=description, input=given, meta=meta)


def config_options(
    session_id: str, options: Iterable[SessionConfigOption], *, meta: dict[str, Any] | UnsetType = UNSET
) -> UpdateParams:
    """All configuration options with their values, in the place of those before."""
    given = items_of(options, "options")
    return session_update(session_id, SessionUpdateConfigOptionUpdate(config_options=given, meta=meta))
