"""Markup of untrusted texts and code. Jinja escapes everything else on the page, after `visible`."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from markupsafe import Markup, escape

from acpgen.emit.source import wrapped

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Categories of characters that show nothing, or that hide or reorder others."""
_ENDLESS = 2**31
_TOKEN = re.compile(
    r"""(?P<key>"(?:\\.|[^"\\])*"(?=:)) | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<name>[A-Za-z_]\w*) | (?P<number>-?\d[\d.]*)""",
    re.VERBOSE | re.ASCII,
)
_WORDS = {"async", "class", "def", "None", "True", "False", "null", "true", "false", "Literal", "self"}

Target = Callable[[str], str | None]
"""Finds the anchor of a name; None for one that is unknown."""


def visible(value: Any) -> Any:
    """The text of a value with its invisible characters as JSON escapes. Markup stays as it is."""
    text = str(value)
    if isinstance(value, Markup) or (text.isascii() and text.isprintable()):
        return value
    hidden = {char for char in set(text) - {"\n"} if unicodedata.category(char) in _HIDDEN}
    return text.translate({ord(char): json.dumps(char)[1:-1].replace("\x7f", "\\u007f") for char in hidden})


def link(text: str, anchor: str | None) -> Markup:
    """A link to an anchor of the page; only the text if there is none."""
    # quotes need no escape in the text of an element: the page is a third smaller
    shown = Markup(escape(visible(text)).replace("&#34;", '"').replace("&#39;", "'"))  # noqa: S704
    return shown if anchor is None else Markup('<a href="#{}">{}</a>').format(anchor, shown)


def code(text: str, target: Target = lambda _: None) -> Markup:
    """Python or JSON with its tokens marked, and links from names."""
    shown, end, parts = str(visible(text)), 0, list[Markup]()
    for found in _TOKEN.finditer(shown):
        kind = "word" if found[0] in _WORDS else str(found.lastgroup)
        token = link(found[0], target(found[0]) if kind == "name" else None)
        marked = token if kind == "name" else Markup('<span class="{}">{}</span>').format(kind, token)
        parts += (link(shown[end : found.start()], None), marked)
        end = found.end()
    return Markup("").join([*parts, link(shown[end:], None)])


def prose(text: str, target: Target) -> Markup:
    """The paragraphs of a description. Of Markdown, it knows list items and code, which is a link if it is a name."""
    shown = list[Markup]()
    for line in filter(None, wrapped(text, _ENDLESS)):
        is_item = line.startswith(("- ", "* "))
        parts = re.split(r"`([^`]+)`", line[2:] if is_item else line)
        texts = [link(part, target(part) if at % 2 else None) for at, part in enumerate(parts)]
        texts[1::2] = [Markup("<code>{}</code>").format(each) for each in texts[1::2]]
        shown.append(Markup('<p class="{}">{}</p>').format("item" if is_item else "text", Markup("").join(texts)))
    return Markup("").join(shown)
