"""Rules about the capabilities that values need: properties, members of unions, and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from acpgen.diff.findings import ChangePlace, Effect, Found, Use, WireVerdict, risks
from acpgen.diff.method_rules import states_gates
from acpgen.diff.rules import ModelPair, RuleTable
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.relations import follow, without_null
from acpgen.roles import Side
from acpgen.schema.gates import Gate

VALUES = RuleTable[ModelPair]()
"""Rules about values that both models have."""

_Key = tuple[str, tuple[str, ...], str | None]
"""A value: its definition by the name in NEW, the properties, and the tag or constant."""
_LOSES = Effect(WireVerdict.LOSES, WireVerdict.LOSES)


@VALUES.pair(
    (
        "value-gate-added",
        "a value needs a capability now",
        "risk: the stub refuses it for peers that do not advertise that",
    ),
    ("value-gate-removed", "a value needs no capability any more", "ok: the stub refuses less"),
    wire="loses both ways: old senders do not check it, and new ones do not send it to old peers, "
    "which do not advertise it",
)
def _value_gate(models: ModelPair) -> Iterator[Found]:
    before, after = _gates(models.old, models.old_name), _gates(models.new, str)
    for key in _compared(models, after.keys() - before.keys()):
        message = f"needs a capability now: {after[key]}"
        yield Found(_place(key), message, _LOSES, risks(Use.CONSTRUCT)).sent_by(_senders(after[key], models.new))
    for key in _compared(models, before.keys() - after.keys()):
        found = Found(_place(key), f"needs no capability any more; before: {before[key]}", _LOSES, is_reverse=True)
        yield found.sent_by(_senders(before[key], models.old))


@VALUES.rule(
    "value-gate-changed",
    "a value needs another capability",
    wire="loses both ways: senders check a capability that the peer does not advertise, and do not send it",
    source="risk: what takes it must be advertised in another place",
)
def _value_gate_changed(models: ModelPair) -> Iterator[Found]:
    before, after = _gates(models.old, models.old_name), _gates(models.new, str)
    for key in _compared(models, before.keys() & after.keys()):
        if before[key] != after[key]:
            found = Found(_place(key), f"needs {after[key]} now; before: {before[key]}", _LOSES, risks(Use.HANDLE))
            yield found.sent_by(_senders(after[key], models.new))


def _gates(model: ir.Model, name: Callable[[str], str]) -> Mapping[_Key, Gate]:
    return {(name(each.definition), each.properties, each.value): each.gate for each in model.gated_values}


def _compared(models: ModelPair, keys: Iterable[_Key]) -> list[_Key]:
    """Those of the values that both models have, if the gates of both are known."""
    if not (states_gates(models.old) and states_gates(models.new)):
        return []
    backward = models.pairs.backward
    return [
        (name, properties, value)
        for name, properties, value in sorted(keys, key=str)
        if name in backward
        and _has(models.old, backward[name], properties, value)
        and _has(models.new, name, properties, value)
    ]


def _has(model: ir.Model, name: str, properties: tuple[str, ...], value: str | None) -> bool:
    """Whether a model has a value."""
    attribute, expression = follow(ir.Ref(name), properties, model)
    if properties and attribute is None:
        return False
    found = without_null(expression, model)
    match model.definition(without_null(found.item, model) if isinstance(found, ir.ListOf) else found):
        case ir.TaggedUnion(variants=variants):
            return value is None or value in {each.tag for each in variants}
        case ir.Enum(members=members):
            return value is None or value in {each.value for each in members}
        case _:
            return value is None


def _place(key: _Key) -> ChangePlace:
    name, properties, value = key
    path = ".".join(properties)
    return ChangePlace(type=name, member=value if not path else path if value is None else f"{path}={value}")


def _senders(gate: Gate, model: ir.Model) -> list[Side]:
    """The sides that send the value: those that get the message in which its capability is advertised."""
    root = ir.Ref(names.class_name(gate.root))
    found = {side for each in model.methods if each.params == root for side in each.handlers}
    found |= {side.peer for each in model.methods if each.result == root for side in each.handlers}
    return [side for side in Side if side in found]
