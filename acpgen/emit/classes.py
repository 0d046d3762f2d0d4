"""What the templates of `types.py` print about one class, union, enum or alias."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from acpgen.emit.hints import field_hint, hint
from acpgen.emit.literals import Code, docstring, identifier, literal
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
    ListOf,
    MapOf,
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
_STRING_OR_NAME = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+""")
_EXTRA_DOC = "The properties of the object that have no attribute of their own, as they came."


class GeneratedField(Protocol):
    """A field, as datamodel-code-generator hands it to its templates; it may rename one that hides an import."""

    original_name: str | None
    type_hint: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: its name, its annotation, its default with the equals sign, and the docstring that follows it."""

    name: Code
    annotation: Code
    default: Code
    doc: Code


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

    def attributes(self, generated: Iterable[GeneratedField]) -> list[Attribute]:
        """The attributes in the order of the schema; the generator puts required ones first."""
        order = [*self._fields, EXTRA_FIELD]
        named = {str(each.original_name): each for each in generated}
        return [self._attribute(name, named[name].type_hint) for name in order if name in named]

    def _attribute(self, name: str, type_hint: str) -> Attribute:
        field = self._fields.get(name)
        text = field_text(field, self._struct) if field else _EXTRA_DOC
        doc = docstring(text, 4) if text else Code("")
        annotation = field_hint(field) if field and needs_own_hint(field.type) else Code(type_hint)
        return Attribute(identifier(name), self._qualified(annotation), _default(field), doc)

    def _qualified(self, annotation: str) -> Code:
        """`annotation` with `builtins.` before the names that a field of this class hides."""
        return Code(_STRING_OR_NAME.sub(self._qualified_name, annotation) if self._shadowed else annotation)

    def _qualified_name(self, found: re.Match[str]) -> str:
        return f"builtins.{found[0]}" if found[0] in self._shadowed else found[0]


def _default(field: Field | None) -> Code:
    """What follows the annotation of an attribute: its default, if it has one; None stands for `extra`."""
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


def needs_own_hint(expression: TypeExpr) -> bool:
    """Whether the generator's annotation for a type does not do.

    It quotes constants with single quotes, types an alias of one constant as `Any`, does not say what stays open, and
    does not know that "any JSON" holds null.
    """
    match expression:
        case Const() | Choice() | AnyJson():
            return True
        case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
            return needs_own_hint(inner)
        case _:
            return False


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
            case Alias(type=target) if not needs_own_hint(target):
                return Code(rendered)
            case _:
                return Code(" | ".join(map(hint, alias_target(self._definition))))


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
