"""`types.py`: rendered by datamodel-code-generator with our templates, then compared with the IR.

The generator is used through its public `generate()` alone, with every option that matters given. What it returns is
parsed, never repaired: where it differs from the IR in a class, a base, a field or a type, that is a bug to report.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acpgen.diagnostics import internal_error
from acpgen.emit.classes import AliasView, ClassView, alias_target
from acpgen.emit.hints import hint
from acpgen.emit.literals import Code
from acpgen.emit.plain import own_fields, plain_schema
from acpgen.ir.model import Definition, Model, Struct


@dataclass(frozen=True, slots=True)
class RenderedTypes:
    """The body of `types.py`, and the names of `typing` that it uses."""

    body: Code
    typing_names: tuple[Code, ...]


def render_types(model: Model, templates: Path) -> RenderedTypes:
    """The classes, unions and aliases of `model` as source; raises `InternalError` where they differ from the IR."""
    views: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for definition in model.definitions:
        views[definition.name]["view"] = (
            ClassView(definition, model) if isinstance(definition, Struct) else AliasView(definition, model)
        )
    source = _generate(plain_schema(model), views, templates)
    statements = _statements(source)
    _check({name: found[0] for name, found in statements.items()}, model)
    body = "\n\n\n".join(statements[definition.name][1] for definition in model.definitions)
    return RenderedTypes(Code(body), _typing_names([node for node, _ in statements.values()]))


def import_generator() -> None:
    """Import all that `render_types` uses of the generator, by having it make next to nothing."""
    from datamodel_code_generator import generate
    from datamodel_code_generator.enums import DataModelType, InputFileType

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generate(
            {"type": "object"},
            input_file_type=InputFileType.JsonSchema,
            output=None,
            output_model_type=DataModelType.DataclassesDataclass,
            formatters=[],
        )


def _generate(schema: dict[str, Any], views: defaultdict[str, dict[str, Any]], templates: Path) -> str:
    # imported here: it takes longer to import than an unchanged build takes as a whole
    from datamodel_code_generator import generate
    from datamodel_code_generator.enums import DataModelType, InputFileType
    from datamodel_code_generator.format import PythonVersion
    from datamodel_code_generator.parser import LiteralType

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = generate(
            schema,
            input_file_type=InputFileType.JsonSchema,
            output=None,
            output_model_type=DataModelType.DataclassesDataclass,
            custom_template_dir=templates,
            extra_template_data=views,
            formatters=[],
            target_python_version=PythonVersion.PY_310,
            allow_remote_refs=False,
            class_name="PlainSchemaRoot",
            collapse_root_models=False,
            enum_field_as_literal=LiteralType.All,
            field_include_all_keys=False,
            keep_model_order=False,
            reuse_model=False,
            skip_root_model=True,
            snake_case_field=False,
            strict_nullable=True,
            use_schema_description=False,
            use_standard_collections=True,
            use_title_as_name=False,
            use_type_alias=True,
            use_union_operator=True,
            custom_file_header="",
        )
    if not isinstance(source, str):
        raise internal_error("datamodel-code-generator returned no single module")
    return source


def _statements(source: str) -> dict[str, tuple[ast.stmt, str]]:
    """The classes and aliases in `source` by name, each with its text, up to the next one, decorators included."""
    tree, lines = ast.parse(source), source.splitlines()
    named = [(name, node) for node in tree.body if (name := _name(node)) is not None]
    starts = [first_line(node) - 1 for _, node in named]
    ends = [*starts[1:], len(lines)]
    texts = ("\n".join(lines[start:end]).rstrip() for start, end in zip(starts, ends, strict=True))
    return {name: (node, text) for (name, node), text in zip(named, texts, strict=True)}


def first_line(node: ast.stmt) -> int:
    """The line where a statement starts, decorators included."""
    decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _typing_names(body: list[ast.stmt]) -> tuple[Code, ...]:
    used = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return tuple(Code(name) for name in ("Annotated", "Any", "Literal", "TypeAlias") if name in used)


def _check(found: dict[str, ast.stmt], model: Model) -> None:
    expected = {definition.name: definition for definition in model.definitions}
    if odd := sorted(found.keys() ^ expected.keys()):
        raise internal_error(f"rendered types differ from the model in {', '.join(odd[:5])}")
    for name, definition in expected.items():
        rendered, wanted = _rendered(found[name]), _wanted(definition, model)
        if rendered != wanted:
            raise internal_error(f"the rendered type {name} differs from the model: {rendered} instead of {wanted}")


def _name(node: ast.stmt) -> str | None:
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


Outline = tuple[str, list[tuple[str, frozenset[str]]]]
"""The base of a class (or nothing), and its fields with the members of their types."""


def _rendered(node: ast.stmt) -> Outline:
    match node:
        case ast.ClassDef(bases=[base], body=body):
            fields = [
                (item.target.id, _members(item.annotation))
                for item in body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            ]
            return ast.unparse(base), fields
        case ast.AnnAssign(value=ast.expr() as value):
            return "", [("", _members(value))]
    return "", []


def _wanted(definition: Definition, model: Model) -> Outline:
    if not isinstance(definition, Struct):
        annotation = " | ".join(hint(target) for target in alias_target(definition))
        return "", [("", _members(_parse(annotation)))]
    fields = [(name, _members(_parse(hint(expression)))) for name, expression in own_fields(definition, model)]
    return definition.base or "Struct", fields


def _parse(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _members(annotation: ast.expr) -> frozenset[str]:
    """The parts of a union, however it is written; `UnsetType`, bounds and qualifiers are the template's."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return (_members(left) | _members(right)) - {"UnsetType"}
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
            return _members(inner)
        case ast.Subscript(value=outer, slice=inner) if not _is_literal(outer):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            inside = ", ".join(" | ".join(sorted(_members(item))) for item in items)
            return frozenset({f"{ast.unparse(outer).removeprefix('builtins.')}[{inside}]"})
        case _:
            return frozenset({ast.unparse(annotation).removeprefix("builtins.")})


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "Literal"
