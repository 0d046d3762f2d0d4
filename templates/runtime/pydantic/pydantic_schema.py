"""Schemas for pydantic: values are validated by `decode`, and written by `encode`.

This module is imported when pydantic asks for a schema; nothing else in the package imports pydantic.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import UnionType
from typing import Any, Final, cast

from .._base import Struct, UnsetType
from .._decode import DecodeError
from .schema_details import Details, details_of, known_class

# Not imported by a statement, which type checkers would not find where pydantic is not installed.
core: Final[Any] = import_module("pydantic_core")
core_schema: Final[Any] = import_module("pydantic_core.core_schema")
_open: Final = ContextVar[tuple[type, ...]]("_open", default=())
"""The classes whose properties are being described: one that contains itself ends there."""


def schema_of_class(kind: type[Struct], handler: Any) -> Any:
    """The schema of a class of `types`, or of a subclass, which accepts the values of its base."""
    known = known_class(kind)
    codec = _codec_of(known)
    return core_schema.with_info_wrap_validator_function(
        _reader(known, kind, codec.decode),
        _shape(known, handler),
        ref=f"{kind.__module__}.{kind.__qualname__}:{id(kind)}",
        serialization=core_schema.plain_serializer_function_ser_schema(codec.encode),
    )


def schema_of_union(source: Any, handler: Any) -> Any:
    """The schema of a union or alias of `types` that is marked as `WireForm`."""
    members = tuple(_classes(source))
    if not members:
        raise TypeError(f"WireForm is for unions of classes of a generated package: {source!r} has none")
    codec = _codec_of(members[0])
    try:
        codec.decode(source, None)
    except DecodeError:
        pass  # so the codec knows the type
    except TypeError as error:
        text = "WireForm goes next to a union of the package itself, as in `Annotated[TheUnion, WireForm] | None`"
        raise TypeError(f"{text}: {error}") from error
    return core_schema.with_info_wrap_validator_function(
        _reader(source, members, codec.decode),
        handler(source),
        serialization=core_schema.plain_serializer_function_ser_schema(codec.encode),
    )


@cache
def serializer_of_instances(kind: type) -> Any:
    """The serializer for instances of `kind` where no schema is known for them, as in a field of the type `Any`."""
    encode = _codec_of(known_class(kind)).encode
    return core.SchemaSerializer(
        core_schema.any_schema(serialization=core_schema.plain_serializer_function_ser_schema(encode))
    )


def _codec_of(kind: type) -> Any:
    package = kind.__module__.rpartition(".")[0]
    return import_module(f"{package}.codec")


def _classes(source: Any) -> Iterator[type[Struct]]:
    if isinstance(source, type) and issubclass(source, Struct):
        yield source
    for each in typing.get_args(source):
        yield from _classes(each)


def _reader(known: Any, instances: Any, decode: Callable[..., Any]) -> Callable[..., Any]:
    title = getattr(known, "__name__", "value")

    def read(value: Any, _: Any, info: Any) -> Any:
        if isinstance(value, instances):
            return value
        context: Any = info.context
        on_drop: Any = context.get("on_drop") if isinstance(info.context, Mapping) else None
        try:
            return decode(known, value, on_drop=on_drop)
        except DecodeError as error:
            problem = core.PydanticCustomError("decode_error", "Input should be {expected}, not {found}", _texts(error))
            details: Any = {"type": problem, "loc": error.path, "input": _at(error.path, value)}
            raise core.ValidationError.from_exception_data(title, [details]) from error

    return read


def _at(path: tuple[str | int, ...], value: Any) -> Any:
    """What is at `path`; of a property that is missing, the object that lacks it."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            break
    return value


def _texts(error: DecodeError) -> dict[str, Any]:
    return {"expected": error.expected, "found": error.found}


def _shape(kind: type[Struct], handler: Any) -> Any:
    """The properties, only for JSON Schema: values are not validated by it."""
    if kind in _open.get():
        return core_schema.any_schema()
    token = _open.set((*_open.get(), kind))
    try:
        found = dict(_properties(kind, handler))
        about = {"title": kind.__name__, "description": cleandoc(kind.__doc__ or "")}
        return core_schema.typed_dict_schema(
            found, cls_name=kind.__name__, metadata={"pydantic_js_updates": {k: v for k, v in about.items() if v}}
        )
    finally:
        _open.reset(token)


def _properties(kind: type[Struct], handler: Any) -> Iterator[tuple[str, Any]]:
    """The name and the schema of each property."""
    from dataclasses import MISSING, fields

    hints, details = typing.get_type_hints(kind), details_of(kind)
    for field in fields(cast("Any", kind)):
        if field.name == "extra":
            continue
        hint = hints[field.name]
        is_required = (field.default is MISSING and field.default_factory is MISSING) or _is_tag(hint)
        shape = handler.generate_schema(_ending(_without_unset(hint)))
        updates = _updates(field.name, details, is_named=not {"ref", "schema_ref"}.isdisjoint(shape))
        yield details.names[field.name], core_schema.typed_dict_field(
            shape, required=is_required, metadata={"pydantic_js_updates": updates}
        )


def _updates(name: str, details: Details, *, is_named: bool) -> dict[str, Any]:
    """The keywords beside the schema of a property. If that has a name of its own, it needs no title."""
    texts = {"description": details.texts[name], "title": "" if is_named else name.replace("_", " ").title().strip()}
    return {**details.limits[name], **{key: text for key, text in texts.items() if text}}


def _is_tag(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.Literal and len(typing.get_args(hint)) == 1


def _ending(hint: Any) -> Any:
    """The type, with `Any` in place of the arrays and maps where it contains itself again."""
    parts = typing.get_args(hint)
    if any(isinstance(each, (str, typing.ForwardRef)) for each in parts) and typing.get_origin(hint) in (list, dict):
        return Any
    if typing.get_origin(hint) in (list, dict):
        return typing.get_origin(hint)[tuple(map(_ending, parts))]
    return _union(map(_ending, parts)) if typing.get_origin(hint) in (typing.Union, UnionType) else hint


def _without_unset(hint: Any) -> Any:
    if UnsetType not in typing.get_args(hint):
        return hint
    return _union(each for each in typing.get_args(hint) if each is not UnsetType)


def _union(members: Iterable[Any]) -> Any:
    first, *rest = members
    for each in rest:
        first = first | each
    return first
