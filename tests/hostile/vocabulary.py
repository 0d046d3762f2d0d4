"""What code a package consists of, found in the packages of the bundled schemas: nothing else may be in any package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.schema.bundled import find_release
from tests.support import fitting_fragments, package_files

_OWN_NAMES = re.compile(r"\b(?<=^value\.)[a-z]\w*(?=\.items$)|(?<=^ENCODERS\[value\.)[a-z]\w*(?=\.__class__\]$)")
"""The parts of what is called that a schema names: a field that is a map or of any class."""
_ANY_NAME = "…"

Vocabulary = Mapping[str, frozenset[str]]
"""The words of each module: the kinds of its nodes, and what it calls and decorates with."""


@cache
def _clean_packages() -> tuple[Mapping[str, str], ...]:
    """A package of each protocol, with all extensions: one has closed unions and all parts, the other neither.

    They have the words of the packages of all bundled schemas and options.
    """
    return tuple(
        package_files(
            SchemaChoice(protocol=protocol, extensions=fitting_fragments(find_release(protocol))),
            options=options,
            parts=parts,
        )
        for protocol, options, parts in ((1, Options(), None), (2, Options(open=True, keep_unknown=True), ()))
    )


@cache
def clean_texts() -> frozenset[str]:
    """The modules of these packages, most of the runtime among them."""
    return frozenset(text for files in _clean_packages() for text in files.values())


@cache
def clean_vocabulary() -> Vocabulary:
    """The words of these packages."""
    found: dict[str, set[str]] = defaultdict(set)
    for files in _clean_packages():
        for path, words in vocabulary(files).items():
            found[path] |= words
    return {path: frozenset(words) for path, words in found.items()}


def strangers(files: Mapping[str, str]) -> dict[str, list[str]]:
    """The words of a package, by module, that no package of a bundled schema has."""
    clean = clean_vocabulary()
    words = vocabulary(files, passed=clean_texts())
    found = {path: sorted(each - clean[path]) for path, each in words.items()}
    return {path: strange for path, strange in found.items() if strange}


def vocabulary(files: Mapping[str, str], *, passed: frozenset[str] = frozenset()) -> Vocabulary:
    """The words of each module of a package but those in `passed`; its own functions and types count as one."""
    functions = {name for node in ast.parse(files["codec.py"]).body for name in _defined(node)}
    classes = _classes(files["types.py"]) | _classes(files["errors.py"])
    return {
        path: frozenset(_words(ast.parse(text), functions=functions, classes=classes))
        for path, text in files.items()
        if path.endswith(".py") and text not in passed
    }


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _classes(text: str) -> set[str]:
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def _words(tree: ast.Module, *, functions: set[str], classes: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        yield type(node).__name__
        called: list[ast.expr] = []
        if isinstance(node, ast.Call):
            called = [node.func]
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            called = [each for each in node.decorator_list if not isinstance(each, ast.Call)]
        for each in called:
            yield _called(each, functions=functions, classes=classes)


def _called(node: ast.expr, *, functions: set[str], classes: set[str]) -> str:
    text = _OWN_NAMES.sub(_ANY_NAME, ast.unparse(node))
    name = text.rpartition(".")[2]
    if name in functions and text in {name, f"codec.{name}"} and name.startswith(("decode_", "encode_")):
        return "call of a function of the codec"
    if name in classes and text in {name, f"types.{name}"}:
        return "call of a class of the schema"
    return f"call of {text}"
