"""One conversation with an agent of a framework, as data, and what a client is told in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ASK = "session/request_permission"
ASK_FIRST, EDIT = "ask", "edit"
"""The modes of a session, one of which asks before a file is written."""
CANCEL = "cancel"
"""The answer of a user who cancels the turn, when asked."""


@dataclass(frozen=True)
class Prompt:
    """What the user sends, what is answered to a question of the agent, and after how many messages it is cancelled.

    `mode` is that of the session, which the user chooses before, if it is another; without one, it stays.
    """

    text: str
    answer: str = ""
    cancel_after: int = 0
    mode: str = ""


@dataclass(frozen=True)
class Restart:
    """The agent is ended and started again, and the session is loaded."""


Step = Prompt | Restart
CONVERSATION: tuple[Step, ...] = (
    Prompt("correct", answer="reject_once"),
    Prompt("correct", answer=CANCEL),
    Prompt("correct", mode=EDIT),
    Prompt("correct", answer="allow_always", mode=ASK_FIRST),
    Prompt("count 3"),
    Prompt("call greet"),
    Prompt("count 100000", cancel_after=3),
    Prompt("count 1", mode=EDIT),
    Restart(),
    Prompt("correct", mode=EDIT),
    Prompt("correct", mode=ASK_FIRST),
    Prompt("call greet"),
    Prompt("remember"),
)
LOOK = ("agent_thought_chunk", "plan pending pending", "tool_call read in_progress", "tool_call_update completed")
SHOWN = (*LOOK, "tool_call edit pending")
ASKED = (*SHOWN, "asked allow_once allow_always reject_once")
FREE = (*LOOK, "tool_call edit in_progress")
SAID = ("plan completed completed", "agent_message_chunk")
WRITTEN = ("tool_call_update completed", *SAID)
ALLOWED = ("tool_call_update in_progress", *WRITTEN)
COUNTED = ("tool_call other in_progress", "tool_call_update")
COUNTED_ALL = (*COUNTED, "tool_call_update completed", "agent_message_chunk")
GREETED = ("tool_call other in_progress", "tool_call_update completed", "agent_message_chunk")
PROMPTED = ("user_message_chunk",)
TRANSCRIPT: tuple[tuple[str, ...], ...] = (
    ("session_info_update", *ASKED, "tool_call_update failed", *SAID, "end_turn"),
    (*ASKED, "tool_call_update failed", "cancelled"),
    (*FREE, *WRITTEN, "end_turn"),
    (*ASKED, *ALLOWED, "end_turn"),
    (*COUNTED_ALL, "end_turn"),
    (*GREETED, "end_turn"),
    (*COUNTED, "tool_call_update failed", "cancelled"),
    (*COUNTED_ALL, "end_turn"),
    (
        *(*PROMPTED, "session_info_update", *SHOWN, "tool_call_update failed", *SAID),
        *(*PROMPTED, *SHOWN, "tool_call_update failed"),
        *(*PROMPTED, *FREE, *WRITTEN),
        *(*PROMPTED, *SHOWN, *ALLOWED),
        *(*PROMPTED, *COUNTED_ALL),
        *(*PROMPTED, *GREETED),
        *(*PROMPTED, *COUNTED, "tool_call_update failed"),
        *(*PROMPTED, *COUNTED_ALL),
    ),
    (*FREE, *WRITTEN, "end_turn"),
    (*SHOWN, *ALLOWED, "end_turn"),
    (*GREETED, "end_turn"),
    ("agent_message_chunk", "end_turn"),
)
"""What a client is told in each step, whatever the framework and the client. The replay has all but the questions."""
MODES = [ASK_FIRST] * 3 + [EDIT] + [ASK_FIRST] * 4 + [EDIT] * 3 + [ASK_FIRST] * 3
"""The mode that the client knows at first, and in each step, also from the response to `session/load`."""
REMEMBERED = "You said: correct, correct, correct, count 3, call greet, count 1, correct, correct, call greet"
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
