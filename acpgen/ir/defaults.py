"""Read defaults: the JSON of `default` becomes a value of the type of its property."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from acpgen.ir import model as ir
from acpgen.ir.context import Context
from acpgen.ir.opened import as_written
from acpgen.schema.document import join


class _MisfitError(Exception):
    """A default does not fit its own type; the text says why."""


def fill_defaults(context: Context) -> dict[str, ir.Definition]:
    """Fill in the default of each field; a default that does not fit is an error.

    A required property keeps its default: leniency may fall back to it.
    """
    reader, filled = _DefaultReader(context), dict(context.lowered)
    for name, struct in context.lowered.items():
        if isinstance(struct, ir.Struct):
            fields = (replace(field, default=reader.default(name, field)) for field in struct.fields)
            filled[name] = replace(struct, fields=tuple(fields))
    return filled


class _DefaultReader:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str], ir.Value | None] = {}

    def default(self, owner: str, field: ir.Field) -> ir.Value | None:
        """The default of a field of the class `owner`; None if it has none."""
        key = (owner, field.name)
        if key not in self._known:
            self._known[key] = None  # a default that contains itself
            if key in self._context.raw_defaults:
                self._known[key] = self._read(field, self._context.raw_defaults[key])
        return self._known[key]

    def _read(self, field: ir.Field, raw: Any) -> ir.Value | None:
        try:
            return self.value(field.type, raw)
        except _MisfitError as misfit:
            self._context.report.error(
                "bad-default",
                f"the default of {field.wire!r} does not fit its type: {misfit}",
                at=join(field.pointer, "default"),
            )
            return None

    def value(self, expression: ir.TypeExpr, raw: Any) -> ir.Value:
        """`raw` as a value of `expression`; raises `_MisfitError`."""
        match expression:
            case ir.AnyJson():
                return _plain(raw)
            case ir.Nullable(inner):
                return ir.Literal(None) if raw is None else self.value(inner, raw)
            case ir.ListOf(item=item, min_items=min_items):
                elements = _expect(raw, list, "an array")
                if len(elements) < min_items:
                    raise _MisfitError(f"it has fewer than {min_items} items")
                return ir.ListValue(tuple(self.value(item, element) for element in elements))
            case ir.MapOf(value):
                members = _expect(raw, dict, "an object").items()
                return ir.MapValue(tuple((key, self.value(value, element)) for key, element in members))
            case ir.Const(value=constant):
                return _member(raw, (constant,), is_open=False)
            case ir.InlineEnum(values=values, open=is_open):
                return _member(raw, values, is_open=is_open)
            case ir.Scalar():
                return _scalar(raw, expression)
            case ir.Ref(name):
                return self._defined(self._context.lowered[name], raw)

    def _defined(self, definition: ir.Definition, raw: Any) -> ir.Value:
        match as_written(definition):  # a default of the schema fits what the schema lists
            case ir.Alias(type=expression):
                return self.value(expression, raw)
            case ir.Enum(members=members, open=is_open):
                return _member(raw, tuple(member.value for member in members), is_open=is_open)
            case ir.Struct() as struct:
                return self._construct(struct, raw)
            case ir.TaggedUnion() as union:
                return self._tagged(union, raw)
            case ir.UntaggedUnion(members=candidates):
                return self._first(tuple(candidate.type for candidate in candidates), raw)

    def _construct(self, struct: ir.Struct, raw: Any) -> ir.Value:
        members = dict(_expect(raw, dict, "an object"))
        arguments = []
        for field in struct.fields:
            if field.wire in members:
                value = self.value(field.type, members.pop(field.wire))
                if value != self.default(struct.name, field):
                    arguments.append((field.name, value))
            elif field.required:
                raise _MisfitError(f"it lacks {field.wire!r}, which {struct.name} requires")
        if members and struct.keeps_extra:
            arguments.append((ir.EXTRA_FIELD, _plain(members)))
        elif members:
            raise _MisfitError(f"{struct.name} has no property {next(iter(members))!r}")
        return ir.Construct(struct.name, tuple(arguments))

    def _tagged(self, union: ir.TaggedUnion, raw: Any) -> ir.Value:
        tag = _expect(raw, dict, "an object").get(union.tag)
        known = [variant.type for variant in union.variants if variant.tag == tag]
        rest = [each.type for each in union.fallbacks if isinstance(each, ir.Candidate) or tag not in each.excluded]
        return self._first((*known, *rest), raw)

    def _first(self, candidates: tuple[ir.TypeExpr, ...], raw: Any) -> ir.Value:
        for expression in candidates:
            try:
                return self.value(expression, raw)
            except _MisfitError:
                continue
        raise _MisfitError("no member of the union takes it")


def _expect(raw: Any, kind: type, what: str) -> Any:
    if not isinstance(raw, kind):
        raise _MisfitError(f"it is not {what}")
    return raw


def _member(raw: Any, values: tuple[Any, ...], *, is_open: bool) -> ir.Value:
    kind = type(values[0])
    if type(raw) is not kind or (raw not in values and not is_open):
        raise _MisfitError(f"it is none of {', '.join(map(repr, values))}")
    return ir.Literal(raw)


def _scalar(raw: Any, scalar: ir.Scalar) -> ir.Value:
    if not scalar.primitive.admits(ir.Primitive.of(raw)):
        raise _MisfitError(f"it is not of the type {scalar.primitive.value}")
    size = len(raw) if isinstance(raw, str) else None
    if size is not None and scalar.min_length is not None and size < scalar.min_length:
        raise _MisfitError(f"it is shorter than {scalar.min_length} characters")
    if scalar.primitive in (ir.Primitive.INTEGER, ir.Primitive.NUMBER):
        least = raw if scalar.minimum is None else scalar.minimum
        most = raw if scalar.maximum is None else scalar.maximum
        if not least <= raw <= most:
            raise _MisfitError(f"{raw} is out of bounds")
    return ir.Literal(raw)


def _plain(raw: Any) -> ir.Value:
    if isinstance(raw, list):
        return ir.ListValue(tuple(map(_plain, raw)))
    if isinstance(raw, dict):
        return ir.MapValue(tuple((key, _plain(value)) for key, value in raw.items()))
    return ir.Literal(raw)
