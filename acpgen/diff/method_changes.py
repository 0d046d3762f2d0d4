"""Compare the methods of two models, and what else the protocol as a whole agrees on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from acpgen.diff.context import Context, change
from acpgen.diff.findings import Change, Direction, Effect, Place, Source, Use, Wire
from acpgen.diff.rules import DOCUMENTATION
from acpgen.diff.spelling import shown
from acpgen.ir.model import Kind, Method, Model, Role
from acpgen.text import cut

BOTH = tuple(Role)
_GONE = (Source.BREAKS, (Use.CALL, Use.HANDLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A change of no type, with its wire verdicts by sender."""

    change: Change
    wire: tuple[Direction, ...]


def _routed(found: Change, senders: tuple[Role, ...]) -> Routed:
    """A change that means the same for all messages of `senders`."""
    if found.effect is None:
        return Routed(change=found, wire=())
    forward, backward = found.effect.forward, found.effect.backward
    wire = tuple(Direction(sender=role, old_to_new=forward, new_to_old=backward) for role in senders)
    return Routed(change=found, wire=wire)


def compare_protocols(old: Model, new: Model) -> Iterator[Routed]:
    """The changes that are about no method and no type."""
    for found in _protocol(old, new):
        yield _routed(found, BOTH)


def _protocol(old: Model, new: Model) -> Iterator[Change]:
    breaks = Effect(forward=Wire.BREAKS, backward=Wire.BREAKS)
    if old.protocol != new.protocol:
        message = f"the protocol is version {new.protocol} now; before: {old.protocol}"
        yield change("protocol-changed", Place(), message, effect=breaks, source=(Source.RISK, (Use.IMPORT,)))
    mine, theirs = old.envelope, new.envelope
    for name, what, before, after, refused in (
        ("null-ids", "requests whose id is null", mine.null_ids, theirs.null_ids, Wire.BREAKS),
        # the runtime reads these whatever the schema says: nobody waits for such an answer
        ("null-error-ids", "errors whose id is null", mine.null_error_ids, theirs.null_error_ids, Wire.OK),
    ):
        if after and not before:
            effect = Effect(forward=Wire.OK, backward=refused)
            yield change(f"{name}-added", Place(), f"{what} are allowed now", effect=effect)
        if before and not after:
            effect = Effect(forward=refused, backward=Wire.OK)
            yield change(f"{name}-removed", Place(), f"{what} are allowed no more", effect=effect)
    yield from _errors(old, new)


def _errors(old: Model, new: Model) -> Iterator[Change]:
    before, after = ({each.code: each.name for each in model.errors.codes} for model in (old, new))
    gone = (Source.BREAKS, (Use.IMPORT,))
    for code, name in before.items():
        place = Place(member=f"error {code}")
        if code not in after:
            yield change("error-code-removed", place, f"has no name any more; before: {name}", source=gone)
        elif after[code] != name:
            yield change(
                "error-code-renamed",
                replace(place, was=name),
                f"is called {after[code]} now; before: {name}",
                source=gone,
            )
    for code, name in after.items():
        if code not in before:
            yield change("error-code-added", Place(member=f"error {code}"), f"has a name now: {name}")


def compare_methods(context: Context) -> Iterator[Routed]:
    """The changes of methods, but for those of the types that they carry."""
    for method in context.pairs.added:
        yield _added(method)
    for method in context.pairs.removed:
        yield _removed(method)
    for old, new in context.pairs.methods:
        if old.wire != new.wire:
            yield _renamed(old, new)
        elif old.kind is not new.kind:
            message = f"is a {new.kind.value} now; before: a {old.kind.value}"
            breaks = Effect(forward=Wire.BREAKS, backward=Wire.BREAKS)
            found = change("method-kind-changed", Place(method=new.wire), message, effect=breaks, source=_GONE)
            yield _routed(found, _callers(new))
        else:
            yield from _handlers(old, new)
            yield from _types(context, old, new)
        yield from _gates(context, old, new)
        yield from _documentation(old, new)


def _callers(method: Method) -> tuple[Role, ...]:
    return tuple(handler.peer for handler in method.handlers)


def _unanswered(method: Method) -> Wire:
    """What becomes of a call that reaches a peer without the method, where callers do not look beforehand."""
    if method.gate is not None:
        return Wire.OK
    return Wire.BREAKS if method.kind is Kind.REQUEST else Wire.LOSES


