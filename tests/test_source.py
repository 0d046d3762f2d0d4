"""What the source of acpgen, the runtime and helpers keeps to: no huge module, short functions, one class a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support import REPOSITORY

FOLDERS = ("acpgen", "templates/runtime", "schema/helpers")
PATHS = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
TWICE = {
    **dict.fromkeys(("Gate", "Method", "Struct"), "what acpgen knows of it, and what a package does"),
    "Message": "public in both: what is sent, and an entry of a session",
    "ToolCall": "public in protocol 1 and in protocol 2, each with its own properties",
}
"""The classes that two modules have, each with the reason."""


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def test_no_module_and_no_function_is_long() -> None:
    long = [str(path) for path in PATHS if len(path.read_text(encoding="utf-8").splitlines()) > 700]
    for path in PATHS:
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or 0) - node.lineno + 1
                long += [f"{path}: {node.name} has {lines} lines"] if lines > 45 else []
    assert long == []


def test_a_class_has_its_name_alone() -> None:
    """Those of the two protocols, which no package mixes, have the same names in `v1` and `v2`."""
    places = defaultdict[str, set[str]](set)
    for path in PATHS:
        home = "/".join(part for part in path.relative_to(REPOSITORY).parts if part not in {"v1", "v2"})
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(home)
    assert {name for name, homes in places.items() if len(homes) > 1} == TWICE.keys()
