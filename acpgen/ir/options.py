"""What a user may choose about the types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may choose about the types.

    `open` lets closed unions take unknown tags, and closed enumerations unknown values; `keep_unknown` gives every
    class `extra`.
    """

    open: bool = False
    keep_unknown: bool = False
