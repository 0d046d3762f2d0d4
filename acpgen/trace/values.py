"""Compare values with the model: what does not fit, what leniency repairs, what no property is defined for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Severity
from acpgen.ir import model as ir
from acpgen.ir.conditions import holds
from acpgen.ir.leniency import repairs
from acpgen.ir.relations import concrete, may_send_null
from acpgen.schema.document import join
from acpgen.text import cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A part of a value at `pointer`. `owner` is the class that does not know the property `unknown`.

    `about` is what the schema says of the place: a class, or a class and a property with a dot between them.
    """

    code: str
    severity: Severity
    pointer: str
    message: str
    owner: str = ""
    unknown: str = ""
    about: str = ""


def misfits(expression: ir.TypeExpr, value: Any, model: ir.Model, *, at: str) -> Iterator[Misfit]:
    """What in `value` does not fit `expression`, each with its pointer."""
    match concrete(expression, model):
        case ir.AnyJson():
            return
        case ir.Nullable(inner):
            if value is not None:
                yield from misfits(inner, value, model, at=at)
        case ir.Ref(name):
            yield from _defined(name, value, model, at=at)
        case ir.ListOf() | ir.MapOf() as container:
            yield from _inner(container, value, model, at=at)
        case ir.Const(constant):
            if value != constant or isinstance(value, bool) != isinstance(constant, bool):
                yield _wrong(at, json.dumps(constant), value)
        case ir.Scalar() | ir.InlineEnum() as scalar:
            yield from _scalar(scalar, value, at)


def _inner(expression: ir.ListOf | ir.MapOf, value: Any, model: ir.Model, *, at: str) -> Iterator[Misfit]:
    match expression:
        case ir.ListOf(item=item, min_items=least):
            if not isinstance(value, list) or len(value) < least:
                yield _wrong(at, f"an array of {least} or more items" if least else "an array", value)
            else:
                for index, each in enumerate(value):
                    yield from misfits(item, each, model, at=join(at, index))
        case ir.MapOf(inner):
            if not isinstance(value, dict):
                yield _wrong(at, "an object", value)
            else:
                for key, each in value.items():
                    yield from misfits(inner, each, model, at=join(at, key))


def fits(expression: ir.TypeExpr, value: Any, model: ir.Model) -> bool:
    """Whether a reader accepts the value."""
    return not any(each.severity is Severity.ERROR for each in misfits(expression, value, model, at=""))


def _wrong(at: str, expected: str, value: Any) -> Misfit:
    found = cut(json.dumps(value, ensure_ascii=False))
    message = f"expected {expected}, found {found}"
    return Misfit(code="wrong-value", severity=Severity.ERROR, pointer=at, message=message)


def _is_primitive(value: Any, primitive: ir.Primitive) -> bool:
    """Whether a value is of the type. Without a fraction, it is an integer (JSON Schema 2020-12, section 4.2.3)."""
    is_whole = isinstance(value, float) and value.is_integer()
    return primitive.admits(ir.Primitive.INTEGER if is_whole else ir.Primitive.of(value))


def _scalar(expression: ir.Scalar | ir.InlineEnum, value: Any, at: str) -> Iterator[Misfit]:
    if not _is_primitive(value, expression.primitive):
        yield _wrong(at, f"a value of the type {expression.primitive.value}", value)
    elif isinstance(expression, ir.InlineEnum):
        if not expression.open and value not in expression.values:
            yield _wrong(at, "one of " + ", ".join(map(json.dumps, expression.values)), value)
    elif expression.minimum is not None and value < expression.minimum:
        yield _wrong(at, f"at least {expression.minimum:g}", value)
    elif expression.maximum is not None and value > expression.maximum:
        yield _wrong(at, f"at most {expression.maximum:g}", value)
    elif expression.min_length is not None and len(value) < expression.min_length:
        yield _wrong(at, f"at least {expression.min_length} characters", value)


def _defined(name: str, value: Any, model: ir.Model, *, at: str, tag: str | None = None) -> Iterator[Misfit]:
    match model.by_name[name]:
        case ir.Struct() as struct:
            yield from _object(struct, value, model, at=at, tag=tag)
        case ir.UntaggedUnion(members=candidates):
            yield from _first(name, candidates, value, model, at=at)
        case ir.TaggedUnion() as union:
            yield from _tagged(union, value, model, at=at)


