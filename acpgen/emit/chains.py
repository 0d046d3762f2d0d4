"""Expressions for `forms.py`: how a conductor and its proxies write to each other, from `schema/chains.json`.

Only the first form is in a schema; the others are those of programs that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acpgen.emit.source import Code, enclosed, literal, tuple_of
from acpgen.schema.data import read_data


def chain_forms() -> list[Code]:
    """The expression for the record of each form."""
    return [_form(each) for each in read_data("chains.json")["forms"]]


def _form(raw: Mapping[str, Any]) -> Code:
    values = {name: tuple_of(map(literal, each)) if name == "mark" else literal(each) for name, each in raw.items()}
    return enclosed("Form(", [Code(f"{name}={each}") for name, each in values.items()], ")", indent=4)