def described(method: Method) -> str:
    """The method in words: kind, handlers, gate."""
    who = " and ".join(role.value for role in method.handlers)
    gate = f", gated by {method.gate}" if method.gate is not None else ""
    return cut(f"{method.kind.value} to the {who}{gate}", 200)


def _added(method: Method) -> Routed:
    effect = Effect(forward=Wire.OK, backward=_unanswered(method))
    message = f"new method: {described(method)}"
    return _routed(change("method-added", Place(method=method.wire), message, effect=effect), _callers(method))


def _removed(method: Method) -> Routed:
    effect = Effect(forward=_unanswered(method), backward=Wire.OK)
    message = f"method removed: {described(method)}"
    found = change("method-removed", Place(method=method.wire), message, effect=effect, source=_GONE)
    return _routed(found, _callers(method))


def _renamed(old: Method, new: Method) -> Routed:
    effect = Effect(forward=_unanswered(old), backward=_unanswered(new))
    message = f"is the new name of {cut(old.wire)}"
    source = (Source.OK, ()) if old.name == new.name else _GONE
    found = change("method-renamed", Place(method=new.wire, was=old.wire), message, effect=effect, source=source)
    return _routed(found, _callers(new))


def _handlers(old: Method, new: Method) -> Iterator[Routed]:
    if old.side == new.side:
        return
    message = f"the side is {cut(new.side)} now; before: {cut(old.side)}"
    source = _GONE if set(old.handlers) - set(new.handlers) else (Source.OK, ())
    found = change("method-side-changed", Place(method=new.wire), message, source=source)
    wire = tuple(
        Direction(
            sender=role,
            old_to_new=Wire.OK if role.peer in new.handlers or role.peer not in old.handlers else _refused(old),
            new_to_old=Wire.OK if role.peer in old.handlers or role.peer not in new.handlers else _refused(new),
        )
        for role in Role
        if role.peer in {*old.handlers, *new.handlers}
    )
    yield Routed(change=found, wire=wire)


def _refused(method: Method) -> Wire:
    return Wire.BREAKS if method.kind is Kind.REQUEST else Wire.LOSES


def _types(context: Context, old: Method, new: Method) -> Iterator[Routed]:
    for rule, before, after, senders, what in (
        ("method-params-changed", old.params, new.params, _callers(new), "the parameters are"),
        ("method-result-changed", old.result, new.result, new.handlers, "the result is"),
    ):
        if before is None or after is None or context.agree(before, after):
            continue
        found = change(
            rule,
            Place(method=new.wire),
            f"{what} {shown(after)} now; before: {shown(before)}",
            effect=context.effect(before, after),
            source=_GONE,
        )
        yield _routed(found, senders)


def states_gates(model: Model) -> bool:
    """Whether it is known which capability opens which method: the schema itself does not say."""
    return model.release is not None or any(method.gate is not None for method in model.methods)


def _gates(context: Context, old: Method, new: Method) -> Iterator[Routed]:
    callers = tuple(role for role in _callers(new) if role in _callers(old))
    if old.gate == new.gate or not callers or not (states_gates(context.old) and states_gates(context.new)):
        return
    place = Place(method=new.wire)
    refused = _refused(new)
    if old.gate is None:
        message = f"needs a capability now: {new.gate}"
        effect = Effect(forward=refused, backward=Wire.LOSES)
        found = change("method-gate-added", place, message, effect=effect, source=(Source.RISK, (Use.CALL,)))
    elif new.gate is None:
        message = f"needs no capability any more; before: {old.gate}"
        found = change("method-gate-removed", place, message, effect=Effect(forward=Wire.LOSES, backward=refused))
    else:
        message = f"needs {new.gate} now; before: {old.gate}"
        effect = Effect(forward=Wire.LOSES, backward=Wire.LOSES)
        found = change("method-gate-changed", place, message, effect=effect, source=(Source.RISK, (Use.HANDLE,)))
    yield _routed(found, callers)


def _documentation(old: Method, new: Method) -> Iterator[Routed]:
    if old.doc != new.doc:
        found = change(DOCUMENTATION, Place(method=new.wire), "other text about the method")
        yield _routed(found, ())
