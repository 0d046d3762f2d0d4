"""The fields of a form as plain records, and the values that they take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from sys import float_info
from typing import Any, Final, Literal, TypeAlias, cast

from ..codec import encode
from ..types import ElicitationSchema
from .form_patterns import matches

__all__ = ["FormField", "FormKind", "FormOption", "FormValue"]

FormValue: TypeAlias = str | int | float | bool | list[str]
"""A value of a form."""
FormKind: TypeAlias = Literal["text", "number", "integer", "boolean", "choice", "choices"]
"""What is entered in a field: a text, a number, yes or no, one of the options, or some of them."""

KINDS: Final[Mapping[str, tuple[FormKind, str, str]]] = {
    "string": ("text", "minLength", "maxLength"),
    "number": ("number", "minimum", "maximum"),
    "integer": ("integer", "minimum", "maximum"),
    "boolean": ("boolean", "", ""),
    "array": ("choices", "minItems", "maxItems"),
}
"""The kinds of fields by the type in the schema, and the keywords of their limits."""
_EXPECTED: Final[Mapping[FormKind, tuple[str, str]]] = {
    "text": ("text", " characters"),
    "number": ("a number", ""),
    "integer": ("an integer of 64 bits", ""),
    "boolean": ("true or false", ""),
    "choice": ("one of", " characters"),
    "choices": ("a list of", " options"),
}
_FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "email": ("an email address", r"[^@\s]+@[^@\s]+"),
    "uri": ("a URI", r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]+"),
    "date": ("a date such as 2025-03-31", r"\d{4}-\d\d-\d\d"),
    "date-time": (
        "a date and time such as 2025-03-31T14:30:00Z",
        r"\d{4}-\d\d-\d\d[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    ),
}
"""What texts of a format are, and match. An unknown format is a note for readers."""


@dataclass(frozen=True, kw_only=True)
class FormOption:
    """An option of a field: the value to send, and what is shown for it."""

    value: str
    title: str
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class FormField:
    """A field of a form. All texts are those of the agent.

    `minimum` and `maximum` limit a number, the length of a text, or how many options are chosen. `title` is the name if
    the field has none.
    """

    name: str
    kind: FormKind
    title: str
    description: str = ""
    is_required: bool = False
    default: FormValue | None = None
    options: tuple[FormOption, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    format: str | None = None

    def check(self, value: object) -> FormValue:
        """The value as it is sent. Raises `ValueError` that says why it does not fit."""
        if self.kind == "boolean" and isinstance(value, bool):
            return value
        if self.kind in {"text", "choice"} and isinstance(value, str):
            return self._text(value)
        if self.kind in {"number", "integer"} and isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value)
        if self.kind == "choices" and isinstance(value, (list, tuple)):
            return self._choices(cast("Sequence[object]", value))
        raise self._unexpected(value)

    def _unexpected(self, value: object, expected: str = "") -> ValueError:
        values = [f" {each.value!r:.80}" for each in self.options[:10]]
        options = ",".join([*values, *(" …" for _ in self.options[10:11])])
        return ValueError(f"expected {expected or _EXPECTED[self.kind][0] + options}, found {value!r:.80}")

    def _text(self, value: str) -> str:
        self._check_limits(len(value))
        if self.kind == "choice" and all(value != each.value for each in self.options):
            raise self._unexpected(value)
        if self.pattern is not None and not matches(self.pattern, value):
            raise self._unexpected(value, f"text that matches {self.pattern!r}")
        if self.format is not None and not _has_format(self.format, value):
            raise self._unexpected(value, _FORMATS[self.format][0])
        return value

    def _number(self, value: float) -> float:
        if self.kind == "integer" and isinstance(value, float) and value.is_integer():
            value = int(value)  # the same number in JSON
        if self.kind == "number":
            fits = -float_info.max <= value <= float_info.max
        else:
            fits = isinstance(value, int) and -(2**63) <= value < 2**63
        if not fits:
            raise self._unexpected(value)
        self._check_limits(value)
        return value

    def _choices(self, value: Sequence[object]) -> list[str]:
        values = frozenset(each.value for each in self.options)
        if not all(isinstance(each, str) and each in values for each in value):
            raise self._unexpected(value)
        self._check_limits(len(value))
        return [*cast("Sequence[str]", value)]

    def _check_limits(self, number: float) -> None:
        unit = _EXPECTED[self.kind][1]
        if self.minimum is not None and number < self.minimum:
            raise ValueError(f"expected at least {self.minimum}{unit}, found {number}")
        if self.maximum is not None and number > self.maximum:
            raise ValueError(f"expected at most {self.maximum}{unit}, found {number}")


def _has_format(name: str, text: str) -> bool:
    if name not in _FORMATS:
        return True
    if not re.fullmatch(_FORMATS[name][1], text, re.ASCII):
        return False
    try:
        return not name.startswith("date") or bool(date.fromisoformat(text[:10]))
    except ValueError:  # there is no such day
        return False


def fields_of(schema: ElicitationSchema) -> tuple[FormField, ...]:
    """The fields of a schema; their defaults are not checked.

    Raises `ValueError` for what this version of the protocol does not know, and for what no value fits.
    """
    raw: Any = encode(schema)
    if raw["type"] != "object":
        raise ValueError(f"the form is of the unknown type {raw['type']!r:.80}")
    required = frozenset[str](raw.get("required") or ())
    if missing := required - raw["properties"].keys():
        raise ValueError(f"{min(missing)!r:.80} is required, and there is no such field")
    return tuple(_field(name, each, name in required) for name, each in raw["properties"].items())


def _field(name: str, raw: Any, is_required: bool) -> FormField:
    try:
        if raw["type"] not in KINDS:
            raise ValueError(f"it is of the unknown type {raw['type']!r:.80}")
        kind, minimum, maximum = KINDS[raw["type"]]
        options = None
        if kind == "choices":
            options = _options(raw["items"], "anyOf")
        elif kind == "text" and (options := _options(raw, "oneOf")) is not None:
            kind = "choice"
        found = FormField(
            name=name,
            kind=kind,
            title=raw.get("title") or name,
            description=raw.get("description") or "",
            is_required=is_required,
            default=raw.get("default"),
            options=tuple(options or ()),
            minimum=raw.get(minimum) if minimum else None,
            maximum=raw.get(maximum) if maximum else None,
            pattern=raw.get("pattern") if raw["type"] == "string" else None,
            format=raw.get("format") if raw["type"] == "string" else None,
        )
        if options is not None and not options:
            raise ValueError("it has no options")
        if found.minimum is not None and found.maximum is not None and found.minimum > found.maximum:
            raise ValueError(f"its minimum {found.minimum} is more than its maximum {found.maximum}")
        if found.pattern is not None:
            matches(found.pattern, "")
    except ValueError as error:
        raise ValueError(f"the field {name!r:.80}: {error}") from None
    return found


def _options(raw: Any, titled: str) -> list[FormOption] | None:
    """The options, each once: those of `enum`, with the titles of the other keyword; None for a field without any."""
    if (kind := raw.get("type", "string")) != "string":
        raise ValueError(f"its options are of the unknown type {kind!r:.80}")
    values, entries = raw.get("enum"), raw.get(titled)
    if entries is None:
        return None if values is None else [FormOption(value=each, title=each) for each in dict.fromkeys(values)]
    allowed = None if values is None else frozenset(values)
    found = {each["const"]: each for each in entries if allowed is None or each["const"] in allowed}
    return [
        FormOption(value=value, title=each["title"], description=each.get("description") or "")
        for value, each in found.items()
    ]


def check_values(
    fields: Iterable[FormField], values: Mapping[str, object]
) -> tuple[dict[str, FormValue], dict[str, str]]:
    """The values that fit; and by the names of the other fields, why they do not. Values of no field are left out."""
    found: dict[str, FormValue] = {}
    flaws: dict[str, str] = {}
    for field in fields:
        try:
            if field.name in values:
                found[field.name] = field.check(values[field.name])
            elif field.is_required:
                flaws[field.name] = "a value is required"
        except ValueError as error:
            flaws[field.name] = str(error)
    return found, flaws
