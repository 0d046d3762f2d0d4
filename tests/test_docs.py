"""What the documentation says of the tests is so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY

SECURITY = REPOSITORY / "docs" / "security.md"
GOLDEN = REPOSITORY / "tests" / "golden"


def claims() -> list[str]:
    """The rows of the tables whose last column is the tests."""
    rows: list[str] = []
    heads: list[str] = []
    for line in SECURITY.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not line.startswith("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            heads = heads or cells
            if cells != heads and heads[-1] == "tests":
                rows.append(line)
        elif not line.startswith("|"):
            heads = []
    return rows


def named_tests(row: str) -> Iterator[tuple[str, str]]:
    yield from re.findall(r"`([\w/]+\.py)::(\w+)`", row)


def defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_there_are_claims() -> None:
    assert len(claims()) > 20


@pytest.mark.parametrize("row", claims(), ids=lambda row: row.split("|")[1].strip()[:40])
def test_each_claim_has_its_tests(row: str) -> None:
    named = list(named_tests(row))
    assert named, f"no test is named: {row}"
    for path, name in named:
        assert name in defined(REPOSITORY / "tests" / path), f"there is no {path}::{name}"
    for case in re.findall(r"`(\w+)`", re.sub(r"`[\w/]+\.py::\w+`", "", row.split("|")[-2])):
        assert (GOLDEN / case).is_dir(), f"there is no golden case {case}"
