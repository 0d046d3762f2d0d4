"""The rules of comparisons. Each names a kind of finding and gives the reasons for its verdicts.

`wire` computes the wire verdict of each finding from the types in it, and `compare` softens it where every reader
forgives a misfit. The texts here explain the result; `acpgen diff --explain` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from acpgen.diagnostics import input_error
from acpgen.text import cut, did_you_mean


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding. `reverse` is the id of the rule for the same change with OLD and NEW exchanged."""

    id: str
    meaning: str
    wire: str
    source: str
    reverse: str


def _rule(name: str, meaning: str, *, wire: str, source: str) -> Rule:
    """A rule that is its own reverse."""
    return Rule(name, meaning, wire, source, name)


def _pair(one: tuple[str, str, str], other: tuple[str, str, str], *, wire: str) -> tuple[Rule, Rule]:
    """Two rules that are each other's reverse: id, meaning and source of each; `wire` is that of `one`."""
    reversed_wire = re.sub(r"\b(?:old|new)\b", lambda word: "new" if word[0] == "old" else "old", wire)
    return Rule(*one[:2], wire, one[2], other[0]), Rule(*other[:2], reversed_wire, other[2], one[0])


_NO_MESSAGES = "none: not about messages"
_BY_TYPE = "computed from the types: the values of the sender's type, decoded as the reader's"
_DOCS = "ok: only docstrings differ"
_UNCHECKED = "ok: constructors check nothing"
_MATCH = "risk: an exhaustive `match` is incomplete"
_NEEDED = "breaks: constructors need it (construct)"
_ATTRIBUTE_GONE = "breaks: argument and attribute are gone"
_IMPORT = "breaks: the name is gone (import)"

# --- The protocol as a whole ----------------------------------------------------------------------------------------

PROTOCOL_CHANGED = _rule(
    "protocol-changed",
    "the version of the protocol differs",
    wire="breaks both ways: peers negotiate the version first, and have none in common",
    source="risk: PROTOCOL_VERSION is another number",
)
PROTOCOL_ADDED, PROTOCOL_REMOVED = _pair(
    ("protocol-added", "the package has one more version of the protocol", "ok: one more subpackage"),
    ("protocol-removed", "the package has no such version of the protocol any more", "breaks: its subpackage is gone"),
    wire="none: peers negotiate a version that both have",
)
SUBPACKAGE_ADDED, SUBPACKAGE_REMOVED = _pair(
    (
        "subpackage-added",
        "the names moved into a subpackage for the version",
        "breaks: they have another path (import)",
    ),
    ("subpackage-removed", "the names moved out of the subpackage", "breaks: they have another path (import)"),
    wire=_NO_MESSAGES,
)
NULL_IDS_ADDED, NULL_IDS_REMOVED = _pair(
    ("null-ids-added", "request ids may be null", "ok"),
    ("null-ids-removed", "request ids may no longer be null", "ok"),
    wire="new to old breaks: refused by old readers",
)
NULL_ERROR_IDS_ADDED, NULL_ERROR_IDS_REMOVED = _pair(
    ("null-error-ids-added", "ids of errors may be null", "ok"),
    ("null-error-ids-removed", "ids of errors may no longer be null", "ok"),
    wire="ok: no request waits for such an error",
)
ERROR_CODE_ADDED, ERROR_CODE_REMOVED = _pair(
    ("error-code-added", "an error code has a name now", "ok: a new exception class"),
    ("error-code-removed", "an error code has no name any more", _IMPORT),
    wire="ok: all codes are read",
)
ERROR_CODE_RENAMED = _rule(
    "error-code-renamed", "an error code has another name", wire="ok: only the code is sent", source=_IMPORT
)

# --- Methods --------------------------------------------------------------------------------------------------------

METHOD_ADDED, METHOD_REMOVED = _pair(
    ("method-added", "a method is new", "ok: one more handler and one more call"),
    ("method-removed", "a method is gone", "breaks: the handler is never called, the stub is gone"),
    wire="new to old breaks for a request, loses for a notification; ok with a gate: old peers do not advertise it",
)
METHOD_RENAMED = _rule(
    "method-renamed",
    "a method has another name, but the same side, kind and types; the names share a word, or the types kept theirs",
    wire="as if one method were removed and the other added",
    source="breaks: handler and call have another name; ok if it is the same in Python",
)
METHOD_SIDE_CHANGED = _rule(
    "method-side-changed",
    "the method has another side (`x-side`)",
    wire="breaks towards a side that does not handle it in the release of the reader (a notification: loses)",
    source="breaks: it moved to another class; ok if the handlers are the same",
)
METHOD_KIND_CHANGED = _rule(
    "method-kind-changed",
    "a request became a notification, or the reverse",
    wire="breaks both ways: a response is awaited and not sent, or sent and not awaited",
    source="breaks: the handler returns something else",
)
METHOD_PARAMS_CHANGED = _rule(
    "method-params-changed",
    "the parameters have another type, not just a renamed one",
    wire=_BY_TYPE,
    source="breaks: handler and call take another type",
)
METHOD_RESULT_CHANGED = _rule(
    "method-result-changed",
    "the result has another type, not just a renamed one",
    wire=_BY_TYPE,
    source="breaks: handler and call return another type",
)
METHOD_GATE_ADDED, METHOD_GATE_REMOVED = _pair(
    (
        "method-gate-added",
        "the method needs a capability now",
        "risk: the stub refuses calls to peers that do not advertise it",
    ),
    ("method-gate-removed", "the method needs no capability any more", "ok: the stub refuses fewer calls"),
    wire="old to new breaks: old callers do not check it; "
    "new to old loses: new callers do not call old peers, which do not advertise it",
)
METHOD_GATE_CHANGED = _rule(
    "method-gate-changed",
    "the method needs another capability",
    wire="loses both ways: callers check a capability that the peer does not advertise, and do not call",
    source="risk: the handler must be advertised in another place",
)

