"""The module of generated packages that writes traces, with the places of secrets that acpgen knows."""

from __future__ import annotations

from functools import cache
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

from acpgen.schema.data import data_folder, read_secrets


@cache
def trace_file() -> Any:
    """The module."""
    path = data_folder() / "templates" / "runtime" / "on_demand" / "trace_file.py"
    loader = SourceFileLoader("acpgen_trace_file", str(path))
    module = ModuleType(loader.name)
    loader.exec_module(module)
    return module


def make_mask() -> Any:
    """A mask for the messages of one connection."""
    secrets = read_secrets()
    return trace_file().Mask(secrets.properties, secrets.params)
