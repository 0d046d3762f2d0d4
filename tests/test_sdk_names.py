"""The table of types in docs/from-the-sdk.md has each class of `acp.schema` that has another name here.

What belongs together is derived, from tags and properties, so that neither side can be renamed unnoticed.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Const, Model, Struct, TaggedUnion
from acpgen.schema.bundled import find_release
from tests.documents import section
from tests.needs import need
from tests.support import REPOSITORY, fitting_fragments, model_of

pytestmark = pytest.mark.full

PAGE = REPOSITORY / "docs" / "from-the-sdk.md"


@dataclass(frozen=True)
class Shape:
    """What a class has on the wire: its properties, and those of them that are constants."""

    properties: frozenset[str]
    tags: frozenset[tuple[str, Any]]


# --- Theirs ---------------------------------------------------------------------------------------------------------


@cache
def theirs() -> dict[str, Any]:
    """The classes of objects."""
    need("acp")
    from acp import schema
    from pydantic import BaseModel, RootModel

    found = {name: kind for name, kind in vars(schema).items() if isinstance(kind, type) and not name.startswith("_")}
    return {
        name: kind
        for name, kind in found.items()
        if kind.__module__ == schema.__name__ and issubclass(kind, BaseModel)
        if not issubclass(kind, RootModel) and name != "BaseModel"
    }


def shape_of(kind: Any) -> Shape:
    fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    tags = {
        (wire, *typing.get_args(hint))
        for wire, hint in fields.items()
        if typing.get_origin(hint) is typing.Literal and len(typing.get_args(hint)) == 1
    }
    return Shape(frozenset(fields), frozenset(tags))


def unions() -> Iterator[set[str]]:
    """The names of the classes in each union, of the module and of fields."""
    from acp import schema

    pending = [*vars(schema).values()]
    pending += [field.annotation for kind in theirs().values() for field in kind.model_fields.values()]
    while pending:
        hint = pending.pop()
        arguments = typing.get_args(hint)
        pending += arguments
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            yield {each.__name__ for each in arguments if isinstance(each, type)} & theirs().keys()


# --- Ours -----------------------------------------------------------------------------------------------------------


@cache
def model(*, with_extensions: bool) -> Model:
    extensions = fitting_fragments(find_release(1)) if with_extensions else ()
    return model_of(SchemaChoice(protocol=1, extensions=extensions))[0]


@cache
def shapes() -> dict[str, Shape]:
    return {
        each.name: Shape(
            frozenset(field.wire for field in each.fields),
            frozenset((field.wire, field.type.value) for field in each.fields if isinstance(field.type, Const)),
        )
        for each in model(with_extensions=True).definitions
        if isinstance(each, Struct)
    }


# --- What belongs together ------------------------------------------------------------------------------------------


def pair(name: str) -> str | None:
    """The class here that is called `name` there; None if there is none."""
    if name in shapes():
        return name
    if found := by_tag(shape_of(theirs()[name])):
        return found
    members = [each for each, kind in theirs().items() if theirs()[name] in kind.__bases__]
    if len(members) == 1:  # what a member of a union has beside its tag
        return pair(members[0])
    return by_siblings(name) or by_properties(shape_of(theirs()[name]))


def by_tag(shape: Shape) -> str | None:
    """The class with the same constants; of several, the one that has the most of the same properties."""
    found = [(alike(shape, each), name) for name, each in shapes().items() if shape.tags and each.tags == shape.tags]
    likeness, name = max(found, default=(0.0, ""))
    assert len([each for each in found if each[0] == likeness]) <= 1, found
    return name or None


def alike(one: Shape, other: Shape) -> float:
    return len(one.properties & other.properties) / len(one.properties | other.properties)


def by_siblings(name: str) -> str | None:
    """The member for other tags, of the union that the other members belong to."""
    if "Other" not in name:
        return None
    siblings = {by_tag(shape_of(theirs()[each])) for union in unions() if name in union for each in union - {name}}
    ours = (each for each in model(with_extensions=True).definitions if isinstance(each, TaggedUnion) and each.other)
    found = {each.other.target for each in ours if each.other and siblings & members_of(each)}
    assert len(found) == 1, (name, siblings)
    return found.pop()


def members_of(union: TaggedUnion) -> set[str]:
    """The names of the members, and of the members of those that are unions themselves."""
    return {name for name in shapes() for each in union.variants if name.startswith(each.target)}


def by_properties(shape: Shape) -> str | None:
    found = [name for name, each in shapes().items() if each == shape and len(shape.properties) > 1]
    return found[0] if len(found) == 1 else None


# --- The pages ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The names there, the name here, and the extension that has it, if any."""

    theirs: tuple[str, ...]
    ours: str
    extension: str


