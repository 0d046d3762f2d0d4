"""Models: types alone, in one module, for another library than the package's own runtime.

A flavour is a library of the generator, views for its templates, and a head of the module. What a library cannot read
right is not offered; the differences from JSON Schema are `RULES` in `tests/fidelity/test_models.py`, and a table in
docs/models.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from acpgen.diagnostics import Diagnostic, InputError
from acpgen.emit.aliases import usable
from acpgen.emit.classes import Classes
from acpgen.emit.flavours.generator import Library, render_definitions
from acpgen.emit.flavours.plain_schema import plain_schema
from acpgen.emit.flavours.pydantic_models import PydanticAlias, PydanticClass
from acpgen.emit.flavours.typed_dicts import TypedDictAlias, TypedDictClass
from acpgen.emit.format import format_files
from acpgen.emit.imports import used
from acpgen.emit.modules import origin_text
from acpgen.emit.package import Package
from acpgen.emit.runtime import make_environment
from acpgen.emit.source import Code, docstring, identifier, listed
from acpgen.flavours import Flavour
from acpgen.ir import model as ir

_TYPING_NAMES = ("TYPE_CHECKING", "Annotated", "Any", "Literal", "TypeAlias", "cast")
_MODULE = "__init__.py"
"""The module in the folder of a configured output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What is known of a flavour. `reserved` are names that its module uses itself, or that the generator renames.

    `names` are those of them that the head imports if they are used.
    """

    library: Library
    class_view: Callable[[ir.Struct, Classes], object]
    alias_view: Callable[[ir.Definition, ir.Model], object]
    names: tuple[str, ...]
    reserved: frozenset[str]
    title: str
    doc: str


_RECORDS: Mapping[Flavour, _Record] = {
    Flavour.PYDANTIC: _Record(
        library=Library.PYDANTIC,
        class_view=PydanticClass,
        alias_view=PydanticAlias,
        names=("MISSING", "TypeAliasType", "pydantic", "tag_of"),
        reserved=frozenset({"BaseModel", "Field", "MISSING", "TypeAliasType"}),
        title="models of pydantic",
        doc=(
            "They are strict, and read and write the names on the wire, which constructors take, too. An attribute "
            "that is `MISSING` is absent from the JSON object; `None` is JSON null. Needs pydantic 2.14 or later."
        ),
    ),
    Flavour.TYPEDDICT: _Record(
        library=Library.TYPED_DICT,
        class_view=TypedDictClass,
        alias_view=TypedDictAlias,
        names=("NotRequired", "TypedDict"),
        reserved=frozenset({"NotRequired", "TypedDict"}),
        title="typed dicts",
        doc=(
            "They describe JSON objects as `json.loads` makes them, to type checkers. A key that is not required may "
            "be absent; `None` is JSON null. Nothing is checked at run time."
        ),
    ),
}


def render_models(model: ir.Model, flavour: Flavour, renames: Mapping[str, str] | None = None) -> str:
    """The formatted module with the types of `model`, and with the old names that `renames` has new ones for.

    Raises `InputError` for definitions with names that the module uses itself.
    """
    record = _RECORDS[flavour]
    if taken := [each for each in model.definitions if each.name in record.reserved]:
        raise InputError(_taken(definition, flavour) for definition in taken)
    views = _views(model, record)
    former = starmap(_former_name, sorted((renames or {}).items()))
    body = Code("\n\n\n".join([render_library_types(model, views, record.library), *former]))
    writers = [view for view in views.values() if isinstance(view, (PydanticAlias, TypedDictClass))]
    quoted = [each for view in writers for each in view.quoted]
    found = used("\n".join([body, *quoted]), (*record.names, *_TYPING_NAMES, "builtins"))
    text = f"The types of the Agent Client Protocol, version {model.protocol}: {record.title}."
    module = (
        make_environment(".")
        .get_template(f"flavours/{flavour.value}.py.jinja")
        .render(
            module_doc=docstring(f"{text}\n\n{origin_text(model)}\n\n{record.doc}", 0),
            body=body,
            typing_names=listed(name for name in found if name in _TYPING_NAMES),
            library_names=listed(name for name in found if name in record.names),
            names=found,
        )
    )
    return format_files({_MODULE: module})[_MODULE]


def _views(model: ir.Model, record: _Record) -> dict[str, object]:
    """The views of all definitions by name, in the order in which they are printed."""
    classes = Classes(model)
    return {
        each.name: record.class_view(each, classes) if isinstance(each, ir.Struct) else record.alias_view(each, model)
        for each in classes.definitions
    }


def render_library_types(model: ir.Model, views: Mapping[str, object], library: Library) -> Code:
    """The classes, unions and aliases of `model` for a library, by the views of `_RECORDS`."""
    data: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    data.update({name: {"view": view} for name, view in views.items()})
    statements = render_definitions(plain_schema(model), data, library)
    return Code("\n\n\n".join(statements[name] for name in views))


def emit_models(model: ir.Model, flavour: Flavour, renames: Iterable[tuple[str, str]] = ()) -> Package:
    """The package with the module alone. Raises `InputError` for a former name that the module defines itself."""
    names = sorted(definition.name for definition in model.definitions)
    aliases = usable(renames, {"types": names, "library": [*_RECORDS[flavour].reserved, *_TYPING_NAMES, "Struct"]})
    kept = {old: new for old, new in aliases.items() if new in model.by_name}
    files = {_MODULE: render_models(model, flavour, kept), "py.typed": ""}
    return Package(files=files, renames=kept, notes=())


def _taken(definition: ir.Definition, flavour: Flavour) -> Diagnostic:
    return Diagnostic(
        code="name-clash",
        message=f"the definition {definition.name} has a name that modules for {flavour.value} use themselves",
        pointer=definition.pointer,
        hint="rename the definition in the schema",
    )


def _former_name(old: str, new: str) -> Code:
    return Code(f"{identifier(old)}: TypeAlias = {identifier(new)}\n{docstring(f'The former name of `{new}`.', 0)}")
