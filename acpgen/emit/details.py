"""The view of `_details.py`: what annotations do not say of the types for which the codec has no functions."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from acpgen.emit.classes import Classes
from acpgen.emit.conversions import TYPES, named_reader, tries_on
from acpgen.emit.data_tables import camel
from acpgen.emit.source import LINE_LENGTH, Code, condition_test, hint, literal, tuple_of, value
from acpgen.emit.types import bounds
from acpgen.ir import model as ir
from acpgen.ir.conditions import excluded_values
from acpgen.ir.leniency import can_fall_back, replaces_misfits
from acpgen.ir.opened import watched
from acpgen.ir.order import introducing, members, reachable, references
from acpgen.ir.relations import may_send_null, omits_default, resolved, without_null

Rows: TypeAlias = Iterable[tuple[str, Code | None]]
"""The keys of a table, each with its value; None in a set."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")


class DetailsView:
    """The record of a package whose codec has functions for what is `received` and for what is `sent`."""

    def __init__(self, model: ir.Model, received: frozenset[str], sent: frozenset[str]) -> None:
        self._model = model
        self._introducing = introducing(model)
        self._classes = Classes(model)
        unread = [each for each in model.definitions if each.name not in received]
        needed = reachable([ir.Ref(each.name) for each in unread], model)
        self._needed = [each for each in model.definitions if each.name in needed]
        self._unread = [each for each in unread if isinstance(each, ir.Struct)]
        reflected = needed | {each.name for each in model.definitions if each.name not in sent}
        self._structs = [each for each in model.definitions if isinstance(each, ir.Struct) and each.name in reflected]
        self._unions = [each for each in self._needed if isinstance(each, (ir.TaggedUnion, ir.UntaggedUnion))]

    @property
    def base(self) -> Code | None:
        """The name of the shared base of classes, if there is one."""
        return literal(self._classes.shared.name) if self._classes.shared else None

    @property
    def uses_types(self) -> bool:
        """True if a default is an instance of a class."""
        return any(TYPES in line for line in self.tables.get("defaults", ()))

    @cached_property
    def tables(self) -> Mapping[str, list[Code]]:
        """The lines of the tables that are not empty."""
        reporting = watched(self._model)
        found: Mapping[str, Rows] = {
            "names": self._names(),
            "strict": _where(self._is_strict, self._unread),
            "lenient": _where(lambda _, each: each.required and replaces_misfits(each, self._model), self._unread),
            "skipping": _where(self._skips, self._unread),
            "default_on_null": _where(self._takes_null, self._unread),
            "optional": _where(self._is_optional_constant, self._structs),
            "nulls": _where(self._sends_null, self._structs),
            "omitting": _where(self._omits_default, self._structs),
            "required": _where(self._is_required_here, self._structs),
            "defaults": self._defaults(),
            "order": self._order(),
            "hints": self._hints(),
            "unions": ((each.name, tuple_of(map(literal, _row(each)))) for each in self._unions),
            "members": self._members(),
            "keys": self._keys(),
            "choices": ((each.name, None) for each in self._needed if _is_choice(each)),
            "reporting": ((each.name, None) for each in self._needed if each.name in reporting),
            "rejected": self._rejected(),
        }
        lines = {name: _packed(rows) for name, rows in found.items()}
        return {name: each for name, each in lines.items() if each or (name == "nulls" and self._leaves_out_null)}

    @property
    def _leaves_out_null(self) -> bool:
        """True if there are properties that are left out where they are null."""
        return any(
            each.omits_null and may_send_null(each, self._model) for struct in self._structs for each in struct.fields
        )

    def _omits_default(self, struct: ir.Struct, field: ir.Field) -> bool:
        return omits_default(struct, field, self._model, self._introducing)

    def _sends_null(self, _: ir.Struct, field: ir.Field) -> bool:
        return self._leaves_out_null and may_send_null(field, self._model) and not field.omits_null

    # --- Properties ---

    def _names(self) -> Rows:
        found = {
            (struct.name, each.name): literal(each.wire)
            for struct in self._structs
            for each in struct.fields
            if each.wire != camel(each.name) or each.name == ir.EXTRA_FIELD
        }
        return _by_attribute(found, self._structs)

    def _is_strict(self, _: ir.Struct, field: ir.Field) -> bool:
        is_any = isinstance(resolved(field.type, self._model), ir.AnyJson)
        return not (field.required or is_any or replaces_misfits(field, self._model))

    def _skips(self, _: ir.Struct, field: ir.Field) -> bool:
        collects = isinstance(without_null(field.type, self._model), (ir.ListOf, ir.MapOf))
        return field.leniency.skip_invalid_items and collects

    def _takes_null(self, _: ir.Struct, field: ir.Field) -> bool:
        return field.leniency.default_on_null and can_fall_back(field, self._model)

    def _is_optional_constant(self, _: ir.Struct, field: ir.Field) -> bool:
        """True for a property that looks as if it were a tag."""
        is_constant = isinstance(resolved(field.type, self._model), ir.Const)
        return is_constant and not field.required and (field.default is not None or field.inherited)

    def _is_required_here(self, struct: ir.Struct, field: ir.Field) -> bool:
        return field.required and not self._declared(struct, field).required

    def _declared(self, struct: ir.Struct, field: ir.Field) -> ir.Field:
        """The property as it is in the class that declares it."""
        if not field.inherited or struct.base is None:
            return field
        base = self._model.struct(struct.base)
        return next((self._declared(base, each) for each in base.fields if each.name == field.name), field)

    def _defaults(self) -> Rows:
        for struct in self._unread:
            for each in struct.fields:
                if each.required and each.default is not None:
                    yield f"{struct.name}.{each.name}", Code(f"lambda: {value(each.default, module=TYPES)}")

    def _order(self) -> Rows:
        shared = self._classes.shared
        for struct in self._structs if shared else ():
            names = [each.name for each in struct.fields]
            if shared and self._has_base(struct) and names[-1] != shared.fields[0].name:
                yield struct.name, literal(names.index(shared.fields[0].name))

    def _has_base(self, struct: ir.Struct) -> bool:
        """True if the class, or its base in the schema, derives from the shared base."""
        if self._classes.base(struct) != struct.base:
            return True
        return struct.base is not None and self._has_base(self._model.struct(struct.base))

    # --- Types ---

    def _hints(self) -> Rows:
        for struct in self._unread:
            for each in struct.fields:
                if (text := _whole(each.type)) != hint(self._declared(struct, each).type):
                    yield f"{struct.name}.{each.name}", literal(str(text))
        for definition in self._needed:
            if isinstance(definition, ir.Alias) and not self._is_shown(definition.type):
                yield definition.name, literal(str(_whole(definition.type)))
        for union in self._unions:
            for member in union.untagged:
                if (text := _whole(member.type)) != hint(member.type):
                    yield f"{union.name}.{hint(member.type)}", literal(str(text))

    def _is_shown(self, expression: ir.TypeExpr) -> bool:
        """True if the type at run time is the whole: it has the limits of a scalar, but no name except of classes."""
        is_whole = isinstance(expression, ir.Scalar) or _whole(expression) == hint(expression)
        return is_whole and all(isinstance(self._model.by_name[name], ir.Struct) for name in references(expression))

    def _members(self) -> Rows:
        for union in self._unions:
            types = [each.type for each in union.members] if isinstance(union, ir.UntaggedUnion) else members(union)
            are_classes = all(isinstance(self._model.definition(each), ir.Struct) for each in types)
            if not are_classes or len({*types}) < len(types):
                yield union.name, tuple_of(literal(str(hint(each))) for each in types)

    def _keys(self) -> Rows:
        for union in self._unions:
            for each in union.untagged:
                definition = self._model.definition(each.type)
                fields = definition.fields if isinstance(definition, ir.Struct) else ()
                if {*each.required} != {field.wire for field in fields if field.required}:
                    yield f"{union.name}.{hint(each.type)}", tuple_of(map(literal, each.required))

    def _rejected(self) -> Rows:
        """The conditions of classes, but for those that exclude the known tags as members for other tags."""
        usual = {
            name: (union.tag, {each.tag for each in union.variants})
            for union in self._unions
            if isinstance(union, ir.TaggedUnion) and union.other
            for name in self._classes_in(union.other.target)
        }
        for struct in self._unread:
            tag, known = usual.get(struct.name, ("", None))
            found = None if known is None else excluded_values(struct.rejects, tag)
            if struct.rejects is not None and (found is None or {*found} != known):
                yield struct.name, Code(f"lambda data: {condition_test(struct.rejects)}")
            elif struct.rejects is None and known is not None:
                yield struct.name, Code("lambda data: False")

    def _classes_in(self, name: str) -> Iterator[str]:
        definition = self._model.by_name[name]
        if isinstance(definition, ir.Struct):
            yield name
        elif isinstance(definition, (ir.TaggedUnion, ir.UntaggedUnion)):
            for each in references(*members(definition)):
                yield from self._classes_in(each)