def table() -> list[Row]:
    text = section(PAGE.read_text(encoding="utf-8"), "Names").partition("### Types\n")[2].partition("\n### ")[0]
    found = re.findall(r"^\| (`.+?`) \| `(\w+)` \|(?: `(.+)` \|)?$", text, flags=re.MULTILINE)
    return [Row(quoted(left), right, extension) for left, right, extension in found]


def quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(\w+)`", text))


def test_the_page_has_each_class_with_another_name() -> None:
    renamed = {name: found for name in theirs() if (found := pair(name)) not in (None, name)}
    assert len(renamed) > 60
    assert {name: row.ours for row in table() for name in row.theirs} == renamed


def test_the_page_has_the_extension_of_each_class() -> None:
    built_in, known = model(with_extensions=False).by_name, model(with_extensions=True).by_name
    for row in table():
        assert (row.ours in built_in) == (not row.extension), row
        assert known[row.ours].origin.startswith(row.extension), row


def test_the_page_has_what_has_no_tag_there() -> None:
    (names,) = re.findall(
        r"(?s)So are those of\nthe SDK that are called (.+?),? while", PAGE.read_text(encoding="utf-8")
    )
    untagged = {
        name for name in theirs() if pair(name) == name and shape_of(theirs()[name]).tags != shapes()[name].tags
    }
    assert {*quoted(names)} == untagged
    for row in table():
        first, *rest = (theirs()[name] for name in row.theirs)
        assert all(issubclass(first, each) for each in rest), row


def test_the_page_has_each_class_that_is_none_here() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("No class here: ")[2].partition("\n\n")[0]
    assert sorted(quoted(text)) == sorted(name for name in theirs() if pair(name) is None)


def test_the_same_name_is_the_same_thing() -> None:
    same = [name for name in theirs() if pair(name) == name]
    assert len(same) > 150
    for name in same:
        assert alike(shape_of(theirs()[name]), shapes()[name]) >= 0.5, name


def test_no_class_has_a_number() -> None:
    """As those of the SDK had in earlier releases, and as generators number the members of unions."""
    for name in (*theirs(), *model(with_extensions=True).by_name):
        assert not re.search(r"\d$", name), name


@pytest.mark.filterwarnings("ignore")
def test_the_other_page_has_what_numbers_stand_for() -> None:
    """The generator is run over the schema as anyone would."""
    from datamodel_code_generator import DataModelType, InputFileType, generate

    schema = find_release(1).schema.read_text(encoding="utf-8")
    kind = DataModelType.PydanticV2BaseModel
    text = str(generate(schema, input_file_type=InputFileType.JsonSchema, output_model_type=kind))
    tagged = re.findall(r"^class (SessionUpdate\d*)\(\w+\):\n    sessionUpdate: Literal\['(\w+)'\]", text, re.MULTILINE)
    expected = {name: by_tag(Shape(frozenset(), frozenset({("sessionUpdate", tag)}))) for name, tag in tagged}
    assert len(expected) > 12
    page = (PAGE.parent / "models.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(SessionUpdate\d*)` \| `(\w+)` \|$", page, re.MULTILINE)) == expected
