"""What the templates of `types.py` print about one class, union, enum or alias."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from acpgen.emit.hints import field_hint, hint
from acpgen.emit.literals import LINE_LENGTH, Code, docstring, identifier, literal
from acpgen.emit.values import is_immutable, value
from acpgen.ir import names
from acpgen.ir.model import (
    EXTRA_FIELD,
    Alias,
    Choice,
    Const,
    Definition,
    Enum,
    Field,
    Model,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members

_ANNOTATIONS = {"format": "Format", "pattern": "Pattern", "contentEncoding": "Encoding"}
_EXTRA_DOC = "The properties of the object that have no attribute of their own, as they came."


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of `__init__`: what it is called, its annotation, and its default, if any."""

    name: Code
    hint: Code
    default: Code | None
    assigned: Code
    """The expression that the attribute is set to."""


class ClassView:
    """One struct, as `dataclass.jinja2` prints it."""

    def __init__(self, struct: Struct, model: Model) -> None:
        self._struct = struct
        self._model = model
        self._shadowed = {field.name for field in struct.fields} & names.BUILTIN_TYPES

    @property
    def base(self) -> Code:
        """The class that it extends."""
        return identifier(self._struct.base or "Struct")

    @property
    def doc(self) -> Code:
        """The docstring of the class: what it is for, and who brought it."""
        return docstring(_with_origin(self._struct, self._model), 4)

    def annotation(self, name: str, rendered: str) -> Code:
        """The annotation of the attribute `name`, from the type that was rendered for it."""
        if name == EXTRA_FIELD and self._keeps_own_extra:
            return Code(rendered)
        field = next(field for field in self._struct.fields if field.name == name)
        known = hint(field.type) if isinstance(field.type, (Const, Choice)) else rendered
        return self._qualified(f"{known} | UnsetType" if field.may_be_unset else known)

    def field_doc(self, name: str) -> Code:
        """The docstring that follows the attribute; empty where there is nothing to say."""
        field = next((field for field in self._struct.fields if field.name == name), None)
        text = field_text(field, self._struct) if field else _EXTRA_DOC
        return docstring(text, 4) if text else Code("")

    @property
    def slots(self) -> Code:
        """The tuple of the attributes that the class adds to its base."""
        own = [literal(field.name) for field in self._struct.fields if not field.inherited]
        own += [literal(EXTRA_FIELD)] if self._keeps_own_extra else []
        line = f"({own[0]},)" if len(own) == 1 else f"({', '.join(own)})"
        if len(line) <= LINE_LENGTH - len("    __slots__ = "):
            return Code(line)
        return Code("(\n" + "".join(f"        {name},\n" for name in own) + "    )")

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters of `__init__`, all by keyword, in the order of the schema."""
        parameters = [self._parameter(field) for field in self._struct.fields]
        if self._struct.keeps_extra:
            kind = self._qualified("dict[str, Any] | UnsetType")
            made = Code(f"{{}} if {EXTRA_FIELD} is UNSET else {EXTRA_FIELD}")
            parameters.append(Parameter(identifier(EXTRA_FIELD), kind, Code("UNSET"), made))
        return parameters

    def _parameter(self, field: Field) -> Parameter:
        name = identifier(field.name)
        annotation = self._qualified(field_hint(field))
        if isinstance(field.type, Const) and field.required:
            return Parameter(name, annotation, literal(field.type.value), name)
        if field.may_be_unset:
            return Parameter(name, annotation, Code("UNSET"), name)
        if field.required or field.default is None:
            return Parameter(name, annotation, None, name)
        default = value(field.default)
        if is_immutable(field.default):
            return Parameter(name, annotation, default, name)
        made = Code(f"{default} if {name} is UNSET else {name}")
        return Parameter(name, Code(f"{annotation} | UnsetType"), Code("UNSET"), made)

    @property
    def _keeps_own_extra(self) -> bool:
        base = self._struct.base
        return self._struct.keeps_extra and not (base and self._model.struct(base).keeps_extra)

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
