"""One conversation with an agent of a framework, as data, and what a client is told in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ASK = "session/request_permission"
CANCEL = "cancel"
"""The answer of a user who cancels the turn, when asked."""


@dataclass(frozen=True)
class Prompt:
    """What the user sends, what is answered to a question of the agent, and after how many messages it is cancelled."""

    text: str
    answer: str = ""
    cancel_after: int = 0


@dataclass(frozen=True)
class Restart:
    """The agent is ended and started again, and the session is loaded."""


Step = Prompt | Restart
CONVERSATION: tuple[Step, ...] = (
    Prompt("correct", answer="reject_once"),
    Prompt("correct", answer=CANCEL),
    Prompt("correct", answer="allow_always"),
    Prompt("count 3"),
    Prompt("call greet"),
    Prompt("count 100000", cancel_after=3),
    Restart(),
    Prompt("correct"),
    Prompt("call greet"),
    Prompt("remember"),
)
LOOK = ("agent_thought_chunk", "plan pending pending", "tool_call read in_progress", "tool_call_update completed")
SHOWN = (*LOOK, "tool_call edit pending")
ASKED = (*SHOWN, "asked allow_once allow_always reject_once")
SAID = ("plan completed completed", "agent_message_chunk")
WRITTEN = ("tool_call_update in_progress", "tool_call_update completed", *SAID)
COUNTED = ("tool_call other in_progress", "tool_call_update")
GREETED = ("tool_call other in_progress", "tool_call_update completed", "agent_message_chunk")
PROMPTED = ("user_message_chunk",)
TRANSCRIPT: tuple[tuple[str, ...], ...] = (
    ("session_info_update", *ASKED, "tool_call_update failed", *SAID, "end_turn"),
    (*ASKED, "tool_call_update failed", "cancelled"),
    (*ASKED, *WRITTEN, "end_turn"),
    (*COUNTED, "tool_call_update completed", "agent_message_chunk", "end_turn"),
    (*GREETED, "end_turn"),
    (*COUNTED, "tool_call_update failed", "cancelled"),
    (
        *(*PROMPTED, "session_info_update", *SHOWN, "tool_call_update failed", *SAID),
        *(*PROMPTED, *SHOWN, "tool_call_update failed"),
        *(*PROMPTED, *SHOWN, *WRITTEN),
        *(*PROMPTED, *COUNTED, "tool_call_update completed", "agent_message_chunk"),
        *(*PROMPTED, *GREETED),
        *(*PROMPTED, *COUNTED, "tool_call_update failed"),
    ),
    (*SHOWN, *WRITTEN, "end_turn"),
    (*GREETED, "end_turn"),
    ("agent_message_chunk", "end_turn"),
)
"""What a client is told in each step, whatever the framework and the client. The replay has all but the questions."""
REMEMBERED = "You said: correct, correct, count 3, call greet, correct, call greet"
"""The last answer: the model has not heard the turns that were cancelled."""


def kinds(messages: Iterable[dict[str, Any]], *, end: str = "") -> tuple[str, ...]:
    """The kinds of messages that a client got in a step; equal ones in a row, such as deltas, are one."""
    found = [kind for message in messages for kind in _kind(message)]
    return tuple(kind for kind, _ in itertools.groupby([*found, *filter(None, [end])]))


def _kind(message: dict[str, Any]) -> Iterator[str]:
    match message:
        case {"method": "session/update", "params": {"update": {"sessionUpdate": "plan", "entries": entries}}}:
            yield " ".join(["plan", *(each["status"] for each in entries)])
        case {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **update}}}:
            facts = (update.get("kind") if kind == "tool_call" else None, update.get("status"))
            yield " ".join([kind, *filter(None, facts)])
        case {"method": "session/request_permission", "params": {"options": options}}:
            yield " ".join(["asked", *(each["kind"] for each in options)])
        case _:  # what a puppet notes besides
            pass


def text_of(messages: Iterable[dict[str, Any]]) -> str:
    """The text that the agent said."""
    updates = [each["params"]["update"] for each in messages if each.get("method") == "session/update"]
    said = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    return "".join(said)
