"""`types.py` is what the IR says: its classes, bases, attributes and aliases are read back from the text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.source import field_hint, hint, value
from acpgen.emit.types import alias_target, bounds, quoted_in, render_types, untyped
from acpgen.ir.model import EXTRA_FIELD, Alias, Const, Definition, Field, Literal, Model, Options, Scalar, Struct
from acpgen.schema.bundled import Release, list_releases
from tests.published import FILES, published
from tests.support import DEEP, REPOSITORY, fitting_fragments, model_of, protocol_of

GOLDEN = sorted(
    schema
    for types in (REPOSITORY / "tests/golden").glob("*/expected/types.py")
    if (schema := types.parents[1] / "input/schema.json").is_file()
)
PUBLISHED = FILES[:: 1 if DEEP else 3]
Attributes = list[tuple[str, str, str]]
"""Names, annotations and defaults."""


@pytest.mark.full
@pytest.mark.parametrize("release", list_releases(), ids=lambda release: f"v{release.protocol}-{release.name}")
@pytest.mark.parametrize("keep_unknown", [False, True])
def test_bundled_schemas(release: Release, *, keep_unknown: bool) -> None:
    sources = SchemaChoice(protocol=release.protocol, release=release.name, extensions=fitting_fragments(release))
    check(model_of(sources, Options(keep_unknown=keep_unknown, open=keep_unknown))[0])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parts[-3])
def test_idioms(path: Path) -> None:
    check(model_of(SchemaChoice(schema=path))[0])


@pytest.mark.full
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schemas(name: str) -> None:
    path = published(name)
    check(model_of(SchemaChoice(schema=path, protocol=protocol_of(path)))[0])


def check(model: Model) -> None:
    """Fail where a class, base, attribute, default, union or alias differs from the IR."""
    tree = ast.parse(render_types(model))
    found = {name: outline for node in tree.body if (name := name_of(node)) and (outline := rendered(node))}
    names = {definition.name for definition in model.definitions}
    shared = {name: own for name, (base, own) in found.items() if name not in names and base == "Struct"}
    assert len(shared) == len(found.keys() - names) <= 1
    assert {name: inherited(found[name], shared) for name in names} == {
        definition.name: in_order(wanted(definition, model)) for definition in model.definitions
    }


def inherited(outline: tuple[str, Attributes], shared: dict[str, Attributes]) -> tuple[str, Attributes]:
    """The outline of a class that derives from the base that is no definition, as if it had that one's attributes."""
    base, own = outline
    return in_order(("Struct", own + shared[base]) if base in shared else outline)


def in_order(outline: tuple[str, Attributes]) -> tuple[str, Attributes]:
    return outline[0], sorted(outline[1])


def name_of(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def rendered(node: ast.stmt) -> tuple[str, Attributes]:
    """The base of a class and its attributes, or the target of an alias."""
    match node:
        case ast.ClassDef(bases=[base], body=body):
            return ast.unparse(base), [
                (item.target.id, unqualified(item.annotation), ast.unparse(item.value) if item.value else "")
                for item in body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            ]
        case ast.AnnAssign(value=ast.expr() as target):
            return ast.unparse(target), []
    raise AssertionError(ast.unparse(node))


def unqualified(annotation: ast.expr) -> str:
    return ast.unparse(annotation).replace("builtins.", "")


def wanted(definition: Definition, model: Model) -> tuple[str, Attributes]:
    match definition:
        case Struct(base=base, fields=fields):
            own = [each for each in fields if not each.inherited]
            attributes = [(each.name, same(field_hint(each)), default(each, model)) for each in own]
            if definition.keeps_extra and not (base and model.struct(base).keeps_extra):
                attributes.append((EXTRA_FIELD, "dict[str, Any]", "made(factory=lambda: {})"))
            return base or "Struct", attributes
        case Alias(type=Scalar() as scalar) if scalar.bounds:
            return same(f"Annotated[{hint(scalar)}, {bounds(scalar)}]"), []
        case _:
            quoted = quoted_in(definition, model)
            return same(" | ".join(hint(each, quoted=quoted) for each in alias_target(definition))), []


def default(field: Field, model: Model) -> str:
    match field:
        case Field(may_be_unset=True):
            return "UNSET"
        case Field(type=Const(only), required=True):
            return repr(only)
        case Field(required=False, default=Literal() as known):
            return same(value(known))
        case Field(required=False, default=known) if known is not None:
            return same(f"made(factory=lambda: {untyped(value(known), field.type, model)})")
    return ""


def same(source: str) -> str:
    """An expression as `ast` prints it."""
    return ast.unparse(ast.parse(source, mode="eval"))
