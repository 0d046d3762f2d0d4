"""Members of unions: which of them takes a value, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import Packages, schema_of

TEXT = {"type": "string"}
COUNT = {"type": "integer"}


def obj(required: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": required, "required": list(required)}


def test_what_the_member_of_its_tag_refuses_may_fit_the_member_for_other_tags(packages: Packages) -> None:
    """That member excludes another tag, but not this one."""
    other = {**obj({"t": TEXT}), "title": "other", "not": obj({"t": {"const": "b"}})}
    first, second = obj({"t": {"const": "a"}, "n": COUNT}), obj({"t": {"const": "b"}, "n": COUNT})
    acp = packages.of(schema_of(U={"anyOf": [first, second, other]}))
    assert acp.decode(acp.U, {"t": "a", "n": 1}) == acp.UA(n=1)
    assert acp.decode(acp.U, {"t": "a", "n": "x"}) == acp.UOther(t="a", extra={"n": "x"})
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.U, {"t": "b", "n": "x"})


@pytest.mark.parametrize("key", ["additionalProperties", "unevaluatedProperties"])
def test_a_union_in_an_object_with_more_properties_keeps_them(packages: Packages, key: str) -> None:
    """Its members are definitions that others use, too, and lose such properties there."""
    members = [{"$ref": "#/$defs/One"}, {"$ref": "#/$defs/Two"}]
    schema = schema_of(
        One=obj({"one": TEXT}),
        Two=obj({"two": TEXT}),
        U={"type": "object", key: True, "anyOf": members},
        Users={"type": "object", "properties": {"one": members[0], "two": members[1]}},
    )
    acp = packages.of(schema)
    for raw in ({"one": "x", "more": 1}, {"two": "x", "more": [{}]}):
        assert acp.encode(acp.decode(acp.U, raw)) == raw
    assert acp.encode(acp.decode(acp.One, {"one": "x", "more": 1})) == {"one": "x"}
