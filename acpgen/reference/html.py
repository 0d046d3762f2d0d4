"""HTML pages that load nothing: what the reference and the page of a trace have in common, from `templates/page/`.

Texts and code are untrusted: Jinja escapes everything that is not marked up here, after `visible`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from acpgen.emit.runtime import template_environment
from acpgen.emit.source import wrapped
from acpgen.schema.data import data_folder
from acpgen.text import HTML_MARKER

_POLICY = ("default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'")
"""The page loads nothing, and runs nothing but its own script (Content Security Policy Level 3)."""


def render_html(
    name: str, *, scripts: Sequence[str], filters: Mapping[str, Callable[..., Any]], values: Mapping[str, Any]
) -> str:
    """The page `templates/NAME/page.html.jinja`, with its style and its scripts. Jinja escapes all `values`."""
    common, home = (data_folder() / "templates" / each for each in ("page", name))
    environment = template_environment([home, common], visible, escapes=True)
    environment.filters.update(filters)
    style = "".join((folder / "style.css").read_text(encoding="utf-8") for folder in (common, home))
    files = [common / "theme.js", *(home / each for each in scripts)]
    parts = [each.read_text(encoding="utf-8") for each in files]
    script = '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"
    return environment.get_template("page.html.jinja").render(
        marker=Markup(HTML_MARKER),  # noqa: S704 - our own, as the next two
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy="; ".join([*_POLICY, f"style-src {_source(style)}", f"script-src {_source(script)}"]),
        **values,
    )


def _source(text: str) -> str:
    """The expression of a policy that allows an inline element with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# --- Markup of untrusted texts and code -------------------------------------------------------------------------------

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


# --- Anchors: they are permanent, as other pages link to them ---------------------------------------------------------


def type_anchor(home: str, name: str, wire: str | None = None) -> str:
    """The anchor of the type `name` of the protocol `home`, or of its property, tag or value `wire`."""
    return f"{home}/types/{quote(name)}" + ("" if wire is None else f".{quote(wire, safe='')}")


def method_anchor(home: str, wire: str) -> str:
    """The anchor of the method `wire` of the protocol `home`."""
    return f"{home}/methods/{quote(wire)}"
