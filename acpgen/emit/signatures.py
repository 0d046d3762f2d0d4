"""The declarations of a package without bodies, for `acpgen show` and `acpgen diff`.

They are rendered by the templates of the package and cut, so that they always equal the generated code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from acpgen.emit.classes import Classes
from acpgen.emit.format import format_files
from acpgen.emit.generator import first_line
from acpgen.emit.role_classes import RoleView
from acpgen.emit.runtime import make_environment
from acpgen.emit.source import Code, hint, identifier
from acpgen.emit.types import BoundedAlias, ClassView, alias_target
from acpgen.ir import model as ir
from acpgen.roles import Role, Side


@dataclass(frozen=True, slots=True)
class Signature:
    """A declaration and its module."""

    module: str
    code: str


@dataclass(frozen=True, slots=True)
class _Field:
    """A field, as datamodel-code-generator hands it to the templates of `types.py`."""

    original_name: Code
    type_hint: Code


@dataclass(frozen=True, slots=True)
class _Declared:
    """A class of a role: its module, its first lines, and the signatures of its methods by name."""

    module: str
    head: str
    methods: dict[str, str]


class Signatures:
    """The declarations of the package of one model; `folder` is the subpackage in one of several ("v1/")."""

    def __init__(self, model: ir.Model, *, folder: str = "") -> None:
        self._model = model
        self._folder = folder
        self._environment = make_environment()
        self._type_classes = Classes(model)

    def of_type(self, definition: ir.Definition) -> Signature:
        """The class with its attributes, or the union, enum or alias."""
        source = self._type_source(definition)
        (node,) = (each for each in ast.parse(source).body if not isinstance(each, ast.Expr))
        if isinstance(node, ast.ClassDef):
            code = _cut(source, node)
        else:
            code = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
        return Signature(f"{self._folder}types.py", _formatted(code))

    def of_method(self, method: ir.Method) -> list[Signature]:
        """The handlers and the stubs of a method, each in its class; then the methods that pass it on."""
        found = [(declared, method.name) for side in method.handlers for declared in self._classes[side]]
        passing = [
            (classes[role.base], each.name)
            for role, classes in self._passing
            for each in role.passed
            if each.view.method == method
        ]
        return [self._of(declared, name) for declared, name in found + passing]

    def _of(self, declared: _Declared, name: str) -> Signature:
        code = _formatted("\n".join([declared.head, declared.methods[name]]))
        return Signature(f"{self._folder}{declared.module}.py", code)

    def _type_source(self, definition: ir.Definition) -> str:
        # datamodel-code-generator, which uses these two templates in a build, leaves the line breaks in them alone
        environment = self._environment.overlay(trim_blocks=False, lstrip_blocks=False)
        name = identifier(definition.name)
        if isinstance(definition, ir.Struct):
            absent = {field.name for field in definition.fields if field.may_be_unset}
            fields = [
                _Field(identifier(own), Code(f"{hint(known)} | UnsetType") if own in absent else hint(known))
                for own, known in self._type_classes.own_attributes(definition)
            ]
            return environment.get_template("msgspec.jinja2").render(
                view=ClassView(definition, self._type_classes),
                class_name=name,
                base_class=identifier(self._type_classes.base(definition) or "Struct"),
                fields=fields,
            )
        target = Code(" | ".join(hint(each) for each in alias_target(definition)))
        return environment.get_template("TypeAliasAnnotation.jinja2").render(
            view=BoundedAlias(definition, self._type_classes), class_name=name, fields=[_Field(name, target)]
        )

    @cached_property
    def _classes(self) -> dict[Side, list[_Declared]]:
        """The classes with the methods of each side: those to extend, then the stubs."""
        bases, stubs = ({side: list[_Declared]() for side in Side} for _ in range(2))
        for role in (each.record for each in Role if not each.record.passes):
            classes = self._declared(RoleView(role, self._model), role.name)
            for side in role.sides:
                bases[side].append(classes[role.base])
                stubs[side.peer].append(classes[side.peer.stub])
        return {side: bases[side] + stubs[side] for side in Side}

    @cached_property
    def _passing(self) -> list[tuple[RoleView, dict[str, _Declared]]]:
        """The roles that pass messages on, with the classes of their modules."""
        views = [(RoleView(each.record, self._model), each.record.name) for each in Role if each.record.passes]
        return [(view, self._declared(view, module)) for view, module in views]

    def _declared(self, role: RoleView, module: str) -> dict[str, _Declared]:
        """The classes of the module of a role, by their names."""
        source = self._environment.get_template(f"{role.template}.py.jinja").render(role=role)
        nodes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
        return {node.name: _declared(module, source.splitlines(), node) for node in nodes}


def _declared(module: str, lines: list[str], node: ast.ClassDef) -> _Declared:
    methods = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return _Declared(module, _class_head(lines, node), {part.name: "\n".join(_head(part, lines)) for part in methods})


def _class_head(lines: list[str], node: ast.ClassDef) -> str:
    return "\n".join(lines[first_line(node) - 1 : node.body[0].lineno - 1])


def _cut(source: str, node: ast.ClassDef) -> str:
    """The class with its attributes and the signatures of its methods."""
    lines = source.splitlines()
    body = [line for part in node.body for line in _head(part, lines)]
    return "\n".join([_class_head(lines, node), *(body or ["    ..."])])


def _head(part: ast.stmt, lines: list[str]) -> Iterator[str]:
    match part:
        case ast.AnnAssign():
            yield from lines[part.lineno - 1 : part.end_lineno]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            head = lines[part.lineno - 1 : part.body[0].lineno - 1]
            yield from [*head[:-1], f"{head[-1]} ..."]


def _formatted(code: str) -> str:
    return format_files({"signature.py": code})["signature.py"].rstrip("\n")
