"""The page: one or several protocols, rendered by the templates of `templates/reference/`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from acpgen.diff.compare import compare
from acpgen.emit.signatures import Signatures
from acpgen.emit.versions import folder
from acpgen.pipeline import Compiled
from acpgen.reference.anchors import method_anchor, type_anchor
from acpgen.reference.markup import code, link, prose, visible
from acpgen.schema.data import data_folder
from acpgen.show.describe import Describer, MethodEntry, TypeEntry
from acpgen.text import HTML_MARKER

_POLICY = ("default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'")
"""The page loads nothing, and runs nothing but its own script (Content Security Policy Level 3)."""


class ProtocolView:
    """The methods and types of a protocol, and their anchors, which are permanent.

    Anchors are `vN/methods/WIRE`, `vN/types/NAME`, `vN/types/NAME.PROPERTY`, `vN/types/NAME.VALUE` for a tag of a union
    or the value of an enum, and `vN/errors/CODE`.
    """

    def __init__(self, compiled: Compiled, *, is_single: bool) -> None:
        self.model, self.fragments = compiled.model, compiled.composed.fragments
        self.id = folder(compiled.model)
        signatures = Signatures(compiled.model, folder="" if is_single else f"{self.id}/")
        describer = Describer(compiled.composed, compiled.model, signatures)
        self.types: dict[str, TypeEntry] = {each.name: each for each in describer.types()}
        self.openers = defaultdict[str, list[tuple[str, str]]](list)
        """The properties that open the gate of a method, each with its type, by the wire name of the method."""
        for entry in self.types.values():
            for field in entry.fields:
                for wire in field.opens:
                    self.openers[wire].append((entry.name, field.wire))
        self.methods: dict[str, MethodEntry] = {}
        for each in describer.methods():
            anchor = method_anchor(self.id, each.wire)
            while anchor in self.methods:  # a request and a notification may have one name
                anchor += "~"
            self.methods[anchor] = each
        anchors = list(self.methods.items())[::-1]
        self._anchors = {each.wire: anchor for anchor, each in anchors}
        # the method with which a type is shown: the first that has it as params or result
        self.places = {hint: anchor for anchor, each in anchors for hint in (each.params, each.result)}

    def anchor(self, name: str, wire: str | None = None) -> str:
        """The anchor of the type `name`, or of its property, tag or value `wire`."""
        return type_anchor(self.id, name, wire)

    def type_target(self, name: str) -> str | None:
        """The anchor of a type; None for other names."""
        return self.anchor(name) if name in self.types else None

    def target(self, name: str) -> str | None:
        """The anchor of a type, of an attribute or property of a type, or of a method; None for other names."""
        owner, _, attribute = name.partition(".")
        fields = self.types[owner].fields if owner in self.types else ()
        found = [self.anchor(owner, each.wire) for each in fields if attribute in (each.name, each.wire)]
        return found[0] if found else self.type_target(name) or self._anchors.get(name)


def render_page(compiled: Sequence[Compiled]) -> str:
    """The text of the page for protocols in ascending order. The same input gives the same text."""
    views = [ProtocolView(each, is_single=len(compiled) == 1) for each in compiled]
    home = data_folder() / "templates" / "reference"
    environment = Environment(
        loader=FileSystemLoader(home),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    environment.filters.update(code=code, prose=prose, link=link, quote=quote, json=as_json)
    style, script = ((home / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return environment.get_template("page.html.jinja").render(
        marker=Markup(HTML_MARKER),  # noqa: S704 - our own, as the next two
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=policy(style, script),
        views=views,
        changes=[(old, new, compare(old.model, new.model).findings) for old, new in pairwise(views)],
    )


def policy(style: str, script: str) -> str:
    """The Content Security Policy of a page with these two elements."""
    return "; ".join([*_POLICY, f"style-src {_source(style)}", f"script-src {_source(script)}"])


def _source(text: str) -> str:
    """The expression of a policy that allows an inline element with this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
