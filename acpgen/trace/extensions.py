"""Find the bundled extensions that define a property or a method."""

from __future__ import annotations

from functools import cache

from acpgen.ir.names import class_name
from acpgen.schema.bundled import bundled_fragments
from acpgen.schema.walk import methods_of, schema_map


@cache
def extensions_with(protocol: int, owner: str, name: str) -> tuple[str, ...]:
    """The bundled extensions that add the property `name` to the class `owner`; without one, the method `name`."""
    found: dict[str, None] = {}
    for fragment in bundled_fragments(protocol):
        definitions = schema_map(fragment.document.root, "$defs")
        if owner:
            known = {
                key
                for definition, node in definitions.items()
                if class_name(definition) == owner and isinstance(node, dict)
                for key in schema_map(node, "properties")
            }
        else:
            known = {method for _, method in methods_of(definitions)}
        if name in known:
            found[fragment.document.root["id"]] = None
    return tuple(found)
