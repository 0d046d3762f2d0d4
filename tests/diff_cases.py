"""A pair of small schemas for every rule of comparisons, with what has to be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diff.rules import RULES
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
    """What is found from `old` to `new`, or from one protocol to another.

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


def _client(old_to_new: str, new_to_old: str) -> Verdicts:
    return {CLIENT: (old_to_new, new_to_old)}


FINE = _client("ok", "ok")


def _there_and_back(case: Case, rule: str, *, source: str, uses: tuple[str, ...] = ()) -> tuple[Case, Case]:
    """A case, and the same with the schemas exchanged, which is the rule `rule`."""
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

FIELDS = [
    *_there_and_back(
        Case(
            rule="field-added-optional",
            old=asking(thing()),
            new=with_x(TEXT),
            place="AskRequest.x",
            wire=_client("ok", "loses"),
        ),
        "field-removed-optional",
        source="breaks",
        uses=GONE,
    ),
    *_there_and_back(
        Case(
            rule="field-added-required",
            old=asking(thing()),
            new=with_x(TEXT, required=True),
            place="AskRequest.x",
            wire=_client("breaks", "loses"),
            source="breaks",
            uses=("construct",),
        ),
        "field-removed-required",
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-renamed",
        variant="required",
        old=asking(thing(("id",), id=TEXT)),
        new=asking(thing(("askId",), askId=TEXT)),
        place="AskRequest.askId",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-renamed",
        variant="optional",
        old=asking(thing(id=TEXT)),
        new=asking(thing(askId=TEXT)),
        place="AskRequest.askId",
        wire=_client("loses", "loses"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-renamed",
        variant="by-type",
        old=asking(thing(("from",), **{"from": ref("Place")}), Place=thing(("a",), a=TEXT)),
        new=asking(thing(("start",), start=ref("Place")), Place=thing(("a",), a=TEXT)),
        place="AskRequest.start",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
    ),
    *_there_and_back(
        Case(
            rule="field-made-required",
            old=with_x(TEXT),
            new=with_x(TEXT, required=True),
            place="AskRequest.x",
            wire=_client("breaks", "ok"),
            source="breaks",
            uses=("construct",),
        ),
        "field-made-optional",
        source="breaks",
        uses=("read",),
    ),
    Case(
        rule="field-made-optional",
        variant="with-default",
        old=with_x(YES_NO, required=True),
        new=with_x({**YES_NO, "default": False}),
        place="AskRequest.x",
        wire=_client("ok", "breaks"),
        unseen="generated packages always send what has a default",
    ),
    Case(
        rule="field-type-changed",
        old=with_x(TEXT, required=True),
        new=with_x(WHOLE, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-type-changed",
        variant="widened",
        old=with_x(WHOLE, required=True),
        new=with_x({"type": "number"}, required=True),
        place="AskRequest.x",
        wire=_client("ok", "breaks"),
        source="breaks",
        uses=("read",),
    ),
    Case(
        rule="field-type-changed",
        variant="forgiven",
        old=with_x({**TEXT, **LENIENT}),
        new=with_x({**WHOLE, **LENIENT}),
        place="AskRequest.x",
        wire=_client("loses", "loses"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-type-changed",
        variant="items-left-out",
        old=with_x({"type": "array", "items": TEXT, **SKIPPING}, required=True),
        new=with_x({"type": "array", "items": WHOLE}, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "loses"),
        source="breaks",
        uses=GONE,
        also=frozenset({"field-leniency-changed"}),
    ),
    Case(
        rule="field-type-changed",
        variant="map-to-list",
        old=with_x({"type": "object", "additionalProperties": TEXT}, required=True),
        new=with_x({"type": "array", "items": TEXT}, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="field-type-changed",
        variant="anything",
        old=with_x({}, required=True),
        new=with_x(TEXT, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "ok"),
    ),
    Case(
        rule="field-type-respelled",
        old=with_x(TEXT),
        new=with_x(ref("Name"), Name=TEXT),
        place="AskRequest.x",
        wire=FINE,
        also=frozenset({"type-added"}),
    ),
    *_there_and_back(
        Case(
            rule="field-null-added",
            old=with_x(TEXT),
            new=with_x({"type": ["string", "null"]}),
            place="AskRequest.x",
            wire=_client("ok", "breaks"),
            source="breaks",
            uses=("read",),
        ),
        "field-null-removed",
        source="breaks",
        uses=("construct",),
    ),
    Case(
        rule="field-null-removed",
        variant="forgiven",
        old=with_x({"type": ["array", "null"], "items": TEXT}),
        new=with_x({"type": "array", "items": TEXT, **NULL_IS_DEFAULT}),
        place="AskRequest.x",
        wire=_client("loses", "ok"),
        source="breaks",
        uses=("construct",),
        also=frozenset({"field-leniency-changed"}),
    ),
    Case(
        rule="field-bounds-changed",
        old=with_x({**WHOLE, "minimum": 0}, required=True),
        new=with_x({**WHOLE, "minimum": 7}, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "ok"),
    ),
    Case(
        rule="field-bounds-changed",
        variant="items",
        old=with_x({"type": "array", "items": TEXT, "minItems": 1}, required=True),
        new=with_x({"type": "array", "items": TEXT}, required=True),
        place="AskRequest.x",
        wire=_client("ok", "breaks"),
    ),
    Case(
        rule="field-bounds-changed",
        variant="length",
        old=with_x(TEXT, required=True),
        new=with_x({**TEXT, "minLength": 1}, required=True),
        place="AskRequest.x",
        wire=_client("breaks", "ok"),
    ),
    Case(
        rule="field-annotation-changed",
        old=with_x(TEXT),
        new=with_x({**TEXT, "format": "uri"}),
        place="AskRequest.x",
        wire=FINE,
    ),
    *_there_and_back(
        Case(
            rule="field-default-added",
            old=with_x(YES_NO),
            new=with_x({**YES_NO, "default": False}),
            place="AskRequest.x",
            wire=FINE,
            source="risk",
            uses=GONE,
        ),
        "field-default-removed",
        source="breaks",
        uses=("read",),
    ),
    Case(
        rule="field-default-changed",
        old=with_x({**YES_NO, "default": False}),
        new=with_x({**YES_NO, "default": True}),
        place="AskRequest.x",
        wire=_client("loses", "loses"),
        source="risk",
        uses=("construct",),
        unseen="generated packages always send what has a default",
    ),
    Case(
        rule="field-leniency-changed",
        old=with_x(TEXT),
        new=with_x({**TEXT, **LENIENT}),
        place="AskRequest.x",
        wire=FINE,
    ),
]

ENUMS = [
    *_there_and_back(
        Case(
            rule="enum-value-added",
            old=holding(constants("a")),
            new=holding(constants("a", "b")),
            place="Item.b",
            wire=_client("ok", "breaks"),
            source="risk",
            uses=("match",),
        ),
        "enum-value-removed",
        source="breaks",
        uses=("construct", "match"),
    ),
    *_there_and_back(
        Case(
            rule="enum-value-added",
            variant="open",
            old=holding(open_constants("a", "c")),
            new=holding(open_constants("a", "b", "c")),
            place="Item.b",
            wire=FINE,
        ),
        "enum-value-removed",
        source="ok",
    ),
    Case(
        rule="enum-value-added",
        variant="forgiven",
        old=with_x({**ref("Item", **LENIENT)}, Item=constants("a")),
        new=with_x({**ref("Item", **LENIENT)}, Item=constants("a", "b")),
        place="Item.b",
        wire=_client("ok", "loses"),
        source="risk",
        uses=("match",),
    ),
    *_there_and_back(
        Case(
            rule="enum-opened",
            old=holding(constants("a")),
            new=holding(open_constants("a")),
            place="Item",
            wire=_client("ok", "breaks"),
            source="risk",
            uses=("match",),
        ),
        "enum-closed",
        source="risk",
        uses=("construct",),
    ),
    Case(
        rule="enum-type-changed",
        old=holding(constants(1, 2)),
        new=holding(constants("1", "2")),
        place="Item",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
        also=frozenset({"enum-value-added", "enum-value-removed"}),
    ),
]

A, B, C = member("a"), member("b", size=WHOLE), member("c", name=TEXT)
LOOSE = {**thing(("name",), name=TEXT), "title": "loose"}
SHARED = thing(("text",), text=TEXT)

UNIONS = [
    *_there_and_back(
        Case(
            rule="union-member-added",
            old=holding(one_of(A, C)),
            new=holding(one_of(A, B, C)),
            place="Item.b",
            wire=_client("ok", "breaks"),
            source="risk",
            uses=("match",),
            also=frozenset({"type-added"}),
        ),
        "union-member-removed",
        source="breaks",
        uses=CLASS_GONE,
    ),
    *_there_and_back(
        Case(
            rule="union-member-added",
            variant="open",
            old=holding(any_of(A, other("a"))),
            new=holding(any_of(A, B, other("a", "b"))),
            place="Item.b",
            wire=FINE,
            source="risk",
            uses=("match",),
            also=frozenset({"type-added"}),
        ),
        "union-member-removed",
        source="breaks",
        uses=CLASS_GONE,
    ),
    Case(
        rule="union-member-added",
        variant="fallback",
        old=holding(any_of(A, LOOSE)),
        new=holding(any_of(A, C, LOOSE)),
        place="Item.c",
        wire=_client("ok", "loses"),
        source="risk",
        uses=("match",),
        also=frozenset({"type-added"}),
    ),
    Case(
        rule="union-member-added",
        variant="untagged",
        old=holding(any_of(TEXT, WHOLE)),
        new=holding(any_of(TEXT, WHOLE, YES_NO)),
        place="Item.bool",
        wire=_client("ok", "breaks"),
        source="risk",
        uses=("match",),
    ),
    Case(
        rule="union-member-removed",
        variant="class-stays",
        old=holding(any_of(A, ref("Loose")), Loose=thing(("name",), name=TEXT)),
        new=holding(any_of(A, C), Loose=thing(("name",), name=TEXT)),
        place="Item.Loose",
        wire=_client("breaks", "ok"),
        source="risk",
        uses=("construct", "match"),
        also=frozenset({"type-added", "union-member-added"}),
        unseen="two findings share the messages",
    ),
    Case(
        rule="union-member-changed",
        old=holding(one_of(ref("OneA"), B), OneA=member("a", one=TEXT), TwoA=member("a", two=TEXT)),
        new=holding(one_of(ref("TwoA"), B), OneA=member("a", one=TEXT), TwoA=member("a", two=TEXT)),
        place="Item.a",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=("construct", "read", "match"),
    ),
    *_there_and_back(
        Case(
            rule="union-opened",
            old=holding(any_of(A, B)),
            new=holding(any_of(A, B, other("a", "b"))),
            place="Item",
            wire=_client("ok", "breaks"),
            source="risk",
            uses=("match",),
            also=frozenset({"type-added"}),
        ),
        "union-closed",
        source="breaks",
        uses=CLASS_GONE,
    ),
    Case(
        rule="union-order-changed",
        old=holding(any_of(ref("P"), ref("Q")), P=thing(a=TEXT), Q=thing(a=TEXT, b=TEXT)),
        new=holding(any_of(ref("Q"), ref("P")), P=thing(a=TEXT), Q=thing(a=TEXT, b=TEXT)),
        place="Item",
        wire=_client("loses", "loses"),
        unseen="what is read as another member keeps its properties, or has lost them before it was sent",
    ),
    Case(
        rule="union-order-changed",
        variant="apart",
        old=holding(any_of(TEXT, WHOLE)),
        new=holding(any_of(WHOLE, TEXT)),
        place="Item",
        wire=FINE,
    ),
    Case(
        rule="union-tag-changed",
        old=holding(one_of(A, B)),
        new=holding(one_of(member("a", "sort"), member("b", "sort", size=WHOLE))),
        place="Item",
        wire=_client("breaks", "breaks"),
        also=frozenset({"field-added-required", "field-removed-required"}),
    ),
    Case(
        rule="union-tag-changed",
        variant="more-members",
        old=holding(any_of(ref("Loose")), Loose=thing(("name",), name=TEXT)),
        new=holding(any_of(C, ref("Loose")), Loose=thing(("name",), name=TEXT)),
        place="Item",
        wire=FINE,
        also=frozenset({"type-added", "union-member-added"}),
        unseen="two findings share the messages",
    ),
    Case(
        rule="union-member-changed",
        variant="bounds",
        old=holding(any_of({"type": "array", "items": TEXT}, WHOLE)),
        new=holding(any_of({"type": "array", "items": TEXT, "minItems": 1}, WHOLE)),
        place="Item.list[str]",
        wire=_client("breaks", "ok"),
    ),
    Case(
        rule="union-exclusion-changed",
        old=holding(any_of(A, other("a"))),
        new=holding(any_of(A, other("a", "text"))),
        place="Item",
        wire=_client("breaks", "ok"),
    ),
]

ALIASES = [
    Case(
        rule="alias-type-changed",
        old=holding(TEXT),
        new=holding(WHOLE),
        place="Item",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="alias-type-respelled",
        old=holding(TEXT),
        new=holding(ref("Name"), Name=TEXT),
        place="Item",
        wire=FINE,
        also=frozenset({"type-added"}),
    ),
    *_there_and_back(
        Case(
            rule="alias-null-added",
            old=holding(TEXT),
            new=holding({"type": ["string", "null"]}),
            place="Item",
            wire=_client("ok", "breaks"),
            source="breaks",
            uses=("read",),
        ),
        "alias-null-removed",
        source="breaks",
        uses=("construct",),
    ),
    Case(
        rule="alias-bounds-changed",
        old=holding({**WHOLE, "maximum": 65535}),
        new=holding({**WHOLE, "maximum": 255}),
        place="Item",
        wire=_client("breaks", "ok"),
    ),
    Case(
        rule="alias-annotation-changed",
        old=holding({**TEXT, "format": "uri"}),
        new=holding(TEXT),
        place="Item",
        wire=FINE,
    ),
]

TYPES = [
    *_there_and_back(
        Case(rule="type-added", old=asking(thing()), new=asking(thing(), Extra=thing(a=TEXT)), place="Extra", wire={}),
        "type-removed",
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="type-renamed",
        variant="of-a-property",
        old=with_x(ref("Item"), Item=thing(a=TEXT, b=TEXT)),
        new=with_x(ref("Thing"), Thing=thing(a=TEXT, b=TEXT)),
        place="Thing",
        wire={},
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="type-renamed",
        variant="of-a-message",
        old=asking(thing(("a",), a=TEXT)),
        new=schema_of(PleadRequest=message("ask", thing(("a",), a=TEXT)), AskResponse=message("ask", thing())),
        place="PleadRequest",
        wire={},
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="type-renamed",
        variant="of-a-member",
        old=with_x(ref("Item"), Item=one_of(A, B)),
        new=with_x(ref("Thing"), Thing=one_of(A, B)),
        place="ThingA",
        wire={},
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="type-kind-changed",
        old=holding(thing(("name",), name=TEXT)),
        new=holding(any_of(C, LOOSE)),
        place="Item",
        wire=_client("ok", "loses"),
        source="breaks",
        uses=GONE,
        also=frozenset({"type-added"}),
    ),
    *_there_and_back(
        Case(
            rule="type-base-changed",
            old=holding(one_of(*({**member(tag), "allOf": [ref("Shared")]} for tag in "ab")), Shared=SHARED),
            new=holding(
                one_of({**member("a"), "allOf": [ref("Shared")]}, member("b", text=TEXT)),
                Shared=SHARED,
                More=thing(shared=ref("Shared")),
            ),
            place="ItemB",
            wire=FINE,
            source="risk",
            uses=("read",),
            also=frozenset({"type-added"}),
        ),
        "type-base-changed",
        source="risk",
        uses=("read",),
    ),
    *_there_and_back(
        Case(
            rule="type-opened",
            old=holding(thing(("name",), name=TEXT)),
            new=holding({**thing(("name",), name=TEXT), "additionalProperties": True}),
            place="Item",
            wire=_client("ok", "loses"),
        ),
        "type-closed",
        source="breaks",
        uses=GONE,
    ),
    Case(
        rule="type-rejection-changed",
        old=holding({**thing(kind=TEXT), "not": {"required": ["other"]}}),
        new=holding({**thing(kind=TEXT), "not": {"required": ["kind"]}}),
        place="Item",
        wire=_client("breaks", "breaks"),
        unseen="what is excluded is dropped before it is sent",
    ),
    Case(
        rule="documentation",
        old=with_x({**TEXT, "description": "Old."}),
        new=with_x({**TEXT, "description": "New."}),
        place="AskRequest",
        wire={},
    ),
    Case(
        rule="field-added-optional",
        variant="unreached",
        old=asking(thing(), Lonely=thing()),
        new=asking(thing(), Lonely=thing(x=TEXT)),
        place="Lonely.x",
        wire={},
    ),
]


def asking_twice(*, side: str = "agent", kind: str = "Request") -> Schema:
    """The schema with one method, and another, `tell`."""
    told: dict[str, Any] = {f"Tell{kind}": message("tell", thing(t=TEXT), side)}
    if kind == "Request":
        told["TellResponse"] = message("tell", thing(), side)
    return schema_of(AskRequest=message("ask", thing()), AskResponse=message("ask", thing()), **told)


CALLED = ("call", "handle")

METHODS = [
    *_there_and_back(
        Case(
            rule="method-added",
            old=asking(thing()),
            new=asking_twice(),
            place="tell",
            wire=_client("ok", "breaks"),
            also=frozenset({"type-added"}),
        ),
        "method-removed",
        source="breaks",
        uses=CALLED,
    ),
    *_there_and_back(
        Case(
            rule="method-added",
            variant="notification",
            old=asking(thing()),
            new=asking_twice(side="client", kind="Notification"),
            place="tell",
            wire={"agent": ("ok", "loses")},
            also=frozenset({"type-added"}),
        ),
        "method-removed",
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-added",
        variant="both-sides",
        old=asking(thing()),
        new=asking_twice(side="both"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("ok", "breaks")},
        also=frozenset({"type-added"}),
    ),
    Case(
        rule="method-renamed",
        old=asking_twice(),
        new=asking(
            thing(),
            TellAllRequest=message("all/tell", thing(t=TEXT)),
            TellAllResponse=message("all/tell", thing()),
        ),
        place="all/tell",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
        also=frozenset({"type-renamed"}),
    ),
    Case(
        rule="method-side-changed",
        old=asking_twice(side="agent"),
        new=asking_twice(side="client"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("breaks", "ok")},
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-side-changed",
        variant="in-name-only",
        old=asking_twice(side="both"),
        new=asking_twice(side="protocol"),
        place="tell",
        wire={"agent": ("ok", "ok"), "client": ("ok", "ok")},
    ),
    Case(
        rule="method-side-changed",
        variant="one-more",
        old=asking_twice(side="agent"),
        new=asking_twice(side="both"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("ok", "ok")},
    ),
    Case(
        rule="method-kind-changed",
        old=asking_twice(),
        new=asking_twice(kind="Notification"),
        place="tell",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
        also=frozenset({"type-removed", "type-renamed"}),
    ),
    Case(
        rule="method-params-changed",
        old=schema_of(
            AskRequest=message("ask", thing(("a",), a=TEXT)),
            AskResponse=message("ask", thing()),
            PleadRequest=thing(("b",), b=TEXT),
            Keeper=thing(one=ref("AskRequest"), two=ref("PleadRequest")),
        ),
        new=schema_of(
            PleadRequest=message("ask", thing(("b",), b=TEXT)),
            AskResponse=message("ask", thing()),
            AskRequest=thing(("a",), a=TEXT),
            Keeper=thing(one=ref("AskRequest"), two=ref("PleadRequest")),
        ),
        place="ask",
        wire=_client("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-result-changed",
        old=schema_of(
            AskRequest=message("ask", thing()),
            AskResponse=message("ask", thing(("a",), a=TEXT)),
            PleadResponse=thing(a=TEXT),
        ),
        new=schema_of(
            AskRequest=message("ask", thing()),
            PleadResponse=message("ask", thing(a=TEXT)),
            AskResponse=thing(("a",), a=TEXT),
        ),
        place="ask",
        wire={"agent": ("ok", "breaks")},
        source="breaks",
        uses=CALLED,
    ),
]


def enveloped(*codes: Any, ids: Any = TEXT, batches: bool = False) -> Schema:
    """A schema with a JSON-RPC envelope: error codes with titles, the type of ids, arrays of messages."""
    code = {"anyOf": [*({"const": number, "title": title} for number, title in codes), WHOLE]}
    envelope = {"x-docs-ignore": True, **thing(id=ref("Id"), error=ref("Failure"))}
    root = [ref("Envelope"), *([{"type": "array", "items": ref("Envelope")}] if batches else [])]
    return {
        **asking(
            thing(),
            Id=ids,
            Failure=thing(("code", "message"), code=ref("Code"), message=TEXT, data={}),
            Code=code,
            Envelope=envelope,
        ),
        "anyOf": root,
    }


BOTH_WAYS = ("agent", "client")


def _both(old_to_new: str, new_to_old: str) -> Verdicts:
    return dict.fromkeys(BOTH_WAYS, (old_to_new, new_to_old))


PROTOCOL = [
    Case(
        rule="protocol-changed",
        old=asking(thing()),
        new=asking(thing()),
        place="the protocol",
        wire=_both("breaks", "breaks"),
        source="risk",
        uses=("import",),
        protocols=(1, 2),
    ),
    *_there_and_back(
        Case(
            rule="batches-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), batches=True),
            place="the protocol",
            wire=_both("ok", "breaks"),
        ),
        "batches-removed",
        source="ok",
    ),
    *_there_and_back(
        Case(
            rule="null-ids-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), ids={"type": ["string", "null"]}),
            place="the protocol",
            wire=_both("ok", "breaks"),
            also=frozenset({"alias-null-added"}),
        ),
        "null-ids-removed",
        source="ok",
    ),
    *_there_and_back(
        Case(
            rule="error-code-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), (-2, "Worse")),
            place="error -2",
            wire={},
            also=frozenset({"enum-value-added"}),
        ),
        "error-code-removed",
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="error-code-renamed",
        old=enveloped((-1, "Bad luck")),
        new=enveloped((-1, "Hard luck")),
        place="error -1",
        wire={},
        source="breaks",
        uses=("import",),
        also=frozenset({"documentation"}),
    ),
]

CASES = [*FIELDS, *ENUMS, *UNIONS, *ALIASES, *TYPES, *METHODS, *PROTOCOL]
