"""Decode and encode by the annotations of `types`, where `codec` has no functions: see `Reflection`."""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import partial
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from . import _decode as values  # pyright: ignore
from . import _lenient as lenient  # pyright: ignore
from ._base import UNSET, Bounds, Record, Struct, StructType, UnsetType, new
from ._decode import DecodeError, Reader
from .records import TypeDetails

Writer: TypeAlias = Callable[[Any], Any]
_SCALARS: Final[Mapping[Any, Reader[Any]]] = {
    str: values.string,
    int: values.integer,
    float: values.number,
    bool: values.boolean,
    None: values.null,
    NoneType: values.null,
    Any: values.anything,
}


class _Named:
    """The base of what stands in annotations for types of which Python keeps no name: unions, aliases, enumerations."""


class _Property(Record):
    """A property. `absent` makes its value where it is absent, and is None if it is required.

    `default` makes that of what does not fit, if it `is_lenient`, and of null, if that means the default.
    """

    name: str
    wire: str
    hint: Any
    absent: Callable[[], Any] | None
    default: Callable[[], Any]
    is_lenient: bool
    default_on_null: bool
    skips: bool
    may_be_unset: bool
    omits_null: bool
    omits_default: bool


class Reflection:
    """Decoders and encoders for the types of one version for which the codec has none.

    Its roles only send or only receive them, or no method uses them; but tests, stores and pydantic do. Values, errors
    and drops are those of functions in the codec, which are three times as fast.
    """

    def __init__(self, codec: ModuleType, details: TypeDetails) -> None:
        self._decoders: Mapping[Any, Reader[Any]] = codec.DECODERS
        self._encoders: Mapping[type, Writer] = codec.ENCODERS
        self._encode: Writer = codec.encode
        self._details = details
        types: ModuleType = codec.types
        self._types: dict[str, Any] = vars(types)
        aliases: list[str] = list(types.__annotations__)
        marked = {*details.unions, *details.choices, *details.reporting, *details.hints}.intersection(aliases)
        named = {name: type(name, (_Named,), {}) for name in marked}
        names = {**vars(typing), **self._types, **named, "Bounds": Bounds}
        self._evaluated = partial(get_type_hints, globalns=names, localns={}, include_extras=True)
        members = {f"{union}.{each}": each for union, row in details.members.items() for each in row}
        self._hints = self._evaluated(type("Hints", (), {"__annotations__": {**members, **details.hints}}))
        self._aliases: dict[Any, Any] = {self._types[name]: names[name] for name in reversed(aliases)}
        self._shapes: dict[type, tuple[list[_Property], frozenset[str] | None]] = {}
        self._named_readers: dict[str, Reader[Any]] = {}
        self._readers: dict[type, list[tuple[_Property, Reader[Any]]]] = {}
        self._writers: dict[type, list[tuple[_Property, Writer | None]]] = {}
        self._rejected = dict(details.rejected)
        for union, row in details.unions.items():
            for kind in self._classes(self._types.get(row[1])) if row else ():
                self._rejected.setdefault(kind.__name__, partial(self._has_tag_of, union))

    def decoder(self, kind: Any) -> Reader[Any]:
        """The decoder of a class, union, enumeration or alias of `types`; raises `KeyError` for all else."""
        return partial(self._read_object, kind) if self._is_type(kind) else self._reader(self._aliases[kind])

    def encoder(self, kind: type) -> Writer | None:
        """The encoder of a class of `types`; None for all else."""
        return partial(self._write_object, kind) if self._is_type(kind) else None

    def properties(self, kind: type) -> list[tuple[str, str, list[type], bool]]:
        """The properties of a class of `types` that may be true, an object of a class, or an array.

        Each has its name in Python, that on the wire, what it may be (bool, list, classes), and True if it is an object
        in any case: it may be neither null nor absent without a default.
        """
        found: list[tuple[str, str, list[type], bool]] = []
        for each in self._shape(kind)[0]:
            parts, is_nullable = _parts(self._resolved(each.hint))
            kinds = [inner for part in parts for inner in self._kinds(_limits(part)[0])]
            is_object = not (is_nullable or each.may_be_unset or {bool, list}.intersection(kinds))
            found += [(each.name, each.wire, kinds, is_object)] if kinds else []
        return found

    def _kinds(self, hint: Any) -> Iterator[type]:
        if hint is bool or get_origin(hint) is list:
            yield get_origin(hint) or bool
        elif get_origin(hint) is not dict:
            yield from self._classes(hint)

    def _is_type(self, kind: Any) -> bool:
        name = getattr(kind, "__name__", "")
        return self._types.get(name) is kind and _is_class(kind) and name not in (Struct.__name__, self._details.base)

    def _shape(self, kind: type) -> tuple[list[_Property], frozenset[str] | None]:
        """The properties of a class in the order in which they are read, and their names if it keeps all others."""
        if kind not in self._shapes:
            hints, details, owner = self._evaluated(kind), self._details, kind.__name__
            found = {each.name: each for each in fields(cast("Any", kind))}
            keeps_extra = f"{owner}.extra" not in details.names and found.pop("extra", None) is not None
            names = list(found)
            if owner in details.order:
                names.insert(details.order[owner], names.pop())
            properties = [self._property(owner, found[name], hints[name]) for name in names]
            self._shapes[kind] = properties, frozenset(each.wire for each in properties) if keeps_extra else None
        return self._shapes[kind]

    def _property(self, owner: str, field: Field[Any], hint: Any) -> _Property:
        details, name, place = self._details, field.name, f"{owner}.{field.name}"

        def is_in(keys: Collection[str]) -> bool:
            return name in keys or place in keys

        hint = self._hints.get(place, hint)
        parts, is_nullable = _parts(self._resolved(hint))
        empty = {list: list, dict: dict}.get(get_origin(_limits(parts[0])[0]))
        is_tag = get_origin(hint) is Literal and len(get_args(hint)) == 1 and not is_in(details.optional)
        is_required = is_tag or is_in(details.required) or field.default is field.default_factory is MISSING
        default: Callable[[], Any] = partial(getattr, field, "default")
        if field.default_factory is not MISSING:
            default = field.default_factory
        elif is_required and field.default in (MISSING, UNSET):
            default = details.defaults.get(place) or (not is_nullable and empty) or NoneType
        return _Property(
            name=name,
            wire=details.names.get(place) or details.names.get(name) or _camel(name),
            hint=hint,
            absent=None if is_required else default,
            default=default,
            is_lenient=is_in(details.lenient) if is_required else not is_in(details.strict),
            default_on_null=is_in(details.default_on_null),
            skips=is_in(details.skipping),
            may_be_unset=field.default is UNSET,
            omits_null=field.default is UNSET and is_nullable and not (details.nulls is None or is_in(details.nulls)),
            omits_default=is_in(details.omitting),
        )

    def _resolved(self, hint: Any) -> Any:
        while _is_named(hint) and hint.__name__ in self._hints:
            hint = self._hints[hint.__name__]
        return hint

    def _classes(self, hint: Any, seen: tuple[str, ...] = ()) -> Iterator[type[Struct]]:
        """The classes in a type."""
        kind: Any = hint
        name = hint.removesuffix(" | None") if isinstance(hint, str) else kind.__name__ if _is_named(kind) else ""
        if name and name not in seen:
            yield from self._classes(self._types[name], (*seen, name))
        elif _is_class(kind):
            yield kind
        elif get_origin(kind) not in (None, Literal):
            for each in get_args(kind):
                yield from self._classes(each, seen)

    # --- Decoding ---

    def _read_object(self, kind: type[Struct], raw: Any) -> Any:
        data: dict[str, Any] = raw if raw.__class__ is dict else values.json_object(raw)
        name, (properties, known) = kind.__name__, self._shape(kind)
        if name in self._rejected and self._rejected[name](data):
            raise values.unfit(f"{name}, from which this object is excluded", raw)
        if kind not in self._readers:
            reader = {True: self._skipping_reader, False: self._reader}
            self._readers[kind] = [(each, reader[each.skips](each.hint)) for each in properties]
        result: Any = new(kind)
        for each, read in self._readers[kind]:
            setattr(result, each.name, _read_property(each, read, data))
        if known is not None:
            result.extra = {key: item for key, item in data.items() if key not in known}
        return lenient.opened(result) if name in self._details.reporting else result

    def _reader(self, hint: Any) -> Reader[Any]:
        inner = get_args(hint)
        match get_origin(hint):
            case None if _is_named(hint):
                return self._named_reader(hint.__name__)
            case None:
                return _SCALARS.get(hint) or self._decoders[hint]
            case typing.Literal:
                only, *others = inner
                return values.one_of(inner) if others else lambda value: values.constant(value, only)
            case typing.Annotated:
                return self._limited_reader(*_limits(hint))
            case builtins.list:
                return values.array_of(self._reader(inner[0]))
            case builtins.dict:
                return values.json_object if inner[1] is Any else partial(values.mapping, read=self._reader(inner[1]))
            case _:
                parts, is_nullable = _parts(hint)
                read = self._reader(parts[-1])  # an open enumeration ends with the type of its constants
                return partial(values.nullable, read=read) if is_nullable else read

    def _limited_reader(self, hint: Any, bounds: Bounds) -> Reader[Any]:
        if get_origin(hint) is list:
            return partial(values.long_array, read=self._reader(get_args(hint)[0]), min_items=bounds.min_items or 0)
        if hint is str:
            return partial(values.long_string, min_length=bounds.min_length or 0)
        read = self._reader(hint)
        return lambda value: values.bounded(read(value), bounds.minimum, bounds.maximum)

    def _skipping_reader(self, hint: Any) -> Reader[Any]:
        """The reader that leaves out items that do not fit."""
        parts, is_nullable = _parts(self._resolved(hint))
        if is_nullable:
            return partial(values.nullable, read=self._skipping_reader(parts[0]))
        inner, bounds = _limits(parts[0])
        item = self._reader(get_args(inner)[-1])
        if get_origin(inner) is list:
            return partial(lenient.valid_items, read=item, min_items=bounds.min_items or 0)
        return partial(lenient.valid_members, read=item)

    def _named_reader(self, name: str) -> Reader[Any]:
        if name not in self._named_readers:
            self._named_readers[name] = lambda raw: self._named_readers[name](raw)  # once it is made
            if name in self._details.unions:
                made = self._union_reader(name)
            elif name in self._hints:
                made = self._reader(self._hints[name])
            else:
                known, *scalar = _members(self._types[name])
                constants = get_args(known)
                made = lenient.open_choice(_SCALARS[scalar[0]], *constants) if scalar else values.one_of(constants)
            self._named_readers[name] = made
        return self._named_readers[name]

    # --- Unions ---

    def _union_reader(self, name: str) -> Reader[Any]:
        members, row = self._members(name), self._details.unions[name]
        if not row:
            return self._untagged_reader(name, members)
        readers = {value: self._reader(hint) for value, hint in self._tags(name).items()}
        tag, other, *tried = row
        if not tried:
            others = [self._reader(hint) for each, hint in members if each == other]
            return values.by_tag(name, tag, readers, *others)
        expected = f"{name} ({tag}: {', '.join(map(repr, readers))}, …)"
        candidates = self._candidates(name, [(each, dict(members)[each]) for each in tried])
        return lenient.by_tag_or_fit(expected, tag, readers, *candidates)

    def _untagged_reader(self, name: str, members: list[tuple[str, Any]]) -> Reader[Any]:
        if len(members) == 1:
            return self._reader(members[0][1])
        candidates: list[Any] = []
        read: Reader[Any] = partial(lenient.first_fit, expected=name, candidates=cast("Any", candidates))
        self._named_readers[name] = read  # with few calls for each level of a type that contains itself
        candidates += self._candidates(name, members)
        return read

    def _members(self, union: str) -> list[tuple[str, Any]]:
        """The members of a union, each with its name."""
        if union in self._details.members:
            return [(each, self._hints[f"{union}.{each}"]) for each in self._details.members[union]]
        return [(each.__name__, each) for each in _members(self._types[union])]

    def _tags(self, union: str) -> dict[str, Any]:
        """The members of a union by their tags; a union inside has the tag in all its members."""
        tag, *rest = self._details.unions[union]
        found = [(next(self._classes(hint)), hint) for name, hint in self._members(union) if name not in rest]
        return {get_args(own.hint)[0]: hint for kind, hint in found for own in self._shape(kind)[0] if own.wire == tag}

    def _candidates(self, union: str, members: list[tuple[str, Any]]) -> Iterator[lenient.Candidate[Any]]:
        """What is tried in turn. Beside a member that takes any JSON, a class matches only if it keeps all of it."""
        takes_any = any(self._resolved(hint) is Any for _, hint in members)
        for name, hint in members:
            read = self._reader(hint)
            if takes_any and next(self._classes(hint), None) is not None:
                read = partial(lenient.kept_whole, read=read, write=self._encode)
            yield name, read, self._required(union, name, hint)

    def _required(self, union: str, name: str, hint: Any) -> tuple[str, ...]:
        row = self._details.unions[union]
        properties = self._shape(hint)[0] if _is_class(hint) else ()
        required = tuple(each.wire for each in properties if each.absent is None)
        return row[:1] if name in row[1:2] else self._details.keys.get(f"{union}.{name}", required)

    def _has_tag_of(self, union: str, data: dict[str, Any]) -> bool:
        return data.get(self._details.unions[union][0]) in list(self._tags(union))

    # --- Encoding ---

    def _write_object(self, kind: type, value: Any) -> dict[str, Any]:
        properties, known = self._shape(kind)
        if kind not in self._writers:
            ordered = sorted(properties, key=lambda each: each.may_be_unset)
            self._writers[kind] = [(each, self._writer(each.hint)) for each in ordered]
        data: dict[str, Any] = {} if known is None else {**value.extra}
        for each, write in self._writers[kind]:
            item = getattr(value, each.name)
            if not ((item is UNSET and each.may_be_unset) or (item is None and each.omits_null)):
                written = item if write is None else write(item)
                if written or not each.omits_default:  # the default is false, or an object without properties
                    data[each.wire] = written
        return data

    def _writer(self, hint: Any) -> Writer | None:
        """The encoder of the values of a type; None if they are JSON already."""
        return None if next(self._classes(hint), None) is None else self._class_writer(hint)

    def _class_writer(self, hint: Any) -> Writer:
        inner = get_args(hint)
        match get_origin(hint):
            case None if _is_class(hint):
                return self._encoders[hint]
            case None if _is_named(hint):
                kind = self._types[hint.__name__]
                is_union = hint.__name__ in self._details.unions
                return self._member_writer(_members(kind)) if is_union else self._class_writer(kind)
            case None:  # the name of a type inside of itself
                return self._encode
            case builtins.list:
                write = self._class_writer(inner[0])
                return lambda value: [write(item) for item in value]
            case builtins.dict:
                write = self._class_writer(inner[1])
                return lambda value: {name: write(item) for name, item in value.items()}
            case typing.Annotated:
                return self._class_writer(inner[0])
            case _:
                parts, is_nullable = _parts(hint)
                write = self._class_writer(parts[0]) if len(parts) == 1 else self._member_writer(parts)
                return partial(values.nullable, read=write) if is_nullable else write

    def _member_writer(self, members: Collection[Any]) -> Writer:
        if all(map(_is_class, members)):
            return self._by_class
        if all(get_origin(each) is list and all(map(_is_class, _parts(get_args(each)[0])[0])) for each in members):
            return lambda value: [self._by_class(item) for item in value]
        return self._encode

    def _by_class(self, value: Any) -> Any:
        return self._encoders[value.__class__](value)


def _read_property(each: _Property, read: Reader[Any], data: dict[str, Any]) -> Any:
    if each.wire not in data:
        if each.absent is None:
            raise values.missing(each.wire)
        return each.absent()
    value = data[each.wire]
    if value is None and each.default_on_null:
        return each.default()
    try:
        return read(value)
    except DecodeError as error:
        if not each.is_lenient:
            raise error.at(each.wire) from None
        lenient.drop(data, each.wire, error)
        return each.default()


def _is_class(hint: Any) -> bool:
    return isinstance(hint, StructType)


def _is_named(hint: Any) -> bool:
    return get_origin(hint) is None and isinstance(hint, type) and issubclass(hint, _Named)


def _members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; a type that is none is its own."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _parts(hint: Any) -> tuple[list[Any], bool]:
    """The members of a type but null and `UNSET`, and whether null is one."""
    found = _members(hint)
    parts = [each for each in found if each not in (NoneType, UnsetType)]
    return (parts, NoneType in found) if parts else ([NoneType], False)


def _limits(hint: Any) -> tuple[Any, Bounds]:
    """A type without its limits, and these."""
    return get_args(hint) if get_origin(hint) is Annotated else (hint, Bounds())


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)
