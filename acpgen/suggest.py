"""What somebody may have meant who wrote a name that nothing has."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_HINTS = 20
"""How many findings of a kind get such a hint: as many as are printed, and the search takes long."""

_LONGEST = 100
"""Characters of a name that is looked at: to compare two takes the product of their lengths."""


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """The hint that names the one of `known` that is most like `name`, after `prefix`; None where none is like it."""
    if len(name) > _LONGEST:
        return None
    near = get_close_matches(name, sorted(each for each in known if len(each) <= _LONGEST), n=1)
    return f"did you mean {prefix + near[0]!r}?" if near else None
