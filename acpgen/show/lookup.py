"""What a name stands for, and what is nearly spelled like it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from acpgen.diagnostics import InputError, input_error
from acpgen.ir import names
from acpgen.ir.model import Definition, Method, Model
from acpgen.schema.compose import Composed
from acpgen.schema.layers import schema_map

_LENGTH = 100
"""How much of a name is compared and quoted."""


@dataclass(frozen=True, slots=True)
class Untyped:
    """A definition of the schema that the package has no type for."""

    name: str


Subject: TypeAlias = Definition | Method | Untyped


def find(name: str, composed: Composed, model: Model) -> list[Subject]:
    """Everything that `name` is: a type by either of its names, then methods by wire name or handler.

    Raises `InputError` with the nearest names where it is nothing.
    """
    found: list[Subject] = []
    definitions = schema_map(composed.root, "$defs")
    python_name = names.class_name(name) if name in definitions else name
    if python_name in model.by_name:
        found.append(model.by_name[python_name])
    elif name in definitions:
        found.append(Untyped(name))
    found += [method for method in model.methods if name in (method.wire, method.name)]
    if not found:
        raise _unknown(name, _known(composed, model))
    return found


def _known(composed: Composed, model: Model) -> set[str]:
    methods = {name for method in model.methods for name in (method.wire, method.name)}
    return {*model.by_name, *schema_map(composed.root, "$defs"), *methods}


def _unknown(name: str, known: Iterable[str]) -> InputError:
    folded: dict[str, str] = {}
    for each in sorted(known):
        folded.setdefault(each[:_LENGTH].casefold(), each)
    near = [folded[each] for each in get_close_matches(name[:_LENGTH].casefold(), folded, n=3)]
    hint = f"did you mean {' or '.join(map(_short, near))}?" if near else "`acpgen methods` lists the methods"
    return input_error("unknown-name", f"{_short(name)} is no type and no method here", hint=hint)


def _short(name: str) -> str:
    return repr(name if len(name) <= _LENGTH else name[: _LENGTH - 1] + "…")
