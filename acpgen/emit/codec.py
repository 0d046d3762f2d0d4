"""The text of `codec.py`: a decoder and an encoder for each definition, laid out as black does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acpgen.emit.classes import Classes
from acpgen.emit.conversions import READERS, TYPES, DecodeExpressions, Writing, decoder, encoder
from acpgen.emit.properties import Properties
from acpgen.emit.source import (
    LINE_LENGTH,
    Code,
    assigned,
    condition_test,
    enclosed,
    function_header,
    hint,
    identifier,
    lines,
    literal,
    tuple_of,
)
from acpgen.ir import model as ir
from acpgen.ir.order import introducing
from acpgen.ir.relations import omits_default, without_null

_LOCALS = frozenset({"value", "data", "item", "found", "encode"})
"""Names that the functions use."""
_DATA = "    data: Any = raw if raw.__class__ is dict else json_object(raw)"


class CodecText:
    """Print the functions for the definitions of one model."""

    def __init__(self, model: ir.Model) -> None:
        self.reading = DecodeExpressions(model)
        self.classes = Classes(model)
        self.model = model
        self._introducing = introducing(model)
        self._writing = Writing(model)
        self._properties = Properties(self.reading)

    def decoder(self, definition: ir.Definition) -> Code:
        """The decoder of a definition that needs one of its own: a function, or a statement that makes it."""
        match definition:
            case ir.Struct():
                return self._class_decoder(definition)
            case ir.Enum():
                return self._enum_decoder(definition)
            case ir.TaggedUnion():
                return self._tagged_decoder(definition)
            case ir.UntaggedUnion(members=[only]):
                return Code(f"{_made(definition)}{self.reading.reader(only.type)}")
            case ir.UntaggedUnion(members=members):
                return self._by_fit(f"{_made(definition)}by_fit(", [literal(definition.name)], members)
            case ir.Alias(name=name):
                read = self.reading.read(ir.Ref(name), "raw")
                return Code(f"def {decoder(name)}(raw: Any) -> {type_name(name)}:\n    return {read}")

    # --- Classes ---

    def is_bare(self, struct: ir.Struct) -> bool:
        """True if the functions of the shared base do for this class."""
        shared = self.classes.shared
        if shared is None or not self.classes.adds_nothing(struct) or struct.name in self.reading.watched:
            return False
        return struct.fields[0].omits_null == shared.fields[0].omits_null

    def bare_functions(self, shared: ir.Struct) -> Iterator[Code]:
        """The functions of the shared base."""
        header = "def decode_bare(kind: type[Bare], raw: Any) -> Bare:"
        yield lines(header, _DATA, "    result = new(kind)", *self._attributes(shared), "    return result")
        yield lines(f"def encode_bare(value: {type_name(shared.name)}) -> dict[str, Any]:", *self._encoding(shared))

    def _class_decoder(self, struct: ir.Struct) -> Code:
        made, attributes = type_name(struct.name), self._attributes(struct)
        header = function_header(decoder(struct.name), "raw: Any", made)
        if not attributes:
            return lines(header, "    json_object(raw)", f"    return {made}()")
        # the class of a tag that only an opened union admits is reported
        result = "opened(result)" if struct.name in self.reading.watched else "result"
        start = [header, _DATA, *_rejection(struct), f"    result = new({made})"]
        return lines(*start, *attributes, f"    return {result}")

    def _attributes(self, struct: ir.Struct) -> list[str]:
        """The statements that set the attributes of the result."""
        found = [self._attribute(field) for field in struct.fields]
        if struct.keeps_extra:
            known = ", ".join(literal(field.wire) for field in struct.fields)
            test = f" if name not in {{{known}}}" if known else ""
            rest = f"{{name: item for name, item in data.items(){test}}}"
            found.append(f"    {assigned(f'result.{ir.EXTRA_FIELD}', rest, indent=4)}")
        return found

    def _attribute(self, field: ir.Field) -> str:
        """The value of a required property is fetched where it is tested, if that fits; else in a line of its own.

        That of an optional one always is, so that a long default changes no code.
        """
        start, whole = f"result.{identifier(field.name)}", self._properties.whole(field)
        if whole is not None and len(line := f"    {start} = {whole}") <= LINE_LENGTH:
            return line
        statement = f"    {assigned(start, self._properties.read(field), indent=4)}"
        fetch = self._properties.fetch(field)
        return statement if fetch is None else f"    value = {fetch}\n{statement}"

    def encoder(self, struct: ir.Struct) -> Code:
        """The function that encodes a class."""
        header = function_header(encoder(struct.name), f"value: {type_name(struct.name)}", "dict[str, Any]")
        return lines(header, *self._encoding(struct))

    def _encoding(self, struct: ir.Struct) -> Iterator[str]:
        """The statements of this function. An attribute that may be unset is encoded only if it is set."""
        defaults = [field for field in struct.fields if omits_default(struct, field, self.model, self._introducing)]
        always = [self._entry(field) for field in struct.fields if not (field.may_be_unset or field in defaults)]
        always = ["**value.extra", *always] if struct.keeps_extra else always
        if defaults:
            yield from self._encoding_of_defaults(defaults, always, struct)
            return
        match [field for field in struct.fields if field.may_be_unset]:
            case []:
                yield f"    {enclosed('return {', always, '}', indent=4)}"
            case [only] if not always:
                yield f"    return {{}} if {self._is_absent(only)} else {{{self._entry(only)}}}"
            case [*optional, last]:
                yield f"    {enclosed('data: dict[str, Any] = {', always, '}', indent=4)}"
                needs_no_encoding = self._writing.is_plain(last.type)
                for field in optional if needs_no_encoding else [*optional, last]:
                    yield from self._optional(field)
                entry = f" if {self._is_absent(last)} else {{**data, {self._entry(last)}}}"
                yield f"    return data{entry if needs_no_encoding else ''}"

    def _encoding_of_defaults(
        self, defaults: Sequence[ir.Field], always: Sequence[str], struct: ir.Struct
    ) -> Iterator[str]:
        """The statements for a class with properties that are left out where they are as by default."""
        yield f"    {enclosed('data: dict[str, Any] = {', always, '}', indent=4)}"
        for field in struct.fields:
            target = f"data[{literal(field.wire)}]"
            if field in defaults and self._writing.is_plain(field.type):
                yield f"    if {_source(field)}:"
                yield f"        {assigned(target, _source(field), indent=8)}"
            elif field in defaults:
                yield f"    if found := {self._written(field, _source(field))}:"
                yield f"        {target} = found"
            elif field.may_be_unset:
                yield from self._optional(field)
        yield "    return data"

    def _optional(self, field: ir.Field) -> Iterator[str]:
        """The statements for an attribute that may be unset."""
        source = _source(field)
        if not self._writing.leaves_out_null(field):
            yield f"    if {source} is not UNSET:"
        elif field.name in _LOCALS:
            yield f"    if {source} is not UNSET and {source} is not None:"
        else:  # one look-up for two tests
            yield f"    if ({field.name} := {source}) is not UNSET and {field.name} is not None:"
            source = identifier(field.name)
        yield f"        {assigned(f'data[{literal(field.wire)}]', self._written(field, source), indent=8)}"

    def _entry(self, field: ir.Field) -> str:
        return f"{literal(field.wire)}: {self._written(field, _source(field))}"

    def _is_absent(self, field: ir.Field) -> str:
        test = f"{_source(field)} is UNSET"
        return f"{test} or {_source(field)} is None" if self._writing.leaves_out_null(field) else test

    def _written(self, field: ir.Field, source: Code) -> Code:
        leaves_out_null = self._writing.leaves_out_null(field)
        kind = without_null(field.type, self.reading.model) if leaves_out_null else field.type
        return self._writing.write(kind, source)

    # --- Enums and unions ---

    def _enum_decoder(self, enum: ir.Enum) -> Code:
        """A closed enum, or an opened one that reports unknown values."""
        values = f"get_args({type_name(enum.name)})"
        if enum.open:
            parts = [READERS[enum.primitive], *(literal(member.value) for member in enum.members)]
            return enclosed(f"{_made(enum)}open_choice(", parts, ")", indent=0)
        if (known := self.reading.known_texts(enum.name)) is None:
            return Code(f"{_made(enum)}one_of({values})")
        constants = f"{known}: Final[tuple[{type_name(enum.name)}, ...]] = {values}"
        return lines(constants, f"{_made(enum)}one_of({known})")

    def _tagged_decoder(self, union: ir.TaggedUnion) -> Code:
        """A table from tags to decoders; where the tag alone does not decide, also the members that are tried."""
        by_tag = [f"    {literal(each.tag)}: {decoder(each.target)}," for each in union.variants]
        if known := self.reading.tag_table(union.name):
            key, table = known
            start = f"{table}: Final[dict[str, Reader[{type_name(union.name)}]]] = {{"
            other = [decoder(union.other.target)] if union.other else []
            parts = [literal(union.name), key, table, *other]
            return lines(start, *by_tag, "}", enclosed(f"{_made(union)}by_tag(", parts, ")", indent=0))
        tag, tags = union.tag, ", ".join(repr(variant.tag) for variant in union.variants)
        members = [
            each if isinstance(each, ir.Candidate) else ir.Candidate(type=each.type, required=(tag,), doc=each.doc)
            for each in union.fallbacks
        ]
        expected = literal(f"{union.name} ({tag}: {tags}, …)")
        table_lines = "\n    ".join(["{", *by_tag, "}"])
        return self._by_fit(f"{_made(union)}by_tag_or_fit(", [expected, literal(tag), table_lines], members)

    def _by_fit(self, start: str, arguments: Sequence[str], members: Sequence[ir.Candidate]) -> Code:
        """A call whose last arguments are the members that are tried in order: one argument a line."""
        candidates = (f"    {each}" for each in self._candidates(members))
        return lines(start, *(f"    {each}," for each in arguments), *candidates, ")")

    def _candidates(self, members: Sequence[ir.Candidate]) -> Iterator[Code]:
        """The name of each member, its reader, and its required properties."""
        takes_any = any(isinstance(self.reading.resolved(each.type), ir.AnyJson) for each in members)
        for each in members:
            read = self.reading.reader(each.type)
            if takes_any and not self._writing.is_plain(each.type):  # a class fits only if it keeps all properties
                read = Code(f"lambda value: kept_whole(value, {read}, encode)")
            parts = [literal(str(hint(each.type))), read, tuple_of(map(literal, each.required))]
            yield enclosed("(", parts, "),", indent=4)


def type_name(name: str) -> Code:
    """The type of values of the definition `name`."""
    return hint(ir.Ref(name), module=TYPES)


def _made(definition: ir.Definition) -> str:
    """The start of the statement that makes a decoder."""
    return f"{decoder(definition.name)}: Reader[{type_name(definition.name)}] = "


def _source(field: ir.Field) -> Code:
    return identifier(f"value.{field.name}")


def _rejection(struct: ir.Struct) -> list[str]:
    """The refusal of an object that the schema excludes."""
    if struct.rejects is None:
        return []
    expected = literal(f"{struct.name}, from which this object is excluded")
    return [f"    if {condition_test(struct.rejects)}:", f"        raise unfit({expected}, raw)"]