# --- Types ----------------------------------------------------------------------------------------------------------

TYPE_ADDED, TYPE_REMOVED = _pair(
    ("type-added", "a type is new", "ok: one more name"),
    ("type-removed", "a type is gone", _IMPORT),
    wire="none: its users have their own findings",
)
TYPE_RENAMED = _rule(
    "type-renamed",
    "a type has another name, but the same tag or message, or the same shape in the same place",
    wire="none: names of types are not sent",
    source=_IMPORT,
)
TYPE_KIND_CHANGED = _rule(
    "type-kind-changed",
    "a class became a union, an alias became an enum, or the like",
    wire=_BY_TYPE,
    source="breaks: a union cannot be called and has no attributes; an enum or alias only if values no longer fit",
)
TYPE_BASE_CHANGED = _rule(
    "type-base-changed",
    "a class has another base class",
    wire="ok: classes are not sent, and all properties are compared",
    source="risk: `isinstance` and annotations with the base class",
)
TYPE_OPENED, TYPE_CLOSED = _pair(
    ("type-opened", "a class keeps unknown properties", "ok: a new `extra`"),
    ("type-closed", "a class drops unknown properties", _ATTRIBUTE_GONE),
    wire="new to old loses: dropped by old readers",
)
TYPE_REJECTION_CHANGED = _rule(
    "type-rejection-changed",
    "a type excludes other objects (`not`)",
    wire="breaks towards readers that exclude objects, as the sender may send these",
    source=_UNCHECKED,
)
DOCUMENTATION = _rule("documentation", "only descriptions or titles differ", wire=_NO_MESSAGES, source=_DOCS)

# --- Properties -----------------------------------------------------------------------------------------------------

FIELD_ADDED_OPTIONAL, FIELD_REMOVED_OPTIONAL = _pair(
    ("field-added-optional", "an optional property is new", "ok"),
    ("field-removed-optional", "an optional property is gone", _ATTRIBUTE_GONE),
    wire="new to old loses: dropped by old readers",
)
FIELD_ADDED_REQUIRED, FIELD_REMOVED_REQUIRED = _pair(
    ("field-added-required", "a required property is new", _NEEDED),
    ("field-removed-required", "a required property is gone", _ATTRIBUTE_GONE),
    wire="old to new breaks: it is missing; new to old loses: dropped by old readers",
)
FIELD_RENAMED = _rule(
    "field-renamed",
    "a property has another name, but the same type; the names share all words of one, or the type is a definition",
    wire="breaks towards readers that require it, loses towards others",
    source="breaks: argument and attribute have another name; ok if it is the same in Python",
)
FIELD_MADE_REQUIRED, FIELD_MADE_OPTIONAL = _pair(
    ("field-made-required", "a property is required now", _NEEDED),
    ("field-made-optional", "a property is optional now", "breaks: the attribute may be UNSET; ok if it has a default"),
    wire="old to new breaks: it may be missing",
)
FIELD_DEFAULT_ADDED, FIELD_DEFAULT_REMOVED = _pair(
    ("field-default-added", "an optional property gained a default", "risk: the attribute is never UNSET"),
    ("field-default-removed", "an optional property lost its default", "breaks: the attribute may be UNSET (read)"),
    wire="ok",
)
FIELD_DEFAULT_CHANGED = _rule(
    "field-default-changed",
    "an optional property has another default",
    wire="loses both ways: the reader fills in another value than the sender meant",
    source="risk: code that omits the argument sends another value",
)
FIELD_LENIENCY_CHANGED = _rule(
    "field-leniency-changed",
    "readers forgive other invalid values (`x-deserialize-…`)",
    wire="ok: valid values are read as before; it only matters for peers that send invalid ones",
    source="ok",
)

# --- Unions ---------------------------------------------------------------------------------------------------------

