"""The declarations of a package without bodies, for `acpgen show` and `acpgen diff`.

They are rendered by the templates of the package and cut, so that they always equal the generated code.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from acpgen.emit.classes import Classes
from acpgen.emit.format import format_files
from acpgen.emit.role_classes import RoleView
from acpgen.emit.runtime import make_environment
from acpgen.emit.source import first_line
from acpgen.emit.types import render_definition
from acpgen.ir import model as ir
from acpgen.roles import Role, RoleRecord


@dataclass(frozen=True, slots=True)
class Signature:
    """A declaration and its module."""

    module: str
    code: str


class Signatures:
    """The declarations of the package of one model; `folder` is the subpackage in one of several ("v1/")."""

    def __init__(self, model: ir.Model, *, folder: str = "") -> None:
        self._model = model
        self._folder = folder
        self._environment = make_environment(".")
        self._type_classes = Classes(model)

    def of_type(self, definition: ir.Definition) -> Signature:
        """The class with its attributes, or the union, enum or alias."""
        source = render_definition(definition, self._type_classes)
        (node,) = (each for each in ast.parse(source).body if not isinstance(each, ast.Expr))
        if isinstance(node, ast.ClassDef):
            code = _cut(source, node)
        else:
            code = "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
        return Signature(f"{self._folder}types.py", _formatted(code))

    def of_method(self, method: ir.Method) -> list[Signature]:
        """The handlers and the stubs of a method, each in its class; then the methods that pass it on."""
        found = list[Signature]()
        plain = [(role, methods) for role, _, methods in self._roles if not role.passes]
        for side in method.handlers:
            found += [methods[role.base, method.name] for role, methods in plain if side in role.sides]
            found += [methods[side.stub, method.name] for role, methods in plain if side in role.called]
        found += [signature for passed, signature in self._passed.get(method.name, ()) if passed == method]
        return [replace(each, code=_formatted(each.code)) for each in found]

    @cached_property
    def _roles(self) -> list[tuple[RoleRecord, RoleView, Mapping[tuple[str, str], Signature]]]:
        """The roles, each with the methods of its module by the names of class and method, not yet formatted."""
        views = [(each.record, RoleView(each.record, self._model)) for each in Role]
        return [(role, view, self._methods(role, view)) for role, view in views]

    @cached_property
    def _passed(self) -> Mapping[str, Sequence[tuple[ir.Method, Signature]]]:
        """The methods that pass messages on, by the names of the methods of the messages."""
        found = defaultdict[str, list[tuple[ir.Method, Signature]]](list)
        for role, view, methods in self._roles:
            for each in view.passed:
                found[each.view.method.name].append((each.view.method, methods[role.base, each.name]))
        return found

    def _methods(self, role: RoleRecord, view: RoleView) -> Mapping[tuple[str, str], Signature]:
        source = self._environment.get_template(f"{role.template}.py.jinja").render(role=view)
        module, lines = f"{self._folder}{role.name}.py", source.splitlines()
        return {
            (node.name, part.name): Signature(module, "\n".join([_class_head(lines, node), *_head(part, lines)]))
            for node in ast.parse(source).body
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
        }


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
