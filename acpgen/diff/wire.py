"""The wire verdicts: how one release reads messages of another, by the decoding rules of generated packages.

A sender may send everything that its schema admits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from acpgen.diff.default_values import DefaultValues
from acpgen.diff.findings import Wire, worst_wire
from acpgen.ir.leniency import replaces_misfits, skips_misfits
from acpgen.ir.model import (
    AnyJson,
    Choice,
    Const,
    Field,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members, untagged
from acpgen.ir.relations import concrete, covers_scalar

_NULL = Scalar(primitive=Primitive.NULL)
_ANY = AnyJson()


@dataclass(slots=True)
class Acceptance:
    """Judges messages from senders of the model `sender` to readers of the model `reader`.

    `pairs` maps definitions of the sender to those of the reader. Paired definitions are assumed to agree: their
    differences are findings of their own.
    """

    sender: Model
    reader: Model
    pairs: Mapping[str, str]
    defaults: DefaultValues = field(init=False)
    _known: dict[tuple[str, str], Wire] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.defaults = DefaultValues(self.sender, self.reader, self.pairs)

    def accepts(self, sent: TypeExpr, read: TypeExpr) -> Wire:
        """The verdict on all values of the type `sent`, read as the type `read`."""
        if isinstance(sent, Ref) and isinstance(read, Ref):
            if self.pairs.get(sent.name) == read.name:
                return Wire.OK
            key = (sent.name, read.name)
            if key not in self._known:
                self._known[key] = Wire.OK  # the verdict inside of a recursion
                self._known[key] = self._compare(sent, read)
            return self._known[key]
        return self._compare(sent, read)

    def afresh(self, sent: str, read: str) -> Wire:
        """The verdict on two definitions, even if they are paired."""
        return self._compare(Ref(sent), Ref(read))

    def _compare(self, sent: TypeExpr, read: TypeExpr) -> Wire:
        known_sent, known_read = concrete(sent, self.sender), concrete(read, self.reader)
        match known_sent, known_read:
            case _, AnyJson() | Nullable(AnyJson()):
                return Wire.OK
            case AnyJson(), _:
                return self._anything(known_read)
            case Nullable(inner), _:
                return worst_wire((self.accepts(_NULL, read), self.accepts(inner, read)))
            case Scalar(primitive=Primitive.NULL), Nullable():
                return Wire.OK
            case _, Nullable(inner):
                return self.accepts(sent, inner)
            case Ref(name), _ if isinstance(union := self.sender.by_name[name], (TaggedUnion, UntaggedUnion)):
                return worst_wire(self.accepts(each, read) for each in members(union))
            case _, Ref(name):
                return self._named(known_sent, name)
            case ListOf(item=item, min_items=least), ListOf(item=wanted, min_items=needed):
                return Wire.BREAKS if least < needed else self.accepts(item, wanted)
            case MapOf(inner), MapOf(wanted):
                return self.accepts(inner, wanted)
            case Ref(name), MapOf(wanted):
                return self._object_as_map(name, wanted)
            case _, Scalar() | Const() | Choice():
                return Wire.OK if covers_scalar(known_read, known_sent) else Wire.BREAKS
            case _:
                return Wire.BREAKS

    def _anything(self, read: TypeExpr) -> Wire:
        """The verdict on all JSON values; a union may have a member that reads every value."""
        match read:
            case Nullable(inner):
                return self.accepts(_ANY, inner)
            case Ref(name):
                return _best(self.accepts(_ANY, each) for each in self._untagged(name))
            case _:
                return Wire.BREAKS

    def _untagged(self, name: str) -> tuple[TypeExpr, ...]:
        """The types of the members without a tag of the reader's union `name`; none for a class."""
        definition = self.reader.by_name[name]
        return untagged(definition) if isinstance(definition, (TaggedUnion, UntaggedUnion)) else ()

    def _named(self, sent: TypeExpr, name: str) -> Wire:
        """The verdict on a value that the reader decodes as the class or union `name`."""
        match self.reader.by_name[name]:
            case Struct() as struct:
                return self._struct(sent, struct)
            case TaggedUnion() as union:
                return self._tagged(sent, union)
            case _:
                return _best(self.accepts(sent, each) for each in self._untagged(name))

    def _struct(self, sent: TypeExpr, struct: Struct) -> Wire:
        match sent:
            case MapOf(value):
                if any(each.required for each in struct.fields):
                    return Wire.BREAKS
                return worst_wire([Wire.LOSES, *(self.accepts(value, each.type) for each in struct.fields)])
            case Ref(name):
                return self._objects(self.sender.struct(name), struct)
            case _:
                return Wire.BREAKS

    def _objects(self, sent: Struct, read: Struct) -> Wire:
        if read.rejects is not None and read.rejects != sent.rejects:
            return Wire.BREAKS
        given = {each.wire: each for each in sent.fields}
        verdicts = [self.property(given.pop(each.wire, None), each) for each in read.fields]
        lost = bool(given) or sent.keeps_extra
        return worst_wire([*verdicts, Wire.LOSES if lost and not read.keeps_extra else Wire.OK])

    def property(self, sent: Field | None, read: Field | None) -> Wire:
        """The verdict on a property; `sent` or `read` is None if that side does not know it."""
        if read is None:
            return Wire.LOSES if sent is not None else Wire.OK
        if sent is None:
            return left_out(None, read)
        return worst_wire((left_out(sent, read), self.value(sent, read), self.absence(sent, read)))

    def value(self, sent: Field, read: Field) -> Wire:
        """The verdict on values of the property, with all that the reader forgives."""
        found = self.accepts(sent.type, read.type)
        if found is not Wire.BREAKS:
            return found
        if read.leniency.default_on_null and self.accepts(_without_null(sent.type, self.sender), read.type) is Wire.OK:
            return Wire.LOSES
        return Wire.LOSES if replaces_misfits(read, self.reader) or self._skips(sent, read) else Wire.BREAKS

    def _skips(self, sent: Field, read: Field) -> bool:
        """Whether only items can be misfits, and the reader skips these."""
        given, wanted = concrete(sent.type, self.sender), concrete(read.type, self.reader)
        if isinstance(wanted, Nullable):
            given, wanted = _without_null(given, self.sender), _without_null(wanted, self.reader)
        return skips_misfits(read, self.reader) and type(given) is type(wanted)

    def absence(self, sent: Field, read: Field) -> Wire:
        """The verdict on objects without the property: it must mean the same on both sides."""
        if sent.required or sent.default is None or read.default is None:
            return Wire.OK
        return Wire.OK if self.defaults.same(sent.default, read.default) else Wire.LOSES

    def _tagged(self, sent: TypeExpr, union: TaggedUnion) -> Wire:
        if not isinstance(sent, Ref):
            return Wire.LOSES if isinstance(sent, MapOf) and union.other is not None else Wire.BREAKS
        struct = self.sender.struct(sent.name)
        tag = next((each for each in struct.fields if each.wire == union.tag), None)
        if tag is not None and (not tag.required or isinstance(concrete(tag.type, self.sender), (Choice, Nullable))):
            return self._by_tag(struct, tag, union)
        constant = tag.type.value if tag is not None and isinstance(tag.type, Const) else None
        verdicts = [self.accepts(sent, Ref(each.target)) for each in union.variants if each.tag == constant]
        verdicts += [self.accepts(sent, each) for each in untagged(union)]
        if constant is None and tag is not None:
            # any tag may be sent: only the member for other tags reads them all
            verdicts += [self.accepts(sent, Ref(union.other.target)) if union.other is not None else Wire.BREAKS]
        elif tag is not None and union.other is not None and constant not in union.other.excluded:
            verdicts += [self._other(struct, union.other.target)]
        return _best(verdicts)

    def _by_tag(self, sent: Struct, tag: Field, union: TaggedUnion) -> Wire:
        """The worst verdict on objects whose tag is optional, nullable or one of several."""
        kind = concrete(tag.type, self.sender)
        inner = concrete(kind.inner, self.sender) if isinstance(kind, Nullable) else kind
        known = (inner.value,) if isinstance(inner, Const) else inner.values if isinstance(inner, Choice) else ()
        verdicts = [self._with_tag(sent, replace(tag, type=Const(value), required=True), union) for value in known]
        if isinstance(kind, Nullable):
            verdicts.append(self._with_tag(sent, replace(tag, type=_NULL), union))
        elif not tag.required:
            verdicts.append(self._with_tag(sent, None, union))
        if not isinstance(inner, Const) and not (isinstance(inner, Choice) and not inner.open):
            verdicts.append(self._with_tag(sent, replace(tag, type=inner, required=True), union))
        return worst_wire(verdicts)

    def _with_tag(self, sent: Struct, tag: Field | None, union: TaggedUnion) -> Wire:
        """The verdict on objects of the class with the tag property `tag`, or without one."""
        others = tuple(each for each in sent.fields if each.wire != union.tag)
        struct = replace(sent, fields=others if tag is None else (*others, tag))
        constant = tag.type.value if tag is not None and isinstance(tag.type, Const) else None
        verdicts = [self._object(struct, Ref(each.target)) for each in union.variants if each.tag == constant]
        has_tag = tag is not None and tag.type != _NULL
        if has_tag and not verdicts and union.other is not None and constant not in union.other.excluded:
            verdicts.append(self._other(struct, union.other.target))
        return _best([*verdicts, *(self._object(struct, each) for each in untagged(union))])

    def _object(self, sent: Struct, read: TypeExpr) -> Wire:
        """The verdict on `sent`, which is no definition of the sender, but a narrower form of one."""
        match concrete(read, self.reader):
            case AnyJson():
                return Wire.OK
            case Nullable(inner):
                return self._object(sent, inner)
            case Ref(name):
                match self.reader.by_name[name]:
                    case Struct() as struct:
                        return self._objects(sent, struct)
                    case TaggedUnion() as union:
                        tag = next((each for each in sent.fields if each.wire == union.tag), None)
                        return self._by_tag(sent, tag, union) if tag else self._with_tag(sent, None, union)
                    case _:
                        return _best(self._object(sent, each) for each in self._untagged(name))
            case _:
                return Wire.BREAKS

    def _other(self, sent: Struct, target: str) -> Wire:
        """The verdict on a member whose tag the reader does not know; `target` is its member for other tags."""
        read = self.reader.by_name[target]
        if not isinstance(read, Struct):
            return Wire.LOSES
        given = {each.wire: each for each in sent.fields}
        verdicts = [self.property(given.get(each.wire), each) for each in read.fields]
        return worst_wire([*verdicts, Wire.OK if read.keeps_extra else Wire.LOSES])

    def _object_as_map(self, name: str, wanted: TypeExpr) -> Wire:
        struct = self.sender.struct(name)
        inner = [_ANY] if struct.keeps_extra else []
        return worst_wire(self.accepts(each, wanted) for each in [*inner, *(each.type for each in struct.fields)])


def left_out(sent: Field | None, read: Field) -> Wire:
    """The verdict on objects without the property; `sent` is None if the sender does not know it."""
    return Wire.BREAKS if read.required and (sent is None or not sent.required) else Wire.OK


def _best(verdicts: Iterable[Wire]) -> Wire:
    """The mildest of `verdicts`: one member that reads the value is enough."""
    best = Wire.BREAKS
    for verdict in verdicts:
        if verdict is Wire.OK:
            return Wire.OK
        best = min(best, verdict, key=lambda each: each.rank)
    return best


def _without_null(expression: TypeExpr, model: Model) -> TypeExpr:
    found = concrete(expression, model)
    return concrete(found.inner, model) if isinstance(found, Nullable) else found