def _is_choice(definition: ir.Definition) -> bool:
    """True for an enumeration that looks like a constant."""
    return isinstance(definition, ir.Enum) and len(definition.members) == 1 and not definition.open


def _row(union: ir.TaggedUnion | ir.UntaggedUnion) -> Iterator[str]:
    """The tag of a union, its member for other tags, and those that are tried where the tag does not decide."""
    if isinstance(union, ir.TaggedUnion):
        yield from (union.tag, union.other.target if union.other else "")
        if tries_on(union):
            yield from (str(hint(each.type)) for each in union.fallbacks)


def _whole(expression: ir.TypeExpr) -> Code:
    """The annotation for values of the type, with the limits that a decoder checks."""
    match expression:
        case ir.Scalar() as scalar if named_reader(scalar):
            return Code(f"Annotated[{hint(scalar)}, {bounds(scalar)}]")
        case ir.ListOf(item=item, min_items=least):
            found = f"list[{_whole(item)}]"
            return Code(f"Annotated[{found}, Bounds(min_items={least})]" if least else found)
        case ir.MapOf(inner):
            return Code(f"dict[str, {_whole(inner)}]")
        case ir.Nullable(inner) if inner != ir.AnyJson():
            return Code(f"{_whole(inner)} | None")
        case _:
            return hint(expression)


