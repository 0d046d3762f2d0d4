"""The state that all parts of the lowering share: schema definitions, report, and lowered definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from acpgen.diagnostics import Report
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.objects import Definitions
from acpgen.schema.walk import definition_at, definition_pointer

MAX_MULTIPLIED = 200
"""The most types in addition to the first of each place in the schema, and to one for each definition.

Unions that meet in one object multiply to them. Published schemas have about ten; a build takes about 10 ms for each.
"""
MAX_UNIONS = 100
"""The most unions in one object, with those inside their members: each is lowered inside the one before.

Published objects have one or two.
"""
MAX_SIZE = 100_000
"""The largest number of attributes and values in a model. Inherited attributes count in each class.

A schema of 10,000 definitions has about 60,000, published ones have 2,000.
"""
_TEXT = 200
"""This many characters of description count as one attribute."""


@dataclass(slots=True, kw_only=True)
class Context:
    """The state of one lowering. `lowered` grows in the order in which definitions are finished.

    The definitions in `closed` are not opened, even if the options say so. Those in `nulls`, and what `is_added` to the
    schema, may have null in the place of optional properties.
    """

    definitions: Definitions
    report: Report
    origin: Callable[[str], str]
    options: ir.Options
    lowered: dict[str, ir.Definition] = field(default_factory=dict)
    raw_defaults: dict[tuple[str, str], Any] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    nulls: frozenset[str] | None = None
    is_added: Callable[[str], bool] = lambda _: False
    _places: set[str] = field(default_factory=set, init=False)
    _multiplied: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    _depth: int = field(default=0, init=False)

    def define(self, definition: ir.Definition) -> None:
        """Register a lowered definition. A second, different one with the same name is an error with both places."""
        known = self.lowered.setdefault(definition.name, definition)
        self._multiplied += definition.pointer in self._places  # also with a known name: those of a clash multiply, too
        self._places.add(definition.pointer)
        if self._multiplied > MAX_MULTIPLIED + len(self.definitions.nodes):
            self._refuse_unions(f"multiply to more than {MAX_MULTIPLIED} types", definition.pointer)
        self._weigh(definition)
        if known == definition:
            return
        self.report.error(
            "name-clash",
            f"two definitions have the Python name {definition.name}: this one and the one at {known.pointer}",
            at=definition.pointer,
            hint="rename one of them, or give the union member another title or tag",
        )

    @contextmanager
    def inside_unions(self, sizes: Sequence[int], pointer: str) -> Iterator[None]:
        """Refuse an object in unions of these sizes if there are too many, or else lower the first in the block."""
        if len(sizes) + self._depth > MAX_UNIONS:
            self._refuse_unions(f"meet in one object, more than {MAX_UNIONS} of them", pointer)
        if prod(sizes) - sum(sizes) > MAX_MULTIPLIED:
            self._refuse_unions(f"multiply to more than {MAX_MULTIPLIED} types", pointer)
        self._depth += 1
        yield
        self._depth -= 1

    def _refuse_unions(self, fact: str, pointer: str) -> None:
        self.report.error(
            "too-many-types",
            f"the unions of this schema {fact}",
            at=pointer,
            hint="put fewer unions into one object",
        )
        self.report.raise_errors()

    def _weigh(self, definition: ir.Definition) -> None:
        self._size += 1 + len(definition.doc) // _TEXT
        match definition:
            case ir.Struct(name=name, fields=fields):
                self._size += sum(1 + len(field.doc) // _TEXT for field in fields)
                self._size += sum(_count(self.raw_defaults.get((name, field.name))) for field in fields)
            case ir.Enum(members=members) | ir.UntaggedUnion(members=members):
                self._size += len(members)
            case ir.TaggedUnion(variants=variants, fallbacks=fallbacks):
                self._size += len(variants) + len(fallbacks)
        if self._size > MAX_SIZE:
            self.report.error(
                "schema-too-large",
                f"the classes of this schema have more than {MAX_SIZE:,} attributes and values",
                at=definition.pointer,
                hint="a property counts in each class that inherits it; each value of a default counts",
            )
            self.report.raise_errors()

    def opens(self, pointer: str) -> bool:
        """True if the enum or union at `pointer` accepts what the schema does not list."""
        return self.options.open and definition_at(pointer) not in self.closed

    def class_name(self, definition: str) -> str:
        """The Python name of the schema definition `definition`; an error if there is none."""
        name = names.class_name(definition)
        if not name:
            hint = "use ASCII letters and digits, starting with a letter"
            self.refuse_name(f"the definition {definition!r}", definition_pointer(definition), hint)
        return name

    def refuse_name(self, thing: str, pointer: str, hint: str | None = "use ASCII letters and digits") -> None:
        """Report a thing of the schema whose name gives no name in Python."""
        self.report.error("bad-name", f"no Python name can be made of {thing}", at=pointer, hint=hint)


def _count(raw: Any) -> int:
    """The members of a JSON object or the items of an array."""
    if not isinstance(raw, (dict, list)):
        return 0
    return sum(1 + _count(each) for each in (raw.values() if isinstance(raw, dict) else raw))
