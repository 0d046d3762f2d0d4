"""Import statements, and lists of names, in lines that a new name changes little."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from itertools import groupby

from acpgen.emit.source import LINE_LENGTH, Code, identifier

_NO_BREAK = "\N{NO-BREAK SPACE}"


def imported(module: str, names: Iterable[str]) -> Code:
    """The statement that imports `names` from a module (".types")."""
    start = f"from {''.join('.' for _ in module.split('.')[:-1])}{identifier(module.strip('.'))} import"
    line = f"{start} {', '.join(map(identifier, sorted(names)))}"
    if len(line) > LINE_LENGTH:
        line = "\n    ".join([f"{start} (", *name_lines(names, identifier)]) + "\n)"
    return Code(line)


def imported_compactly(module: str, names: Iterable[str]) -> Code:
    """The same, with the marks that keep black from giving each name a line."""
    statement = imported(module, names)
    return Code(f"# fmt: off\n{statement}\n# fmt: on") if "\n" in statement else statement


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
