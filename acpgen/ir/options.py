"""What a user may choose about the types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may choose about the types.

    `open_unions` adds a variant for unknown tags to every closed union; `keep_unknown` gives every class `extra`.
    """

    open_unions: bool = False
    keep_unknown: bool = False
