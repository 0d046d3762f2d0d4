"""What every part of the lowering shares: the definitions, the report, and the register of what was lowered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from acpgen.diagnostics import Report
from acpgen.ir import names
from acpgen.ir.model import Definition
from acpgen.ir.shapes import Definitions
from acpgen.schema.walk import definition_pointer

MAX_SYNTHESISED = 5000
"""How many types may come on top of the definitions; published schemas make a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may choose about the types.

    `open_unions` adds a variant for unknown tags to every closed union; `keep_unknown` gives every class `extra`.
    """

    open_unions: bool = False
    keep_unknown: bool = False


@dataclass(slots=True, kw_only=True)
class Context:
    """The state of one lowering. `lowered` grows in the order in which definitions are finished."""

    definitions: Definitions
    report: Report
    origin: Callable[[str], str]
    options: Options
    lowered: dict[str, Definition] = field(default_factory=dict)
    raw_defaults: dict[tuple[str, str], Any] = field(default_factory=dict)

    def define(self, definition: Definition) -> None:
        """Register a lowered definition; a second, different one of its name is an error that names both places."""
        known = self.lowered.setdefault(definition.name, definition)
        if len(self.lowered) > len(self.definitions.nodes) + MAX_SYNTHESISED:
            self.report.error(
                "too-many-types",
                f"the unions of this schema multiply to more than {MAX_SYNTHESISED} types",
                at=definition.pointer,
                hint="put fewer unions into one object",
            )
            self.report.raise_errors()
        if known == definition:
            return
        self.report.error(
            "name-clash",
            f"two definitions want the Python name {definition.name}: this one, and the one at {known.pointer}",
            at=definition.pointer,
            hint="rename one of them, or give the union member another title or tag",
        )

    def class_name(self, definition: str) -> str:
        """The Python name of the definition `definition` of the schema; an error where none can be made."""
        name = names.class_name(definition)
        if not name:
            self.report.error(
                "bad-name",
                f"no Python name can be made of the definition {definition!r}",
                at=definition_pointer(definition),
                hint="use ASCII letters and digits, starting with a letter",
            )
        return name
