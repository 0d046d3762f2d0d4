"""The page of a schema takes time in proportion to the schema."""

from __future__ import annotations

from cProfile import Profile
from pstats import Stats

import pytest
from markupsafe import Markup

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.pipeline import compile_protocol
from acpgen.reference import html
from acpgen.reference.chapters import render_page
from acpgen.sources.inputs import load
from tests.diff_schemas import TEXT, message, thing
from tests.support import Packages, schema_of


def calls_for(count: int, packages: Packages) -> int:
    """The function calls that the page of a schema with so many methods takes."""
    parts = {
        f"M{number}{part}": message(f"m/{number}", thing(a=TEXT))
        for number in range(count)
        for part in ("Request", "Response")
    }
    compiled = compile_protocol(load(SchemaChoice(schema=packages.write(schema_of(**parts)))), Options())
    profile = Profile()
    profile.runcall(render_page, [compiled])
    return int(Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_methods_take_the_same_time_each(packages: Packages) -> None:
    calls_for(2, packages)  # fills the caches
    one, two, three = (calls_for(count, packages) for count in (10, 30, 50))
    assert three - two < 1.05 * (two - one)


def characters_for(items: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The characters of all pieces of markup that a description with so many list items takes."""
    made = 0

    class Counted(Markup):
        def __new__(cls, base: object = "") -> Counted:
            nonlocal made
            made += len(str(base))
            return super().__new__(cls, base)

    with monkeypatch.context() as patch:
        patch.setattr(html, "Markup", Counted)
        html.prose("- an item with `code`\n" * items, lambda _: None)
    return made


def test_list_items_take_the_same_time_each(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (characters_for(count, monkeypatch) for count in (100, 200))
    assert one < two < 2.1 * one
