"""datamodel-code-generator, which renders types for other libraries.

Only its public `generate()` is used, with every option given. Its output is cut into definitions, never edited.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from enum import Enum
from typing import Any

from acpgen.diagnostics import internal_error
from acpgen.emit.flavours.plain_schema import PlainSchema
from acpgen.emit.source import first_line
from acpgen.schema.data import data_folder


class Library(Enum):
    """The libraries that the templates render classes for, each by the generator's name of its output."""

    PYDANTIC = "pydantic_v2.BaseModel"
    TYPED_DICT = "typing.TypedDict"


def render_definitions(
    schema: PlainSchema, views: defaultdict[str, dict[str, Any]], library: Library
) -> dict[str, str]:
    """The statements that define the classes, unions and aliases of `schema`, by name.

    `views` has what the templates are given for each of them.
    """
    statements = _statements(_generate(schema, views, library))
    if odd := statements.keys() ^ schema["$defs"].keys():
        raise internal_error(f"rendered types differ from the model in {', '.join(sorted(odd)[:5])}")
    return statements


def _generate(schema: PlainSchema, views: defaultdict[str, dict[str, Any]], library: Library) -> str:
    # imported late: the import takes longer than an unchanged build
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
            output_model_type=DataModelType(library.value),
            custom_template_dir=data_folder() / "templates" / "flavours",
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


def _statements(source: str) -> dict[str, str]:
    """The texts of the classes and aliases in `source` by name, each with the strings that follow it."""
    tree, lines = ast.parse(source), source.splitlines()
    starts = [node for node in tree.body if not _is_string(node)]
    ends = [*(first_line(node) - 1 for node in starts[1:]), len(lines)]
    return {
        name: "\n".join(lines[first_line(node) - 1 : end]).rstrip()
        for node, end in zip(starts, ends, strict=True)
        if (name := _name(node)) is not None
    }


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _name(node: ast.stmt) -> str | None:
    match node:
        case (
            ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])
        ):
            return name
        case ast.If(body=[first, *_]):  # one definition for type checkers, and one for the library
            return _name(first)
        case _:
            return None
