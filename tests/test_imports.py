"""Imports of generated modules: those of the names that the code uses, and no others."""

from __future__ import annotations

import ast
import keyword
import subprocess
import sys

import pytest

from acpgen.emit.imports import used
from acpgen.emit.source import literal
from tests.support import REPOSITORY

GENERATED = REPOSITORY / "generated"


def codec_body(path: str) -> str:
    """The text of a codec after its imports, as acpgen has it before it knows them."""
    text = (GENERATED / path).read_text(encoding="utf-8")
    last = max(node.end_lineno or 0 for node in ast.parse(text).body if isinstance(node, ast.ImportFrom))
    return "\n".join(text.split("\n")[last:])


CODECS = sorted(path.relative_to(GENERATED).as_posix() for path in GENERATED.rglob("codec.py"))


@pytest.mark.parametrize(
    "path",
    [path if path.startswith("v1_agent/") else pytest.param(path, marks=pytest.mark.full) for path in CODECS],
)
def test_names_are_those_of_the_syntax_tree(path: str) -> None:
    source = codec_body(path)
    nodes = [*ast.walk(ast.parse(source))]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    others = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    others |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert {
        *used(source, names | {each for each in others if each.isidentifier() and not keyword.iskeyword(each)})
    } == names


@pytest.mark.parametrize("text", ["number", 'a "number" of', "it's a number", "number\\", '"""number', "'number\"", ""])
def test_texts_hold_no_names(text: str) -> None:
    source = f'"""A number."""\nfound = {{{literal(text)}: string, "": "number"}}  # a number\ncall(number=string)\n'
    assert used(source, {"number", "string"}) == ["string"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import acpgen", "acpgen needs Python 3.10"),
        ("import runpy; runpy.run_path('templates/runtime/core/places.py')", "this package needs Python 3.10"),
    ],
)
def test_an_older_python_gets_a_clear_text(code: str, text: str) -> None:
    older = f"import sys; sys.version_info = (3, 9, 18, 'final', 0); {code}"
    ran = subprocess.run([sys.executable, "-c", older], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1].startswith(f"ImportError: {text} or later, and this is ")
