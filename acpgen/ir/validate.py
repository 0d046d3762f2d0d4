"""Validate a finished model: clashing names, unreachable union members, sizes, methods of vendor extensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

from acpgen.diagnostics import Report
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.leniency import can_fall_back
from acpgen.ir.methods import messages_of
from acpgen.ir.opened import as_written
from acpgen.ir.order import reachable, references, types_of
from acpgen.ir.relations import Coverage
from acpgen.schema.compose import Composed
from acpgen.schema.document import join

MAX_MEMBERS = 200
"""The most members of a union: Python parses `A | B | …` recursively, and members without a tag are compared in pairs.

Published unions have about twenty.
"""

MAX_READINGS = 10_000
"""The most alternatives of a type: members of a union, of unions among these, and so on. Decoders try them in turn, and
Python hashes each at import. Published unions have about thirty.
"""


def check_model(model: ir.Model, report: Report) -> None:
    """Report clashing names (errors) and union members that no value reaches (warnings).

    If a value may fit several members, a note says which one it becomes: the first in the schema.
    """
    _check_names(model, report)
    _check_gates(model, report)
    _check_readings(model, report)
    # as the schema writes them, and without properties that it does not name: they are left out in any case
    coverage = Coverage({each.name: as_written(each) for each in model.definitions}, named_only=True)
    for definition in model.definitions:
        match definition:
            case ir.UntaggedUnion() | ir.TaggedUnion() if _is_too_wide(definition, report):
                pass
            case ir.Struct():
                for field in definition.fields:
                    _check_leniency(field, model, report)
            case ir.UntaggedUnion() | ir.TaggedUnion():
                _check_candidates(definition, coverage, report)
                if isinstance(definition, ir.UntaggedUnion) and definition.name in model.recursive:
                    _check_repetition(definition, model, coverage, report)


def _is_too_wide(union: ir.UntaggedUnion | ir.TaggedUnion, report: Report) -> bool:
    members = union.members if isinstance(union, ir.UntaggedUnion) else (*union.variants, *union.fallbacks)
    count = len(members)
    if count <= MAX_MEMBERS:
        return False
    message = f"{union.name} has {count} members, more than the {MAX_MEMBERS} that a union may have"
    report.error("too-many-members", message, at=union.pointer)
    return True


def _check_names(model: ir.Model, report: Report) -> None:
    functions: dict[str, ir.Definition] = {}
    errors = {code.name for code in model.errors.codes}
    for definition in model.definitions:
        name = definition.name
        if name in names.RESERVED_CLASSES or name in errors:
            report.error(
                "name-clash",
                f"the definition {name} has a name that the generated package uses itself",
                at=definition.pointer,
                hint="rename the definition in the schema",
            )
        known = functions.setdefault(names.snake(name), definition)
        if known is not definition:
            report.error(
                "name-clash",
                f"{known.name} and {name} would share the function decode_{names.snake(name)}",
                at=definition.pointer,
            )


def _check_gates(model: ir.Model, report: Report) -> None:
    for method in model.methods:
        if method.gate and not isinstance(model.by_name.get(names.class_name(method.gate.root)), ir.Struct):
            report.error(
                "gate-root",
                f"the gate of {method.wire!r} refers to {method.gate.root}, which is no class of the package",
                at=method.gate.pointer or method.pointer,
                hint="name the params or the result of the request that exchanges capabilities",
            )


def _check_readings(model: ir.Model, report: Report) -> None:
    """Refuse unions of unions with too many alternatives. A definition comes after those that it needs."""
    readings: dict[str, int] = {}
    for definition in model.definitions:
        if isinstance(definition, (ir.Struct, ir.Enum)):
            continue
        inner = [_readings(each, readings) for each in types_of(definition)]
        readings[definition.name] = sum(inner)
        if max(inner) <= MAX_READINGS < sum(inner):
            report.error(
                "too-many-readings",
                f"{definition.name} contains unions of unions with more than {MAX_READINGS:,} alternatives",
                at=definition.pointer,
                hint="nest fewer unions",
            )


def _readings(expression: ir.TypeExpr, known: Mapping[str, int]) -> int:
    return next((known.get(name, 1) for name in references(expression)), 1)


def _check_leniency(field: ir.Field, model: ir.Model, report: Report) -> None:
    is_lenient = field.leniency.default_on_error or field.leniency.default_on_null
    if is_lenient and not can_fall_back(field, model) and not field.inherited:
        report.warning(
            "leniency-without-default",
            f"{field.wire!r} is required and has no default to fall back to; it is decoded strictly",
            at=field.pointer,
        )


def _check_candidates(union: ir.UntaggedUnion | ir.TaggedUnion, coverage: Coverage, report: Report) -> None:
    for earlier, later in combinations(union.untagged, 2):
        one, other = _described(earlier.type), _described(later.type)
        if coverage.covers(earlier.type, later.type):
            report.warning(
                "unreachable-member",
                f"{union.name}: every value of {other} also fits {one}, which comes first; no value becomes {other}",
                at=union.pointer,
                hint="put the narrower member first",
            )
        elif not coverage.disjoint(earlier.type, later.type):
            report.note(
                "ambiguous-union",
                f"{union.name}: a value may fit both {one} and {other}; it becomes {one}, which comes first",
                at=union.pointer,
            )


def _check_repetition(union: ir.UntaggedUnion, model: ir.Model, coverage: Coverage, report: Report) -> None:
    """Refuse two members that contain the union and may fit one value: both are tried, at every level of the value."""
    containing = [each for each in union.members if union.name in reachable([each.type], model)]
    for one, other in combinations(containing, 2):
        if not coverage.disjoint(one.type, other.type):
            names = f"{_described(one.type)} and {_described(other.type)}"
            report.error(
                "ambiguous-recursion",
                f"{union.name}: a value may fit both {names}, which contain {union.name} again",
                at=union.pointer,
                hint="reading takes twice as long for each level: let one member take arrays, and one take objects",
            )


def _described(expression: ir.TypeExpr) -> str:
    """A short name of the type for messages."""
    match expression:
        case ir.Ref(name):
            return name
        case ir.ListOf(item=item):
            return f"an array of {_described(item)}"
        case ir.MapOf(value):
            return f"a map of {_described(value)}"
        case ir.Nullable(inner):
            return f"{_described(inner)} or null"
        case ir.Scalar(primitive=primitive) | ir.InlineEnum(primitive=primitive):
            return primitive.value
        case ir.Const(value):
            return repr(value)
        case ir.AnyJson():
            return "any JSON"


# --- The methods of vendor extensions -------------------------------------------------------------------------------

_VENDOR = "_"
"""The prefix of extension methods: no release of the protocol will ever use it."""


def check_vendor_methods(methods: tuple[ir.Method, ...], composed: Composed, report: Report) -> None:
    """Warn about vendor methods with a name that the protocol may use later, or with the sender as `x-side`."""
    vendors = {fragment.origin for fragment in composed.fragments if fragment.status == "vendor"}
    senders: defaultdict[str, set[str]] = defaultdict(set)
    for method in methods:
        for message, carried in messages_of(method):
            if isinstance(carried, ir.Ref):
                senders[carried.name].add(message.sender)
    for method in methods:
        if method.origin in vendors:
            _check_name(method, report)
            _check_side(method, senders, report)


def _check_name(method: ir.Method, report: Report) -> None:
    if not method.wire.startswith(_VENDOR):
        report.warning(
            "vendor-name",
            f"{method.wire!r} is a vendor method, but its name does not start with `{_VENDOR}`",
            at=join(method.pointer, "x-method"),
            hint=f"name it {_VENDOR + method.wire!r}: a release of the protocol may give other names another meaning",
        )


def _check_side(method: ir.Method, senders: defaultdict[str, set[str]], report: Report) -> None:
    """Compare with the gate: the side that handles a request announces it."""
    announced = senders[names.class_name(method.gate.root)] if method.gate else set()
    handlers = {role.value for role in method.handlers}
    if method.kind is ir.MethodKind.REQUEST and announced and not announced & handlers:
        report.warning(
            "vendor-side",
            f"{method.wire!r} is handled by the {' and '.join(handlers)}, and waits for a capability that the"
            f" {' and '.join(announced)} announces",
            at=join(method.pointer, "x-side"),
            hint="`x-side` is the peer that handles the request, on both of its halves; or name another gate",
        )
