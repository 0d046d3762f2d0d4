"""Record the file that each part of a composed schema comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from acpgen.schema.document import Document, join

Source: TypeAlias = tuple[Document, str]
"""A document and a pointer into it."""


def find_source(sources: Mapping[str, Source], base: Document, pointer: str) -> Source:
    """The source of `pointer` into the composed schema: that of its longest recorded prefix, else the base."""
    prefix = pointer
    while prefix:
        if prefix in sources:
            document, start = sources[prefix]
            return document, start + pointer[len(prefix) :]
        prefix = prefix.rpartition("/")[0]
    return base, pointer


@dataclass(slots=True)
class Origins:
    """The sources of all parts that do not come from the same pointer of the base."""

    base: Document
    sources: dict[str, Source] = field(default_factory=dict)

    def find(self, pointer: str) -> Source:
        """The document and pointer that the value at `pointer` comes from."""
        return find_source(self.sources, self.base, pointer)

    def put(self, pointer: str, source: Source) -> None:
        """Record that the value at `pointer`, with all its parts, comes from `source`."""
        for inner in [known for known in self.sources if known.startswith(pointer + "/")]:
            del self.sources[inner]
        self.sources[pointer] = source

    def insert(self, array: str, *, length: int, index: int, source: Source) -> None:
        """Record that an element from `source` was inserted at `index` of an array of `length` elements."""
        moved = {join(array, old + (old >= index)): self.find(join(array, old)) for old in range(length)}
        for old in range(length):
            start = join(array, old) + "/"
            for inner in [known for known in self.sources if known.startswith(start)]:
                moved[join(array, old + (old >= index)) + inner[len(start) - 1 :]] = self.sources[inner]
        for inner in [known for known in self.sources if known.startswith(array + "/")]:
            del self.sources[inner]
        self.sources.update(moved)
        self.sources[join(array, index)] = source