def _object(struct: ir.Struct, value: Any, model: ir.Model, *, at: str, tag: str | None) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        yield _wrong(at, f"an object ({struct.name})", value)
        return
    for field in struct.fields:
        about = f"{struct.name}.{field.wire}"
        if field.wire in value:
            for each in _property(field, value[field.wire], model, at=join(at, field.wire)):
                yield each if each.about else replace(each, about=about)
            if value[field.wire] is None and field.omits_null and may_send_null(field, model):
                yield _null(field, at=join(at, field.wire), about=about)
        elif field.required:
            message = f"{struct.name} requires the property {field.wire!r}"
            yield Misfit(code="missing-property", severity=Severity.ERROR, pointer=at, message=message, about=about)
    if struct.rejects is not None and holds(struct.rejects, value):
        yield _wrong(at, f"an object that is a {struct.name}", value)
    if not struct.keeps_extra:
        yield from _unknown(struct, value, at=at, tag=tag)


def _null(field: ir.Field, *, at: str, about: str) -> Misfit:
    message = f"null says here what leaving {field.wire!r} out says, and some editors cannot read it"
    return Misfit(code="null", severity=Severity.NOTE, pointer=at, message=message, about=about)


def _unknown(struct: ir.Struct, value: Mapping[str, Any], *, at: str, tag: str | None) -> Iterator[Misfit]:
    for key in value.keys() - {field.wire for field in struct.fields} - {tag}:
        yield Misfit(
            code="unknown-property",
            severity=Severity.NOTE,
            pointer=join(at, key),
            message=f"{struct.name} has no property {cut(key)!r}",
            owner=struct.name,
            unknown=key,
            about=struct.name,
        )


def _property(field: ir.Field, value: Any, model: ir.Model, *, at: str) -> Iterator[Misfit]:
    found = list(misfits(field.type, value, model, at=at))
    is_repaired = repairs(field, value, model)
    for each in found:
        if is_repaired and each.severity is Severity.ERROR:
            each = replace(each, code="leniency", severity=Severity.WARNING)  # noqa: PLW2901 - the same, judged anew
        yield each


def _tagged(union: ir.TaggedUnion, value: Any, model: ir.Model, *, at: str) -> Iterator[Misfit]:
    stated = value.get(union.tag) if isinstance(value, dict) else None
    variant = next((each for each in union.variants if each.tag == stated), None)
    if variant is not None:
        found = list(_defined(variant.target, value, model, at=at, tag=union.tag))
        others = [each for each in union.untagged if fits(each.type, value, model)]
        if not others or not any(each.severity is Severity.ERROR for each in found):
            yield from found
        return
    for member in union.fallbacks:
        match member:
            case ir.OtherVariant(target=target) if _is_other(union, member, value, model):
                yield from _defined(target, value, model, at=at, tag=union.tag)
                return
            case ir.Candidate(type=candidate) if fits(candidate, value, model):
                yield from misfits(candidate, value, model, at=at)
                return
    if union.untagged or not isinstance(value, dict):
        yield from _first(union.name, union.untagged, value, model, at=at)
    else:
        tags = ", ".join(json.dumps(each.tag) for each in union.variants)
        place = join(at, union.tag) if union.tag in value else at
        yield _wrong(place, f"{union.tag!r} to be one of {tags}", stated)


def _is_other(union: ir.TaggedUnion, member: ir.OtherVariant, value: Any, model: ir.Model) -> bool:
    """Whether the value becomes the member for other tags: the only one left, or the first that it fits."""
    if not isinstance(value, dict) or value.get(union.tag) in member.excluded:
        return False
    return not union.untagged or fits(ir.Ref(member.target), value, model)


def _first(
    name: str, candidates: tuple[ir.Candidate, ...], value: Any, model: ir.Model, *, at: str
) -> Iterator[Misfit]:
    """Compare with the first member that fits; if none does, with the only one for which all keys are there."""
    tried = [list(misfits(each.type, value, model, at=at)) for each in candidates]
    for found in tried:
        if not any(each.severity is Severity.ERROR for each in found):
            yield from found
            return
    keys = value.keys() if isinstance(value, dict) else set()
    near = [found for each, found in zip(candidates, tried, strict=True) if each.required and keys >= {*each.required}]
    if len(near) == 1:
        yield from near[0]
    else:
        yield _wrong(at, f"a value of {name}", value)
