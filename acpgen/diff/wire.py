"""Whether what one release sends is read by another, by the decoding rules of generated packages.

The sender is judged by its schema, not by its manners: what its types admit, it may send.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from acpgen.diff.defaults import Defaults
from acpgen.diff.findings import Wire, worst_wire
from acpgen.ir.defaults import stand_in
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Choice,
    Const,
    Enum,
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
from acpgen.ir.order import members

_NULL = Scalar(primitive=Primitive.NULL)
_ANY = AnyJson()


def resolved(expression: TypeExpr, model: Model) -> TypeExpr:
    """The type behind aliases; an enum becomes the choice that it is."""
    while isinstance(expression, Ref):
        match model.by_name[expression.name]:
            case Alias(type=target):
                expression = target
            case Enum(primitive=primitive, members=constants, open=is_open):
                return Choice(primitive=primitive, values=tuple(each.value for each in constants), open=is_open)
            case _:
                break
    return expression


@dataclass(slots=True)
class Acceptance:
    """How readers of the model `reader` take what senders of the model `sender` send.

    `pairs` maps the definitions of the sender to those of the reader that are the same by name or by descent. They are
    taken to agree: where they do not, that is a finding of theirs.
    """

    sender: Model
    reader: Model
    pairs: Mapping[str, str]
    defaults: Defaults = field(init=False)
    _known: dict[tuple[str, str], Wire] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.defaults = Defaults(self.sender, self.reader, self.pairs)

    def accepts(self, sent: TypeExpr, read: TypeExpr) -> Wire:
        """The verdict on all values of the type `sent` where the type `read` is expected."""
        if isinstance(sent, Ref) and isinstance(read, Ref):
            if self.pairs.get(sent.name) == read.name:
                return Wire.OK
            key = (sent.name, read.name)
            if key not in self._known:
                self._known[key] = Wire.OK  # what a recursion comes back to is judged where it began
                self._known[key] = self._compare(sent, read)
            return self._known[key]
        return self._compare(sent, read)

    def afresh(self, sent: str, read: str) -> Wire:
        """The verdict on two definitions that are paired and yet nothing alike."""
        return self._compare(Ref(sent), Ref(read))

    def _compare(self, sent: TypeExpr, read: TypeExpr) -> Wire:
        known_sent, known_read = resolved(sent, self.sender), resolved(read, self.reader)
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
            case Ref(name), _ if not isinstance(self.sender.by_name[name], Struct):
                return worst_wire(self.accepts(each, read) for each in self._members(name))
            case _, Ref(name):
                return self._named(known_sent, name)
            case ListOf(item=item, min_items=least), ListOf(item=wanted, min_items=needed):
                return Wire.BREAKS if least < needed else self.accepts(item, wanted)
            case MapOf(inner), MapOf(wanted):
                return self.accepts(inner, wanted)
            case Ref(name), MapOf(wanted):
                return self._object_as_map(name, wanted)
            case _:
                return Wire.OK if _scalar_fits(known_sent, known_read) else Wire.BREAKS

    def _anything(self, read: TypeExpr) -> Wire:
        """The verdict on any value at all: a union may have a member for what none of the others takes."""
        match read:
            case Nullable(inner):
                return self.accepts(_ANY, inner)
            case Ref(name):
                return _best(self.accepts(_ANY, each) for each in self._untagged(name))
            case _:
                return Wire.BREAKS

    def _untagged(self, name: str) -> Iterator[TypeExpr]:
        """The types of the members that need no tag, where the reader expects a union."""
        match self.reader.by_name[name]:
            case TaggedUnion(untagged=candidates) | UntaggedUnion(members=candidates):
                yield from (each.type for each in candidates)
            case _:
                return

    def _members(self, name: str) -> tuple[TypeExpr, ...]:
        union = self.sender.by_name[name]
        assert isinstance(union, (TaggedUnion, UntaggedUnion))
        return members(union)

    def _named(self, sent: TypeExpr, name: str) -> Wire:
        """The verdict where the reader expects a class or a union."""
        match self.reader.by_name[name]:
            case Struct() as struct:
                return self._struct(sent, struct)
            case TaggedUnion() as union:
                return self._tagged(sent, union)
            case UntaggedUnion(members=candidates):
                return _best(self.accepts(sent, each.type) for each in candidates)
            case _:
                return Wire.BREAKS

    def _struct(self, sent: TypeExpr, struct: Struct) -> Wire:
        match sent:
            case MapOf(value):
                if any(each.required for each in struct.fields):
                    return Wire.BREAKS
                return worst_wire([Wire.LOSES, *(self.accepts(value, each.type) for each in struct.fields)])
            case Ref(name):
                given = self.sender.by_name[name]
                assert isinstance(given, Struct)
                return self._objects(given, struct)
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
        """The verdict on a property that the one may send, and the other knows; None where it does not."""
        if read is None:
            return Wire.LOSES if sent is not None else Wire.OK
        if sent is None:
            return left_out(None, read)
        return worst_wire((left_out(sent, read), self.value(sent, read), self.absence(sent, read)))

    def value(self, sent: Field, read: Field) -> Wire:
        """The verdict on values of the property, after all that the reader forgives."""
        found = self.accepts(sent.type, read.type)
        if found is not Wire.BREAKS:
            return found
        if read.leniency.default_on_null and self.accepts(_without_null(sent.type, self.sender), read.type) is Wire.OK:
            return Wire.LOSES
        return Wire.LOSES if forgives(read, self.reader) or self._skips(sent, read) else Wire.BREAKS

    def _skips(self, sent: Field, read: Field) -> bool:
        """Whether only items are at fault, which the reader leaves out."""
        if not read.leniency.skip_invalid_items:
            return False
        given, wanted = resolved(sent.type, self.sender), resolved(read.type, self.reader)
        if isinstance(wanted, Nullable):
            given, wanted = _without_null(given, self.sender), resolved(wanted.inner, self.reader)
        same_kind = isinstance(given, (ListOf, MapOf)) and type(given) is type(wanted)
        return same_kind and not (isinstance(wanted, ListOf) and wanted.min_items)

    def absence(self, sent: Field, read: Field) -> Wire:
        """The verdict on the property where it is left out: both sides must take that for the same."""
        if sent.required or sent.default is None or read.default is None:
            return Wire.OK
        return Wire.OK if self.defaults.same(sent.default, read.default) else Wire.LOSES

    def _tagged(self, sent: TypeExpr, union: TaggedUnion) -> Wire:
        if not isinstance(sent, Ref):
            return Wire.LOSES if isinstance(sent, MapOf) and union.other is not None else Wire.BREAKS
        struct = self.sender.by_name[sent.name]
        assert isinstance(struct, Struct)
        tag = next((each for each in struct.fields if each.wire == union.tag), None)
        if tag is not None and (not tag.required or isinstance(resolved(tag.type, self.sender), (Choice, Nullable))):
            return self._by_tag(struct, tag, union)
        constant = tag.type.value if tag is not None and isinstance(tag.type, Const) else None
        verdicts = [self.accepts(sent, Ref(each.target)) for each in union.variants if each.tag == constant]
        verdicts += [self.accepts(sent, each.type) for each in union.untagged]
        if constant is None and tag is not None:
            verdicts += [self._free_tag(sent, union)]
        elif tag is not None and union.other is not None and constant not in union.other.excluded:
            verdicts += [self._other(struct, union.other.target)]
        return _best(verdicts)

    def _free_tag(self, sent: Ref, union: TaggedUnion) -> Wire:
        """The verdict on what has some tag, whichever: a member for all of them must be there to take it."""
        return self.accepts(sent, Ref(union.other.target)) if union.other is not None else Wire.BREAKS

    def _by_tag(self, sent: Struct, tag: Field, union: TaggedUnion) -> Wire:
        """The worst verdict on what has no tag, or one of several, or any."""
        kind = resolved(tag.type, self.sender)
        inner = resolved(kind.inner, self.sender) if isinstance(kind, Nullable) else kind
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
        """The verdict on objects of the class whose tag is what `tag` says."""
        others = tuple(each for each in sent.fields if each.wire != union.tag)
        struct = replace(sent, fields=others if tag is None else (*others, tag))
        constant = tag.type.value if tag is not None and isinstance(tag.type, Const) else None
        verdicts = [self._object(struct, Ref(each.target)) for each in union.variants if each.tag == constant]
        has_tag = tag is not None and tag.type != _NULL
        if has_tag and not verdicts and union.other is not None and constant not in union.other.excluded:
            verdicts.append(self._other(struct, union.other.target))
        return _best([*verdicts, *(self._object(struct, each.type) for each in union.untagged)])

    def _object(self, sent: Struct, read: TypeExpr) -> Wire:
        """The verdict on a class that is no definition of the sender, but a part of what one admits."""
        match resolved(read, self.reader):
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
        """The verdict on a member whose tag the reader does not know, where it keeps such members as they are."""
        read = self.reader.by_name[target]
        if not isinstance(read, Struct):
            return Wire.LOSES
        given = {each.wire: each for each in sent.fields}
        verdicts = [self.property(given.get(each.wire), each) for each in read.fields]
        return worst_wire([*verdicts, Wire.OK if read.keeps_extra else Wire.LOSES])

    def _object_as_map(self, name: str, wanted: TypeExpr) -> Wire:
        struct = self.sender.by_name[name]
        assert isinstance(struct, Struct)
        inner = [_ANY] if struct.keeps_extra else []
        return worst_wire(self.accepts(each, wanted) for each in [*inner, *(each.type for each in struct.fields)])


def left_out(sent: Field | None, read: Field) -> Wire:
    """The verdict on objects without the property, if the sender may leave it out, or does not know it."""
    return Wire.BREAKS if read.required and (sent is None or not sent.required) else Wire.OK


def _best(verdicts: Iterable[Wire]) -> Wire:
    """The mildest of `verdicts`: one member that takes the value is enough."""
    best = Wire.BREAKS
    for verdict in verdicts:
        if verdict is Wire.OK:
            return Wire.OK
        best = min(best, verdict, key=lambda each: each.rank)
    return best


def forgives(field: Field, model: Model) -> bool:
    """Whether a value that does not fit is replaced: the reader must be told so, and have something to put there."""
    found = resolved(field.type, model)
    if not field.leniency.default_on_error or isinstance(found, AnyJson):
        return False
    return not field.required or stand_in(field, found) is not None


def leaves_out_items(field: Field, model: Model) -> bool:
    """Whether items that do not fit are left out, however many."""
    found = resolved(field.type, model)
    inner = resolved(found.inner, model) if isinstance(found, Nullable) else found
    collects = isinstance(inner, MapOf) or (isinstance(inner, ListOf) and not inner.min_items)
    return field.leniency.skip_invalid_items and collects


def _without_null(expression: TypeExpr, model: Model) -> TypeExpr:
    found = resolved(expression, model)
    return resolved(found.inner, model) if isinstance(found, Nullable) else found


def _scalar_fits(sent: TypeExpr, read: TypeExpr) -> bool:
    values = list(_constants(sent))
    match read:
        case Const(value):
            return bool(values) and all(_same(each, value) for each in values)
        case Choice(open=False, values=known):
            return bool(values) and all(any(_same(each, value) for value in known) for each in values)
        case Choice(primitive=primitive):
            return _is_primitive(sent, primitive)
        case Scalar() if values:
            return all(_constant_fits(each, read) for each in values)
        case Scalar():
            return _is_primitive(sent, read.primitive) and _within(sent, read)
        case _:
            return False


def _constants(expression: TypeExpr) -> Iterator[str | int | bool]:
    match expression:
        case Const(value):
            yield value
        case Choice(open=False, values=values):
            yield from values


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


_PRIMITIVES: Mapping[type, Primitive] = {str: Primitive.STRING, bool: Primitive.BOOLEAN, int: Primitive.INTEGER}


def _constant_fits(value: str | int | bool, read: Scalar) -> bool:
    primitive = _PRIMITIVES[type(value)]
    if primitive is not read.primitive and (primitive, read.primitive) != (Primitive.INTEGER, Primitive.NUMBER):
        return False
    if isinstance(value, str):
        return len(value) >= (read.min_length or 0)
    above = read.minimum is None or value >= read.minimum
    return above and (read.maximum is None or value <= read.maximum)


def _is_primitive(sent: TypeExpr, wanted: Primitive) -> bool:
    match sent:
        case Scalar(primitive=primitive) | Choice(primitive=primitive):
            return primitive is wanted or (primitive, wanted) == (Primitive.INTEGER, Primitive.NUMBER)
        case Const(value):
            return _constant_fits(value, Scalar(primitive=wanted))
        case _:
            return False


def _within(sent: TypeExpr, read: Scalar) -> bool:
    """Whether the bounds of `read` refuse nothing that `sent` admits."""
    given = sent if isinstance(sent, Scalar) else Scalar(primitive=read.primitive)
    above = read.minimum is None or (given.minimum is not None and given.minimum >= read.minimum)
    below = read.maximum is None or (given.maximum is not None and given.maximum <= read.maximum)
    return above and below and (given.min_length or 0) >= (read.min_length or 0)
