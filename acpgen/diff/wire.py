"""The wire verdicts: how one release reads messages of another, by the decoding rules of generated packages.

A sender may send everything that its schema admits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from acpgen.diff.findings import WireVerdict
from acpgen.ir import model as ir
from acpgen.ir.leniency import replaces_misfits, skips_misfits
from acpgen.ir.order import members, untagged, untagged_for
from acpgen.ir.relations import concrete, covers_scalar, without_null

_NULL = ir.Scalar(primitive=ir.Primitive.NULL)
_ANY = ir.AnyJson()


@dataclass(slots=True)
class Acceptance:
    """Judges messages from senders of the model `sender` to readers of the model `reader`.

    `pairs` maps definitions of the sender to those of the reader. Paired definitions are assumed to agree: their
    differences are findings of their own.
    """

    sender: ir.Model
    reader: ir.Model
    pairs: Mapping[str, str]
    _known: dict[tuple[str, str], WireVerdict] = field(default_factory=dict)
    _known_defaults: dict[tuple[int, int], bool] = field(default_factory=dict)

    def accepts(self, sent: ir.TypeExpr, read: ir.TypeExpr) -> WireVerdict:
        """The verdict on all values of the type `sent`, read as the type `read`."""
        if isinstance(sent, ir.Ref) and isinstance(read, ir.Ref):
            if self.pairs.get(sent.name) == read.name:
                return WireVerdict.OK
            key = (sent.name, read.name)
            if key not in self._known:
                self._known[key] = WireVerdict.OK  # the verdict inside of a recursion
                self._known[key] = self._compare(sent, read)
            return self._known[key]
        return self._compare(sent, read)

    def afresh(self, sent: str, read: str) -> WireVerdict:
        """The verdict on two definitions, even if they are paired."""
        return self._compare(ir.Ref(sent), ir.Ref(read))

    def _compare(self, sent: ir.TypeExpr, read: ir.TypeExpr) -> WireVerdict:
        known_sent, known_read = concrete(sent, self.sender), concrete(read, self.reader)
        match known_sent, known_read:
            case _, ir.AnyJson() | ir.Nullable(ir.AnyJson()):
                return WireVerdict.OK
            case ir.Nullable(inner), _:
                return WireVerdict.worst((self.accepts(_NULL, read), self.accepts(inner, read)))
            case ir.Scalar(primitive=ir.Primitive.NULL), ir.Nullable():
                return WireVerdict.OK
            case _, ir.Nullable(inner):
                return self.accepts(sent, inner)
            case ir.Ref(name), _ if isinstance(union := self.sender.by_name[name], (ir.TaggedUnion, ir.UntaggedUnion)):
                return WireVerdict.worst(self.accepts(each, read) for each in members(union))
            case ir.Ref(name), ir.Ref(wanted):
                return self._object(self.sender.struct(name), self.reader.by_name[wanted])
            case _, ir.Ref(name):
                return self._value(known_sent, self.reader.by_name[name])
            case ir.ListOf(item=item, min_items=least), ir.ListOf(item=wanted, min_items=needed):
                return WireVerdict.BREAKS if least < needed else self.accepts(item, wanted)
            case ir.MapOf(inner), ir.MapOf(wanted):
                return self.accepts(inner, wanted)
            case ir.Ref(name), ir.MapOf(wanted):
                struct = self.sender.struct(name)
                types = [*([_ANY] if struct.keeps_extra else []), *(each.type for each in struct.fields)]
                return WireVerdict.worst(self.accepts(each, wanted) for each in types)
            case _, ir.Scalar() | ir.Const() | ir.InlineEnum():
                return WireVerdict.OK if covers_scalar(known_read, known_sent) else WireVerdict.BREAKS
            case _:
                return WireVerdict.BREAKS

    def _value(self, sent: ir.TypeExpr, read: ir.Definition) -> WireVerdict:
        """The verdict on values that are no objects of a class, read as a class or union."""
        match sent, read:
            case ir.MapOf(value), ir.Struct(fields=fields):
                if any(each.required for each in fields):
                    return WireVerdict.BREAKS
                return WireVerdict.worst([WireVerdict.LOSES, *(self.accepts(value, each.type) for each in fields)])
            case _, ir.TaggedUnion() | ir.UntaggedUnion():
                found = [self.accepts(sent, each) for each in untagged(read)]
                keeps_tag = isinstance(sent, ir.MapOf) and isinstance(read, ir.TaggedUnion) and read.other is not None
                return _best([*found, WireVerdict.LOSES if keeps_tag else WireVerdict.BREAKS])
            case _:
                return WireVerdict.BREAKS

    def _object(self, sent: ir.Struct, read: ir.Definition) -> WireVerdict:
        """The verdict on objects of a class, read as a class or union."""
        match read:
            case ir.Struct():
                return self._properties(sent, read)
            case ir.TaggedUnion():
                return WireVerdict.worst(self._with_tag(each, read) for each in self._by_tag(sent, read.tag))
            case ir.UntaggedUnion():
                return _best(self._as_member(sent, each) for each in self._tried(sent, read))
            case _:
                return WireVerdict.BREAKS

    def _tried(self, sent: ir.Struct, union: ir.TaggedUnion | ir.UntaggedUnion) -> Iterator[ir.TypeExpr]:
        """The members without a tag that may read all objects of a class: its pair, and those that require no more."""
        pair = self.pairs.get(sent.name)
        if pair is not None and ir.Ref(pair) in untagged(union):
            yield ir.Ref(pair)
        yield from untagged_for(sent, union)

    def _as_member(self, sent: ir.Struct, read: ir.TypeExpr) -> WireVerdict:
        """The verdict on objects of a class, read as a member of a union."""
        if sent is self.sender.by_name[sent.name]:
            return self.accepts(ir.Ref(sent.name), read)
        match concrete(read, self.reader):  # a narrower form of the class has no pair
            case ir.AnyJson():
                return WireVerdict.OK
            case ir.Nullable(inner):
                return self._as_member(sent, inner)
            case ir.Ref(name):
                return self._object(sent, self.reader.by_name[name])
            case _:
                return WireVerdict.BREAKS

    def _by_tag(self, sent: ir.Struct, key: str) -> Iterator[ir.Struct]:
        """The class once for each kind of tag that its objects may have, if the tag is not always the same."""
        tag = _property(sent, key)
        kind = concrete(tag.type, self.sender) if tag is not None else _ANY
        if tag is None or (tag.required and not isinstance(kind, (ir.InlineEnum, ir.Nullable))):
            yield sent
            return
        others = tuple(each for each in sent.fields if each is not tag)
        inner = concrete(kind.inner, self.sender) if isinstance(kind, ir.Nullable) else kind
        types: list[ir.TypeExpr] = [inner]
        if isinstance(inner, ir.InlineEnum):
            types = [*map(ir.Const, inner.values), *([inner] if inner.open else [])]
        for each in types:
            yield replace(sent, fields=(*others, replace(tag, type=each, required=True)))
        if isinstance(kind, ir.Nullable):
            yield replace(sent, fields=(*others, replace(tag, type=_NULL)))
        elif not tag.required:
            yield replace(sent, fields=others)

    def _with_tag(self, sent: ir.Struct, union: ir.TaggedUnion) -> WireVerdict:
        """The verdict on objects with one tag, any tag, or none."""
        tag = _property(sent, union.tag)
        constant = tag.type.value if tag is not None and isinstance(tag.type, ir.Const) else None
        named = [ir.Ref(each.target) for each in union.variants if each.tag == constant]
        found = _best(self._as_member(sent, each) for each in chain(named, self._tried(sent, union)))
        has_tag = tag is not None and tag.type != _NULL
        if has_tag and union.other is not None and constant not in union.other.excluded:
            found = _best((found, self._other(sent, self.reader.by_name[union.other.target])))
        return found

    def _other(self, sent: ir.Struct, read: ir.Definition) -> WireVerdict:
        """The verdict on a member whose tag the reader does not know; `read` is its member for other tags."""
        if self.pairs.get(sent.name) == read.name:
            return WireVerdict.OK
        if not isinstance(read, ir.Struct):
            return WireVerdict.LOSES
        found = self._properties(sent, replace(read, rejects=None))
        return found if read.keeps_extra else WireVerdict.worst((found, WireVerdict.LOSES))

    def _properties(self, sent: ir.Struct, read: ir.Struct) -> WireVerdict:
        if read.rejects is not None and read.rejects != sent.rejects:
            return WireVerdict.BREAKS
        given = {each.wire: each for each in sent.fields}
        verdicts = [self._property(given.pop(each.wire, None), each) for each in read.fields]
        lost = bool(given) or sent.keeps_extra
        return WireVerdict.worst([*verdicts, WireVerdict.LOSES if lost and not read.keeps_extra else WireVerdict.OK])

    def _property(self, sent: ir.Field | None, read: ir.Field) -> WireVerdict:
        """The verdict on a property; `sent` is None if the sender does not know it."""
        if sent is None:
            return left_out(None, read)
        return WireVerdict.worst((left_out(sent, read), self.value(sent, read), self.absence(sent, read)))

    def value(self, sent: ir.Field, read: ir.Field) -> WireVerdict:
        """The verdict on values of the property, with all that the reader forgives."""
        found = self.accepts(sent.type, read.type)
        if found is not WireVerdict.BREAKS:
            return found
        given = concrete(without_null(sent.type, self.sender), self.sender)
        wanted = concrete(without_null(read.type, self.reader), self.reader)
        if read.leniency.default_on_null and self.accepts(given, read.type) is WireVerdict.OK:
            return WireVerdict.LOSES
        has_null = isinstance(concrete(sent.type, self.sender), ir.Nullable)
        is_collection = type(given) is type(wanted) and (
            not has_null or self.accepts(_NULL, read.type) is WireVerdict.OK
        )
        skips = is_collection and skips_misfits(read, self.reader)
        return WireVerdict.LOSES if skips or replaces_misfits(read, self.reader) else WireVerdict.BREAKS

    def absence(self, sent: ir.Field, read: ir.Field) -> WireVerdict:
        """The verdict on objects without the property: it must mean the same on both sides."""
        if sent.required or sent.default is None or read.default is None:
            return WireVerdict.OK
        return WireVerdict.OK if self.means_same(sent.default, read.default) else WireVerdict.LOSES

    # --- Defaults: an object also has those of its class, for properties that it omits --------------------------------

    def means_same(self, one: ir.Value, other: ir.Value) -> bool:
        """Whether a default of the sender means the same as one of the reader."""
        match one, other:
            case ir.Literal(mine), ir.Literal(theirs):
                return type(mine) is type(theirs) and mine == theirs
            case ir.ListValue(mine), ir.ListValue(theirs):
                return len(mine) == len(theirs) and all(map(self.means_same, mine, theirs))
            case ir.MapValue(), ir.MapValue():
                before, after = dict(one.items), dict(other.items)
                return before.keys() == after.keys() and all(self.means_same(before[key], after[key]) for key in before)
            case ir.Construct(), ir.Construct():
                return self._same_objects(one, other)
            case _:
                return False

    def _same_objects(self, one: ir.Construct, other: ir.Construct) -> bool:
        if self.pairs.get(one.name, one.name) != other.name:
            return False
        key = (id(one), id(other))  # ids stay valid: the models outlive this object
        if key not in self._known_defaults:
            self._known_defaults[key] = True  # the answer inside of a default that contains itself
            self._known_defaults[key] = not any(self._differences(one, other))
        return self._known_defaults[key]

    def _differences(
        self, one: ir.Construct, other: ir.Construct
    ) -> Iterator[tuple[str, ir.Value | None, ir.Value | None]]:
        """The properties in which two objects differ, with both values; None for a missing value.

        A property that both objects omit, and that has a default in one class only, is a finding about the class.
        """
        given, given_by_other = dict(one.arguments), dict(other.arguments)
        own, others = (_defaults(model, each.name) for model, each in ((self.sender, one), (self.reader, other)))
        for name in dict.fromkeys((*own, *others, *given, *given_by_other)):
            mine, theirs = given.get(name, own.get(name)), given_by_other.get(name, others.get(name))
            if mine is None or theirs is None:
                if name in given or name in given_by_other:
                    yield name, mine, theirs
            elif not self.means_same(mine, theirs):
                yield name, mine, theirs

    def apart(self, one: ir.Value, other: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Both defaults for a message: only the properties in which they differ."""
        if not (isinstance(one, ir.Construct) and isinstance(other, ir.Construct)):
            return one, other
        shown = list(self._differences(one, other))
        return (
            ir.Construct(one.name, tuple((name, mine) for name, mine, _ in shown if mine is not None)),
            ir.Construct(other.name, tuple((name, theirs) for name, _, theirs in shown if theirs is not None)),
        )


def left_out(sent: ir.Field | None, read: ir.Field) -> WireVerdict:
    """The verdict on objects without the property; `sent` is None if the sender does not know it."""
    return WireVerdict.BREAKS if read.required and (sent is None or not sent.required) else WireVerdict.OK


def _property(struct: ir.Struct, wire: str) -> ir.Field | None:
    return next((each for each in struct.fields if each.wire == wire), None)


def _best(verdicts: Iterable[WireVerdict]) -> WireVerdict:
    """The mildest of `verdicts`: one member that reads the value is enough, and ends the search."""
    found = WireVerdict.BREAKS
    for each in verdicts:
        if each is WireVerdict.OK:
            return each
        found = min(found, each, key=lambda verdict: verdict.rank)
    return found


def _defaults(model: ir.Model, name: str) -> dict[str, ir.Value | None]:
    return {each.name: each.default for each in model.struct(name).fields}
