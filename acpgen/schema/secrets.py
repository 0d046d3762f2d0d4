"""Where messages have secrets: `schema/secrets.json`, for all versions of the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from acpgen.schema.data import data_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Secret are the values below `properties`, and the `params` of these methods.

    Each has the names of members below it that are no secret.
    """

    properties: Mapping[str, frozenset[str]]
    params: Mapping[str, frozenset[str]]


def read_secrets() -> Secrets:
    """The places of secrets."""
    raw = json.loads((data_folder() / "schema" / "secrets.json").read_text(encoding="utf-8"))
    return Secrets(**{part: {name: frozenset(shown) for name, shown in raw[part].items()} for part in raw})
