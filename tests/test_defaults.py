"""Declared defaults as the generated code has them: any valid value, and the member of a union that takes it."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.diagnostics import InputError
from acpgen.ir.model import Options
from tests.support import Packages, schema_of

TEXT = {"type": "string"}
OPEN = Options(open=True)


def obj(required: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": required, "required": list(required)}


def known(tag: str) -> dict[str, Any]:
    return obj({"t": {"const": tag}})


def other(*excluded: str) -> dict[str, Any]:
    """The member for other tags, which allows more properties."""
    return {**obj({"t": TEXT}), "title": "other", "not": {"anyOf": [known(each) for each in excluded]}}


def holder(default: Any, *members: dict[str, Any]) -> dict[str, Any]:
    inner = {"allOf": [{"$ref": "#/$defs/U"}], "default": default}
    return schema_of(U={"anyOf": list(members)}, Holder={"type": "object", "properties": {"inner": inner}})


def test_the_member_for_other_tags_keeps_the_rest_of_a_default(packages: Packages) -> None:
    acp = packages.of(holder({"t": "new", "z": 1, "list": [{"deep": None}]}, known("a"), other("a")))
    value = acp.Holder()
    assert value.inner == acp.UOther(t="new", extra={"z": 1, "list": [{"deep": None}]})
    assert acp.decode(acp.Holder, {}) == value
    assert acp.encode(value) == {"inner": {"t": "new", "z": 1, "list": [{"deep": None}]}}
    assert acp.Holder().inner.extra is not value.inner.extra


def test_every_class_keeps_the_rest_of_a_default_with_keep_unknown(packages: Packages) -> None:
    schema = holder({"t": "a", "z": 1}, known("a"), known("b"))
    acp = packages.of(schema, Options(keep_unknown=True))
    assert acp.encode(acp.Holder()) == {"inner": {"t": "a", "z": 1}}
    with pytest.raises(InputError, match="no member of the union takes it"):
        packages.of(schema)


def test_the_member_for_other_tags_does_not_take_one_that_it_excludes(packages: Packages) -> None:
    """The schema excludes a tag that no member has."""
    with pytest.raises(InputError, match="the default of 'inner' does not fit"):
        packages.of(holder({"t": "gone"}, known("a"), other("a", "gone")))


@pytest.mark.parametrize("options", [Options(), OPEN], ids=["closed", "open"])
def test_a_default_fits_the_schema_as_it_is_written(packages: Packages, options: Options) -> None:
    """A package that accepts more of its peer does not accept more of the schema."""
    numeric, array = obj({"t": {"enum": ["integer", "number"]}}), obj({"t": {"const": "array"}, "item": TEXT})
    members = [{"title": "Numeric", **numeric}, {"title": "Array", **array}, {"title": "Plain", **known("array")}]
    acp = packages.of(holder({"t": "array", "item": "x"}, *members), options)
    assert acp.Holder().inner == acp.UArray(item="x")
    with pytest.raises(InputError, match="the default of 'inner' does not fit"):
        packages.of(holder({"t": "later"}, *members), options)
    with pytest.raises(InputError, match="the default of 'inner' does not fit"):
        packages.of(holder({"t": "later"}, known("a"), known("b")), options)
