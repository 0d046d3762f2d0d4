"""The comparison of two models: the differences of each part, each with the messages that it affects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from acpgen.diagnostics import input_error
from acpgen.diff.class_rules import CLASSES, FIELDS, UNPAIRED_FIELDS
from acpgen.diff.definition_rules import ALIASES, DEFINITIONS, DOCUMENTATION, ENUMS, compare_definitions
from acpgen.diff.findings import Comparison, DiffFinding, Effect, Rule, WireVerdict
from acpgen.diff.method_rules import METHODS, states_gates
from acpgen.diff.protocol_rules import PACKAGES, PARTS, Home
from acpgen.diff.rules import MODELS, ModelPair
from acpgen.diff.union_rules import UNIONS
from acpgen.diff.value_gate_rules import VALUES
from acpgen.ir import model as ir
from acpgen.ir.methods import MessageType
from acpgen.ir.usage import MisfitEffect, TypeUsage
from acpgen.roles import Side

_TABLES = (
    *(PACKAGES, PARTS, MODELS, METHODS, VALUES, DEFINITIONS, DOCUMENTATION),
    *(CLASSES, UNPAIRED_FIELDS, FIELDS, UNIONS, ENUMS, ALIASES),
)
RULES: Mapping[str, Rule] = {rule.id: rule for table in _TABLES for rule in table.rules}
"""The rules by id."""

_Messages = Mapping[MessageType, MisfitEffect]


def compare(old: ir.Model, new: ir.Model, *, names: tuple[str, str] | None = None) -> Comparison:
    """All differences between two models; `names` are the user's names for them, by default their origins.

    Raises `InputError` if definitions are nested too deeply to be compared.
    """
    try:
        models = ModelPair.of(old, new)
        found = [*_methods(models), *_types(models)]
    except RecursionError:
        raise input_error("too-deep", "definitions are nested too deeply to be compared") from None
    before, after = names or (old.origin, new.origin)
    return Comparison(old=before, new=after, findings=tuple(sorted(found, key=_order)), notes=_notes(models))


def one_sided(protocol: int, names: tuple[str, str], *, is_new: bool) -> Comparison:
    """The comparison of packages of several protocols for one that only the new, or only the old package has."""
    homes = (Home.NOWHERE, Home.SUBPACKAGE) if is_new else (Home.SUBPACKAGE, Home.NOWHERE)
    return Comparison(old=names[0], new=names[1], findings=tuple(PACKAGES.find(protocol, *homes)))


def with_layout(comparison: Comparison, protocol: int, *, before: bool, after: bool) -> Comparison:
    """Add a finding if a protocol gets or loses its subpackage; the flags are whether the packages have one."""
    homes = (Home.SUBPACKAGE if has_one else Home.ROOT for has_one in (before, after))
    return replace(comparison, findings=(*PACKAGES.find(protocol, *homes), *comparison.findings))


def with_parts(comparison: Comparison, before: Collection[str], after: Collection[str]) -> Comparison:
    """Add a finding for each part that only one of the packages has."""
    found = [each for name in sorted({*before, *after}) for each in PARTS.find(name, name in before, name in after)]
    return replace(comparison, findings=(*found, *comparison.findings))


def _order(finding: DiffFinding) -> tuple[str, ...]:
    return (*finding.place.sort_key, finding.rule.id, finding.message)


def _notes(models: ModelPair) -> tuple[str, ...]:
    """The parts that could not be compared, if that may matter."""
    silent = [side for side, model in (("OLD", models.old), ("NEW", models.new)) if not states_gates(model)]
    if not silent or (len(silent) == 2 and not (models.pairs.removed or models.pairs.added)):
        return ()
    return (
        f"{' and '.join(silent)} {'states' if len(silent) == 1 else 'state'} no capabilities that methods need: "
        "gates are not compared, and callers of new or removed methods are assumed to check nothing",
    )


def _methods(models: ModelPair) -> Iterator[DiffFinding]:
    for old, new in models.pairs.methods:
        yield from METHODS.find(models, old, new)
        yield from DOCUMENTATION.find(old, new)


def _types(models: ModelPair) -> Iterator[DiffFinding]:
    """The differences of types, with the verdicts on the messages that carry them."""
    old_carriers, new_carriers = TypeUsage(models.old).misfits(), TypeUsage(models.new).misfits()
    for name, known in models.pairs.forward.items():
        before, after = old_carriers.get(name, {}), new_carriers.get(known, {})
        for found in compare_definitions(models, models.old.by_name[name], models.new.by_name[known]):
            yield replace(found, wire=_wire(found.effect, before, after), carriers=_carriers(after or before))
    for found in (*MODELS.find(models), *VALUES.find(models)):
        name = found.place.type or ""
        yield replace(found, carriers=_carriers(new_carriers.get(name) or old_carriers.get(name, {})))


def _carriers(messages: _Messages) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.method for message in sorted(messages)))


def _wire(effect: Effect | None, before: _Messages, after: _Messages) -> Mapping[Side, Effect]:
    """The verdicts by sender, over the messages that carry the type in both releases."""
    shared = before.keys() & after.keys() if effect is not None else set()
    return {
        side: Effect(
            WireVerdict.worst(_softened(effect.old_to_new, after[each]) for each in shared if each.side is side),
            WireVerdict.worst(_softened(effect.new_to_old, before[each]) for each in shared if each.side is side),
        )
        for side in Side
        if effect is not None and any(each.side is side for each in shared)
    }


def _softened(verdict: WireVerdict, misfit: MisfitEffect) -> WireVerdict:
    """`verdict` for a message whose reader treats misfits as `misfit` says. A forgiven misfit loses, not breaks."""
    return WireVerdict.LOSES if verdict is WireVerdict.BREAKS and misfit is MisfitEffect.FORGIVEN else verdict
