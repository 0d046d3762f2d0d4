"""Record the file that each part of a composed schema comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from acpgen.schema.document import Document, join

Source: TypeAlias = tuple[Document, str]
"""A document and a pointer into it."""


@dataclass(slots=True)
class Origins:
    """The sources of all parts that do not come from the same pointer of the base."""

    base: Document
    sources: dict[str, Source] = field(default_factory=dict)

    def find(self, pointer: str) -> Source:
        """The source of the value at `pointer`: that of its longest recorded prefix, else the base."""
        prefix = pointer
        while prefix:
            if prefix in self.sources:
                document, start = self.sources[prefix]
                return document, start + pointer[len(prefix) :]
            prefix = prefix.rpartition("/")[0]
        return self.base, pointer

    def put(self, pointer: str, source: Source) -> None:
        """Record that the value at `pointer`, with all its parts, comes from `source`."""
        self._pop_below(pointer)
        self.sources[pointer] = source

    def insert(self, array: str, *, length: int, index: int, source: Source) -> None:
        """Record that an element from `source` was inserted at `index` of an array of `length` elements."""
        # read all before the first is moved
        elements = [self.find(join(array, old)) for old in range(length)]
        parts = [self._pop_below(join(array, old)) for old in range(length)]
        for old in range(length):
            moved = join(array, old + (old >= index))
            self.sources[moved] = elements[old]
            self.sources.update({moved + rest: known for rest, known in parts[old].items()})
        self.sources[join(array, index)] = source

    def _pop_below(self, pointer: str) -> dict[str, Source]:
        """Remove the sources of all parts of the value at `pointer`; the keys are the rests of their pointers."""
        inner = [known for known in self.sources if known.startswith(pointer + "/")]
        return {known[len(pointer) :]: self.sources.pop(known) for known in inner}
