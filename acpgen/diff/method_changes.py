"""Compare the methods of two models, and the parts of the protocol that are neither methods nor types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.findings import FINE, SOURCE_OK, DiffFinding, Effect, Place, Use, Wire, breaks, risks
from acpgen.diff.spelling import shown
from acpgen.ir import model as ir
from acpgen.roles import Side
from acpgen.text import cut

_GONE = breaks(Use.CALL, Use.HANDLE)
_REFUSED = Effect(Wire.BREAKS, Wire.BREAKS)


def compare_protocols(old: ir.Model, new: ir.Model) -> Iterator[DiffFinding]:
    """The differences that concern no method and no type."""
    for finding in (*_protocol(old, new), *_errors(old, new)):
        yield finding.sent_by(Side)


def _protocol(old: ir.Model, new: ir.Model) -> Iterator[DiffFinding]:
    place, before, after = Place(), old.envelope, new.envelope
    if old.protocol != new.protocol:
        message = f"the protocol has version {new.protocol} now; before: {old.protocol}"
        yield DiffFinding(rules.PROTOCOL_CHANGED, place, message, _REFUSED, source=risks(Use.IMPORT))
    if after.null_ids and not before.null_ids:
        message = "requests whose id is null are allowed now"
        yield DiffFinding(rules.NULL_IDS_ADDED, place, message, Effect(Wire.OK, Wire.BREAKS))
    if before.null_ids and not after.null_ids:
        message = "requests whose id is null are no longer allowed"
        yield DiffFinding(rules.NULL_IDS_REMOVED, place, message, Effect(Wire.BREAKS, Wire.OK))
    # the runtime reads errors without an id in any case: no request waits for such an answer
    if after.null_error_ids and not before.null_error_ids:
        yield DiffFinding(rules.NULL_ERROR_IDS_ADDED, place, "errors whose id is null are allowed now", FINE)
    if before.null_error_ids and not after.null_error_ids:
        yield DiffFinding(rules.NULL_ERROR_IDS_REMOVED, place, "errors whose id is null are no longer allowed", FINE)


def _errors(old: ir.Model, new: ir.Model) -> Iterator[DiffFinding]:
    before, after = ({each.code: each.name for each in model.errors.codes} for model in (old, new))
    gone = breaks(Use.IMPORT)
    for code, name in before.items():
        place = Place(member=f"error {code}")
        if code not in after:
            yield DiffFinding(rules.ERROR_CODE_REMOVED, place, f"has no name any more; before: {name}", source=gone)
        elif after[code] != name:
            message = f"is named {after[code]} now; before: {name}"
            yield DiffFinding(rules.ERROR_CODE_RENAMED, replace(place, was=name), message, source=gone)
    for code, name in after.items():
        if code not in before:
            yield DiffFinding(rules.ERROR_CODE_ADDED, Place(member=f"error {code}"), f"has a name now: {name}")


def compare_methods(bump: Bump) -> Iterator[DiffFinding]:
    """The differences of methods, without those of the types that they carry."""
    for method in bump.pairs.added:
        place, effect = Place(method=method.wire), Effect(Wire.OK, _unhandled(method))
        found = DiffFinding(rules.METHOD_ADDED, place, f"new method: {_described(method)}", effect)
        yield found.sent_by(_callers(method))
    for method in bump.pairs.removed:
        place, effect = Place(method=method.wire), Effect(_unhandled(method), Wire.OK)
        found = DiffFinding(rules.METHOD_REMOVED, place, f"method removed: {_described(method)}", effect, _GONE)
        yield found.sent_by(_callers(method))
    for old, new in bump.pairs.methods:
        yield from _compare(bump, old, new)


def _compare(bump: Bump, old: ir.Method, new: ir.Method) -> Iterator[DiffFinding]:
    place = Place(method=new.wire, was=old.wire if old.wire != new.wire else None)
    if old.wire != new.wire:
        effect, source = Effect(_unhandled(old), _unhandled(new)), SOURCE_OK if old.name == new.name else _GONE
        found = DiffFinding(rules.METHOD_RENAMED, place, f"is the new name of {cut(old.wire)}", effect, source)
        yield found.sent_by(_callers(new))
    elif old.kind is not new.kind:
        message = f"is a {new.kind.value} now; before: a {old.kind.value}"
        yield DiffFinding(rules.METHOD_KIND_CHANGED, place, message, _REFUSED, _GONE).sent_by(_callers(new))
    else:
        yield from _handlers(old, new)
        yield from _types(bump, old, new)
    if states_gates(bump.old) and states_gates(bump.new) and old.gate != new.gate:
        yield from _gates(old, new)
    if old.doc != new.doc:
        yield DiffFinding(rules.DOCUMENTATION, Place(method=new.wire), "other text about the method")


def _callers(method: ir.Method) -> tuple[Side, ...]:
    return tuple(handler.peer for handler in method.handlers)


def _refused(method: ir.Method) -> Wire:
    """The verdict on a message to a peer that does not handle the method."""
    return Wire.BREAKS if method.kind is ir.MethodKind.REQUEST else Wire.LOSES


def _unhandled(method: ir.Method) -> Wire:
    """The same, for callers that check the capability first, if the method has one."""
    return Wire.OK if method.gate is not None else _refused(method)


def _described(method: ir.Method) -> str:
    """The kind, handlers and gate of the method."""
    handlers = " and ".join(side.value for side in method.handlers)
    gate = f", gated by {method.gate}" if method.gate is not None else ""
    return cut(f"{method.kind.value} to the {handlers}{gate}", 200)


def _handlers(old: ir.Method, new: ir.Method) -> Iterator[DiffFinding]:
    if old.side == new.side:
        return
    before, after = _callers(old), _callers(new)
    yield DiffFinding(
        rules.METHOD_SIDE_CHANGED,
        Place(method=new.wire),
        f"the side is {cut(new.side)} now; before: {cut(old.side)}",
        source=_GONE if set(before) - set(after) else SOURCE_OK,
        wire={
            side: Effect(
                Wire.OK if side in after or side not in before else _refused(old),
                Wire.OK if side in before or side not in after else _refused(new),
            )
            for side in Side
            if side in {*before, *after}
        },
    )


def _types(bump: Bump, old: ir.Method, new: ir.Method) -> Iterator[DiffFinding]:
    for rule, before, after, senders, subject in (
        (rules.METHOD_PARAMS_CHANGED, old.params, new.params, _callers(new), "the parameters are"),
        (rules.METHOD_RESULT_CHANGED, old.result, new.result, new.handlers, "the result is"),
    ):
        if before is not None and after is not None and not bump.agree(before, after):
            message = f"{subject} {shown(after)} now; before: {shown(before)}"
            effect = bump.effect(before, after)
            yield DiffFinding(rule, Place(method=new.wire), message, effect, _GONE).sent_by(senders)


def states_gates(model: ir.Model) -> bool:
    """Whether the capabilities that methods need are known: the schema itself does not state them."""
    return model.release is not None or any(method.gate is not None for method in model.methods)


def _gates(old: ir.Method, new: ir.Method) -> Iterator[DiffFinding]:
    callers = [side for side in _callers(new) if side in _callers(old)]
    place, refused = Place(method=new.wire), _refused(new)
    if old.gate is None:
        message, effect = f"needs a capability now: {new.gate}", Effect(refused, Wire.LOSES)
        found = DiffFinding(rules.METHOD_GATE_ADDED, place, message, effect, risks(Use.CALL))
    elif new.gate is None:
        message, effect = f"needs no capability any more; before: {old.gate}", Effect(Wire.LOSES, refused)
        found = DiffFinding(rules.METHOD_GATE_REMOVED, place, message, effect)
    else:
        message, effect = f"needs {new.gate} now; before: {old.gate}", Effect(Wire.LOSES, Wire.LOSES)
        found = DiffFinding(rules.METHOD_GATE_CHANGED, place, message, effect, risks(Use.HANDLE))
    if callers:
        yield found.sent_by(callers)
