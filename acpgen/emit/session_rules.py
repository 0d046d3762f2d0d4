"""View for `sessions.py`: the methods that act on sessions, merged over the versions of a package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.diagnostics import InputError, input_error
from acpgen.emit.source import Code, frozenset_of, listed, literal, tuple_of
from acpgen.ir import model as ir
from acpgen.schema.facts import Negotiation
from acpgen.schema.session_facts import PARTS, Sessions


@dataclass(frozen=True, slots=True)
class SessionsView:
    """The facts for HTTP. `lists` has the fields of the record, each with its value."""

    handshake: Code
    key: Code
    lists: Sequence[tuple[Code, Code]]


def merged_sessions(models: Sequence[ir.Model]) -> SessionsView:
    """The facts for HTTP of all versions. Raises `InputError` for one without such facts, and for a contradiction."""
    known = [_facts(model) for model in models]
    sessions = [each for _, each in known]
    if len({each.key for each in sessions}) > 1:
        raise _differ("the ids of sessions are in different properties")
    methods = {part: {method for each in sessions for method in getattr(each, part)} for part in PARTS}
    for method in sorted(methods["attach"] & methods["scoped"]):
        # a message does not say its version, so it has to say by its method whether its connection knows the session
        raise _differ(f"{method!r} may take up the session of another connection in one list or version only")
    return SessionsView(
        handshake=literal(known[0][0].method),
        key=literal(sessions[0].key),
        lists=[
            (Code(part), _with_gates(models, methods[part]) if part == "attach" else frozenset_of(methods[part]))
            for part in PARTS
        ],
    )


def _with_gates(models: Sequence[ir.Model], names: set[str]) -> Code:
    """The paths of the capability for each method; none if a version has the method without one."""
    items = list[Code]()
    for name in sorted(names):
        gates = [method.gate for model in models for method in model.methods if method.wire == name]
        paths = sorted({path for gate in gates if gate for path in gate.paths}) if all(gates) else []
        value = tuple_of(tuple_of(map(literal, path)) for path in paths) if paths else Code("()")
        items.append(Code(f"{literal(name)}: {value}"))
    return Code(f"{{{listed(items)}}}")


def _facts(model: ir.Model) -> tuple[Negotiation, Sessions]:
    if model.negotiation is None:
        raise _unknown(model, "the request that starts a connection is")
    if model.sessions is None:
        raise _unknown(model, "the methods that act on sessions are")
    return model.negotiation, model.sessions


def _unknown(model: ir.Model, what: str) -> InputError:
    return input_error(
        "remote-unknown",
        f"{model.origin} cannot be used with --remote: {what} unknown",
        hint="facts.json beside a bundled schema has them; another schema gets those of its protocol that fit",
    )


def _differ(fact: str) -> InputError:
    return input_error(
        "sessions-differ",
        f"the package cannot be built with --remote: {fact}",
        hint="build a package for each version, or compare `sessions` in the facts.json of each",
    )
