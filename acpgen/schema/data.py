"""The bundled data files: their folder, in an installed package or in a checkout, and the places of secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import acpgen
from acpgen.diagnostics import internal_error


@cache
def data_folder() -> Path:
    """The folder that holds `schema/` and `templates/`; raises `InternalError` if there is none."""
    package = Path(acpgen.__file__).parent
    for folder in (package / "_data", package.parent):
        if (folder / "schema").is_dir():
            return folder
    raise internal_error("acpgen was installed without its schemas")


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
