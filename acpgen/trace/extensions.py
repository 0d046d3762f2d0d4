"""Find the bundled extensions that define a property or a method."""

from __future__ import annotations

from functools import cache

from acpgen.ir.names import class_name
from acpgen.schema.bundled import bundled_fragments
from acpgen.schema.walk import methods_of, schema_map


def extensions_with(protocol: int, owner: str, name: str) -> tuple[str, ...]:
    """The bundled extensions that add the property `name` to the class `owner`; without one, the method `name`."""
    return tuple(_known(protocol).get((owner, name), ()))


@cache
def _known(protocol: int) -> dict[tuple[str, str], dict[str, None]]:
    """The extensions by class and property, and by method: a trace may have very many unknown names."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for fragment in bundled_fragments(protocol):
        definitions = schema_map(fragment.document.root, "$defs")
        keys = [
            (class_name(definition), key)
            for definition, node in definitions.items()
            if isinstance(node, dict)
            for key in schema_map(node, "properties")
        ]
        for key in [*keys, *(("", method) for _, method in methods_of(definitions))]:
            found.setdefault(key, {})[fragment.document.root["id"]] = None
    return found