UNION_MEMBER_ADDED, UNION_MEMBER_REMOVED = _pair(
    ("union-member-added", "a union has a new member", _MATCH),
    ("union-member-removed", "a member of a union is gone", "breaks: its class is gone; risk if it still exists"),
    wire="new to old: breaks in a closed union, ok in an open one, loses if another member reads it",
)
UNION_MEMBER_CHANGED = _rule(
    "union-member-changed",
    "a tag stands for another class, and both releases have both; or a member has other bounds",
    wire=_BY_TYPE,
    source="breaks: the tag gives and takes another class; ok for bounds",
)
UNION_OPENED, UNION_CLOSED = _pair(
    ("union-opened", "a union keeps unknown tags", _MATCH),
    ("union-closed", "a union refuses unknown tags", "breaks: the class for other tags is gone"),
    wire="new to old breaks: unknown tags are refused",
)
UNION_ORDER_CHANGED = _rule(
    "union-order-changed",
    "the members without a tag are tried in another order",
    wire="loses if a value fits several of them; else ok",
    source="ok: the union is the same",
)
UNION_TAG_CHANGED = _rule(
    "union-tag-changed",
    "another property, or none, distinguishes the members",
    wire="computed for the members that both releases have: their values, decoded as the other union",
    source="ok: other attributes or classes of members have their own findings",
)
UNION_EXCLUSION_CHANGED = _rule(
    "union-exclusion-changed",
    "the member for unknown tags excludes other tags than before",
    wire="breaks towards readers that refuse a tag that the sender may send",
    source=_UNCHECKED,
)

# --- Enums ----------------------------------------------------------------------------------------------------------

ENUM_VALUE_ADDED, ENUM_VALUE_REMOVED = _pair(
    ("enum-value-added", "an enum has a new value", _MATCH + "; ok if the enum is open"),
    (
        "enum-value-removed",
        "a value of an enum is gone",
        "breaks: the value does not type-check; ok if the enum is open",
    ),
    wire="new to old breaks if the old enum is closed; ok if it is open",
)
ENUM_OPENED, ENUM_CLOSED = _pair(
    ("enum-opened", "an enum keeps unknown values", _MATCH),
    ("enum-closed", "an enum refuses unknown values", "risk: values made at run time do not type-check"),
    wire="new to old breaks: unknown values are refused",
)
ENUM_TYPE_CHANGED = _rule(
    "enum-type-changed",
    "the values of an enum have another JSON type",
    wire="breaks both ways, except for integers read as numbers",
    source="breaks: values have another type",
)

# --- Types of properties and aliases --------------------------------------------------------------------------------


class TypeChange(Enum):
    """The way in which two types in the same place differ; the end of a rule's id."""

    ANNOTATION = "annotation-changed"
    BOUNDS = "bounds-changed"
    NULL_ADDED = "null-added"
    NULL_REMOVED = "null-removed"
    RESPELLED = "type-respelled"
    TYPE = "type-changed"


def _type_rules(kind: str, subject: str) -> Mapping[TypeChange, Rule]:
    """The rules for the type of `subject`."""
    annotation, bounds, null_added, null_removed, respelled, changed = (f"{kind}-{each.value}" for each in TypeChange)
    narrower = "breaks towards readers with narrower bounds"
    rules = (
        _rule(annotation, f"{subject} has another `format`, `pattern` or the like", wire="ok: unchecked", source=_DOCS),
        _rule(bounds, f"{subject} has other bounds (of its value or length)", wire=narrower, source=_UNCHECKED),
        *_pair(
            (null_added, f"{subject} may be null", "breaks: values may be None (read)"),
            (null_removed, f"{subject} may no longer be null", "breaks: None is no value (construct)"),
            wire="new to old breaks; loses if old readers replace null by a default",
        ),
        _rule(respelled, f"{subject} names its type differently, and admits the same values", wire="ok", source="ok"),
        _rule(changed, f"{subject} has another type", wire=_BY_TYPE, source="breaks if values no longer fit; else ok"),
    )
    return dict(zip(TypeChange, rules, strict=True))


FIELD_TYPE_RULES = _type_rules("field", "a property")
ALIAS_TYPE_RULES = _type_rules("alias", "an alias")

# --- All of them ----------------------------------------------------------------------------------------------------

_SINGLE = [each for each in globals().values() if isinstance(each, Rule)]

_TABLES = (FIELD_TYPE_RULES, ALIAS_TYPE_RULES)
RULES: Mapping[str, Rule] = {
    each.id: each for each in (*_SINGLE, *(rule for each in _TABLES for rule in each.values()))
}
"""The rules by id."""

QUIET = frozenset(
    {DOCUMENTATION, TYPE_ADDED, FIELD_LENIENCY_CHANGED}
    | {each[change] for each in _TABLES for change in (TypeChange.RESPELLED, TypeChange.ANNOTATION)}
)
"""Rules with many findings that need no action; reports count them, unless all are requested."""


def explain(name: str) -> str:
    """The meaning of the rule `name` and the reasons for its verdicts. Raises `InputError` if there is none."""
    rule = RULES.get(name)
    if rule is None:
        hint = did_you_mean(name, RULES) or f"the rules are {', '.join(RULES)}"
        raise input_error("unknown-rule", f"no rule has the id {cut(name)!r}", hint=hint)
    lines = [f"{rule.id}: {rule.meaning}", f"  wire: {rule.wire}", f"  source: {rule.source}"]
    if rule.reverse != rule.id:
        lines.append(f"  with OLD and NEW exchanged: {rule.reverse}")
    return "\n".join(lines)
