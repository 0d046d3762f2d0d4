"""`types.py`: rendered by datamodel-code-generator with our templates.

The input is a plain JSON Schema written from the IR, in which nothing is left to guess. Each class, union or alias is a
definition. All names are final. A property that may be absent is not required: the generator writes
`UnsetType` for it. A property with another default is marked as required, and `ClassView` adds the default.

`emit/models` renders the same schema for other libraries. Tests compare the result with the IR.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from acpgen.emit.classes import Classes
from acpgen.emit.generator import Library, PlainSchema, render_definitions
from acpgen.emit.source import (
    Code,
    assigned,
    docstring,
    field_hint,
    hint,
    identifier,
    is_immutable,
    listed,
    literal,
    value,
)
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, references, types_in


def _plain_schema(classes: Classes, *, all_required: bool) -> PlainSchema:
    """The schema of all definitions; with `all_required`, the type hints are those of values that are present."""
    definitions = {each.name: _definition(each, classes, all_required=all_required) for each in classes.definitions}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def _definition(definition: ir.Definition, classes: Classes, *, all_required: bool) -> PlainSchema:
    if definition.name in classes.model.recursive:  # the view writes it
        return {"type": "string"}
    if not isinstance(definition, ir.Struct):
        target = alias_target(definition)
        return {"anyOf": [_type(member) for member in target]} if len(target) > 1 else _type(target[0])
    properties = {name: _type(expression) for name, expression in classes.own_attributes(definition)}
    absent = {field.name for field in definition.fields if field.may_be_unset and not all_required}
    schema: PlainSchema = {"type": "object", "properties": properties, "required": sorted(properties.keys() - absent)}
    if base := classes.base(definition):
        schema["allOf"] = [_type(ir.Ref(base))]
    return schema


def _type(expression: ir.TypeExpr) -> PlainSchema:
    match expression:
        case ir.Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case ir.Scalar(primitive=primitive):
            return {"type": primitive.value}
        case ir.Const(only):
            return {"const": only}
        case ir.Choice(primitive=primitive, values=constants, open=is_open):
            closed = {"type": primitive.value, "enum": list(constants)}
            return {"anyOf": [closed, {"type": primitive.value}]} if is_open else closed
        case ir.ListOf(item=item):
            return {"type": "array", "items": _type(item)}
        case ir.MapOf(inner):
            return {"type": "object", "additionalProperties": _type(inner)}
        case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
            return {}
        case ir.Nullable(
            ir.Scalar() | ir.ListOf() | ir.MapOf(ir.AnyJson()) as inner
        ):  # the generator is slow at `anyOf`
            known = _type(inner)
            return {**known, "type": [known["type"], ir.Primitive.NULL.value]}
        case ir.Nullable(inner):
            return {"anyOf": [_type(inner), {"type": ir.Primitive.NULL.value}]}


_ANNOTATIONS = {"format": "Format", "pattern": "Pattern", "contentEncoding": "Encoding"}
_STRING_OR_NAME = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+""")
_NOTHING = Code("")
_EXTRA_DOC = "The properties of the object that the schema does not name, unchanged."


