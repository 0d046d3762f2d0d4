"""Views for the templates of `codec.py`: a decoder and an encoder for each definition, and the tables of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from acpgen.emit.classes import Classes
from acpgen.emit.conversions import READERS, TYPES, DecodeExpressions, TagTable, Writing, decoder, encoder
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
    literal,
    tuple_of,
)
from acpgen.ir import model as ir


@dataclass(frozen=True, slots=True)
class FieldLine:
    """A name and the expression for its value; `fetch` is that of a variable `value` in it, which it tests first.

    `whole` is the expression with `fetch` in it, used where it fits. It is None for an optional property, so that a
    long default changes no code.
    """

    name: Code
    expression: Code
    fetch: Code | None = None
    whole: Code | None = None

    @property
    def assignment(self) -> Code:
        """The statement that sets the attribute of the result; that of the variable goes before it if it must."""
        start = f"result.{self.name}"
        if self.whole is not None and 4 + len(f"{start} = {self.whole}") <= LINE_LENGTH:
            return Code(f"{start} = {self.whole}")
        statement = assigned(start, self.expression, indent=4)
        return statement if self.fetch is None else Code(f"value = {self.fetch}\n    {statement}")


@dataclass(frozen=True, slots=True)
class OptionalLine:
    """An attribute that is encoded only if it is set."""

    name: Code
    wire: Code
    expression: Code

    @property
    def assignment(self) -> Code:
        """The statement that adds the attribute to the dict."""
        return assigned(f"data[{self.wire}]", self.expression, indent=8)


class DefinitionCodec:
    """The base of the views: one definition."""

    template: ClassVar[str] = "codec/alias.jinja"
    """The template of the decoder of this kind of definition."""

    def __init__(self, definition: ir.Definition, reading: DecodeExpressions, writing: Writing) -> None:
        self.definition = definition
        self._reading = reading
        self._writing = writing
        self.hint = hint(ir.Ref(definition.name), module=TYPES)
        self.decoder = decoder(definition.name)


class AliasCodec(DefinitionCodec):
    """An alias that needs a decoder of its own."""

    @property
    def read(self) -> Code:
        """The decode expression of `raw`."""
        return self._reading.read(ir.Ref(self.definition.name), "raw")


class EnumCodec(DefinitionCodec):
    """A closed enum, or an opened one that reports unknown values."""

    template = "codec/enum.jinja"

    def __init__(self, definition: ir.Enum, reading: DecodeExpressions, writing: Writing) -> None:
        super().__init__(definition, reading, writing)
        known, values = reading.known_texts(definition.name), f"get_args({self.hint})"
        self.constants = Code(f"{known}: Final[tuple[{self.hint}, ...]] = {values}") if known else None
        """The statement for the tuple of constants, if decoders of properties use it."""
        start = f"{self.decoder}: Reader[{self.hint}] = "
        self.made = Code(f"{start}one_of({known or values})")
        """The statement that makes the decoder."""
        if definition.open:
            parts = [READERS[definition.primitive], *(literal(member.value) for member in definition.members)]
            self.made = enclosed(f"{start}open_choice(", parts, ")", indent=0)


class StructCodec(DefinitionCodec):
    """A class: a decode and an encode expression for each attribute."""

    template = "codec/decode_struct.jinja"
    definition: ir.Struct

    def __init__(self, definition: ir.Struct, reading: DecodeExpressions, writing: Writing) -> None:
        super().__init__(definition, reading, writing)
        self.encoder = encoder(definition.name)
        self.decoder_header = function_header(self.decoder, "raw: Any", self.hint)
        self.encoder_header = function_header(self.encoder, f"value: {self.hint}", "dict[str, Any]")
        self.bare_decoder = assigned(f"{self.decoder}: Final", f"partial(decode_bare, {self.hint})", indent=0)
        """The statement that makes the decoder from that of the shared base."""
        self.result = Code("opened(result)" if definition.name in reading.watched else "result")
        """The expression of the result; the class of a tag that only an opened union admits is reported."""
        self.rejects = condition_test(definition.rejects) if definition.rejects is not None else None
        """The condition for objects that the schema excludes, if there is one."""
        self.rejection = literal(f"{definition.name}, from which this object is excluded")
        """The expectation in the error for an excluded object."""

    @cached_property
    def fields(self) -> list[FieldLine]:
        """The attributes of the result with their decode expressions."""
        properties = Properties(self._reading)
        lines = [
            FieldLine(identifier(each.name), properties.read(each), properties.fetch(each), properties.whole(each))
            for each in self.definition.fields
        ]
        if self.definition.keeps_extra:
            known = [literal(field.wire) for field in self.definition.fields]
            test = f" if name not in {{{', '.join(known)}}}" if known else ""
            extra = Code(f"{{name: item for name, item in data.items(){test}}}")
            lines.append(FieldLine(identifier(ir.EXTRA_FIELD), extra))
        return lines

    def is_bare(self, classes: Classes) -> bool:
        """True if the functions of the shared base do for this class."""
        return classes.adds_nothing(self.definition) and self.result == "result"

    @property
    def start(self) -> Code:
        """The statement that creates the dict with all attributes that are always encoded."""
        return enclosed("data: dict[str, Any] = {", self._always, "}", indent=4)

    @cached_property
    def _always(self) -> list[str]:
        extra = ["**value.extra"] if self.definition.keeps_extra else []
        return extra + [
            f"{literal(each.wire)}: {self._writing.write(each.type, f'value.{each.name}')}"
            for each in self.definition.fields
            if not each.may_be_unset
        ]

    @property
    def whole(self) -> Code | None:
        """The single statement that encodes the object, if one is enough."""
        match self.optional:
            case []:
                return enclosed("return {", self._always, "}", indent=4)
            case [only] if not self._always:
                return Code(f"return {{}} if {only.name} is UNSET else {{{only.wire}: {only.expression}}}")
            case _:
                return None

    @cached_property
    def optional(self) -> list[OptionalLine]:
        """The attributes that are encoded only if they are set."""
        fields = [(each, f"value.{each.name}") for each in self.definition.fields if each.may_be_unset]
        return [
            OptionalLine(identifier(source), literal(each.wire), self._writing.write(each.type, source))
            for each, source in fields
        ]

    @cached_property
    def last(self) -> OptionalLine | None:
        """The last optional attribute, if its value needs no encoding: it becomes part of the return statement."""
        types = [each.type for each in self.definition.fields if each.may_be_unset]
        return self.optional[-1] if types and self._writing.is_plain(types[-1]) else None


class UnionCodec(DefinitionCodec):
    """A union without a tag: candidates, tried in order."""

    template = "codec/untagged_union.jinja"
    definition: ir.UntaggedUnion | ir.TaggedUnion

    @property
    def candidates(self) -> tuple[ir.Candidate, ...]:
        """The members in the order in which they are tried."""
        assert isinstance(self.definition, ir.UntaggedUnion)
        return self.definition.members

    @property
    def single(self) -> Code | None:
        """The decoder of the only member; None if there are several."""
        return self._reading.reader(self.candidates[0].type) if len(self.candidates) == 1 else None

    @property
    def candidate_lines(self) -> list[Code]:
        """The candidates: name, reader, required properties."""
        return [self._candidate(each) for each in self.candidates]

    def _candidate(self, candidate: ir.Candidate) -> Code:
        name, required = literal(str(hint(candidate.type))), tuple_of(map(literal, candidate.required))
        return enclosed("(", [name, self._candidate_reader(candidate), required], "),", indent=4)

    def _candidate_reader(self, candidate: ir.Candidate) -> Code:
        """The decoder of a member. If a member takes any JSON, a class matches only if it keeps all properties."""
        read = self._reading.reader(candidate.type)
        takes_any = any(isinstance(self._reading.resolved(each.type), ir.AnyJson) for each in self.candidates)
        if not takes_any or self._writing.is_plain(candidate.type):
            return read
        return Code(f"lambda value: kept_whole(value, {read}, encode)")

    @property
    def expected(self) -> Code:
        """The expectation in the error, as a literal."""
        return literal(self.definition.name)


class TaggedUnionCodec(UnionCodec):
    """A union with a tag: a table from tags to decoders, then the members without a tag."""

    template = "codec/tagged_union.jinja"
    definition: ir.TaggedUnion

    @property
    def table(self) -> TagTable | None:
        """The table of decoders, if the tag alone decides."""
        return self._reading.tag_table(self.definition.name)

    @property
    def made(self) -> Code:
        """The statement that makes the decoder from the table."""
        assert self.table
        other = [decoder(self.definition.other.target)] if self.definition.other else []
        parts = [self.expected, self.table.tag, self.table.name, *other]
        return enclosed(f"{self.decoder}: Reader[{self.hint}] = by_tag(", parts, ")", indent=0)

    @property
    def candidates(self) -> tuple[ir.Candidate, ...]:
        """The members that are tried if the tag does not decide."""
        tag = (self.definition.tag,)
        return tuple(
            each if isinstance(each, ir.Candidate) else ir.Candidate(type=each.type, required=tag, doc=each.doc)
            for each in self.definition.fallbacks
        )

    @property
    def expected(self) -> Code:
        """The expectation in the error: the union, and its known tags if other members are tried, too."""
        if self.table:
            return literal(self.definition.name)
        tags = ", ".join(repr(variant.tag) for variant in self.definition.variants)
        return literal(f"{self.definition.name} ({self.definition.tag}: {tags}, …)")
