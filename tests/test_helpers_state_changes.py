"""The changes that a `SessionState` reports, added up by a reader who never looks at the state.

What the reader has in the end is compared with a model, which computes it anew from the JSON of all messages.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.session_model import Event, expected
from tests.session_traffic import Traffic, as_json, feed, new_state, on_wire, recorded
from tests.support import Packages
from tests.turns_support import PROTOCOLS

Json = Any
OF_ENTRIES = {"entries", "plan", "plans", "terminals"}


class Reader:
    """Adds up changes."""

    def __init__(self, acp: ModuleType) -> None:
        self._acp = acp
        self.entries: dict[int, list[Json]] = {}
        """The kind, and the text or status, of each entry, in the order in which they came."""
        self.terminals: dict[str, bytes] = {}
        self.plans: dict[str, Json] = {}
        self.names = set[str]()
        """The attributes that were reported since this was last emptied, as they are on the wire."""
        self._alive: list[Any] = []  # so that no id is there twice

    def __call__(self, change: Any) -> None:
        match type(change).__name__:
            case "MessageChange":
                found = self._entry(change.entry, "")
                found[1] = change.text if change.is_whole else found[1] + change.text
            case "ToolCallChange":
                is_new, had_ended = id(change.call) not in self.entries, False
                found = self._entry(change.call, None)
                had_ended = found[1] in {"completed", "failed", "cancelled"}
                found[1] = change.call.status
                assert change.is_new is is_new
                ends = found[1] in {"completed", "failed", "cancelled"}
                assert change.has_ended is (ends and not had_ended)
            case "CompactionChange":
                self._entry(change.compaction, None)[1] = change.compaction.status
            case "TerminalChange":
                before = b"" if change.is_whole else self.terminals.get(change.terminal.id, b"")
                self.terminals[change.terminal.id] = before + change.output
            case "PlanChange":
                self.plans.pop(change.plan_id, None)
                if change.plan is not None:
                    self.plans[change.plan_id] = as_json(self._acp, change.plan)
            case "AttributesChange":
                self.names |= {on_wire(name) for name in change.names}
            case _:
                pass

    def _entry(self, entry: Any, start: Any) -> list[Json]:
        self._alive.append(entry)
        return self.entries.setdefault(id(entry), [type(entry).__name__, start])


def in_short(entry: Json) -> list[Json]:
    """An entry of the model as a reader has it."""
    if "content" in entry and entry["is"] in {"UserMessage", "AgentMessage", "Thought"}:
        return [entry["is"], "".join(each["text"] for each in entry["content"] if each["type"] == "text")]
    return [entry["is"], entry.get("status")]


def check(acp: ModuleType, events: list[Event]) -> None:
    """Feed the messages, and compare the reader with the model: attributes after each message, the rest at the end."""
    reader, version = Reader(acp), acp.PROTOCOL_VERSION
    state = new_state(acp, on_change=reader)
    known = expected([], version)
    for at, event in enumerate(events):
        reader.names.clear()
        feed(acp, state, event)
        now = expected(events[: at + 1], version)
        changed = {name for name in {*now, *known} if now.get(name) != known.get(name)} - OF_ENTRIES
        assert reader.names >= changed, event
        known = now
    assert [*reader.entries.values()] == [in_short(each) for each in known["entries"]]
    if version == 1:
        assert reader.plans.get("") == known.get("plan")
    else:
        assert reader.plans == known["plans"]
        assert {key: each.hex() for key, each in reader.terminals.items()} == {
            key: each["output"] for key, each in known["terminals"].items()
        }


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def test_what_official_sdks_have_sent(acp: ModuleType) -> None:
    check(acp, recorded(acp.PROTOCOL_VERSION))


@pytest.mark.parametrize(
    "count",
    [200, pytest.param(1_000, marks=pytest.mark.full), pytest.param(10_000, marks=pytest.mark.deep)],
    ids=["few", "more", "all"],
)
def test_random_messages(acp: ModuleType, count: int) -> None:
    traffic = Traffic("changes", acp.PROTOCOL_VERSION)
    for number in range(count):
        events = traffic.sequence()
        try:
            check(acp, events)
        except AssertionError as error:
            raise AssertionError(f"sequence {number}: {events}") from error
