"""The comparison of two models: the differences of each part, each with the messages that it affects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from acpgen.diagnostics import input_error
from acpgen.diff.bump import Bump
from acpgen.diff.definition_changes import added, compare_definitions, removed
from acpgen.diff.findings import Comparison, Delta, DiffFinding, Direction, Effect, Wire, worst_wire
from acpgen.diff.method_changes import compare_methods, compare_protocols, states_gates
from acpgen.ir.methods import MessageType
from acpgen.ir.model import Definition, Model, Role
from acpgen.ir.usage import Misfit, TypeUsage

_Carriers = Mapping[MessageType, Misfit]


def compare(old: Model, new: Model, *, names: tuple[str, str] | None = None) -> Comparison:
    """All differences between two models; `names` are the user's names for them, by default their origins.

    Raises `InputError` if definitions are nested too deeply to be compared.
    """
    try:
        return _compare(old, new, names or (old.origin, new.origin))
    except RecursionError:
        raise input_error("too-deep", "definitions are nested too deeply to be compared") from None


def _compare(old: Model, new: Model, names: tuple[str, str]) -> Comparison:
    bump = Bump.of(old, new)
    found = [
        _finding(delta, wire, () if delta.place.method is None else (delta.place.method,))
        for delta, wire in (*compare_protocols(old, new), *compare_methods(bump))
    ]
    found += _definitions(bump)
    return Comparison(old=names[0], new=names[1], findings=tuple(sorted(found, key=_order)), notes=_notes(bump))


def _order(finding: DiffFinding) -> tuple[str, ...]:
    return (*finding.place.sort_key, finding.rule.id, finding.message)


def _notes(bump: Bump) -> tuple[str, ...]:
    """The parts that could not be compared, if that may matter."""
    silent = [side for side, model in (("OLD", bump.old), ("NEW", bump.new)) if not states_gates(model)]
    if not silent or (len(silent) == 2 and not bump.pairs.removed + bump.pairs.added):
        return ()
    return (
        f"{' and '.join(silent)} {'states' if len(silent) == 1 else 'state'} no capabilities that methods need: "
        "gates are not compared, and callers of new or removed methods are assumed to check nothing",
    )


def _finding(delta: Delta, wire: tuple[Direction, ...], methods: tuple[str, ...]) -> DiffFinding:
    return DiffFinding(
        rule=delta.rule,
        place=delta.place,
        message=delta.message,
        wire=wire,
        source=delta.source.verdict,
        uses=delta.source.uses,
        methods=methods,
    )


def _definitions(bump: Bump) -> Iterator[DiffFinding]:
    old_carriers, new_carriers = TypeUsage(bump.old).misfits(), TypeUsage(bump.new).misfits()
    for name, known in bump.pairs.forward.items():
        before, after = old_carriers.get(name, {}), new_carriers.get(known, {})
        for delta in compare_definitions(bump, bump.old.by_name[name], bump.new.by_name[known]):
            yield _finding(delta, _directions(delta.effect, before, after), _methods(after or before))
    for definition in _unpaired(bump.new, bump.pairs.backward.keys()):
        yield _finding(added(definition), (), _methods(new_carriers.get(definition.name, {})))
    for definition in _unpaired(bump.old, bump.pairs.forward.keys()):
        yield _finding(removed(definition), (), _methods(old_carriers.get(definition.name, {})))


def _unpaired(model: Model, paired: Set[str]) -> Iterator[Definition]:
    return (each for each in model.definitions if each.name not in paired)


def _methods(carriers: _Carriers) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.method for message in sorted(carriers)))


def _directions(effect: Effect | None, before: _Carriers, after: _Carriers) -> tuple[Direction, ...]:
    """The verdicts by sender, over the messages that carry the type in both releases."""
    if effect is None:
        return ()
    shared = before.keys() & after.keys()
    return tuple(
        Direction(
            sender=role,
            old_to_new=worst_wire(_softened(effect.forward, after[each]) for each in shared if each.role is role),
            new_to_old=worst_wire(_softened(effect.backward, before[each]) for each in shared if each.role is role),
        )
        for role in Role
        if any(each.role is role for each in shared)
    )


def _softened(verdict: Wire, misfit: Misfit) -> Wire:
    """`verdict` for a message whose reader treats misfits as `misfit` says. A forgiven misfit loses, not breaks."""
    return Wire.LOSES if verdict is Wire.BREAKS and misfit is Misfit.FORGIVEN else verdict
