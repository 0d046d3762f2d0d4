"""Updates of a session: each function returns the params of `session/update`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._base import UNSET, UnsetType
from ..types import (
    AvailableCommand,
    ContentBlock,
    PlanEntry,
    SessionConfigOption,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThoughtChunk,
    SessionUpdateAvailableCommandsUpdate,
    SessionUpdateConfigOptionUpdate,
    SessionUpdateCurrentModeUpdate,
    SessionUpdatePlan,
    SessionUpdateUserMessageChunk,
    UnstructuredCommandInput,
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
    "mode",
    "plan",
    "user_message",
]


def agent_message(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str | None = None,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of the agent's reply.

    Pieces with the same `message_id` form one message, and another id starts the next. Releases such as 0.10.8 have no
    ids of messages: there a `message_id` raises `TypeError`.
    """
    update = SessionUpdateAgentMessageChunk(content=as_block(content), **_id(message_id), meta=meta)
    return session_update(session_id, update)


def agent_thought(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str | None = None,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of the agent's thinking; `message_id` as in `agent_message`."""
    update = SessionUpdateAgentThoughtChunk(content=as_block(content), **_id(message_id), meta=meta)
    return session_update(session_id, update)


def user_message(
    session_id: str,
    content: str | ContentBlock,
    *,
    message_id: str | None = None,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The next piece of a message of the user, to replay a session; `message_id` as in `agent_message`."""
    update = SessionUpdateUserMessageChunk(content=as_block(content), **_id(message_id), meta=meta)
    return session_update(session_id, update)


def _id(message_id: str | None) -> dict[str, Any]:
    return {} if message_id is None else {"message_id": message_id}


def plan(
    session_id: str, entries: Iterable[str | PlanEntry], *, meta: dict[str, Any] | UnsetType = UNSET
) -> UpdateParams:
    """The whole plan, in the place of the one before. A str is an entry that is pending, of medium priority."""
    given = [as_entry(entry) for entry in items_of(entries, "entries")]
    return session_update(session_id, SessionUpdatePlan(entries=given, meta=meta))


def commands(
    session_id: str, commands: Iterable[AvailableCommand], *, meta: dict[str, Any] | UnsetType = UNSET
) -> UpdateParams:
    """The commands that the user can run now, in the place of those before; `command` makes one."""
    given = items_of(commands, "commands")
    return session_update(session_id, SessionUpdateAvailableCommandsUpdate(available_commands=given, meta=meta))


def command(
    name: str, description: str, *, hint: str | None = None, meta: dict[str, Any] | UnsetType = UNSET
) -> AvailableCommand:
    """A command. With a hint it takes input: the hint is shown where the user may type it."""
    given = UNSET if hint is None else UnstructuredCommandInput(hint=hint)
    return AvailableCommand(name=name, description=description, input=given, meta=meta)


def mode(session_id: str, mode_id: str, *, meta: dict[str, Any] | UnsetType = UNSET) -> UpdateParams:
    """The mode that the session is in from now on."""
    return session_update(session_id, SessionUpdateCurrentModeUpdate(current_mode_id=mode_id, meta=meta))


def config_options(
    session_id: str, options: Iterable[SessionConfigOption], *, meta: dict[str, Any] | UnsetType = UNSET
) -> UpdateParams:
    """All configuration options with their values, in the place of those before."""
    given = items_of(options, "options")
    return session_update(session_id, SessionUpdateConfigOptionUpdate(config_options=given, meta=meta))
