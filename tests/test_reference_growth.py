"""The page of a schema takes time in proportion to the schema."""

from __future__ import annotations

from cProfile import Profile
from pstats import Stats

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.pipeline import compile_protocol, load
from acpgen.reference.page import render_page
from acpgen.sources.inputs import find_inputs
from tests.diff_schemas import TEXT, message, thing
from tests.support import Packages, schema_of


def calls_for(count: int, packages: Packages) -> int:
    """The function calls that the page of a schema with so many methods takes."""
    parts = {
        f"M{number}{part}": message(f"m/{number}", thing(a=TEXT))
        for number in range(count)
        for part in ("Request", "Response")
    }
    compiled = compile_protocol(load(find_inputs(SchemaChoice(schema=packages.write(schema_of(**parts))))), Options())
    render_page([compiled])  # fills the caches
    profile = Profile()
    profile.runcall(render_page, [compiled])
    return int(Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_methods_take_the_same_time_each(packages: Packages) -> None:
    one, two, three = (calls_for(count, packages) for count in (10, 40, 70))
    assert three - two < 1.1 * (two - one)
