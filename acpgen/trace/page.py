"""The page of a trace: one HTML file with all messages, which loads nothing.

Traces are untrusted. Messages are data in script elements that do not run, with each `<` escaped; the script of the
page shows them as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from acpgen.diagnostics import Severity
from acpgen.emit.versions import folder
from acpgen.ir import model as ir
from acpgen.ir.names import words
from acpgen.reference.html import method_anchor, render_html, type_anchor
from acpgen.roles import Side
from acpgen.trace.conversation import LineKind, Seen
from acpgen.trace.lines import Event
from acpgen.trace.reading import Finding, Trace

BLOCK = 500
"""The messages of a script element: the page parses one element at a time."""

MOST_ROWS = 300_000
"""The most messages of a page: browsers limit the height of an element."""

_SCRIPTS = ("data.js", "json.js", "filter.js", "list.js", "timeline.js", "detail.js", "page.js")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = tuple(LineKind)
_SIDES = tuple(Side)


def render_page(trace: Trace, *, reference: str | None) -> Iterator[str]:
    """The parts of the page. `reference` is the address of the page of `acpgen docs` for links."""
    messages = trace.messages[:MOST_ROWS]
    before, after = _frame(trace, len(messages)).split("<!-- data -->")
    yield before
    yield _data("index", "application/json", [_json(_index(trace, messages, reference))])
    rest = iter(messages)
    while block := list(islice(rest, BLOCK)):
        yield _data("", "application/x-ndjson", (_body(each) for each in block))
    yield after


def _frame(trace: Trace, shown: int) -> str:
    """The page without its data."""
    return render_html(
        "trace",
        scripts=_SCRIPTS,
        filters={},
        values={
            "file": trace.file.name,
            "shown": shown,
            "left_out": len(trace.messages) - shown,
            "counts": [(each, trace.counts[each]) for each in Severity],
            "totals": [(method, f"{each.count:,}", *each.times) for method, each in sorted(trace.totals.items())],
            "starts": [each.entry.message for each in trace.messages if each.entry.event is Event.START][:20],
            "origins": [trace.models[each].origin for each in sorted({each.protocol for each in trace.messages})],
        },
    )


# --- Data ------------------------------------------------------------------------------------------------------------


def _data(name: str, kind: str, lines: Iterable[str]) -> str:
    """A script element that does not run. `<` stands only in strings, where JSON has an escape for it."""
    attributes = f'id="{name}" type="{kind}"' if name else f'type="{kind}"'
    return f"<script {attributes}>\n" + "\n".join(lines).replace("<", "\\u003c") + "\n</script>\n"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _body(seen: Seen) -> str:
    """The message as one line of JSON; of a line without a message, its text."""
    try:
        return _json(seen.entry.message if seen.entry.problem is None else seen.entry.message or "")
    except (RecursionError, ValueError):
        return _json("this message is nested too deeply to be shown")


class _Table:
    """The columns of numbers, a row for each message, and the names that they stand for. None is -1.

    The ids of sessions are names in their connection, and those of tasks in their session.
    """

    def __init__(self, messages: list[Seen]) -> None:
        self.names: dict[str, list[str]] = {}
        self.rows: dict[str, list[Any]] = {
            "line": [each.entry.line for each in messages],
            "time": _times(messages),
            "kind": [_KINDS.index(each.kind) for each in messages],
            "side": [-1 if each.sender is None else _SIDES.index(each.sender) for each in messages],
            "protocol": [each.protocol for each in messages],
            "connection": self._column("connection", (each.connection for each in messages)),
            "method": self._column("method", (each.method for each in messages)),
            "tag": self._column("tag", (each.tag for each in messages)),
            "session": self._column("session", map(_session, messages)),
            "task": self._column("task", map(_task, messages)),
            "asked": [-1 if each.asked is None else each.asked for each in messages],
        }

    def _column(self, key: str, names: Iterable[Any]) -> list[int]:
        """Number names from 0, in the order in which they come."""
        known: dict[Any, int] = {}
        column = [-1 if name is None else known.setdefault(name, len(known)) for name in names]
        self.names[key] = [name[-1] if isinstance(name, tuple) else name for name in known]
        return column


def _session(seen: Seen) -> tuple[str, str] | None:
    return None if seen.session is None else (seen.connection, seen.session)


def _task(seen: Seen) -> tuple[str, str | None, str] | None:
    return None if seen.task is None else (seen.connection, seen.session, seen.task)


def _index(trace: Trace, messages: list[Seen], reference: str | None) -> dict[str, Any]:
    """What the page knows of messages before it parses them."""
    table, models = _Table(messages), trace.models
    anchors = _anchors(models, table.names["method"])
    return {
        "block": BLOCK,
        "kinds": [each.value for each in _KINDS],
        "sides": [each.value for each in _SIDES],
        "reference": reference,
        "anchors": anchors if reference is not None else {},
        "skip": _skipped(models.values()),
        "ids": _id_properties(models.values()),
        "texts": _text_properties(models.values()),
        "tagged": _tag_properties(models.values()),
        "task": _task_words(models.values()),
        "methods": table.names["method"],
        "tags": table.names["tag"],
        "sessions": table.names["session"],
        "tasks": table.names["task"],
        "connections": table.names["connection"],
        "rows": table.rows,
        "findings": [
            _finding(each, models[each.place.protocol], anchors)
            for each in trace.findings
            if each.place.number < len(messages)
        ],
    }


def _times(messages: list[Seen]) -> list[float | None]:
    """The seconds since the first message."""
    first = next((each.entry.time for each in messages if each.entry.time is not None), 0.0)
    return [None if each.entry.time is None else round(each.entry.time - first, 6) for each in messages]


def _finding(found: Finding, model: ir.Model, anchors: Mapping[str, Mapping[str, str]]) -> list[Any]:
    """A finding, with the anchor of what the schema says of the value, or of the method."""
    shown, place = found.diagnostic, found.place
    anchor = anchors[str(place.protocol)].get(place.method or "")
    if found.about:
        name, dot, wire = found.about.partition(".")
        anchor = type_anchor(folder(model), name, wire if dot else None)
    return [place.number, shown.severity.value, shown.code, shown.pointer or "", shown.message, shown.hint, anchor]


def _anchors(models: Mapping[int, ir.Model], methods: Iterable[str]) -> dict[str, dict[str, str]]:
    """The anchors of methods by protocol."""
    found: dict[str, dict[str, str]] = {}
    for protocol, model in models.items():
        known = {each.wire for each in model.methods}
        found[str(protocol)] = {wire: method_anchor(folder(model), wire) for wire in methods if wire in known}
    return found


def _skipped(models: Iterable[ir.Model]) -> list[str]:
    """The properties that say nothing in a preview: the ids that have columns of their own."""
    rules = [each.sessions for each in models if each.sessions]
    tasks = [each.updates.tasks.id for each in rules if each.updates and each.updates.tasks]
    return sorted({"_meta", *(each.key for each in rules), *tasks})


def _id_properties(models: Iterable[ir.Model]) -> list[str]:
    """The properties that are ids: texts that are for no reader."""
    fields = (
        (model, field)
        for model in models
        for each in model.by_name.values()
        if isinstance(each, ir.Struct)
        for field in each.fields
    )
    return sorted({field.wire for model, field in fields if _is_id(field, model)})


def _is_id(field: ir.Field, model: ir.Model) -> bool:
    """True for a string whose type or own name is an id."""
    inner = field.type.inner if isinstance(field.type, ir.Nullable) else field.type
    target = model.by_name[inner.name] if isinstance(inner, ir.Ref) else None
    names = [field.wire, *([target.name] if isinstance(target, ir.Alias) else [])]
    return _is_text(inner, model) and any(words(each)[-1:] in (["Id"], ["id"], ["ID"]) for each in names)


def _is_text(expression: ir.TypeExpr, model: ir.Model) -> bool:
    if isinstance(expression, ir.Ref) and isinstance(target := model.by_name[expression.name], ir.Alias):
        return _is_text(target.type, model)
    return isinstance(expression, ir.Scalar) and expression.primitive is ir.Primitive.STRING


def _text_properties(models: Iterable[ir.Model]) -> dict[str, dict[str, str]]:
    """The texts of content, by the property and the value that tell it: its only required property is a string."""
    found: dict[str, dict[str, str]] = {}
    for model in models:
        for union in (each for each in model.by_name.values() if isinstance(each, ir.TaggedUnion)):
            for variant in union.variants:
                target = model.by_name[variant.target]
                fields = target.fields if isinstance(target, ir.Struct) else ()
                required = [each for each in fields if each.required and each.wire != union.tag]
                if len(required) == 1 and isinstance(required[0].type, ir.Scalar) and _is_text(required[0].type, model):
                    found.setdefault(union.tag, {}).setdefault(variant.tag, required[0].wire)
    return found


def _tag_properties(models: Iterable[ir.Model]) -> list[str]:
    """The properties that tell the members of unions apart."""
    return sorted({each.tag for model in models for each in model.by_name.values() if isinstance(each, ir.TaggedUnion)})


def _task_words(models: Iterable[ir.Model]) -> str:
    """What tasks are called: their id without "Id", in words."""
    known = [each.sessions.updates for each in models if each.sessions and each.sessions.updates]
    wire = next((each.tasks.id for each in known if each.tasks), "task")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", wire.removesuffix("Id")).lower()
