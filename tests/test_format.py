"""Formatting: a definition with a line that does not fit goes through black, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import black
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpgen.diagnostics import InternalError
from acpgen.emit.format import format_files, has_long_line
from acpgen.emit.source import assigned, docstring, literal
from tests.support import REPOSITORY

MODE = black.Mode(target_versions={black.TargetVersion.PY310}, line_length=120)
LONG = "a_name_that_is_so_long_that_three_of_it_do_not_fit_into_one_line"
ODD = "def odd( ):\n    return  1"


def as_black(text: str) -> str:
    return black.format_str(text, mode=MODE)


@pytest.mark.parametrize(
    "long",
    [
        f"def long(raw: Any) -> Any:\n    data[{LONG!r}] = {LONG}({LONG})\n    return raw",
        f"def long({LONG}: {LONG}) -> dict[str, {LONG}]:\n    return raw",
        f"Long: TypeAlias = {LONG} | {LONG} | {LONG}\n" + '"""What it is for."""',
        'def long() -> str:\n    return first("' + "字" * 52 + '", other, arguments)',
    ],
)
def test_a_definition_with_a_line_that_does_not_fit_is_formatted(long: str) -> None:
    assert as_black(f"{long}\n") != f"{long}\n"
    found = format_files({"module.py": f"import a\n\n\n{ODD}\n\n\n{long}\n\n\n{ODD}\n"})["module.py"]
    assert found == f"import a\n\n\n{ODD}\n\n\n{as_black(long)}\n\n{ODD}\n"


def test_what_fits_is_not_formatted() -> None:
    assert format_files({"module.py": f"{ODD}\n", "notes.txt": LONG * 3}) == {
        "module.py": f"{ODD}\n",
        "notes.txt": LONG * 3,
    }


def test_what_is_not_python_is_kept_for_the_report() -> None:
    with pytest.raises(InternalError) as raised:
        format_files({"module.py": f"def long(:\n    {LONG * 3}\n"})
    kept = str(raised.value).rpartition("see ")[2].split("\n")[0].strip()
    assert Path(kept).read_text(encoding="utf-8").startswith("def long(:")


@pytest.mark.parametrize("path", sorted((REPOSITORY / "templates/runtime").rglob("*.py")), ids=lambda path: path.name)
def test_copied_modules_stand_as_black_writes_them(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert as_black(text) == text


@pytest.mark.full
@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("ab\"'\\\n\t\N{SNOWMAN}") | st.characters(), max_size=30))
def test_any_text_is_a_literal_and_a_docstring_as_black_writes_them(text: str) -> None:
    module = f"name = {literal(text)}\n"
    if doc := docstring(text):
        module += f"\n\ndef name() -> None:\n    {doc}\n    return\n"
    found = format_files({"module.py": module})["module.py"]
    assert as_black(found) == found


@pytest.mark.parametrize(
    "expression",
    [
        'value if value.__class__ is str or value in NAME else lenient(data, " if ", NAME, " else [")',
        "None if value.other is None else NAME",
        'read(data, "(", NAME, other, ["[", {}])',
        "ENCODERS[value.NAME.__class__](value.NAME)",
        'Literal["some", "text", "NAME"]',
        "types.First | types.Second | types.NAME | list[types.NAME | None]",
        '{name: item for name, item in data.items() if name not in {"NAME", "other"}}',
        "[read(item) for item in value.NAME.other_name_of_some_length]",
        '"NAME is a text without a place to split it, (as it seems"',
        '{"NAME": "text", "other": 1}',
    ],
)
@pytest.mark.parametrize("target", ["result.a", "short: TypeAlias", "result.a_name_that_takes_half_of_all_columns"])
def test_assignments_stand_as_black_writes_them(expression: str, target: str) -> None:
    for length in range(1, 120, 3):
        statement = assigned(target, expression.replace("NAME", "a" * length), indent=4)
        module = f"def function() -> None:\n    {statement}\n    return\n"
        if not has_long_line(module):
            assert as_black(module) == module
