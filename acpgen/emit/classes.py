"""What the templates of `types.py` print about one class, union, enum or alias."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Protocol, TypeVar

from acpgen.emit.hints import field_hint, hint
from acpgen.emit.literals import Code, docstring, literal
from acpgen.emit.values import is_immutable, value
from acpgen.ir import names
from acpgen.ir.model import (
    EXTRA_FIELD,
    Alias,
    AnyJson,
    Choice,
    Const,
    Definition,
    Enum,
    Field,
    Model,
    Nullable,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members

_ANNOTATIONS = {"format": "Format", "pattern": "Pattern", "contentEncoding": "Encoding"}
F = TypeVar("F", bound="GeneratedField")
_EXTRA_DOC = "The properties of the object that have no attribute of their own, as they came."


class GeneratedField(Protocol):
    """A field, as datamodel-code-generator hands it to its templates."""

    name: str
    type_hint: str


class ClassView:
    """What `msgspec.jinja2` prints of one struct and the generator does not know."""

    def __init__(self, struct: Struct, model: Model) -> None:
        self._struct = struct
        self._model = model
        self._fields = {field.name: field for field in struct.fields}
        self._shadowed = self._fields.keys() & names.BUILTIN_TYPES

    @property
    def doc(self) -> Code:
        """The docstring of the class: its description, and its origin where it is not the base schema."""
        return docstring(_with_origin(self._struct, self._model), 4)

    def in_order(self, fields: Iterable[F]) -> list[F]:
        """`fields` in the order of the schema; the generator puts required ones first."""
        order = [*self._fields, EXTRA_FIELD]
        return sorted(fields, key=lambda field: order.index(field.name))

    def annotation(self, generated: GeneratedField) -> Code:
        """The annotation of an attribute, as the generator reads it; `builtins.` stands before hidden names.

        Of constants it knows neither the quotes that black wants nor what stays open; of "any JSON", not the null.
        """
        field = self._fields.get(generated.name)
        match field and field.type:
            case Const() | Choice() | AnyJson() | Nullable(AnyJson()):
                annotation: str = field_hint(field) if field else ""
            case _:
                annotation = generated.type_hint
        return self._qualified(annotation)

    def default(self, name: str) -> Code:
        """What follows the annotation of an attribute: its default, if it has one."""
        field = self._fields.get(name)
        if field is None:
            return Code(" = made(factory=lambda: {})")
        if field.may_be_unset:
            return Code(" = UNSET")
        if isinstance(field.type, Const) and field.required:
            return Code(f" = {literal(field.type.value)}")
        if field.required or field.default is None:
            return Code("")
        known = value(field.default)
        return Code(f" = {known}" if is_immutable(field.default) else f" = made(factory=lambda: {known})")

    def field_doc(self, name: str) -> Code:
        """The docstring that follows the attribute; empty where there is nothing to say."""
        field = self._fields.get(name)
        text = field_text(field, self._struct) if field else _EXTRA_DOC
        return docstring(text, 4) if text else Code("")

    def _qualified(self, annotation: str) -> Code:
        """`annotation` with `builtins.` before the names that a field of this class hides."""
        if not self._shadowed:
            return Code(annotation)
        return Code(ast.unparse(_Qualify(self._shadowed).visit(ast.parse(annotation, mode="eval"))))


class _Qualify(ast.NodeTransformer):
    def __init__(self, shadowed: Iterable[str]) -> None:
        self._shadowed = frozenset(shadowed)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._shadowed:
            return node
        return ast.Attribute(ast.Name("builtins", ast.Load()), node.id, ast.Load())


class AliasView:
    """One union, enum or alias, as the alias template prints it."""

    def __init__(self, definition: Definition, model: Model) -> None:
        self._definition = definition
        self._model = model

    @property
    def doc(self) -> Code:
        """The docstring that follows the alias."""
        return docstring(_with_origin(self._definition, self._model), 0)

    def annotation(self, rendered: str) -> Code:
        """The aliased type, from the one that was rendered for it; bounds are said in the type.

        The members of a union stand in the order in which they are tried, constants as black quotes them.
        """
        match self._definition:
            case Alias(type=Scalar() as target) if target.is_bounded:
                return Code(f"Annotated[{rendered}, {bounds(target)}]")
            case TaggedUnion() | UntaggedUnion() | Enum():
                return Code(" | ".join(hint(target) for target in alias_target(self._definition)))
            case _:
                return Code(rendered)


def bounds(scalar: Scalar) -> Code:
    """The `Bounds(...)` of a scalar."""
    given = {"minimum": scalar.minimum, "maximum": scalar.maximum, "min_length": scalar.min_length}
    arguments = (f"{name}={literal(bound)}" for name, bound in given.items() if bound is not None)
    return Code(f"Bounds({', '.join(arguments)})")


def alias_target(definition: Definition) -> tuple[TypeExpr, ...]:
    """The types of which a union, enum or alias is one."""
    match definition:
        case Enum(primitive=primitive, members=constants, open=is_open):
            return (Choice(primitive=primitive, values=tuple(each.value for each in constants), open=is_open),)
        case Alias(type=target):
            return (target,)
        case TaggedUnion() | UntaggedUnion():
            return members(definition)
        case Struct(name=name):
            return (Ref(name),)


def field_text(field: Field, owner: Struct) -> str:
    """What is said about an attribute: its description, format and origin, where it differs from its class's."""
    parts = [field.doc] if field.doc else []
    if isinstance(field.type, Scalar):
        parts += [f"{_ANNOTATIONS[key]}: `{text}`." for key, text in field.type.annotations]
    text = " ".join(parts)
    return _joined(text, f"From {field.origin}.") if field.origin != owner.origin else text


def _with_origin(definition: Definition, model: Model) -> str:
    text = definition.doc
    if isinstance(definition, Enum):
        lines = [f"- {member.value}: {member.doc}" for member in definition.members if member.doc]
        text = _joined(text, "\n".join(lines))
    return _joined(text, f"From {definition.origin}.") if definition.origin != model.origin else text


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
