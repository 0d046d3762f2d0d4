"""Compare the methods of two models, and the parts of the protocol that are neither methods nor types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.findings import SOURCE_OK, Delta, Direction, Effect, Place, Use, Wire, breaks, risks
from acpgen.diff.spelling import shown
from acpgen.ir.model import Method, MethodKind, Model, Role
from acpgen.text import cut

_GONE = breaks(Use.CALL, Use.HANDLE)
_REFUSED = Effect(Wire.BREAKS, Wire.BREAKS)

Routed: TypeAlias = tuple[Delta, tuple[Direction, ...]]
"""A delta, with its wire verdicts by sender."""


def _routed(delta: Delta, senders: tuple[Role, ...]) -> Routed:
    """The difference with the same verdicts for all `senders`."""
    if (effect := delta.effect) is None:
        return delta, ()
    return delta, tuple(
        Direction(sender=role, old_to_new=effect.forward, new_to_old=effect.backward) for role in senders
    )


def compare_protocols(old: Model, new: Model) -> Iterator[Routed]:
    """The differences that concern no method and no type."""
    for delta in (*_protocol(old, new), *_errors(old, new)):
        yield _routed(delta, tuple(Role))


def _protocol(old: Model, new: Model) -> Iterator[Delta]:
    place, before, after = Place(), old.envelope, new.envelope
    if old.protocol != new.protocol:
        message = f"the protocol has version {new.protocol} now; before: {old.protocol}"
        yield Delta(rules.PROTOCOL_CHANGED, place, message, effect=_REFUSED, source=risks(Use.IMPORT))
    if after.null_ids and not before.null_ids:
        message = "requests whose id is null are allowed now"
        yield Delta(rules.NULL_IDS_ADDED, place, message, effect=Effect(Wire.OK, Wire.BREAKS))
    if before.null_ids and not after.null_ids:
        message = "requests whose id is null are no longer allowed"
        yield Delta(rules.NULL_IDS_REMOVED, place, message, effect=Effect(Wire.BREAKS, Wire.OK))
    if before.null_error_ids != after.null_error_ids:
        rule = rules.NULL_ERROR_IDS_ADDED if after.null_error_ids else rules.NULL_ERROR_IDS_REMOVED
        message = f"errors whose id is null are {'allowed now' if after.null_error_ids else 'no longer allowed'}"
        # the runtime reads these in any case: no request waits for such an answer
        yield Delta(rule, place, message, effect=Effect(Wire.OK, Wire.OK))


def _errors(old: Model, new: Model) -> Iterator[Delta]:
    before, after = ({each.code: each.name for each in model.errors.codes} for model in (old, new))
    gone = breaks(Use.IMPORT)
    for code, name in before.items():
        place = Place(member=f"error {code}")
        if code not in after:
            yield Delta(rules.ERROR_CODE_REMOVED, place, f"has no name any more; before: {name}", source=gone)
        elif after[code] != name:
            message = f"is named {after[code]} now; before: {name}"
            yield Delta(rules.ERROR_CODE_RENAMED, replace(place, was=name), message, source=gone)
    for code, name in after.items():
        if code not in before:
            yield Delta(rules.ERROR_CODE_ADDED, Place(member=f"error {code}"), f"has a name now: {name}")


def compare_methods(bump: Bump) -> Iterator[Routed]:
    """The differences of methods, without those of the types that they carry."""
    for method in bump.pairs.added:
        yield _added(method)
    for method in bump.pairs.removed:
        yield _removed(method)
    for old, new in bump.pairs.methods:
        if old.wire != new.wire:
            yield _renamed(old, new)
        elif old.kind is not new.kind:
            message = f"is a {new.kind.value} now; before: a {old.kind.value}"
            place = Place(method=new.wire)
            delta = Delta(rules.METHOD_KIND_CHANGED, place, message, effect=_REFUSED, source=_GONE)
            yield _routed(delta, _callers(new))
        else:
            yield from _handlers(old, new)
            yield from _types(bump, old, new)
        yield from _gates(bump, old, new)
        if old.doc != new.doc:
            yield Delta(rules.DOCUMENTATION, Place(method=new.wire), "other text about the method"), ()


def _callers(method: Method) -> tuple[Role, ...]:
    return tuple(handler.peer for handler in method.handlers)


def _refused(method: Method) -> Wire:
    """The verdict on a message to a peer that does not handle the method."""
    return Wire.BREAKS if method.kind is MethodKind.REQUEST else Wire.LOSES


def _unhandled(method: Method) -> Wire:
    """The same, for callers that check the capability first, if the method has one."""
    return Wire.OK if method.gate is not None else _refused(method)


def _described(method: Method) -> str:
    """The kind, handlers and gate of the method."""
    handlers = " and ".join(role.value for role in method.handlers)
    gate = f", gated by {method.gate}" if method.gate is not None else ""
    return cut(f"{method.kind.value} to the {handlers}{gate}", 200)


def _added(method: Method) -> Routed:
    effect, message = Effect(Wire.OK, _unhandled(method)), f"new method: {_described(method)}"
    return _routed(Delta(rules.METHOD_ADDED, Place(method=method.wire), message, effect=effect), _callers(method))


def _removed(method: Method) -> Routed:
    effect, message = Effect(_unhandled(method), Wire.OK), f"method removed: {_described(method)}"
    place = Place(method=method.wire)
    return _routed(Delta(rules.METHOD_REMOVED, place, message, effect=effect, source=_GONE), _callers(method))


def _renamed(old: Method, new: Method) -> Routed:
    delta = Delta(
        rules.METHOD_RENAMED,
        Place(method=new.wire, was=old.wire),
        f"is the new name of {cut(old.wire)}",
        effect=Effect(_unhandled(old), _unhandled(new)),
        source=SOURCE_OK if old.name == new.name else _GONE,
    )
    return _routed(delta, _callers(new))


def _handlers(old: Method, new: Method) -> Iterator[Routed]:
    if old.side == new.side:
        return
    message = f"the side is {cut(new.side)} now; before: {cut(old.side)}"
    source = _GONE if set(old.handlers) - set(new.handlers) else SOURCE_OK
    wire = tuple(
        Direction(
            sender=role,
            old_to_new=Wire.OK if role.peer in new.handlers or role.peer not in old.handlers else _refused(old),
            new_to_old=Wire.OK if role.peer in old.handlers or role.peer not in new.handlers else _refused(new),
        )
        for role in Role
        if role.peer in {*old.handlers, *new.handlers}
    )
    yield Delta(rules.METHOD_SIDE_CHANGED, Place(method=new.wire), message, source=source), wire


def _types(bump: Bump, old: Method, new: Method) -> Iterator[Routed]:
    for rule, before, after, senders, subject in (
        (rules.METHOD_PARAMS_CHANGED, old.params, new.params, _callers(new), "the parameters are"),
        (rules.METHOD_RESULT_CHANGED, old.result, new.result, new.handlers, "the result is"),
    ):
        if before is not None and after is not None and not bump.agree(before, after):
            message = f"{subject} {shown(after)} now; before: {shown(before)}"
            effect = bump.effect(before, after)
            yield _routed(Delta(rule, Place(method=new.wire), message, effect=effect, source=_GONE), senders)


def states_gates(model: Model) -> bool:
    """Whether the capabilities that methods need are known: the schema itself does not state them."""
    return model.release is not None or any(method.gate is not None for method in model.methods)


def _gates(bump: Bump, old: Method, new: Method) -> Iterator[Routed]:
    callers = tuple(role for role in _callers(new) if role in _callers(old))
    if old.gate == new.gate or not callers or not (states_gates(bump.old) and states_gates(bump.new)):
        return
    rule, place, refused, source = rules.METHOD_GATE_CHANGED, Place(method=new.wire), _refused(new), risks(Use.HANDLE)
    message, effect = f"needs {new.gate} now; before: {old.gate}", Effect(Wire.LOSES, Wire.LOSES)
    if old.gate is None:
        rule, source = rules.METHOD_GATE_ADDED, risks(Use.CALL)
        message, effect = f"needs a capability now: {new.gate}", Effect(refused, Wire.LOSES)
    elif new.gate is None:
        rule, source = rules.METHOD_GATE_REMOVED, SOURCE_OK
        message, effect = f"needs no capability any more; before: {old.gate}", Effect(Wire.LOSES, refused)
    yield _routed(Delta(rule, place, message, effect=effect, source=source), callers)
