"""The reference page: a chapter for each protocol, rendered by the templates of `templates/reference/`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from urllib.parse import quote

from acpgen.diff.compare import compare
from acpgen.emit.signatures import Signatures
from acpgen.emit.versions import folder
from acpgen.pipeline import Compiled
from acpgen.reference.html import code, link, method_anchor, prose, render_html, type_anchor
from acpgen.show.describe import Describer, MethodEntry, TypeEntry


class Chapter:
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
        """The properties that open the gate of a method or value, each with its type, by the name of the gated."""
        for entry in self.types.values():
            for field in entry.fields:
                for gated in (*field.opens, *field.allows):
                    self.openers[gated].append((entry.name, field.wire))
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
    views = [Chapter(each, is_single=len(compiled) == 1) for each in compiled]
    as_json = partial(json.dumps, indent=2, ensure_ascii=False)
    changes = [(old, new, compare(old.model, new.model).findings) for old, new in pairwise(views)]
    return render_html(
        "reference",
        scripts=["script.js"],
        filters={"code": code, "prose": prose, "link": link, "quote": quote, "json": as_json},
        values={"views": views, "changes": changes},
    )
