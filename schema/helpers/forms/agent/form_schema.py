"""The schema of a form, from a dataclass or from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, EnumMeta
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .._decode import DecodeError
from ..codec import decode, encode
from ..types import ElicitationSchema
from .form_fields import KINDS, FormValue, fields_of

__all__ = ["FormInput"]

T = TypeVar("T")

_TYPES: Final[Mapping[Any, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


@dataclass(frozen=True, kw_only=True)
class FormInput:
    """What a form says about a field: `port: Annotated[int, FormInput(title="Port", minimum=1, maximum=65535)] = 8080`.

    `minimum` and `maximum` limit a number, the length of a text, or how many options are chosen. `pattern` is a regular
    expression that matches somewhere in the text: `^` and `$` are its ends. `format` is "email", "uri", "date" or
    "date-time". `titles` are what is shown for options, by their values.
    """

    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    format: str | None = None
    titles: Mapping[str, str] | None = None


def schema_of(form: Any) -> ElicitationSchema:
    """The schema of a form. Raises `TypeError` and `ValueError` that name what a form cannot have."""
    if isinstance(form, ElicitationSchema):
        form = encode(form)
    elif isinstance(form, type) and is_dataclass(form):
        form = _raw_schema(form)
    elif not isinstance(form, Mapping):
        raise TypeError(f"a form is a dataclass or a dict with its schema, not {form!r:.80}")
    raw: dict[str, Any] = {"type": "object", "properties": {}, **cast("Mapping[str, Any]", form)}
    try:
        schema = decode(ElicitationSchema, raw)
    except DecodeError as error:
        raise ValueError(f"the schema of a form does not fit: {error}") from None
    _check_kept(raw, encode(schema), "$")
    for each in fields_of(schema):
        try:
            if each.default is not None:
                each.check(each.default)
        except ValueError as error:
            raise ValueError(f"the default of the field {each.name!r}: {error}") from None
    return schema


def _check_kept(raw: Any, kept: Any, path: str) -> None:
    """Raise `ValueError` for what decoding has dropped or changed: the client would not know of it."""
    if isinstance(raw, Mapping):
        for name, value in cast("Mapping[str, Any]", raw).items():
            if name not in kept:
                raise ValueError(f"{path}.{name}: a form cannot have {value!r:.80} there")
            _check_kept(value, kept[name], f"{path}.{name}")
    elif isinstance(raw, (list, tuple)):
        values = cast("Sequence[Any]", raw)
        if len(values) != len(kept):
            raise ValueError(f"{path}: a form cannot have one of {raw!r:.80} there")
        for index, value in enumerate(values):
            _check_kept(value, kept[index], f"{path}[{index}]")
    elif raw != kept:
        raise ValueError(f"{path}: a form cannot have {raw!r:.80} there")


# --- Dataclasses -----------------------------------------------------------------------------------------------------


def form_values(form: type[T], values: Mapping[str, FormValue]) -> T:
    """The instance of a dataclass with these values, which fit its schema."""
    hints = get_type_hints(form)
    return form(**{name: _made(_without_none(hints[name]), value) for name, value in values.items()})


def _made(kind: Any, value: Any) -> Any:
    if get_origin(kind) is list:
        return [_made(get_args(kind)[0], each) for each in value]
    return kind(value) if kind is float or _is_enum(kind) else value


def _raw_schema(form: type) -> dict[str, Any]:
    try:
        noted, kinds = get_type_hints(form, include_extras=True), get_type_hints(form)
    except NameError as error:
        raise TypeError(f"an annotation of {form.__qualname__} has no value: {error}") from None
    inputs = [each for each in fields(cast("Any", form)) if each.init]
    properties: dict[str, Any] = {}
    for each in inputs:
        try:
            properties[each.name] = _property(each, _without_none(kinds[each.name]), _input_of(noted[each.name]))
        except (TypeError, ValueError) as error:
            raise TypeError(f"the field {each.name!r} of {form.__qualname__}: {error}") from None
    required = [each.name for each in inputs if each.default is MISSING and each.default_factory is MISSING]
    return {"type": "object", "properties": properties, "required": required}


def _input_of(hint: Any) -> FormInput:
    """What an annotation says, also about the type of an optional value."""
    notes = (note for each in (hint, *get_args(hint)) for note in getattr(each, "__metadata__", ()))
    return next((each for each in notes if isinstance(each, FormInput)), FormInput())


def _without_none(hint: Any) -> Any:
    """The type of an optional value; any other hint as it is."""
    others = [each for each in get_args(hint) if each is not type(None)]
    return others[0] if get_origin(hint) in (Union, UnionType) and len(others) == 1 else hint


def _property(field: Field[Any], kind: Any, about: FormInput) -> dict[str, Any]:
    raw = _typed(kind, about)
    _, minimum, maximum = KINDS[raw["type"]]
    raw |= {"title": about.title, "description": about.description, "pattern": about.pattern, "format": about.format}
    raw |= {minimum or "minimum": about.minimum, maximum or "maximum": about.maximum}
    raw = {name: value for name, value in raw.items() if value is not None}
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    if default is not None and default is not MISSING:
        raw["default"] = _sent(default)
    return raw


def _typed(kind: Any, about: FormInput) -> dict[str, Any]:
    """The property of a type, with its options."""
    is_list = get_origin(kind) is list
    values = _options(get_args(kind)[0] if is_list else kind)
    titles = about.titles or {}
    if unknown := titles.keys() - {*values}:
        raise ValueError(f"{min(unknown)!r} has a title, and is no option")
    titled = [{"const": each, "title": titles.get(each, each)} for each in values]
    if is_list and values:
        return {"type": "array", "items": {"anyOf": titled} if titles else {"type": "string", "enum": values}}
    if values:
        return {"type": "string", **({"oneOf": titled} if titles else {"enum": values})}
    if kind not in _TYPES:
        name = kind.__qualname__ if isinstance(kind, type) else kind
        raise TypeError(
            f"a form takes str, int, float, bool, Literal and Enum of texts, and lists of these, not {name}"
        )
    return {"type": _TYPES[kind]}


def _options(kind: Any) -> list[Any]:
    """The texts to choose from; none if the type has others, or takes any."""
    values: list[Any] = [*get_args(kind)] if get_origin(kind) is Literal else []
    if _is_enum(kind):
        values = [each.value for each in kind]
    return values if all(isinstance(each, str) for each in values) else []


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, EnumMeta)


def _sent(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return [_sent(each) for each in cast("Sequence[Any]", value)] if isinstance(value, (list, tuple)) else value
