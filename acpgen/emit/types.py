"""The text of `types.py`: the classes, unions and aliases of a model."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from acpgen.emit.classes import Classes
from acpgen.emit.source import (
    Code,
    assigned,
    docstring,
    field_hint,
    hint,
    identifier,
    lines,
    listed,
    literal,
    value,
)
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, references

_ANNOTATIONS = {"format": "Format", "pattern": "Pattern", "contentEncoding": "Encoding"}
_STRING_OR_NAME = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+""")
_NOTHING = Code("")
_EXTRA_DOC = docstring("The properties of the object that the schema does not name, unchanged.")


def render_types(model: ir.Model) -> Code:
    """The definitions of the module, without its head."""
    classes = Classes(model)
    return Code("\n\n\n".join(render_definition(each, classes) for each in classes.definitions))


def render_definition(definition: ir.Definition, classes: Classes) -> Code:
    """The statement of a class, union or alias, with its docstring."""
    if isinstance(definition, ir.Struct):
        return _class(definition, classes)
    view = AliasView(definition, classes.model)
    return lines(view.statement, view.doc) if view.doc else view.statement


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: name, annotation, default with the equals sign, and docstring."""

    name: Code
    annotation: Code
    default: Code = _NOTHING
    doc: Code = _NOTHING


def _class(struct: ir.Struct, classes: Classes) -> Code:
    """A class with the attributes that it declares itself, in schema order."""
    # the shared base, which is no definition of the schema, has its field last
    options = "" if struct.name in classes.model.by_name else ", fields_last=True"
    head = [f"class {identifier(struct.name)}({identifier(classes.base(struct) or 'Struct')}{options}):"]
    if doc := docstring(definition_text(struct, classes.model)):
        head += [f"    {doc}", ""]
    taken = {field.name for field in struct.fields}
    attributes: list[str] = [_attribute(field, struct, classes.model, taken) for field in classes.own_fields(struct)]
    if classes.adds_extra(struct):
        annotation = qualified(hint(ir.MapOf(ir.AnyJson())), taken)
        attributes.append(f"    {ir.EXTRA_FIELD}: {annotation} = made(factory=lambda: {{}})\n    {_EXTRA_DOC}")
    return lines(*head, *(attributes or ["    __slots__ = ()"]))


def _attribute(field: ir.Field, owner: ir.Struct, model: ir.Model, taken: Collection[str]) -> Code:
    """An attribute of a class that has the names `taken`: name, annotation, default and docstring."""
    annotation = qualified(field_hint(field), taken)
    statement = f"    {identifier(field.name)}: {annotation}{_default(field, model)}"
    doc = docstring(field_text(field, owner))
    return lines(statement, f"    {doc}") if doc else Code(statement)


def qualified(annotation: str, attributes: Collection[str]) -> Code:
    """Put `builtins.` before the names in `annotation` that one of the `attributes` of the class hides."""
    shadowed = names.BUILTIN_TYPES.intersection(attributes)

    def qualify(found: re.Match[str]) -> str:
        return f"builtins.{found[0]}" if found[0] in shadowed else found[0]

    return Code(_STRING_OR_NAME.sub(qualify, annotation) if shadowed else annotation)


def _default(field: ir.Field, model: ir.Model) -> Code:
    """The default of an attribute, after an equals sign; empty if there is none."""
    if field.may_be_unset:
        return Code(" = UNSET")
    if isinstance(field.type, ir.Const) and field.required:
        return Code(f" = {literal(field.type.value)}")
    if field.required or field.default is None:
        return Code("")
    known = value(field.default)
    if isinstance(field.default, ir.Literal):  # all instances can share it
        return Code(f" = {known}")
    return Code(f" = made(factory=lambda: {untyped(known, field.type, model)})")


def untyped(known: str, expression: ir.TypeExpr, model: ir.Model) -> str:
    """The default `known`, without the type that type checkers infer, which they do not find in a recursive one."""
    return known if model.recursive.isdisjoint(references(expression)) else f"cast(Any, {known})"


class AliasView:
    """One union, enum or alias. Members of a union are in the order in which each is tried."""

    def __init__(self, definition: ir.Definition, model: ir.Model) -> None:
        self._definition = definition
        self._model = model
        self._quoted = quoted_in(definition, model)
        self.doc = docstring(definition_text(definition, model), 0)

    @property
    def statement(self) -> Code:
        """The statement that defines the alias."""
        return assigned(f"{identifier(self._definition.name)}: TypeAlias", self.target, indent=0)

    @property
    def target(self) -> Code:
        """The type that the alias stands for; bounds of a scalar are in it as the runtime reads them."""
        match self._definition:
            case ir.Alias(type=ir.Scalar() as scalar) if scalar.bounds:
                return Code(f"Annotated[{hint(scalar)}, {bounds(scalar)}]")
            case _:
                return Code(" | ".join(hint(each, quoted=self._quoted) for each in alias_target(self._definition)))


def bounds(scalar: ir.Scalar) -> Code:
    """The `Bounds(...)` of a scalar."""
    return Code(f"Bounds({listed(Code(f'{name}={literal(bound)}') for name, bound in scalar.bounds.items())})")


def quoted_in(definition: ir.Definition, model: ir.Model) -> frozenset[str]:
    """The types that are not defined yet where `definition` is, if it is recursive."""
    return model.recursive if definition.name in model.recursive else frozenset()


def alias_target(definition: ir.Definition) -> tuple[ir.TypeExpr, ...]:
    """The types that a union, enum or alias stands for."""
    match definition:
        case ir.Enum():
            return (definition.inline,)
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
