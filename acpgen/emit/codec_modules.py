"""The functions of `codec.py`: those for what the roles receive and send."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from jinja2 import Environment

from acpgen.emit.codec import CodecText, type_name
from acpgen.emit.conversions import DecodeExpressions, decoder, encoder, named_reader
from acpgen.emit.imports import entry_lines
from acpgen.emit.source import Code, assigned, hint, lines
from acpgen.emit.types import alias_target
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, reachable, types_in, types_of
from acpgen.ir.relations import resolved
from acpgen.roles import RoleRecord


def codec_body(environment: Environment, model: ir.Model, received: Collection[str], sent: Collection[str]) -> Code:
    """The module with functions for what is `received` and for what is `sent`, without its imports."""
    text = CodecText(model)
    read = [each for each in model.definitions if each.name in received]
    decoded = {each.name: each for each in read if text.reading.has_decoder(each.name)}
    encoded = {each.name: each for each in model.definitions if each.name in sent and isinstance(each, ir.Struct)}
    bare = {each.name for each in model.definitions if isinstance(each, ir.Struct) and text.is_bare(each)}
    shared = text.classes.shared
    body = environment.get_template("codec_body.jinja").render(
        functions=[*_named(read), *_functions(text, decoded, encoded, bare)],
        base=type_name(shared.name) if bare and shared else None,
        decoders=entry_lines(_table(read, model, text.reading)),
    )
    return Code(body)


def _functions(
    text: CodecText, decoded: Mapping[str, ir.Definition], encoded: Mapping[str, ir.Struct], bare: Collection[str]
) -> Iterator[Code]:
    """The functions in the order of the definitions; those of `bare` classes, which share two, come first."""
    if bare and text.classes.shared:
        yield from text.bare_functions(text.classes.shared)
        types = [(decoder(name), f"partial(decode_bare, {type_name(name)})") for name in decoded if name in bare]
        types += [(encoder(name), "encode_bare") for name in encoded if name in bare]
        if types:
            yield lines(*(assigned(f"{function}: Final", made, indent=0) for function, made in types))
    for name, definition in {**decoded, **encoded}.items():
        if name not in bare and name in decoded:
            yield text.decoder(definition)
        if name not in bare and name in encoded:
            yield text.encoder(encoded[name])


def _table(
    definitions: Iterable[ir.Definition], model: ir.Model, reading: DecodeExpressions
) -> Iterator[tuple[Code, Code]]:
    """The types other than classes, with their readers. Equal types are listed once."""
    seen: set[str] = {"str", "int", "float", "bool", "Any"}
    for definition in definitions:
        key = _annotation(definition, model)
        if key not in seen and not isinstance(definition, ir.Struct):
            yield type_name(definition.name), reading.reader(ir.Ref(definition.name))
        seen.add(key)


def _named(definitions: Iterable[ir.Definition]) -> list[Code]:
    """The readers of the bounded scalars in `definitions`, sorted."""
    # the decoder of an alias of a scalar has the bounds inline
    passing = (each for each in definitions if not (isinstance(each, ir.Alias) and isinstance(each.type, ir.Scalar)))
    types = (each for definition in passing for part in types_of(definition) for each in types_in(part))
    readers = (named_reader(each) for each in types if isinstance(each, ir.Scalar))
    found = {each.name: each for each in readers if each}
    return [
        Code(f"def {name}(value: Any) -> {found[name].hint}:\n    return {found[name].call}") for name in sorted(found)
    ]


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
