"""Follow the sessions of a connection: which are open, their turns, and the tasks that they report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acpgen.diagnostics import Severity
from acpgen.ir import model as ir
from acpgen.schema.session_facts import TurnFacts, Updates
from acpgen.trace.lines import MessagePlace
from acpgen.trace.values import Misfit


@dataclass(slots=True)
class _Session:
    """The state of a session: the requests of it that are in flight, and for each task the place of its first update.

    A task that has ended has None.
    """

    is_open: bool = True
    turns: int = 0
    replays: int = 0
    has_had_turn: bool = False
    is_cancelled: bool = False
    tasks: dict[str, MessagePlace | None] = field(default_factory=dict)


class RecordedSessions:
    """The sessions of one connection. The model of a message says how they are named, and what reports on them.

    If it is partial, sessions may have been opened before.
    """

    def __init__(self, *, is_partial: bool) -> None:
        self._is_partial = is_partial
        self._known: dict[str, _Session] = {}

    def session_of(self, value: Any, model: ir.Model) -> str | None:
        """The id of the session that the params or a result name."""
        rules = model.sessions
        found = value.get(rules.key) if rules and isinstance(value, dict) else None
        return found if isinstance(found, str) else None

    def open(self, session: str) -> None:
        """Take up a session. One that was open before starts anew: it may be replayed."""
        self._known[session] = _Session()

    def call(self, method: ir.Method, params: Any, model: ir.Model, *, place: MessagePlace) -> Iterator[Misfit]:
        """The findings of a call at `place`."""
        rules, session = model.sessions, self.session_of(params, model)
        if rules is None or session is None:
            return
        if method.wire in rules.attach:
            self.open(session)
        elif method.wire in rules.scoped and not self._is_open(session):
            state = "has ended" if session in self._known else "was not opened on this connection"
            message = f"the session {session!r} {state}"
            yield Misfit(code="session", severity=Severity.ERROR, pointer=f"/params/{rules.key}", message=message)
        if (updates := rules.updates) is not None and (state_of := self._known.get(session)) is not None:
            _follow_turn(updates.turn, method.wire, state_of)
            if (update := update_in(method, params, model)) is not None:
                yield from _follow_update(updates, update, state_of, place=place)

    def ask(self, method: ir.Method, session: str, model: ir.Model) -> None:
        """Note a request that is in flight now."""
        self._count(method, session, model, step=1)

    def answer(self, method: ir.Method, session: str, model: ir.Model, *, is_error: bool) -> None:
        """Note that a request was answered."""
        self._count(method, session, model, step=-1)
        rules, state = model.sessions, self._known.get(session)
        if rules is not None and method.wire in rules.end and not is_error:
            state = self._known.setdefault(session, _Session())
            state.is_open = False
        if state is not None and state.is_cancelled and not state.turns:
            state.tasks = dict.fromkeys(state.tasks)  # the user has stopped them, so no update has to say so

    def finish(self) -> Iterator[tuple[MessagePlace, Misfit]]:
        """The tasks that have not ended, though no turn of their session is in flight. Each has its place."""
        for state in self._known.values():
            for task, place in state.tasks.items() if not state.turns else ():
                if place is not None:
                    message = f"{task!r} was never reported as ended"
                    yield place, Misfit(code="not-ended", severity=Severity.NOTE, pointer="", message=message)

    def _is_open(self, session: str) -> bool:
        return self._known[session].is_open if session in self._known else self._is_partial

    def _count(self, method: ir.Method, session: str, model: ir.Model, *, step: int) -> None:
        rules, state = model.sessions, self._known.get(session)
        if rules is None or state is None:
            return
        if method.wire in rules.attach:
            state.replays += step
        elif rules.updates and rules.updates.turn and method.wire == rules.updates.turn.request:
            state.turns += step
            state.has_had_turn = True


@dataclass(frozen=True, slots=True)
class ReportedUpdate:
    """An update that params have: the tag that says what it is, and the id of the task that it reports on."""

    content: Mapping[str, Any]
    tag: str | None
    task: str | None


def update_in(method: ir.Method, params: Any, model: ir.Model) -> ReportedUpdate | None:
    """The update in the params of a method; None if there is none, or if another method reports them."""
    updates = model.sessions.updates if model.sessions else None
    if updates is None or method.wire != updates.method or not isinstance(params, dict):
        return None
    content = params.get(updates.property)
    if not isinstance(content, dict):
        return None
    tag = _text(content.get(_tag_property(method, updates, model)))
    return ReportedUpdate(content, tag, _text(content.get(updates.tasks.id)) if updates.tasks else None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _tag_property(method: ir.Method, updates: Updates, model: ir.Model) -> str | None:
    params = model.definition(method.params)
    fields = params.fields if isinstance(params, ir.Struct) else ()
    found = next((each.type for each in fields if each.wire == updates.property), None)
    union = model.definition(found) if found is not None else None
    return union.tag if isinstance(union, ir.TaggedUnion) else None


def _follow_turn(turn: TurnFacts | None, wire: str, state: _Session) -> None:
    if turn is not None and wire in (turn.request, turn.cancel):
        state.is_cancelled = wire == turn.cancel


def _follow_update(
    updates: Updates, update: ReportedUpdate, state: _Session, *, place: MessagePlace
) -> Iterator[Misfit]:
    turn, tasks = updates.turn, updates.tasks
    if turn and update.tag in turn.tags and state.has_had_turn and not state.turns and not state.replays:
        message = f"{update.tag!r} comes after the answer to {turn.request!r}, which ended the turn"
        pointer = f"/params/{updates.property}"
        yield Misfit(code="after-turn", severity=Severity.WARNING, pointer=pointer, message=message)
    if tasks is None or update.task is None:
        return
    if update.content.get(tasks.status) in tasks.ended:
        state.tasks[update.task] = None
    elif tasks.status in update.content or update.task not in state.tasks:
        known = state.tasks.get(update.task)
        state.tasks[update.task] = known or place  # one that had ended goes on
