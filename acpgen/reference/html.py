"""HTML pages that load nothing: what the reference and the page of a trace have in common, from `templates/page/`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from acpgen.reference.markup import visible
from acpgen.schema.data import data_folder
from acpgen.text import HTML_MARKER

_POLICY = ("default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'")
"""The page loads nothing, and runs nothing but its own script (Content Security Policy Level 3)."""


def render_html(
    name: str, *, scripts: Sequence[str], filters: Mapping[str, Callable[..., Any]], values: Mapping[str, Any]
) -> str:
    """The page `templates/NAME/page.html.jinja`, with its style and its scripts. Jinja escapes all `values`."""
    common, home = (data_folder() / "templates" / each for each in ("page", name))
    environment = Environment(
        loader=FileSystemLoader([home, common]),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
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
