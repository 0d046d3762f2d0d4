"""Views for the modules of the runtime that are data: `forms.py`, `secrets.py`, `sessions.py` and `properties.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acpgen.diagnostics import InputError, input_error
from acpgen.emit.source import Code, enclosed, frozenset_of, listed, literal, tuple_of
from acpgen.ir import model as ir
from acpgen.schema.data import read_data, read_secrets
from acpgen.schema.facts import NegotiationFacts
from acpgen.schema.session_facts import PARTS, SessionFacts

# --- Data of `schema/`, the same for all versions -------------------------------------------------------------------


def chain_forms() -> list[Code]:
    """The record of each form in which a conductor and its proxies write to each other, from `schema/chains.json`.

    Only the first form is in a schema; the others are those of programs that exist.
    """
    return [_form(each) for each in read_data("chains.json")["forms"]]


def _form(raw: Mapping[str, Any]) -> Code:
    values = {name: tuple_of(map(literal, each)) if name == "mark" else literal(each) for name, each in raw.items()}
    return enclosed("Form(", [Code(f"{name}={each}") for name, each in values.items()], ")", indent=4)


def secret_places() -> dict[str, list[tuple[Code, Code]]]:
    """The rows of both tables of secrets, for all versions: a message does not say its version.

    A row has a name, and the set of its members that are no secret.
    """
    found = read_secrets()
    return {"properties": _rows(found.properties), "params": _rows(found.params)}


def _rows(table: Mapping[str, frozenset[str]]) -> list[tuple[Code, Code]]:
    return [(literal(name), frozenset_of(shown)) for name, shown in table.items()]


# --- Sessions --------------------------------------------------------------------------------------------------------


def merged_sessions(models: Sequence[ir.Model]) -> dict[str, object]:
    """The facts for HTTP of all versions: bundled ones agree. Raises `InputError` for a version without such facts.

    They are the request `handshake`, the `key`, and in `lists` the other fields of the record, each with its value.
    """
    known = [_facts(model) for model in models]
    negotiation, first = known[0]
    methods = {part: {method for _, each in known for method in getattr(each, part)} for part in PARTS}
    lists = {part: frozenset_of(methods[part]) for part in PARTS} | {"attach": _with_gates(models, methods["attach"])}
    return {"handshake": literal(negotiation.method), "key": literal(first.key), "lists": lists}


def _with_gates(models: Sequence[ir.Model], names: set[str]) -> Code:
    """The paths of the capability for each method; none if a version has the method without one."""
    items = list[Code]()
    for name in sorted(names):
        gates = [method.gate for model in models for method in model.methods if method.wire == name]
        paths = sorted({path for gate in gates if gate for path in gate.paths}) if all(gates) else []
        value = tuple_of(tuple_of(map(literal, path)) for path in paths) if paths else Code("()")
        items.append(Code(f"{literal(name)}: {value}"))
    return Code(f"{{{listed(items)}}}")


def _facts(model: ir.Model) -> tuple[NegotiationFacts, SessionFacts]:
    if model.negotiation is None:
        raise _unknown(model, "the request that starts a connection is")
    if model.sessions is None:
        raise _unknown(model, "the methods that act on sessions are")
    return model.negotiation, model.sessions


def _unknown(model: ir.Model, what: str) -> InputError:
    return input_error(
        "remote-unknown",
        f"{model.origin} cannot be used with the part 'remote': {what} unknown",
        hint="facts.json beside a bundled schema has them; another schema gets those of its protocol that fit",
    )


# --- Properties ------------------------------------------------------------------------------------------------------


class PropertyTable:
    """The names on the wire that do not follow from the attributes, and the limits, of all classes of `model`."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self.version = model.protocol
        self._structs = [each for each in model.definitions if isinstance(each, ir.Struct)]

    @property
    def names(self) -> list[Code]:
        """The items of a dict: by attribute, or by class and attribute where classes differ."""
        wires = defaultdict[str, set[str]](set)
        for struct in self._structs:
            for field in struct.fields:
                wires[field.name].add(field.wire)
        found = {
            field.name if len(wires[field.name]) == 1 else f"{struct.name}.{field.name}": field.wire
            for struct in self._structs
            for field in struct.fields
            if field.wire != camel(field.name)
        }
        return [Code(f"{literal(key)}: {literal(wire)},") for key, wire in found.items()]

    @property
    def limits(self) -> list[Code]:
        """The items of a dict: by class and attribute, keywords of JSON Schema."""
        found = {
            f"{struct.name}.{field.name}": limits
            for struct in self._structs
            for field in struct.fields
            if (limits := self._limits(field.type, frozenset()))
        }
        return [Code(f"{literal(key)}: {_dict(limits)},") for key, limits in found.items()]

    def _limits(self, expression: ir.TypeExpr, seen: frozenset[str]) -> dict[str, Any]:
        """Keywords that hold beside those for the type itself: they say nothing of null, or of other types."""
        match expression:
            case ir.Scalar():
                return dict(_of_scalar(expression))
            case ir.Nullable(inner):
                return self._limits(inner, seen)
            case ir.ListOf(item=item, min_items=least):
                of_items = self._limits(item, seen)
                return {**({"minItems": least} if least else {}), **({"items": of_items} if of_items else {})}
            case ir.MapOf(value):
                of_values = self._limits(value, seen)
                return {"additionalProperties": of_values} if of_values else {}
            case ir.Ref(name) if name not in seen and isinstance(alias := self._model.by_name[name], ir.Alias):
                return self._limits(alias.type, seen | {name})
            case _:
                return {}


def camel(attribute: str) -> str:
    """The name on the wire that most attributes have; the runtime has the same rule."""
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _of_scalar(scalar: ir.Scalar) -> Iterator[tuple[str, str | float]]:
    yield from ((camel(name), bound) for name, bound in scalar.bounds.items())
    yield from scalar.annotations


def _dict(known: dict[str, Any]) -> Code:
    items = (
        f"{literal(key)}: {_dict(each) if isinstance(each, dict) else literal(each)}" for key, each in known.items()
    )
    return Code("{" + ", ".join(items) + "}")
