"""What templates print word for word. It is laid out as black would do it, which a test sees to."""

from __future__ import annotations

import re
from pathlib import Path

_APART = re.compile(r"\n\n\n+")
_JINJA = re.compile(r"\{[{%#]")


def verbatim(templates: Path) -> frozenset[str]:
    """The definitions in the templates that no build changes."""
    found: set[str] = set()
    for path in [*templates.glob("*.py.jinja"), *templates.glob("runtime/*.py")]:
        parts = (part.strip("\n") + "\n" for part in _APART.split(path.read_text(encoding="utf-8")))
        found.update(part for part in parts if not _JINJA.search(part))
    return frozenset(found)
