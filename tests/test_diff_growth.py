"""A comparison takes time in proportion to the schemas, where the number of members alone would allow more."""

from __future__ import annotations

from cProfile import Profile
from pstats import Stats
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diff.compare import compare
from acpgen.ir.model import Model, Options
from acpgen.pipeline import compile_protocol
from acpgen.sources.inputs import load
from tests.diff_schemas import TEXT, message, thing
from tests.support import Packages, schema_of


def _model(packages: Packages, members: dict[str, Any]) -> Model:
    union = {"anyOf": [{"$ref": f"#/$defs/{name}", "title": name} for name in members]}
    schema = schema_of(
        AskRequest=message("ask", thing(x={"$ref": "#/$defs/Many"})),
        AskResponse=message("ask", thing()),
        Many=union,
        **members,
    )
    return compile_protocol(load(SchemaChoice(schema=packages.write(schema))), Options()).model


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


MEMBERS = {
    "each with another name": lambda side, letters: thing(("t",), t=TEXT),
    "each with another name and property": lambda side, letters: thing((side + letters,), **{side + letters: TEXT}),
}


@pytest.mark.parametrize("made", MEMBERS.values(), ids=MEMBERS)
def test_renamed_members_of_a_union_take_the_same_time_each(packages: Packages, made: Any) -> None:
    def calls_for(count: int) -> int:
        names = [_letters(number) for number in range(count)]
        old, new = (_model(packages, {side + name: made(side, name) for name in names}) for side in ("Old", "New"))
        profile = Profile(builtins=False)
        assert len(profile.runcall(compare, old, new).findings) == 4 * count
        return int(Stats(profile).total_calls)  # type: ignore[attr-defined]

    calls_for(2)  # fills the caches
    one, two, three = map(calls_for, (20, 60, 100))
    assert three - two < 1.1 * (two - one)