def _where(test: Callable[[ir.Struct, ir.Field], bool], structs: Collection[ir.Struct]) -> Rows:
    """The properties that pass the test."""
    found = {(struct.name, each.name): None for struct in structs for each in struct.fields if test(struct, each)}
    return _by_attribute(found, structs)


def _by_attribute(found: Mapping[tuple[str, str], Code | None], structs: Iterable[ir.Struct]) -> Rows:
    """The rows of properties, by attribute where it is the same in all classes that have it."""
    owners = defaultdict[str, list[tuple[str, str]]](list)
    for struct in structs:
        for field in struct.fields:
            owners[field.name].append((struct.name, field.name))
    for (owner, name), row in sorted(found.items(), key=lambda each: each[0]):
        is_same = all(place in found and found[place] == row for place in owners[name])
        yield name if is_same and name != ir.EXTRA_FIELD else f"{owner}.{name}", row


def _packed(rows: Rows) -> list[Code]:
    """The rows in lines, sorted. A line ends between two of them, or inside of one that is too long."""
    found = {key: f"{literal(key)}," if row is None else f"{literal(key)}: {row}," for key, row in rows}
    width = LINE_LENGTH - len("        ")
    texts = (found[key] if len(found[key]) > width else found[key].replace(" ", _NO_BREAK) for key in sorted(found))
    text = _STRING.sub(lambda string: string[0].replace(" ", _NO_BREAK), " ".join(texts))
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [Code(line.replace(_NO_BREAK, " ")) for line in lines]
