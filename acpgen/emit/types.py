"""`types.py`: rendered by datamodel-code-generator with our templates.

The generator is used through its public `generate()` alone, with every option that matters given. Its output is cut
into definitions and put in the order of the model, never repaired. Tests compare the result with the IR.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acpgen.diagnostics import internal_error
from acpgen.emit.classes import AliasView, ClassView
from acpgen.emit.literals import Code
from acpgen.emit.plain import plain_schema
from acpgen.ir.model import Model, Struct


@dataclass(frozen=True, slots=True)
class RenderedTypes:
    """The body of `types.py`, and the names of `typing` that it uses."""

    body: Code
    typing_names: tuple[Code, ...]


def render_types(model: Model, templates: Path) -> RenderedTypes:
    """The classes, unions and aliases of `model` as source."""
    views: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for definition in model.definitions:
        views[definition.name]["view"] = (
            ClassView(definition, model) if isinstance(definition, Struct) else AliasView(definition, model)
        )
    source = _generate(plain_schema(model), views, templates)
    statements = _statements(source)
    if odd := statements.keys() ^ {definition.name for definition in model.definitions}:
        raise internal_error(f"rendered types differ from the model in {', '.join(sorted(odd)[:5])}")
    body = "\n\n\n".join(statements[definition.name][1] for definition in model.definitions)
    return RenderedTypes(Code(body), _typing_names([node for node, _ in statements.values()]))


def _generate(schema: dict[str, Any], views: defaultdict[str, dict[str, Any]], templates: Path) -> str:
    # imported here: it takes longer to import than an unchanged build takes
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
            output_model_type=DataModelType.MsgspecStruct,
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


def _name(node: ast.stmt) -> str | None:
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None
