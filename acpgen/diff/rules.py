"""Everything that a comparison can find, and the reasons for the verdicts.

The wire verdicts themselves are worked out for each finding by `acceptance` (what one side sends, the other reads), and
made milder where every reader forgives what does not fit, by the `x-deserialize-…` keywords or another union member
that takes the value. The table says what they come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. `reverse` is the rule that the same change has when OLD and NEW are exchanged."""

    id: str
    reverse: str
    meaning: str
    wire: str
    source: str


def _both(
    ids: tuple[str, str], meanings: tuple[str, str], wire: tuple[str, str], source: tuple[str, str]
) -> tuple[Rule, Rule]:
    first, second = ids
    return (
        Rule(id=first, reverse=second, meaning=meanings[0], wire=wire[0], source=source[0]),
        Rule(id=second, reverse=first, meaning=meanings[1], wire=wire[1], source=source[1]),
    )


def _same(rule: str, meaning: str, *, wire: str, source: str) -> tuple[Rule]:
    return (Rule(id=rule, reverse=rule, meaning=meaning, wire=wire, source=source),)


_NONE = "none: it is not about messages"
_STRUCTURE = "what the one type admits is held against what the other reads"

_PROTOCOL = (
    *_same(
        "protocol-changed",
        "the version of the protocol differs",
        wire="breaks both ways: peers agree on a version first, and do not talk without one in common",
        source="risk: PROTOCOL_VERSION is another number",
    ),
    *_both(
        ("null-ids-added", "null-ids-removed"),
        ("the id of a request may be null", "the id of a request may be null no more"),
        ("new to old breaks: the old reader refuses such requests", "old to new breaks: the new reader refuses them"),
        ("ok: the runtime numbers its requests", "ok: the runtime numbers its requests"),
    ),
    *_both(
        ("null-error-ids-added", "null-error-ids-removed"),
        ("the id of an error may be null", "the id of an error may be null no more"),
        ("ok: no call waits for an answer without an id", "ok: no call waits for an answer without an id"),
        ("ok: the runtime numbers its requests", "ok: the runtime numbers its requests"),
    ),
    *_both(
        ("error-code-added", "error-code-removed"),
        ("an error code has got a name", "an error code has a name no more"),
        ("ok: errors of any code are read", "ok: errors of any code are read"),
        ("ok: there is one more exception class", "breaks: its exception class is gone (import)"),
    ),
    *_same(
        "error-code-renamed",
        "an error code has another name",
        wire="ok: the code is what travels",
        source="breaks: the exception class has another name (import)",
    ),
)

_METHODS = (
    *_both(
        ("method-added", "method-removed"),
        ("a method is new", "a method is gone"),
        (
            "new to old: a request is refused (breaks), a notification ignored (loses); "
            "ok with a gate, as old peers do not advertise the capability",
            "old to new: as for method-added the other way round",
        ),
        ("ok: there is one more handler and one more call", "breaks: nobody calls the handler, the stub lacks it"),
    ),
    *_same(
        "method-renamed",
        "a method has the same side and kind, nearly the same types, and a related name or types of the same names",
        wire="as if the one had been removed and the other added",
        source="breaks: handler and call have another name; ok where it is the same one in Python",
    ),
    *_same(
        "method-side-changed",
        "others handle the method",
        wire="breaks towards a side that does not handle it in the release of the reader (a notification: loses)",
        source="breaks: it moved to another class; ok where handlers are the same",
    ),
    *_same(
        "method-kind-changed",
        "a request has become a notification, or the reverse",
        wire="breaks both ways: an answer is awaited that does not come, or comes that nobody awaits",
        source="breaks: the handler returns something else",
    ),
    *_same(
        "method-params-changed",
        "the parameters are of another type, not merely one of another name",
        wire=_STRUCTURE,
        source="breaks: the handler gets, and the call takes, another type",
    ),
    *_same(
        "method-result-changed",
        "the result is of another type, not merely one of another name",
        wire=_STRUCTURE,
        source="breaks: the handler returns, and the call gives, another type",
    ),
    *_both(
        ("method-gate-added", "method-gate-removed"),
        ("a method needs a capability now", "a method needs no capability any more"),
        (
            "old to new breaks: old callers do not look whether the peer has it; "
            "new to old loses: new callers do not call old peers, which do not advertise it",
            "as for method-gate-added the other way round",
        ),
        ("risk: a stub refuses the call to peers that do not advertise it", "ok: a stub refuses less"),
    ),
    *_same(
        "method-gate-changed",
        "a method needs another capability",
        wire="loses both ways: callers look for one that the peer does not advertise, and do not call",
        source="risk: a handler has to be advertised in another place",
    ),
)

