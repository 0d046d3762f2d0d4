"""View for `secrets.py`: where messages have secrets, from `schema/secrets.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acpgen.emit.source import Code, literal
from acpgen.schema.data import read_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsView:
    """The expressions for both tables: each name, and the set of its members that are no secret."""

    properties: Sequence[tuple[Code, Code]]
    params: Sequence[tuple[Code, Code]]


def secret_places() -> SecretsView:
    """The places of secrets, for all versions: a message does not say its version."""
    found = read_secrets()
    return SecretsView(properties=_rows(found.properties), params=_rows(found.params))


def _rows(table: Mapping[str, frozenset[str]]) -> list[tuple[Code, Code]]:
    return [(literal(name), _frozen(shown)) for name, shown in table.items()]


def _frozen(names: frozenset[str]) -> Code:
    items = ", ".join(map(literal, sorted(names)))
    return Code(f"frozenset({{{items}}})" if items else "frozenset()")
