"""Entries as JSON, for programs. Names in it are stable; documentation is for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from acpgen.diagnostics import Location
from acpgen.show.entries import Entry, SchemaEntry

FORMAT = 1
"""The version of the form, which grows when something in it is renamed or removed."""


def render_json(name: str, entries: Sequence[Entry]) -> str:
    """The entries with all that is known, under the name that was asked for."""
    return json.dumps({"format": FORMAT, "name": name, "entries": [_plain(each) for each in entries]}, indent=2)


def _plain(value: Any) -> Any:
    match value:
        case Location():
            return {"file": value.file, "line": value.line, "column": value.column}
        case SchemaEntry(pointer=pointer, node=node):
            return {"pointer": pointer, "schema": node}
        case tuple():
            return [_plain(each) for each in value]
        case _ if is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value