_TYPES = (
    *_both(
        ("type-added", "type-removed"),
        ("a type is new", "a type is gone"),
        (
            _NONE + "; what uses the type has findings of its own",
            _NONE + "; what used the type has findings of its own",
        ),
        ("ok: there is one more name", "breaks: the name is gone (import)"),
    ),
    *_same(
        "type-renamed",
        "a type of another name has the same role, and nearly the same shape",
        wire=_NONE + ": names of types do not travel",
        source="breaks: the name is another (import)",
    ),
    *_same(
        "type-kind-changed",
        "a class has become a union, an alias an enum, or the like",
        wire=_STRUCTURE,
        source="breaks: a union cannot be called, and has no attributes of its own; "
        "an enum and an alias, where values no longer fit",
    ),
    *_same(
        "type-base-changed",
        "a class extends another class",
        wire="ok: classes do not travel, and all of its properties are compared",
        source="risk: `isinstance` and annotations with the base class see it differently",
    ),
    *_both(
        ("type-opened", "type-closed"),
        ("a class keeps properties that have no name", "a class drops properties that have no name"),
        ("new to old loses: the old reader drops them", "old to new loses: the new reader drops them"),
        ("ok: there is one more attribute, `extra`", "breaks: the attribute `extra` is gone"),
    ),
    *_same(
        "type-rejection-changed",
        "other objects are excluded from a type (`not`)",
        wire="breaks towards readers that exclude something, as what is excluded may have been sent",
        source="ok: constructors check nothing",
    ),
    *_same(
        "documentation",
        "descriptions or titles differ, and nothing else",
        wire=_NONE,
        source="ok: nothing but docstrings",
    ),
)

_FIELDS = (
    *_both(
        ("field-added-optional", "field-removed-optional"),
        ("a property is new, and may be left out", "a property is gone that could be left out"),
        ("new to old loses: the old reader drops it", "old to new loses: the new reader drops it"),
        ("ok: the argument may be left out", "breaks: argument and attribute are gone"),
    ),
    *_both(
        ("field-added-required", "field-removed-required"),
        ("a property is new, and must be there", "a property is gone that had to be there"),
        (
            "old to new breaks: it is missing; new to old loses: the old reader drops it",
            "old to new loses: the new reader drops it; new to old breaks: it is missing",
        ),
        ("breaks: constructors need it", "breaks: argument and attribute are gone"),
    ),
    *_same(
        "field-renamed",
        "a property of another name has the same type, and either the same words in its name or a type of its own",
        wire="breaks towards readers that require it, loses towards others",
        source="breaks: argument and attribute have another name; ok where it is the same one in Python",
    ),
    *_both(
        ("field-made-required", "field-made-optional"),
        ("a property must be there now", "a property may be left out now"),
        ("old to new breaks: it may be missing", "new to old breaks: it may be missing"),
        (
            "breaks: constructors need it; of a property that had a default, they took it to be there",
            "breaks: the attribute may be UNSET; ok where a default stands in",
        ),
    ),
    *_same(
        "field-type-changed",
        "the values of a property are others",
        wire=_STRUCTURE,
        source="breaks where constructors no longer take what they took, or attributes hold what they did not",
    ),
    *_same(
        "field-type-respelled",
        "the type of a property is said by another name, and comes to the same",
        wire="ok",
        source="ok",
    ),
    *_both(
        ("field-null-added", "field-null-removed"),
        ("a property may be null", "a property may be null no more"),
        (
            "new to old breaks, or loses where the old reader takes null for the default",
            "old to new breaks, or loses where the new reader takes null for the default",
        ),
        ("breaks: the attribute may be None (read)", "breaks: constructors do not take None"),
    ),
    *_same(
        "field-bounds-changed",
        "the least or greatest value, or the least length, is another",
        wire="breaks towards readers with the narrower bounds",
        source="ok: constructors check nothing",
    ),
    *_same(
        "field-annotation-changed",
        "`format`, `pattern`, `contentEncoding` or the like differ",
        wire="ok: readers do not check them",
        source="ok: nothing but docstrings",
    ),
    *_both(
        ("field-default-added", "field-default-removed"),
        ("a property that is left out has a value now", "a property that is left out has no value any more"),
        ("ok: left out is left out", "ok: left out is left out"),
        ("risk: the attribute is never UNSET, nor is UNSET an argument", "breaks: the attribute may be UNSET (read)"),
    ),
    *_same(
        "field-default-changed",
        "a property that is left out has another value",
        wire="loses both ways: the reader puts in something else than the sender meant",
        source="risk: who left the argument out, sends something else",
    ),
    *_same(
        "field-leniency-changed",
        "readers forgive other things (`x-deserialize-…`)",
        wire="ok: what the schema admits is read as before; it matters to peers that send something else",
        source="ok",
    ),
)

