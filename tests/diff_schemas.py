"""Helpers to write the pairs of small schemas of the tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diff.compare import RULES
from tests.support import schema_of

Schema = Mapping[str, Any]
Verdicts = Mapping[str, tuple[str, str]]

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
YES_NO = {"type": "boolean"}
LENIENT = {"x-deserialize-default-on-error": True}
SKIPPING = {"x-deserialize-skip-invalid-items": True}
NULL_IS_DEFAULT = {"x-deserialize-default-on-null": True}


@dataclass(frozen=True, kw_only=True)
class Case:
    """The expected finding from `old` to `new`, or from one protocol to another.

    `wire` has the verdicts (old to new, new to old) by sender. `also` are other rules that the pair yields. Messages
    prove the verdicts, unless `unseen` says why they cannot.
    """

    rule: str
    old: Schema
    new: Schema
    place: str
    wire: Verdicts
    source: str = "ok"
    uses: tuple[str, ...] = ()
    also: frozenset[str] = frozenset()
    variant: str = ""
    unseen: str = ""
    protocols: tuple[int, int] = (1, 1)

    def __str__(self) -> str:
        return f"{self.rule}-{self.variant}" if self.variant else self.rule


def ref(name: str, **more: Any) -> Schema:
    return {"$ref": f"#/$defs/{name}"} if not more else {"allOf": [ref(name)], **more}


def thing(required: tuple[str, ...] = (), /, **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def message(method: str, node: Schema, side: str = "agent") -> Schema:
    return {**node, "x-method": method, "x-side": side}


def asking(node: Schema, *, side: str = "agent", **definitions: Any) -> Schema:
    """A schema with one method, whose parameters are `node`."""
    answer = message("ask", thing(), side)
    return schema_of(AskRequest=message("ask", node, side), AskResponse=answer, **definitions)


def with_x(node: Any, *, required: bool = False, **definitions: Any) -> Schema:
    """The same, with the single property `x`."""
    return asking(thing(("x",) if required else (), x=node), **definitions)


def constants(*values: Any, **more: Any) -> Schema:
    return {"oneOf": [{"const": value, **more} for value in values]}


def open_constants(*values: Any) -> Schema:
    return {"anyOf": [*({"const": value} for value in values), TEXT]}


def member(tag: str, key: str = "kind", /, **properties: Any) -> Schema:
    return thing((key, *properties), **{key: {"const": tag}}, **properties)


def other(*tags: str, key: str = "kind") -> Schema:
    refused = [{"properties": {key: {"const": tag}}, "required": [key]} for tag in tags]
    return {
        **thing((key,), **{key: TEXT}),
        "title": "other",
        "additionalProperties": True,
        "not": {"anyOf": refused},
    }


def one_of(*members: Any) -> Schema:
    return {"oneOf": list(members)}


def any_of(*members: Any) -> Schema:
    return {"anyOf": list(members)}


def holding(definition: Schema, **definitions: Any) -> Schema:
    """A schema whose parameters hold a required `Item`."""
    return with_x(ref("Item"), required=True, Item=definition, **definitions)


CLIENT = "client"


def client_sends(old_to_new: str, new_to_old: str) -> Verdicts:
    return {CLIENT: (old_to_new, new_to_old)}


FINE = client_sends("ok", "ok")


def there_and_back(case: Case, rule: str, *, source: str, uses: tuple[str, ...] = ()) -> tuple[Case, Case]:
    """A case, and the same with the schemas exchanged, for the rule `rule`."""
    back = replace(
        case,
        rule=rule,
        variant=case.variant if rule != case.rule else "back",
        old=case.new,
        new=case.old,
        wire={sender: (verdicts[1], verdicts[0]) for sender, verdicts in case.wire.items()},
        source=source,
        uses=uses,
        also=frozenset(_REVERSED[each] for each in case.also),
        protocols=(case.protocols[1], case.protocols[0]),
    )
    return case, back


_REVERSED = {rule.id: rule.reverse for rule in RULES.values()}
GONE = ("construct", "read")
CLASS_GONE = ("import", "construct", "match")
