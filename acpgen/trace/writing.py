"""The modules of generated packages that traces are written and read with, and the secrets that acpgen knows."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from importlib import import_module
from typing import Any

from acpgen.schema.data import data_folder, read_secrets

_PACKAGE = "acpgen_runtime"


@cache
def trace_file() -> Any:
    """The module that writes a file."""
    return _imported("trace.trace_file")


@cache
def decorated() -> Any:
    """The module that finds messages in lines that have more than these."""
    return _imported("decorated")


@cache
def closed_gates() -> Any:
    """The module that finds values whose capability the peer has not advertised."""
    return _imported("closed_gates")


@cache
def records() -> Any:
    """The module that knows what opens a gate."""
    return _imported("records")


def _imported(module: str) -> Any:
    if _PACKAGE not in sys.modules:  # not by the path of imports, where it may be hidden
        runtime = data_folder() / "templates" / "runtime"
        path, places = runtime / "__init__.py", [str(runtime), str(runtime / "core"), str(runtime / "handlers")]
        spec = importlib.util.spec_from_file_location(_PACKAGE, path, submodule_search_locations=places)
        assert spec is not None
        sys.modules[_PACKAGE] = importlib.util.module_from_spec(spec)
    return import_module(f"{_PACKAGE}.{module}")


def make_mask() -> Any:
    """A mask for the messages of one connection."""
    secrets = read_secrets()
    return trace_file().Mask(secrets.properties, secrets.params)
