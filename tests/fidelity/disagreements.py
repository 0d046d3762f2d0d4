"""Where generated code and JSON Schema disagree, and why that is meant. Nothing else may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fidelity.expecting import ON_ERROR
from tests.support import schema_of

Node = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """`relax` changes a node of the schema into what acpgen makes of it.

    Other schemas are not concerned by `schema`, which has one definition: `value` fits it for acpgen alone. `of_output`
    is set where that is about what encoding gives, and not about what is decoded.
    """

    name: str
    reason: str
    relax: Callable[[Node], Node]
    schema: dict[str, Any]
    value: Any
    of_output: bool = False


def without(*keywords: str) -> Callable[[Node], Node]:
    """Takes keywords away."""
    return lambda node: {key: item for key, item in node.items() if key not in keywords}


def _any_of(node: Node) -> Node:
    return {("anyOf" if key == "oneOf" else key): item for key, item in node.items()}


def _with_empty_stand_in(node: Node) -> Node:
    return without("minItems")(node) if node.get(ON_ERROR) is True else node


DISAGREEMENTS = (
    Disagreement(
        name="pattern is documented beside the type, and not checked",
        reason="the README says so: regular expressions of JSON Schema are not those of Python",
        relax=without("pattern"),
        schema=schema_of(Thing={"type": "string", "pattern": "^[A-Z]{3}$"}),
        value="euro",
    ),
    Disagreement(
        name="of oneOf, too, the first member that fits is taken",
        reason="to know whether a second one fits, every value would be read once more",
        relax=_any_of,
        schema=schema_of(
            Thing={
                "oneOf": [
                    {"title": key, "type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
                    for key in ("one", "two")
                ]
            }
        ),
        value={"one": "a", "two": "b"},
    ),
    Disagreement(
        name="an empty array stands in for a required one that is lenient, be it too short",
        reason="x-deserialize-default-on-error prescribes it: the message is kept, and the hook gets the drop",
        relax=_with_empty_stand_in,
        schema=schema_of(
            Thing={
                "type": "object",
                "properties": {"many": {"type": "array", "items": {"type": "string"}, "minItems": 1, ON_ERROR: True}},
                "required": ["many"],
            }
        ),
        value={"many": []},
        of_output=True,
    ),
)
"""Each relaxes the schema that the validator reads; `test_verdicts` shows that each is still needed."""