class GeneratedField(Protocol):
    """A field as the generator passes it to templates. It may rename one that hides an import."""

    original_name: str | None
    type_hint: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: name, annotation, default with the equals sign, and docstring."""

    name: Code
    annotation: Code
    default: Code = _NOTHING
    doc: Code = _NOTHING


class ClassView:
    """The facts about a struct that the generator does not know, for `msgspec.jinja2`."""

    def __init__(self, struct: ir.Struct, classes: Classes) -> None:
        self._struct = struct
        self._model = classes.model
        self._fields = {field.name: field for field in struct.fields}
        self.options = Code("" if struct.name in classes.model.by_name else ", fields_last=True")
        """The keywords of the class: the shared base, which is no definition of the schema, has its field last."""
        self.doc = docstring(definition_text(struct, classes.model), 4)

    def attributes(self, generated: Iterable[GeneratedField]) -> list[Attribute]:
        """The attributes in schema order; the generator puts required ones first."""
        order = [*self._fields, ir.EXTRA_FIELD]
        named = {str(each.original_name): each for each in generated}
        return [self._attribute(name, named[name].type_hint) for name in order if name in named]

    def _attribute(self, name: str, type_hint: str) -> Attribute:
        field = self._fields.get(name)
        doc = docstring(field_text(field, self._struct) if field else _EXTRA_DOC, 4)
        known = field_hint(field) if field and needs_own_hint(field.type) else Code(type_hint)
        return Attribute(identifier(name), qualified(known, self._fields), _default(field, self._model), doc)


def qualified(annotation: str, attributes: Collection[str]) -> Code:
    """Put `builtins.` before the names in `annotation` that one of the `attributes` of the class hides."""
    shadowed = names.BUILTIN_TYPES.intersection(attributes)

    def qualify(found: re.Match[str]) -> str:
        return f"builtins.{found[0]}" if found[0] in shadowed else found[0]

    return Code(_STRING_OR_NAME.sub(qualify, annotation) if shadowed else annotation)


def _default(field: ir.Field | None, model: ir.Model) -> Code:
    """The default of an attribute, after an equals sign; empty if there is none. `field` is None for `extra`."""
    if field is None:
        return Code(" = made(factory=lambda: {})")
    if field.may_be_unset:
        return Code(" = UNSET")
    if isinstance(field.type, ir.Const) and field.required:
        return Code(f" = {literal(field.type.value)}")
    if field.required or field.default is None:
        return Code("")
    known = value(field.default)
    if is_immutable(field.default):
        return Code(f" = {known}")
    return Code(f" = made(factory=lambda: {untyped(known, field.type, model)})")


def untyped(known: str, expression: ir.TypeExpr, model: ir.Model) -> str:
    """The default `known`, without the type that type checkers infer, which they do not find in a recursive one."""
    return known if model.recursive.isdisjoint(references(expression)) else f"cast(Any, {known})"


def annotation(field: ir.Field, generated: GeneratedField, written: Callable[[ir.TypeExpr], Code]) -> str:
    """The rendered type hint if it can be used, with limits; else the one that `written` writes."""
    return written(field.type) if needs_own_hint(field.type) or is_limited(field.type) else generated.type_hint


def is_limited(expression: ir.TypeExpr) -> bool:
    """True if a limit of the schema is part of the type itself, and not of a definition that it refers to."""
    scalars = [each for each in types_in(expression) if isinstance(each, ir.Scalar)]
    lists = [each for each in types_in(expression) if isinstance(each, ir.ListOf)]
    return any(each.bounds for each in scalars) or any(each.min_items for each in lists)


def needs_own_hint(expression: ir.TypeExpr) -> bool:
    """True if acpgen must write the annotation: for constants, choices and "any JSON".

    The generator uses single quotes, types an alias of one constant as `Any`, does not show that an enum is open, and
    does not know that "any JSON" includes null.
    """
    return any(isinstance(each, (ir.Const, ir.Choice, ir.AnyJson)) for each in types_in(expression))


class AliasView:
    """One union, enum or alias, for `TypeAliasAnnotation.jinja2`."""

    def __init__(self, definition: ir.Definition, classes: Classes) -> None:
        self._definition = definition
        self._model = classes.model
        self._quoted = quoted_in(definition, classes.model)
        self.doc = docstring(definition_text(definition, classes.model), 0)

    def statement(self, rendered: str) -> Code:
        """The statement that defines the alias."""
        return assigned(f"{identifier(self._definition.name)}: TypeAlias", self._target(rendered), indent=0)

    def _target(self, rendered: str) -> Code:
        """The type that the alias stands for: the rendered one if it can be used, else one of our own.

        Members of a union are in the order in which they are tried; constants are quoted as black does it.
        """
        match self._definition:
            case ir.Alias(type=target) if not needs_own_hint(target) and not self._quoted:
                return Code(rendered)
            case _:
                return Code(" | ".join(hint(each, quoted=self._quoted) for each in alias_target(self._definition)))


class BoundedAlias(AliasView):
    """The same, with the bounds of a scalar as the runtime reads them."""

    def _target(self, rendered: str) -> Code:
        match self._definition:
            case ir.Alias(type=ir.Scalar() as scalar) if scalar.bounds:
                return Code(f"Annotated[{rendered}, {bounds(scalar)}]")
            case _:
                return super()._target(rendered)


def bounds(scalar: ir.Scalar) -> Code:
    """The `Bounds(...)` of a scalar."""
    return Code(f"Bounds({listed(Code(f'{name}={literal(bound)}') for name, bound in scalar.bounds.items())})")


def quoted_in(definition: ir.Definition, model: ir.Model) -> frozenset[str]:
    """The types that are not defined yet where `definition` is, if it is recursive."""
    return model.recursive if definition.name in model.recursive else frozenset()


def alias_target(definition: ir.Definition) -> tuple[ir.TypeExpr, ...]:
    """The types that a union, enum or alias stands for."""
    match definition:
        case ir.Enum(primitive=primitive, members=constants, open=is_open):
            return (ir.Choice(primitive=primitive, values=tuple(each.value for each in constants), open=is_open),)
        case ir.Alias(type=target):
            return (target,)
        case ir.TaggedUnion() | ir.UntaggedUnion():
            return members(definition)
        case ir.Struct(name=name):
            return (ir.Ref(name),)


def field_text(field: ir.Field, owner: ir.Struct) -> str:
    """The docstring of an attribute: description, format, and origin if it differs from that of its class."""
    parts = [field.doc] if field.doc else []
    if isinstance(field.type, ir.Scalar):
        parts += [f"{_ANNOTATIONS[key]}: `{text}`." for key, text in field.type.annotations]
    text = " ".join(parts)
    return _joined(text, f"From {field.origin}.") if field.origin != owner.origin else text


def definition_text(definition: ir.Definition, model: ir.Model) -> str:
    """The docstring of a definition: description, values of an enum, and origin if that is not the base schema."""
    text = definition.doc
    if isinstance(definition, ir.Enum):
        lines = [f"- {member.value}: {member.doc}" for member in definition.members if member.doc]
        text = _joined(text, "\n".join(lines))
    return _joined(text, f"From {definition.origin}.") if definition.origin != model.origin else text


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def type_views(
    model: ir.Model,
    class_view: Callable[[ir.Struct, Classes], object] = ClassView,
    alias_view: Callable[[ir.Definition, Classes], object] = BoundedAlias,
) -> dict[str, object]:
    """The views of all definitions by name, in the order in which they are printed."""
    classes = Classes(model)
    return {
        each.name: class_view(each, classes) if isinstance(each, ir.Struct) else alias_view(each, classes)
        for each in classes.definitions
    }


def render_types(model: ir.Model, views: Mapping[str, object], library: Library = Library.DATACLASSES) -> Code:
    """Render the classes, unions and aliases of `model`. Only the package's own classes have hints for no value."""
    data: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    data.update({name: {"view": view} for name, view in views.items()})
    schema = _plain_schema(Classes(model), all_required=library is not Library.DATACLASSES)
    statements = render_definitions(schema, data, library)
    return Code("\n\n\n".join(statements[name] for name in views))
