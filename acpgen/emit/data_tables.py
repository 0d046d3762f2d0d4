"""Expressions for modules that hold data of `schema/`, the same for all versions: `forms.py` and `secrets.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acpgen.emit.source import Code, enclosed, frozenset_of, literal, tuple_of
from acpgen.schema.data import read_data, read_secrets


def chain_forms() -> list[Code]:
    """The record of each form in which a conductor and its proxies write to each other, from `schema/chains.json`.

    Only the first form is in a schema; the others are those of programs that exist.
    """
    return [_form(each) for each in read_data("chains.json")["forms"]]


def _form(raw: Mapping[str, Any]) -> Code:
    values = {name: tuple_of(map(literal, each)) if name == "mark" else literal(each) for name, each in raw.items()}
    return enclosed("Form(", [Code(f"{name}={each}") for name, each in values.items()], ")", indent=4)


def secret_places() -> dict[str, list[tuple[Code, Code]]]:
    """The rows of both tables of secrets, for all versions: a message does not say its version.

    A row has a name, and the set of its members that are no secret.
    """
    found = read_secrets()
    return {"properties": _rows(found.properties), "params": _rows(found.params)}


def _rows(table: Mapping[str, frozenset[str]]) -> list[tuple[Code, Code]]:
    return [(literal(name), frozenset_of(shown)) for name, shown in table.items()]
