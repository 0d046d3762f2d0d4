"""The module of generated packages that writes traces, with the places of secrets that acpgen knows."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

from acpgen.schema.data import data_folder, read_secrets


@cache
def trace_file() -> Any:
    """The module."""
    path = data_folder() / "templates" / "runtime" / "on_demand" / "trace_file.py"
    spec = importlib.util.spec_from_file_location("acpgen_trace_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_mask() -> Any:
    """A mask for the messages of one connection."""
    secrets = read_secrets()
    return trace_file().Mask(secrets.properties, secrets.params)
