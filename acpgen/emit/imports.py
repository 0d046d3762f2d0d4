"""Import statements, and lists of names, in lines that a new name changes little."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable
from itertools import groupby

from acpgen.emit.source import LINE_LENGTH, Code, identifier

_STANDARD = {
    "collections.abc": ("Callable", "Mapping"),
    "functools": ("cache", "partial"),
    "re": ("findall",),
    "typing": ("TYPE_CHECKING", "Any", "Final", "TypeAlias", "TypeVar", "get_args", "overload"),
}
STANDARD_NAMES = frozenset(name for names in _STANDARD.values() for name in names)
"""The names of the standard library that the codec and the methods may use."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_NAMES = re.compile(
    r"""
    "{3}(?s:.*?)"{3} | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | \#.*  # strings and comments hold no names
    | (?<![.\w]) ([^\W\d]\w*)\b (?!=)  # no attribute, and no keyword of an argument
    """,
    re.VERBOSE,
)
"""The names in source text, and the keywords of Python. The syntax tree of a codec takes 15 times as long."""


def used(source: str, names: Collection[str]) -> list[Code]:
    """The `names` that the code in `source` uses, sorted as in an import."""
    return [identifier(name) for name in sorted(set(_NAMES.findall(source)).intersection(names), key=isort_key)]


def imported(module: str, names: Iterable[str]) -> Code:
    """The statement that imports `names` from a module (".types")."""
    parts = module.lstrip(".").split(".")
    start = f"from {'.' * (len(module) - len(module.lstrip('.')))}{'.'.join(map(identifier, parts))} import"
    line = f"{start} {', '.join(map(identifier, sorted(names)))}"
    if len(line) > LINE_LENGTH:
        line = "\n    ".join([f"{start} (", *name_lines(names, identifier)]) + "\n)"
    return Code(line)


def imported_compactly(module: str, names: Iterable[str]) -> Code:
    """The same, with the marks that keep black from giving each name a line."""
    statement = imported(module, names)
    return Code(f"# fmt: off\n{statement}\n# fmt: on") if "\n" in statement else statement


def names_of_import(module: str, names: Iterable[str]) -> Code:
    """The names of an import from a module, one a line where they do not fit in one, as black lays them out."""
    known = [*map(identifier, names)]
    line = ", ".join(known)
    if len(f"from ..{module} import {line}") > LINE_LENGTH:
        line = "(\n    " + ",\n    ".join(known) + ",\n)"
    return Code(line)


def name_lines(names: Iterable[str], print_name: Callable[[str], Code]) -> list[Code]:
    """The sorted names in lines. Each initial starts a new line, so that a new name changes few lines."""
    initials = groupby(sorted(names), key=lambda name: name.rpartition(".")[2][:1])
    groups = [", ".join(map(print_name, group)) + "," for _, group in initials]
    width = LINE_LENGTH - len("    ")
    return [Code(line) for group in groups for line in textwrap.wrap(group, width, break_long_words=False)]


def entry_lines(entries: Iterable[tuple[Code, Code]]) -> list[Code]:
    """The sorted entries of a dict in lines, in the same way."""
    texts = {str(key): f"{key}:{_NO_BREAK}{entry}" for key, entry in entries}
    lines = name_lines(texts, lambda key: Code(texts[key]))
    return [Code(line.replace(_NO_BREAK, " ")) for line in lines]


def standard_imports(found: Collection[str]) -> Code:
    """The imports of those of the names `found`, sorted as in an import, that are of the standard library."""
    modules = ((module, [name for name in found if name in known]) for module, known in _STANDARD.items())
    return Code("\n".join(f"from {module} import {', '.join(names)}" for module, names in modules if names))


def isort_key(name: str) -> tuple[int, str]:
    """The position of a name in an import: constants, classes, functions."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name
