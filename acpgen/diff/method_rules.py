"""Rules about methods, without the types that they carry."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff.findings import SOURCE_OK, ChangePlace, Effect, Found, Use, WireVerdict, breaks, risks
from acpgen.diff.rules import BY_TYPE, MODELS, ModelPair, RuleTable
from acpgen.diff.type_forms import shown
from acpgen.ir import model as ir
from acpgen.roles import Side
from acpgen.text import cut

METHODS = RuleTable[ModelPair, ir.Method, ir.Method]()
"""Rules about paired methods."""

_GONE = breaks(Use.CALL, Use.HANDLE)


@MODELS.pair(
    ("method-added", "a method is new", "ok: one more handler and one more call"),
    ("method-removed", "a method is gone", "breaks: the handler is never called, the stub is gone"),
    wire="new to old breaks for a request, loses for a notification; ok with a gate: old peers do not advertise it",
)
def _unpaired(models: ModelPair) -> Iterator[Found]:
    for method in models.pairs.added:
        place, effect = ChangePlace(method=method.wire), Effect(WireVerdict.OK, _unhandled(method))
        yield Found(place, f"new method: {_described(method)}", effect).sent_by(_callers(method))
    for method in models.pairs.removed:
        place, effect = ChangePlace(method=method.wire), Effect(_unhandled(method), WireVerdict.OK)
        found = Found(place, f"method removed: {_described(method)}", effect, _GONE, is_reverse=True)
        yield found.sent_by(_callers(method))


@METHODS.rule(
    "method-renamed",
    "a method has another name, but the same side, kind and types; the names share a word, or the types kept theirs",
    wire="as if one method were removed and the other added",
    source="breaks: handler and call have another name; ok if it is the same in Python",
)
def _renamed(_: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    if old.wire != new.wire:
        place, source = ChangePlace(method=new.wire, was=old.wire), SOURCE_OK if old.name == new.name else _GONE
        effect = Effect(_unhandled(old), _unhandled(new))
        yield Found(place, f"is the new name of {cut(old.wire)}", effect, source).sent_by(_callers(new))


@METHODS.rule(
    "method-side-changed",
    "the method has another side (`x-side`)",
    wire="breaks towards a side that does not handle it in the release of the reader (a notification: loses)",
    source="breaks: it moved to another class; ok if the handlers are the same",
)
def _side_changed(_: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    if not _are_same(old, new) or old.side == new.side:
        return
    before, after = _callers(old), _callers(new)
    yield Found(
        ChangePlace(method=new.wire),
        f"the side is {cut(new.side)} now; before: {cut(old.side)}",
        source=_GONE if set(before) - set(after) else SOURCE_OK,
        wire={
            side: Effect(
                WireVerdict.OK if side in after or side not in before else _refused(old),
                WireVerdict.OK if side in before or side not in after else _refused(new),
            )
            for side in Side
            if side in {*before, *after}
        },
    )


@METHODS.rule(
    "method-kind-changed",
    "a request became a notification, or the reverse",
    wire="breaks both ways: a response is awaited and not sent, or sent and not awaited",
    source="breaks: the handler returns something else",
)
def _kind_changed(_: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    if old.wire == new.wire and old.kind is not new.kind:
        message = f"is a {new.kind.value} now; before: a {old.kind.value}"
        effect = Effect(WireVerdict.BREAKS, WireVerdict.BREAKS)
        yield Found(ChangePlace(method=new.wire), message, effect, _GONE).sent_by(_callers(new))


@METHODS.rule(
    "method-params-changed",
    "the parameters have another type, not just a renamed one",
    wire=BY_TYPE,
    source="breaks: handler and call take another type",
)
def _params_changed(models: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    if _are_same(old, new) and not models.agree(old.params, new.params):
        message = f"the parameters are {shown(new.params)} now; before: {shown(old.params)}"
        effect = models.effect(old.params, new.params)
        yield Found(ChangePlace(method=new.wire), message, effect, _GONE).sent_by(_callers(new))


@METHODS.rule(
    "method-result-changed",
    "the result has another type, not just a renamed one",
    wire=BY_TYPE,
    source="breaks: handler and call return another type",
)
def _result_changed(models: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    before, after = old.result, new.result
    if _are_same(old, new) and before is not None and after is not None and not models.agree(before, after):
        message = f"the result is {shown(after)} now; before: {shown(before)}"
        yield Found(ChangePlace(method=new.wire), message, models.effect(before, after), _GONE).sent_by(new.handlers)


# --- Gates ----------------------------------------------------------------------------------------------------------


@METHODS.pair(
    (
        "method-gate-added",
        "the method needs a capability now",
        "risk: the stub refuses calls to peers that do not advertise it",
    ),
    ("method-gate-removed", "the method needs no capability any more", "ok: the stub refuses fewer calls"),
    wire="old to new breaks: old callers do not check it; "
    "new to old loses: new callers do not call old peers, which do not advertise it",
)
def _gate(models: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    callers = _callers_by_gate(models, old, new)
    if callers and old.gate is None and new.gate is not None:
        effect, source = Effect(_refused(new), WireVerdict.LOSES), risks(Use.CALL)
        yield Found(ChangePlace(method=new.wire), f"needs a capability now: {new.gate}", effect, source).sent_by(
            callers
        )
    if callers and old.gate is not None and new.gate is None:
        message, effect = f"needs no capability any more; before: {old.gate}", Effect(WireVerdict.LOSES, _refused(new))
        yield Found(ChangePlace(method=new.wire), message, effect, is_reverse=True).sent_by(callers)


@METHODS.rule(
    "method-gate-changed",
    "the method needs another capability",
    wire="loses both ways: callers check a capability that the peer does not advertise, and do not call",
    source="risk: the handler must be advertised in another place",
)
def _gate_changed(models: ModelPair, old: ir.Method, new: ir.Method) -> Iterator[Found]:
    callers = _callers_by_gate(models, old, new)
    if callers and None not in (old.gate, new.gate) and old.gate != new.gate:
        message, effect = f"needs {new.gate} now; before: {old.gate}", Effect(WireVerdict.LOSES, WireVerdict.LOSES)
        yield Found(ChangePlace(method=new.wire), message, effect, risks(Use.HANDLE)).sent_by(callers)


def states_gates(model: ir.Model) -> bool:
    """Whether the capabilities that methods and values need are known: the schema itself does not state them."""
    known = (*model.gated_values, *(method for method in model.methods if method.gate is not None))
    return model.release is not None or bool(known)


def _callers_by_gate(models: ModelPair, old: ir.Method, new: ir.Method) -> tuple[Side, ...]:
    """The callers in both models, if the gates of both are known."""
    are_known = states_gates(models.old) and states_gates(models.new)
    return tuple(side for side in _callers(new) if side in _callers(old)) if are_known else ()


# --- What methods have in common ------------------------------------------------------------------------------------


def _are_same(old: ir.Method, new: ir.Method) -> bool:
    """Whether only sides and types of the methods may differ."""
    return (old.wire, old.kind) == (new.wire, new.kind)


def _callers(method: ir.Method) -> tuple[Side, ...]:
    return tuple(handler.peer for handler in method.handlers)


def _refused(method: ir.Method) -> WireVerdict:
    """The verdict on a message to a peer that does not handle the method."""
    return WireVerdict.BREAKS if method.kind is ir.MethodKind.REQUEST else WireVerdict.LOSES


def _unhandled(method: ir.Method) -> WireVerdict:
    """The same, for callers that check the capability first, if the method has one."""
    return WireVerdict.OK if method.gate is not None else _refused(method)


def _described(method: ir.Method) -> str:
    """The kind, handlers and gate of the method."""
    handlers = " and ".join(side.value for side in method.handlers)
    gate = f", gated by {method.gate}" if method.gate is not None else ""
    return cut(f"{method.kind.value} to the {handlers}{gate}", 200)
