"""Several layers of a schema for one object: all hold; where a class would lose values, the type is any JSON."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from tests.support import Packages, model_of, schema_of

TEXT = {"type": "string"}
BASE = {"type": "object", "properties": {"id": TEXT, "note": TEXT}}
USER = {"type": "object", "properties": {"base": {"$ref": "#/$defs/Base"}}}


@pytest.mark.parametrize(
    "node",
    [
        {"allOf": [{"$ref": "#/$defs/Base"}], "required": ["id"]},
        {"properties": {"id": TEXT}, "allOf": [{"required": ["id"]}]},
        {"type": "object", "required": ["id"], "allOf": [{"properties": {"id": TEXT}}]},
    ],
)
@pytest.mark.parametrize("is_used", [True, False], ids=["written", "reflected"])
def test_a_property_is_required_whichever_layer_says_so(
    packages: Packages, node: dict[str, Any], is_used: bool
) -> None:
    made = packages.of(schema_of(Base=BASE, User=USER, Thing=node), is_used=is_used)
    assert made.decode(made.Thing, {"id": "a"}).id == "a"
    with pytest.raises(made.DecodeError):
        made.decode(made.Thing, {})


def test_members_that_only_require_are_told_apart_by_that(packages: Packages) -> None:
    members = [{"required": ["a"]}, {"required": ["b"]}]
    made = packages.of(schema_of(Either={"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": members}))
    assert type(made.decode(made.Either, {"b": "x"})).__name__ == "EitherWithB"
    with pytest.raises(made.DecodeError):
        made.decode(made.Either, {})


def test_a_required_name_that_nobody_declares_is_a_warning(packages: Packages) -> None:
    path = packages.write(schema_of(Thing={"type": "object", "properties": {"a": TEXT}, "required": ["a", "b"]}))
    _, diagnostics = model_of(SchemaChoice(schema=path))
    assert [found.code for found in diagnostics] == ["undeclared-required"]


def test_a_member_is_never_named_after_its_position(packages: Packages) -> None:
    members = [{"enum": ["x", "y"]}, {"type": "array", "items": {"enum": ["p", "q"]}}]
    with pytest.raises(InputError) as caught:
        model_of(SchemaChoice(schema=packages.write(schema_of(Thing={"anyOf": members}))))
    assert {found.code for found in caught.value.diagnostics} == {"unnamed-member"}


def test_bounds_hold_for_the_items_that_are_left(packages: Packages) -> None:
    items = {"type": "array", "items": TEXT, "minItems": 1, "x-deserialize-skip-invalid-items": True}
    made = packages.of(schema_of(Thing={"type": "object", "properties": {"items": items}, "required": ["items"]}))
    assert made.decode(made.Thing, {"items": [1, "a"]}).items == ["a"]
    with pytest.raises(made.DecodeError):
        made.decode(made.Thing, {"items": [1]})


def test_error_data_with_more_than_a_class_knows_stays_as_it_came(packages: Packages) -> None:
    acp = packages(SchemaChoice(protocol=2))
    known = {"code": -32002, "message": "m", "data": {"sessionId": "s"}}
    assert acp.RequestError.from_json(known).data == acp.SessionNotFoundErrorData(session_id="s")
    more = {"code": -32603, "message": "m", "data": {"sessionId": "s", "trace": "boom"}}
    assert acp.RequestError.from_json(more).data == more["data"]
    assert acp.RequestError.from_json(more).to_json() == more
