"""Follow a connection: pair requests with answers, and check each message against the schema."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from statistics import median
from typing import Any

from acpgen.diagnostics import Severity
from acpgen.ir import model as ir
from acpgen.ir.gate_tags import tags_that_do_not_count
from acpgen.ir.gated_places import GatedPlaces, Place
from acpgen.ir.names import class_name
from acpgen.roles import Side
from acpgen.schema.document import join
from acpgen.schema.gates import Gate
from acpgen.trace.lines import Event, MessagePlace, TraceEntry
from acpgen.trace.sessions import RecordedSessions, update_in
from acpgen.trace.values import Misfit, misfits
from acpgen.trace.writing import closed_gates, records

_IDS = (ir.Primitive.STRING, ir.Primitive.INTEGER, ir.Primitive.NULL)
"""What the id of a request may be."""


class LineKind(Enum):
    """What a line is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    FAILURE = "error"
    PROBLEM = "no message"
    EVENT = "event"


@dataclass(slots=True, kw_only=True)
class Seen:
    """A line of the trace, and what is known of it. `number` counts the lines that are read from 0.

    `asked` is the number of the request that it answers, and `seconds` the time since then.
    """

    number: int
    entry: TraceEntry
    connection: str = ""
    kind: LineKind = LineKind.PROBLEM
    sender: Side | None = None
    protocol: int
    method: str | None = None
    tag: str | None = None
    session: str | None = None
    task: str | None = None
    asked: int | None = None
    seconds: float | None = None
    findings: list[Misfit] = field(default_factory=list)

    @property
    def place(self) -> MessagePlace:
        """Where it is, for findings that are made later."""
        entry = self.entry
        return MessagePlace(
            number=self.number, line=entry.line, part=entry.part, protocol=self.protocol, method=self.method
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenRequest:
    """A request without an answer so far."""

    place: MessagePlace
    method: str
    known: ir.Method | None
    model: ir.Model
    session: str | None
    time: float | None


@dataclass(slots=True)
class Total:
    """The messages of one method. `seconds` are the durations of its requests where the lines have times."""

    count: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def times(self) -> tuple[str, str]:
        """The median and the longest duration in words; empty if there is none."""
        return (f"{median(self.seconds):.3f} s", f"{max(self.seconds):.3f} s") if self.seconds else ("", "")


def _problem(code: str, message: str, pointer: str = "", *, severity: Severity = Severity.ERROR) -> Misfit:
    return Misfit(code=code, severity=severity, pointer=pointer, message=message)


class Conversation:
    """The connection `name`. `models` has a model by protocol; the first counts until a version is negotiated.

    What was said before is not known of one that is `partial`: so nothing is missing in it.
    """

    def __init__(
        self, name: str, models: Mapping[int, ir.Model], totals: defaultdict[str, Total], *, is_partial: bool
    ) -> None:
        self.name = name
        self.models = models
        self.model = next(iter(models.values()))
        self.totals = totals
        self._seen = Seen(number=0, entry=TraceEntry(line=0), protocol=self.model.protocol)
        self._pending: dict[tuple[Side, str], _OpenRequest] = {}
        self._answered: set[tuple[Side, str]] = set()
        self._announced: dict[str, Any] = {}
        self._gated_places: dict[int, Callable[[ir.TypeExpr], list[Place]]] = {}
        self._sessions = RecordedSessions(is_partial=is_partial)
        self._has_started = self._is_partial = is_partial
        self._is_recorded = self._has_ended = self._has_gaps = False

    def read(self, entry: TraceEntry, number: int) -> Seen:
        """What is known of the next line, with its findings."""
        seen = Seen(number=number, entry=entry, connection=self.name, sender=entry.sender, protocol=self.model.protocol)
        self._seen = seen
        if entry.event is not None:
            seen.kind = LineKind.EVENT
            self._event(entry.event)
            return seen
        try:
            seen.findings.extend(self._message(entry))
        except RecursionError:
            seen.findings.append(_problem("no-message", "the message is nested too deeply to be checked"))
        seen.protocol = self.model.protocol
        return seen

    def _event(self, event: Event) -> None:
        self._is_recorded |= event is Event.START
        self._has_ended |= event is Event.END
        self._has_gaps |= event is Event.LOST

    def _message(self, entry: TraceEntry) -> Iterator[Misfit]:
        if entry.around is not None:
            yield _problem("text-around", entry.around, severity=Severity.NOTE)
        if entry.starts_batch:
            yield _problem("envelope", "ACP has no batches: each message is a line of its own")
        if entry.problem is not None:
            yield _problem("no-message", entry.problem)
        elif not isinstance(message := entry.message, dict):
            yield _problem("no-message", "the line has no object")
        else:
            if message.get("jsonrpc") != "2.0":
                yield _problem("envelope", 'expected "2.0"', "/jsonrpc")
            if "method" in message:
                yield from self._call(entry, message)
            else:
                yield from self._answer(entry, message)

    def finish(self, *, is_cut: bool) -> Iterator[tuple[MessagePlace, Misfit]]:
        """What has no end: each request and task with the place of its message.

        A trace that was cut may lack the end, so a request without an answer is no error in it.
        """
        is_cut |= self._has_gaps or (self._is_recorded and not self._has_ended)
        severity = Severity.NOTE if is_cut else Severity.ERROR
        for call in self._pending.values():
            message = f"the request {call.method!r} has no answer"
            yield call.place, _problem("unanswered", message, severity=severity)
        if not is_cut:
            yield from self._sessions.finish()

    # --- Calls ---------------------------------------------------------------------------------------------------

    def _call(self, entry: TraceEntry, message: dict[str, Any]) -> Iterator[Misfit]:
        wire = message["method"]
        if not isinstance(wire, str):
            yield _problem("envelope", "a method is a string", "/method")
            return
        self.totals[wire].count += 1
        params = message.get("params")
        self._negotiate(self.model, wire, params)
        method = self._find(wire, entry.sender)
        self._describe(wire, method, params, is_request="id" in message)
        if method is None:
            yield self._unknown(wire)
        else:
            yield from self._known(method, entry, message)
            yield from misfits(method.params, {} if params is None else params, self.model, at="/params")
            if method.gate is None or not self._lacks(method.gate):
                yield from self._values(method.params, params, self.model, at="/params")
            if isinstance(method.params, ir.Ref):
                self._announce(method, method.params.name, params)
        if "id" in message:
            yield from self._ask(entry, message, method)

    def _describe(self, wire: str, method: ir.Method | None, params: Any, *, is_request: bool) -> None:
        seen = self._seen
        seen.kind = LineKind.REQUEST if is_request else LineKind.NOTIFICATION
        seen.method, seen.session = wire, self._sessions.session_of(params, self.model)
        if method is None:
            return
        if seen.sender is None and method.handlers:
            seen.sender = method.handlers[0].peer
        if (update := update_in(method, params, self.model)) is not None:
            seen.tag, seen.task = update.tag, update.task

    def _find(self, wire: str, sender: Side | None) -> ir.Method | None:
        found = [each for each in self.model.methods if each.wire == wire]
        return next((each for each in found if sender is None or sender.peer in each.handlers), next(iter(found), None))

    def _unknown(self, wire: str) -> Misfit:
        is_vendor = wire.startswith("_")  # the protocol reserves this prefix for extensions
        severity = Severity.NOTE if is_vendor else Severity.ERROR
        message = f"protocol {self.model.protocol} has no method {wire!r}"
        return Misfit(code="unknown-method", severity=severity, pointer="/method", message=message, unknown=wire)

    def _known(self, method: ir.Method, entry: TraceEntry, message: dict[str, Any]) -> Iterator[Misfit]:
        is_request = method.kind is ir.MethodKind.REQUEST
        if is_request != ("id" in message):
            form = "a request, and needs an id" if is_request else "a notification, and has no id"
            yield _problem("wrong-kind", f"{method.wire!r} is {form}", "" if is_request else "/id")
        if entry.sender is not None and method.handlers and entry.sender.peer not in method.handlers:
            yield _problem("wrong-side", f"{method.wire!r} is not for the {entry.sender.peer.value}", "/method")
        yield from self._order(method)
        yield from self._capability(method)
        yield from self._sessions.call(method, message.get("params"), self.model, place=self._seen.place)

    def _order(self, method: ir.Method) -> Iterator[Misfit]:
        negotiation = self.model.negotiation
        if negotiation is None or self._has_started:
            return
        self._has_started = True
        if method.wire != negotiation.method and len(method.handlers) == 1:
            yield _problem("before-start", f"{method.wire!r} comes before {negotiation.method!r}", "/method")

    def _capability(self, method: ir.Method) -> Iterator[Misfit]:
        if (gate := method.gate) is not None and self._lacks(gate):
            yield _problem("capability", f"{method.wire!r} needs {gate}, which was not advertised", "/method")

    def _values(self, expression: ir.TypeExpr, value: Any, model: ir.Model, *, at: str) -> Iterator[Misfit]:
        """The values in params or a result whose capability was not advertised: those that packages do not send."""
        if not self._announced:
            return
        if model.protocol not in self._gated_places:
            self._gated_places[model.protocol] = cache(GatedPlaces(model).find)
        for found in closed_gates().find_closed(value, self._gated_places[model.protocol](expression)):
            gated: ir.GatedValue = found.gate
            if self._lacks(gated.gate):
                message = f"{gated} needs {gated.gate}, which was not advertised"
                about = ".".join((gated.definition, *gated.properties[:1]))
                yield replace(_problem("capability", message, join(at, *found.path)), about=about)

    def _lacks(self, gate: Gate) -> bool:
        """Whether capabilities were advertised, but not that of the gate."""
        if (name := class_name(gate.root)) not in self._announced:
            return False
        stated, but = self._announced[name], tags_that_do_not_count(gate, self.model)
        return not any(records().opens(records().value_at(stated, path), but) for path in gate.paths)

    def _ask(self, entry: TraceEntry, message: dict[str, Any], method: ir.Method | None) -> Iterator[Misfit]:
        wire, identity = message["method"], message["id"]
        if ir.Primitive.of(identity) not in _IDS:
            yield _problem("envelope", "an id is a string, an integer or null", "/id")
            return
        side = self._seen.sender or Side.CLIENT
        key = (side, json.dumps(identity))
        if key in self._pending:
            yield _problem("id-in-use", f"the id {key[1]} belongs to a request that has no answer yet", "/id")
        self._answered.discard(key)
        if method is not None and self._seen.session is not None:
            self._sessions.ask(method, self._seen.session, self.model)
        self._pending[key] = _OpenRequest(
            place=self._seen.place,
            method=wire,
            known=method,
            model=self.model,
            session=self._seen.session,
            time=entry.time,
        )

    # --- Answers -------------------------------------------------------------------------------------------------

    def _answer(self, entry: TraceEntry, message: dict[str, Any]) -> Iterator[Misfit]:
        if ("result" in message) == ("error" in message):
            yield _problem("envelope", "an answer has either a result or an error")
        self._seen.kind = LineKind.FAILURE if "error" in message else LineKind.RESULT
        key, call = self._asked(entry, message.get("id"))
        if call is None:
            yield from self._unasked(key, message)
            return
        del self._pending[key]
        self._answered.add(key)
        self._pair(key, call)
        if call.known is not None and call.session is not None:
            is_error = "error" in message
            self._sessions.answer(call.known, call.session, call.model, is_error=is_error)
        if "error" in message:
            yield from self._failure(message["error"])
        elif "result" in message and call.known is not None:
            yield from self._result(call, call.known, message["result"])

    def _unasked(self, key: tuple[Side, str], message: dict[str, Any]) -> Iterator[Misfit]:
        """The finding of an answer to no request that is known. In a partial trace, it may have been asked before."""
        if (key in self._answered or not self._is_partial) and (
            message.get("id") is not None or "error" not in message
        ):
            what = "was answered before" if key in self._answered else "belongs to no request"
            yield _problem("no-request", f"the id {key[1]} {what}", "/id")

    def _pair(self, key: tuple[Side, str], call: _OpenRequest) -> None:
        seen, time = self._seen, self._seen.entry.time
        seen.asked, seen.method, seen.session = call.place.number, call.method, call.session
        seen.sender = seen.sender or key[0].peer
        if call.time is not None and time is not None:
            seen.seconds = time - call.time
            self.totals[call.method].seconds.append(seen.seconds)

    def _asked(self, entry: TraceEntry, identity: Any) -> tuple[tuple[Side, str], _OpenRequest | None]:
        """The request of an answer. Where the line does not say its sender, the last one with this id."""
        text = json.dumps(identity)
        sides = [entry.sender.peer] if entry.sender else list(Side)
        found = [(side, text) for side in sides if (side, text) in self._pending]
        if not found:
            answered = ((side, text) for side in sides if (side, text) in self._answered)
            return next(answered, (sides[0], text)), None
        key = max(found, key=lambda each: self._pending[each].place.number)
        return key, self._pending[key]

    def _failure(self, error: Any) -> Iterator[Misfit]:
        if not isinstance(error, dict):
            yield _problem("envelope", "an error is an object", "/error")
            return
        if ir.Primitive.of(error.get("code")) is not ir.Primitive.INTEGER:
            yield _problem("envelope", "the code of an error is an integer", "/error/code")
        if not isinstance(error.get("message"), str):
            yield _problem("envelope", "the message of an error is a string", "/error/message")

    def _result(self, call: _OpenRequest, method: ir.Method, result: Any) -> Iterator[Misfit]:
        model = self._negotiate(call.model, call.method, result)
        method = next((each for each in model.methods if each.wire == method.wire), method)
        if method.result is not None:
            yield from misfits(method.result, {} if result is None else result, model, at="/result")
            yield from self._values(method.result, result, model, at="/result")
            if isinstance(method.result, ir.Ref):
                self._announce(method, method.result.name, result)
        if (opened := self._sessions.session_of(result, model)) is not None:
            self._sessions.open(opened)
            self._seen.session = opened

    # --- The version ---------------------------------------------------------------------------------------------

    def _negotiate(self, model: ir.Model, wire: str, value: Any) -> ir.Model:
        """The model for params or a result: `model`, or from now on that of the version that they negotiate."""
        rules = model.negotiation
        if rules is None or wire != rules.method or not isinstance(value, dict):
            return model
        stated = value.get(rules.version)
        if isinstance(stated, int) and not isinstance(stated, bool):
            self.model = self.models.get(stated, self.model)
        return self.model

    def _announce(self, method: ir.Method, name: str, value: Any) -> None:
        if self.model.negotiation is not None and method.wire == self.model.negotiation.method:
            self._announced[name] = value
