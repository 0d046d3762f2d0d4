"""From two models to a comparison: the changes of each part, each with the messages that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set

from acpgen.diagnostics import input_error
from acpgen.diff.context import Context
from acpgen.diff.definition_changes import added, compare_definitions, removed
from acpgen.diff.findings import Change, Comparison, Direction, Effect, Finding, Wire, worst_wire
from acpgen.diff.method_changes import Routed, compare_methods, compare_protocols, states_gates
from acpgen.diff.pairing import pair
from acpgen.diff.uses import Uses, uses_of
from acpgen.ir.methods import Message
from acpgen.ir.model import Definition, Model, Role


def compare(old: Model, new: Model, *, names: tuple[str, str] | None = None) -> Comparison:
    """All that differs between two models; `names` are what the user calls them, else their origins.

    Raises `InputError` for definitions that are nested too deep, one in the other, to be compared.
    """
    try:
        return _compare(old, new, names or (old.origin, new.origin))
    except RecursionError:
        raise input_error("too-deep", "definitions are nested too deep, one in the other, to be compared") from None


def _compare(old: Model, new: Model, names: tuple[str, str]) -> Comparison:
    context = Context.of(old, new, pair(old, new))
    found = [_routed(each) for each in (*compare_protocols(old, new), *compare_methods(context))]
    found += _definitions(context)
    return Comparison(old=names[0], new=names[1], findings=tuple(sorted(found, key=_order)), notes=_notes(context))


def _order(finding: Finding) -> tuple[str, ...]:
    return (*finding.place.sort_key, finding.rule, finding.message)


def _notes(context: Context) -> tuple[str, ...]:
    """What could not be compared, where that could matter."""
    silent = [side for side, model in (("OLD", context.old), ("NEW", context.new)) if not states_gates(model)]
    if not silent or (len(silent) == 2 and not context.pairs.removed + context.pairs.added):
        return ()
    return (
        f"{' and '.join(silent)} {'states' if len(silent) == 1 else 'state'} no capabilities that methods need: "
        "gates are not compared, and methods that come or go count as called without asking",
    )


def _routed(routed: Routed) -> Finding:
    method = routed.change.place.method
    return _finding(routed.change, routed.wire, (method,) if method is not None else ())


def _finding(change: Change, wire: tuple[Direction, ...], methods: tuple[str, ...]) -> Finding:
    return Finding(
        rule=change.rule,
        place=change.place,
        message=change.message,
        wire=wire,
        source=change.source,
        uses=change.uses,
        methods=methods,
    )


def _definitions(context: Context) -> Iterator[Finding]:
    old_uses, new_uses = uses_of(context.old), uses_of(context.new)
    for name, known in context.pairs.forward.items():
        before, after = old_uses.get(name, {}), new_uses.get(known, {})
        for change in compare_definitions(context, context.old.by_name[name], context.new.by_name[known]):
            yield _finding(change, _directions(change.effect, before, after), _methods(after or before))
    yield from _unpaired(context.new, context.pairs.backward.keys(), new_uses, added)
    yield from _unpaired(context.old, context.pairs.forward.keys(), old_uses, removed)


def _unpaired(
    model: Model, paired: Set[str], uses: Uses, describe: Callable[[Definition], Change]
) -> Iterator[Finding]:
    for definition in model.definitions:
        if definition.name not in paired:
            yield _finding(describe(definition), (), _methods(uses.get(definition.name, {})))


def _methods(uses: Mapping[Message, bool]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.method for message in sorted(uses)))


def _directions(
    effect: Effect | None, before: Mapping[Message, bool], after: Mapping[Message, bool]
) -> tuple[Direction, ...]:
    """The verdicts by sender, over the messages that carry the type in both releases."""
    if effect is None:
        return ()
    shared = before.keys() & after.keys()
    return tuple(
        Direction(
            sender=role,
            old_to_new=worst_wire(_read(effect.forward, strict=after[each]) for each in shared if each.role is role),
            new_to_old=worst_wire(_read(effect.backward, strict=before[each]) for each in shared if each.role is role),
        )
        for role in Role
        if any(each.role is role for each in shared)
    )


def _read(verdict: Wire, *, strict: bool) -> Wire:
    """`verdict` where the reader forgives nothing; where it does, what would be refused is lost instead."""
    return verdict if strict or verdict is not Wire.BREAKS else Wire.LOSES
