"""Helpers for the tests of the extraction: a base, and the draft and the findings of a text.

A test module that imports this one skips on Python 3.15 if tree-sitter is missing: it has no wheels there yet.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from acpgen.rfd import Base, Extraction, extract, parse_source
from acpgen.schema.bundled import find_release, load_facts, load_release
from tests.needs import need

need("tree_sitter")


@cache
def base(protocol: int = 1, release: str = "0.10.8") -> Base:
    """A bundled release to extract against."""
    found = find_release(protocol, release)
    document = load_release(found)
    definitions = document.root["$defs"]
    return Base(origin=document.origin, protocol=protocol, definitions=definitions, gates=load_facts(found).gates)


def extraction(text: str, name: str = "text.md", against: Base | None = None) -> Extraction:
    """What the extraction makes of a text."""
    return extract(parse_source(text.encode(), label=name, name=name), against or base())


def draft_of_typescript(code: str) -> dict[str, Any]:
    """The draft of a text with nothing but TypeScript in it."""
    return extraction(f"```ts\n{code}\n```\n").draft


def findings_of(text: str, name: str = "text.md") -> list[tuple[str, int, int]]:
    """The code, the line and the column of everything that is said of a text."""
    found = extraction(text, name).diagnostics
    return [(each.code, each.location.line, each.location.column) for each in found if each.location]
