"""What happens to a session whose connection has ended: changes among those of its turns, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..dispatch import ConnectionClosed
from ..types import ContentBlock, ContentBlockText, PromptRequest
from .recovery_policy import RecoveryError, details_of
from .session_core import ConnectionChange
from .session_entries import UserMessage
from .session_state import SessionEntry, SessionState

__all__ = [
    "ConnectionLost",
    "Reconnecting",
    "RecoveryError",
    "ReopeningLater",
    "SessionForgotten",
    "SessionLost",
    "SessionRecovered",
    "SettingLost",
    "TurnInterruptedError",
]


@dataclass(frozen=True, kw_only=True)
class ConnectionLost(ConnectionChange):
    """The connection of the session has ended, and nobody has asked for it. Tool calls that ran are shown as ended."""

    reason: Exception
    """A `ConnectionClosed` in most cases, with the exit code of the agent."""
    prompts: tuple[PromptRequest, ...]
    """The prompts that were interrupted. They are not sent again; their turns end when the session is back, or lost."""


@dataclass(frozen=True, kw_only=True)
class Reconnecting(ConnectionChange):
    """The connection will be made again."""

    attempt: int
    """The number of the attempt, from 1."""
    seconds: float
    """The time until then."""
    reason: Exception
    """How the last attempt has ended, or the connection."""


@dataclass(frozen=True, kw_only=True)
class SessionForgotten(ConnectionChange):
    """The agent goes on, and does not know the session any more. It is opened again, for all prompts that wait."""

    reason: Exception
    """What the agent has answered to a prompt."""


@dataclass(frozen=True, kw_only=True)
class ReopeningLater(ConnectionChange):
    """The session is loaded when it is `young_seconds` old: some agents spoil one that they load earlier."""

    seconds: float
    """The time until then."""


@dataclass(frozen=True, kw_only=True)
class SessionRecovered(ConnectionChange):
    """The session goes on: with a new connection, or with the one that there is.

    By `resume`, its `state` is the same, and nothing tells what the agent has of an interrupted turn. By `load`, it is
    a new one: what the agent has kept of the conversation. Its entries are other objects, their ids may differ, and
    what the agent had not saved is missing; nothing of it was reported as a change. By `new`, the session has another
    id and an empty state, as the agent has nothing of the conversation, or there was none. Mode, model and options of
    the session were set again where the agent says otherwise; a `SettingLost` follows for each that could not be.
    """

    by: Literal["resume", "load", "new"]
    before: SessionState
    """The state as it was shown."""


@dataclass(frozen=True, kw_only=True)
class SettingLost(ConnectionChange):
    """The mode, the model or an option could not be set again: tell the user, before a prompt follows."""

    kind: Literal["mode", "model", "option"]
    id: str
    """The id of the option; empty for mode and model."""
    value: str | bool
    """What was chosen before."""
    now: str | bool | None
    """What the agent has now; None if it has not said so."""
    error: Exception | None
    """Why the agent has refused it; None if the agent does not have it any more."""


@dataclass(frozen=True, kw_only=True)
class SessionLost(ConnectionChange):
    """The session does not go on; its `state` stays as it was. Prompts raise `error`, which says why."""

    error: RecoveryError


class TurnInterruptedError(ConnectionClosed):
    """The connection has ended during a turn, or the agent has lost its session. `outcome` tells whether that goes on.

    The prompt is not sent again, as the agent may have worked on it: `session.prompt(*error.prompt.prompt)` does so.
    """

    def __init__(
        self,
        reason: Exception,
        *,
        prompt: PromptRequest,
        outcome: SessionRecovered | SessionLost,
        in_replay: bool | None,
    ) -> None:
        super().__init__(_text(reason, outcome), **details_of(reason))
        self.prompt = prompt
        """The prompt that was interrupted."""
        self.outcome = outcome
        self.in_replay = in_replay
        """Whether the conversation that the agent has reported has the prompt. None if that is not known: the session
        was resumed, is lost, or the agent reports other words than those that were sent. An agent that was killed may
        have worked on a prompt that it had not saved."""


def _text(reason: Exception, outcome: SessionRecovered | SessionLost) -> str:
    if isinstance(outcome, SessionLost):
        return f"the turn was interrupted, and the session is lost: {outcome.error}"
    return f"the turn was interrupted, and the session has been recovered by {outcome.by}: {reason}"


def count_in_replay(
    before: Iterable[SessionEntry],
    prompts: Sequence[PromptRequest],
    replay: Iterable[SessionEntry],
    *,
    is_whole: bool,
) -> int | None:
    """How many of the prompts that follow the entries `before` are in a replay; None if that is not known.

    They are compared by the text of all the user's messages: agents join and split blocks. What has no text does not
    tell them apart. If `before` is not the whole conversation, as the session was resumed, something unknown comes
    first: then an equal text may be of an earlier prompt, and only one way to read the replay is knowledge.
    """
    found, said = _user_text(replay), [_user_text(before)]
    for prompt in prompts:
        new = _text_of(prompt.prompt)
        if not new:
            return None
        said.append(said[-1] + new)
    ways = [number for number, text in enumerate(said) if (found == text if is_whole else found.endswith(text))]
    return ways[0] if len(ways) == 1 else None


def _user_text(entries: Iterable[SessionEntry]) -> str:
    return "".join(entry.text for entry in entries if isinstance(entry, UserMessage))


def _text_of(blocks: Iterable[ContentBlock]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, ContentBlockText))
