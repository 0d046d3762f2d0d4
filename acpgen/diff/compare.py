"""The comparison of two models: the differences of each part, each with the messages that it affects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from acpgen.diagnostics import input_error
from acpgen.diff.bump import Bump
from acpgen.diff.definition_changes import added, compare_definitions, removed
from acpgen.diff.findings import Comparison, DiffFinding, Effect, Place, Use, Wire, breaks
from acpgen.diff.method_changes import compare_methods, compare_protocols, states_gates
from acpgen.diff.rules import PROTOCOL_ADDED, PROTOCOL_REMOVED, SUBPACKAGE_ADDED, SUBPACKAGE_REMOVED
from acpgen.ir import model as ir
from acpgen.ir.methods import MessageType
from acpgen.ir.usage import Misfit, TypeUsage
from acpgen.roles import Side

_Carriers = Mapping[MessageType, Misfit]


def compare(old: ir.Model, new: ir.Model, *, names: tuple[str, str] | None = None) -> Comparison:
    """All differences between two models; `names` are the user's names for them, by default their origins.

    Raises `InputError` if definitions are nested too deeply to be compared.
    """
    try:
        bump = Bump.of(old, new)
        found = [*compare_protocols(old, new), *compare_methods(bump), *_definitions(bump)]
    except RecursionError:
        raise input_error("too-deep", "definitions are nested too deeply to be compared") from None
    before, after = names or (old.origin, new.origin)
    return Comparison(old=before, new=after, findings=tuple(sorted(found, key=_order)), notes=_notes(bump))


def only_old(protocol: int, names: tuple[str, str]) -> Comparison:
    """The comparison of packages of several protocols for one that only the old package has."""
    found = DiffFinding(PROTOCOL_REMOVED, Place(), f"protocol {protocol}: only in OLD", source=breaks(Use.IMPORT))
    return Comparison(old=names[0], new=names[1], findings=(found,))


def only_new(protocol: int, names: tuple[str, str]) -> Comparison:
    """The comparison of packages of several protocols for one that only the new package has."""
    found = DiffFinding(PROTOCOL_ADDED, Place(), f"protocol {protocol}: only in NEW")
    return Comparison(old=names[0], new=names[1], findings=(found,))


def with_layout(comparison: Comparison, protocol: int, *, before: bool, after: bool) -> Comparison:
    """Add a finding if a protocol gets or loses its subpackage; the flags are whether the packages have one."""
    if before == after:
        return comparison
    rule, where = (SUBPACKAGE_ADDED, "now") if after else (SUBPACKAGE_REMOVED, "no longer")
    message = f"the names of protocol {protocol} are {where} in the subpackage v{protocol}"
    found = DiffFinding(rule, Place(), message, source=breaks(Use.IMPORT))
    return replace(comparison, findings=(found, *comparison.findings))


def _order(finding: DiffFinding) -> tuple[str, ...]:
    return (*finding.place.sort_key, finding.rule.id, finding.message)


def _notes(bump: Bump) -> tuple[str, ...]:
    """The parts that could not be compared, if that may matter."""
    silent = [side for side, model in (("OLD", bump.old), ("NEW", bump.new)) if not states_gates(model)]
    if not silent or (len(silent) == 2 and not (bump.pairs.removed or bump.pairs.added)):
        return ()
    return (
        f"{' and '.join(silent)} {'states' if len(silent) == 1 else 'state'} no capabilities that methods need: "
        "gates are not compared, and callers of new or removed methods are assumed to check nothing",
    )


def _definitions(bump: Bump) -> Iterator[DiffFinding]:
    """The differences of types, with the verdicts on the messages that carry them."""
    old_carriers, new_carriers = TypeUsage(bump.old).misfits(), TypeUsage(bump.new).misfits()
    for name, known in bump.pairs.forward.items():
        before, after = old_carriers.get(name, {}), new_carriers.get(known, {})
        for finding in compare_definitions(bump, bump.old.by_name[name], bump.new.by_name[known]):
            yield replace(finding, wire=_wire(finding.effect, before, after), carriers=_methods(after or before))
    for definition in bump.new.definitions:
        if definition.name not in bump.pairs.backward:
            yield replace(added(definition), carriers=_methods(new_carriers.get(definition.name, {})))
    for definition in bump.old.definitions:
        if definition.name not in bump.pairs.forward:
            yield replace(removed(definition), carriers=_methods(old_carriers.get(definition.name, {})))


def _methods(carriers: _Carriers) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.method for message in sorted(carriers)))


def _wire(effect: Effect | None, before: _Carriers, after: _Carriers) -> Mapping[Side, Effect]:
    """The verdicts by sender, over the messages that carry the type in both releases."""
    shared = before.keys() & after.keys() if effect is not None else set()
    return {
        side: Effect(
            Wire.worst(_softened(effect.old_to_new, after[each]) for each in shared if each.side is side),
            Wire.worst(_softened(effect.new_to_old, before[each]) for each in shared if each.side is side),
        )
        for side in Side
        if effect is not None and any(each.side is side for each in shared)
    }


def _softened(verdict: Wire, misfit: Misfit) -> Wire:
    """`verdict` for a message whose reader treats misfits as `misfit` says. A forgiven misfit loses, not breaks."""
    return Wire.LOSES if verdict is Wire.BREAKS and misfit is Misfit.FORGIVEN else verdict
