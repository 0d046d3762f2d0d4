"""Verdicts and pairs of comparisons where the rule is a matter of one condition, each way proved by messages."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.diff.findings import Comparison
from acpgen.roles import Side
from tests.diff_schemas import SKIPPING, TEXT, WHOLE, Schema, asking, ref, thing, with_x
from tests.diff_support import Written, pair_of, verdicts
from tests.support import Packages


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("compared"))


def compared(written: Written, old: Schema, new: Schema) -> Comparison:
    return pair_of(written(old), written(new)).comparison()


def listing(items: Schema, least: int = 0, **more: Any) -> Schema:
    return {"type": "array", "items": items, "minItems": least, **more}


@pytest.mark.parametrize(
    ("old", "new", "wire"),
    [
        (listing(TEXT), listing(TEXT, 1), ("breaks", "ok")),
        (listing(TEXT, 2), listing(TEXT, 3), ("breaks", "ok")),
        (listing(TEXT, 3), listing(TEXT, 2), ("ok", "breaks")),
        (listing(listing(TEXT)), listing(listing(TEXT, 1)), ("breaks", "ok")),
        # a reader skips items that do not fit, as long as enough remain
        (listing(TEXT, **SKIPPING), listing(WHOLE, **SKIPPING), ("loses", "loses")),
        (listing(TEXT, 1, **SKIPPING), listing(WHOLE, 1, **SKIPPING), ("breaks", "breaks")),
    ],
)
def test_the_wire_verdict_on_lists(written: Written, old: Schema, new: Schema, wire: tuple[str, str]) -> None:
    found = compared(written, with_x(old, required=True), with_x(new, required=True)).findings
    (finding,) = [each for each in found if str(each.place) == "AskRequest.x"]
    assert verdicts(finding)[Side.CLIENT.value] == wire


def test_a_reader_does_not_skip_the_last_item_that_must_be_there(written: Written, packages: Packages) -> None:
    for least, fits in ((0, True), (1, False)):
        acp = packages(written(with_x(listing(WHOLE, least, **SKIPPING), required=True)))
        if fits:
            assert acp.decode(acp.AskRequest, {"x": ["a"]}).x == []
        else:
            with pytest.raises(acp.DecodeError):
                acp.decode(acp.AskRequest, {"x": ["a"]})


@pytest.mark.parametrize(("names", "is_renamed"), [((), False), (("a",), True), (("b",), False)])
def test_a_class_without_properties_is_like_no_other(
    written: Written, names: tuple[str, ...], is_renamed: bool
) -> None:
    """All of its properties are in any class: that does not make another class a new name of it."""
    old = asking(thing(x=ref("First")), First=thing(a=TEXT, c=TEXT))
    new = asking(thing(x=ref("Second")), Second=thing(**dict.fromkeys(names, TEXT)))
    for one, other, name in ((old, new, "Second"), (new, old, "First")):
        rules = {each.rule.id: str(each.place) for each in compared(written, one, other).findings}
        assert rules.get("type-renamed") == (name if is_renamed else None)
        assert ("type-removed" in rules) is not is_renamed


@pytest.mark.parametrize("required", [("y",), ()])
def test_a_member_that_requires_more_than_before_has_a_finding_of_its_own(
    written: Written, required: tuple[str, ...]
) -> None:
    """The union that reads the class is not to blame for a change inside of the class."""
    other = thing(("z",), z=TEXT)
    old = with_x(
        {"anyOf": [ref("One"), ref("Other")]}, required=True, One=thing(("a", "y"), a=TEXT, y=TEXT), Other=other
    )
    new = with_x(ref("One"), required=True, One=thing(("a", *required), a=TEXT, y=TEXT), Other=other)
    found = {
        each.rule.id: verdicts(each)[Side.CLIENT.value] for each in compared(written, old, new).findings if each.wire
    }
    assert found["field-type-changed"] == ("breaks", "ok")
    assert found.get("field-made-optional") == (None if required else ("ok", "breaks"))