_UNIONS = (
    *_both(
        ("union-member-added", "union-member-removed"),
        ("a union has another member", "a union lacks a member"),
        (
            "new to old: refused by a closed union (breaks), kept whole by an open one (ok), "
            "or taken for a member without a tag (loses)",
            "old to new: as for union-member-added the other way round",
        ),
        (
            "risk: a `match` meant to be exhaustive is not",
            "breaks: its class is gone; risk where the class is still there",
        ),
    ),
    *_same(
        "union-member-changed",
        "a tag stands for another class (both classes are in both releases), or a member has other bounds",
        wire=_STRUCTURE,
        source="breaks: the tag gives, and takes, another class; ok for bounds",
    ),
    *_both(
        ("union-opened", "union-closed"),
        ("a union has a member for tags that it does not know", "a union takes no tags that it does not know"),
        ("new to old breaks: unknown tags are refused", "old to new breaks: unknown tags are refused"),
        ("risk: a `match` meant to be exhaustive is not", "breaks: the class for other tags is gone"),
    ),
    *_same(
        "union-order-changed",
        "the members without a tag are tried in another order",
        wire="loses where a value fits several of them; ok elsewhere",
        source="ok: the union is the same",
    ),
    *_same(
        "union-tag-changed",
        "the members are told apart by another property, or in another way",
        wire="what the members that both have come to is held against what the other union reads",
        source="ok: if members have other attributes or classes, that is a finding of its own",
    ),
    *_same(
        "union-exclusion-changed",
        "the member for other tags refuses other tags, which are no members either",
        wire="breaks towards readers that refuse a tag which the sender may send",
        source="ok: constructors check nothing",
    ),
)

_ENUMS = (
    *_both(
        ("enum-value-added", "enum-value-removed"),
        ("an enum has another value", "an enum lacks a value"),
        (
            "new to old breaks where the old enum is closed; ok where it is open",
            "old to new breaks where the new enum is closed; ok where it is open",
        ),
        ("risk: a `match` meant to be exhaustive is not; ok where the enum is open", "breaks; ok where it is open"),
    ),
    *_both(
        ("enum-opened", "enum-closed"),
        ("an enum admits values that it does not name", "an enum admits no values but those that it names"),
        ("new to old breaks: other values are refused", "old to new breaks: other values are refused"),
        ("risk: a `match` meant to be exhaustive is not", "risk: values made at run time do not type-check"),
    ),
    *_same(
        "enum-type-changed",
        "the values are of another JSON type",
        wire="breaks both ways, but for integers where numbers are expected",
        source="breaks",
    ),
)

_ALIASES = (
    *_same(
        "alias-type-changed",
        "an alias stands for another type",
        wire=_STRUCTURE,
        source="breaks where values no longer fit; ok elsewhere",
    ),
    *_same("alias-type-respelled", "an alias says the same type by another name", wire="ok", source="ok"),
    *_both(
        ("alias-null-added", "alias-null-removed"),
        ("an alias admits null", "an alias admits null no more"),
        ("new to old breaks", "old to new breaks"),
        ("breaks: values may be None (read)", "breaks: None is no value (construct)"),
    ),
    *_same(
        "alias-bounds-changed",
        "the bounds of an alias are others",
        wire="breaks towards readers with the narrower bounds",
        source="ok: constructors check nothing",
    ),
    *_same(
        "alias-annotation-changed",
        "`format`, `pattern`, `contentEncoding` or the like of an alias differ",
        wire="ok: readers do not check them",
        source="ok: nothing but docstrings",
    ),
)

RULES: Mapping[str, Rule] = {
    rule.id: rule for rule in (*_PROTOCOL, *_METHODS, *_TYPES, *_FIELDS, *_UNIONS, *_ENUMS, *_ALIASES)
}
"""The rules by id, in the order in which documentation lists them."""

DOCUMENTATION = "documentation"
"""The rule of findings that change nothing but text."""

TYPE_ADDED = "type-added"
"""The rule of types that are new; what uses them has findings of its own."""

QUIET = frozenset(
    {
        DOCUMENTATION,
        TYPE_ADDED,
        *("field-leniency-changed", "field-type-respelled", "field-annotation-changed"),
        *("alias-type-respelled", "alias-annotation-changed"),
    }
)
"""The rules of which there are many findings that nobody has to act on: they are counted, unless all are asked for."""
