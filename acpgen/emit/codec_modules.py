"""The view of `codec.py`: functions for what the roles receive and send."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from acpgen.emit.classes import Classes
from acpgen.emit.codec import AliasCodec, DefinitionCodec, EnumCodec, StructCodec, TaggedUnionCodec, UnionCodec
from acpgen.emit.conversions import DecodeExpressions, NamedReader, Writing, named_reader
from acpgen.emit.imports import entry_lines
from acpgen.emit.source import Code, hint
from acpgen.emit.types import alias_target
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, reachable, types_in, types_of
from acpgen.ir.relations import resolved
from acpgen.roles import RoleRecord

_KINDS: dict[type, type[DefinitionCodec]] = {
    ir.Struct: StructCodec,
    ir.Enum: EnumCodec,
    ir.TaggedUnion: TaggedUnionCodec,
    ir.UntaggedUnion: UnionCodec,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecView:
    """The definitions that a package decodes, the classes that it encodes, and the readers of bounded scalars.

    `bare` has the classes that only have the property of `shared`, the class from which most others derive. `decoders`
    has the types other than classes that the module decodes, each with its reader, in lines.
    """

    decoded: Sequence[DefinitionCodec]
    encoded: Sequence[StructCodec]
    named: Sequence[NamedReader]
    bare: Collection[str]
    shared: StructCodec | None
    decoders: Sequence[Code]

    @property
    def parts(self) -> Iterator[tuple[str, DefinitionCodec]]:
        """The functions in the order of the definitions: the template and the view of each."""
        for view in {view.definition.name: view for view in (*self.decoded, *self.encoded)}.values():
            if view.definition.name not in self.bare:
                if view in self.decoded:
                    yield view.template, view
                if view in self.encoded:
                    yield "codec/encode_struct.jinja", view

    @property
    def bare_decoded(self) -> list[DefinitionCodec]:
        """The bare classes that the module decodes."""
        return [view for view in self.decoded if view.definition.name in self.bare]

    @property
    def bare_encoded(self) -> list[StructCodec]:
        """Those that it encodes."""
        return [view for view in self.encoded if view.definition.name in self.bare]


def codec_view(model: ir.Model, received: Collection[str], sent: Collection[str]) -> CodecView:
    """The view of the module with functions for what is `received` and for what is `sent`."""
    classes, reading, writing = Classes(model), DecodeExpressions(model), Writing(model)
    views = [_KINDS.get(type(each), AliasCodec)(each, reading, writing) for each in model.definitions]
    bare = {view.definition.name for view in views if isinstance(view, StructCodec) and view.is_bare(classes)}
    decoded = [each for each in views if each.definition.name in received]
    encoded = [each for each in views if each.definition.name in sent]
    return CodecView(
        decoded=[each for each in decoded if reading.has_decoder(each.definition.name)],
        encoded=[each for each in encoded if isinstance(each, StructCodec)],
        named=_named(each.definition for each in decoded),
        bare=bare,
        shared=StructCodec(classes.shared, reading, writing) if bare and classes.shared else None,
        decoders=entry_lines(_table(decoded, model, reading)),
    )


def _table(
    views: Iterable[DefinitionCodec], model: ir.Model, reading: DecodeExpressions
) -> Iterator[tuple[Code, Code]]:
    """The types other than classes, with their readers. Equal types are listed once."""
    seen: set[str] = {"str", "int", "float", "bool", "Any"}
    for view in views:
        key = _annotation(view.definition, model)
        if key not in seen and not isinstance(view.definition, ir.Struct):
            yield view.hint, reading.reader(ir.Ref(view.definition.name))
        seen.add(key)


def _named(definitions: Iterable[ir.Definition]) -> list[NamedReader]:
    """The readers of the bounded scalars in `definitions`, sorted."""
    # the decoder of an alias of a scalar has the bounds inline
    passing = (each for each in definitions if not (isinstance(each, ir.Alias) and isinstance(each.type, ir.Scalar)))
    types = (each for definition in passing for part in types_of(definition) for each in types_in(part))
    readers = (named_reader(each) for each in types if isinstance(each, ir.Scalar))
    found = {reader.name: reader for reader in readers if reader}
    return [found[name] for name in sorted(found)]


def _annotation(definition: ir.Definition, model: ir.Model) -> str:
    """The runtime type of `definition` as text, with aliases resolved."""
    if isinstance(definition, ir.Struct):
        return definition.name
    targets = [resolved(target, model) for target in alias_target(definition)]
    if isinstance(targets[0], ir.Scalar) and targets[0].bounds:
        return definition.name
    return " | ".join(sorted(hint(target) for target in targets))


# --- The directions of values ----------------------------------------------------------------------------------------


def used_directions(model: ir.Model, roles: Sequence[RoleRecord]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the definitions that a package for `roles` receives, and of those that it sends.

    It receives and decodes the params of the methods that its roles handle and the results of those that they call. It
    encodes the params of the latter and the results of the former.
    """
    both: list[ir.TypeExpr] = [ir.Ref(model.errors.object)] if model.errors.object else []
    read, written = [*both], [*both]
    for method in model.methods:
        is_handled = any({*method.handlers} & {*role.sides} for role in roles)
        is_called = any({*method.handlers} & {*role.called} for role in roles)
        params, result = [method.params], [method.result] if method.result is not None else []
        if is_handled:
            read += params
            written += result
        if is_called:
            read += result
            written += params
        if is_handled and method.gate is not None:  # `advertise` decodes what it has encoded and changed
            read.append(ir.Ref(names.class_name(method.gate.root)))
    decoded = reachable(read, model)
    return decoded, reachable([*written, *_written_to_compare(decoded, model)], model)


def _written_to_compare(decoded: Iterable[str], model: ir.Model) -> Iterator[ir.TypeExpr]:
    """The members of unions that also take any JSON: decoders encode what they have read, to see if all is kept."""
    for name in decoded:
        definition = model.by_name[name]
        if not isinstance(definition, (ir.Struct, ir.Alias, ir.Enum)):
            types = members(definition)
            if any(isinstance(resolved(each, model), ir.AnyJson) for each in types):
                yield from types
