"""Defaults that are objects: compared by meaning, with the defaults of their own properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acpgen.diff.findings import DiffFinding
from tests.diff_schemas import YES_NO, Schema, ref, thing, with_x
from tests.diff_support import Written, pair_of

NO, YES = {**YES_NO, "default": False}, {**YES_NO, "default": True}


def default(value: Any, **properties: Schema) -> Schema:
    """Parameters whose property `x` is an `Item` with the default `value`."""
    return with_x(ref("Item", default=value), Item=thing(**properties))


def found(old: Schema, new: Schema, tmp_path: Path) -> dict[str, DiffFinding]:
    written = Written(tmp_path)
    return {str(each.place): each for each in pair_of(written(old), written(new)).comparison().findings}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (default({"a": False}, a=NO), default({"a": False}, a=YES)),
        (default({"a": False}, a=NO), default({"a": False}, a=YES_NO)),
        (default({}, a=NO), default({"a": False}, a=YES_NO)),
        (default({}, a=NO), default({}, a=YES_NO)),
        (
            with_x(ref("Item", default={"in": {}}), Item=thing(**{"in": ref("Inner")}), Inner=thing(a=NO)),
            with_x(ref("Item", default={"in": {"a": False}}), Item=thing(**{"in": ref("Inner")}), Inner=thing(a=YES)),
        ),
    ],
    ids=["another default inside", "no default inside", "said outside", "left out is left out", "deeper"],
)
def test_a_default_that_means_the_same_has_not_changed(old: Schema, new: Schema, tmp_path: Path) -> None:
    for one, other in ((old, new), (new, old)):
        places = found(one, other, tmp_path)
        assert len(places) == 1
        assert "AskRequest.x" not in places


def test_a_property_that_is_new_is_told_once(tmp_path: Path) -> None:
    assert found(default({}, a=NO), default({}, a=NO, b=NO), tmp_path).keys() == {"Item.b"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (default({}, a=NO), default({"a": True}, a=NO), "the default is Item(a=true) now; before: Item(a=false)"),
        (default({}, a=NO), default({}, a=YES), "the default is Item(a=true) now; before: Item(a=false)"),
        (default({"a": True}, a=YES_NO), default({}, a=YES_NO), "the default is Item() now; before: Item(a=true)"),
        (
            default({"a": True, "b": True}, a=NO, b=NO),
            default({"a": True, "b": False}, a=NO, b=NO),
            "the default is Item(b=false) now; before: Item(b=true)",
        ),
    ],
    ids=["said outside", "said inside", "left out", "one of two"],
)
def test_a_default_that_means_something_else_has_changed(
    old: Schema, new: Schema, message: str, tmp_path: Path
) -> None:
    change = found(old, new, tmp_path)["AskRequest.x"]
    assert (change.rule.id, change.message) == ("field-default-changed", message)
    assert [(each.old_to_new.value, each.new_to_old.value) for each in change.wire.values()] == [("loses", "loses")]


def test_a_default_that_is_in_itself_is_compared(tmp_path: Path) -> None:
    """A class with a property of the same class, whose default is such an object again."""
    old, new = (
        with_x(ref("Item", default={}), Item=thing(a=inner, next=ref("Item", default={}))) for inner in (NO, YES)
    )
    assert {"AskRequest.x", "Item.a"} <= found(old, new, tmp_path).keys()
    assert found(old, old, tmp_path) == {}
