"""Modules of flavours, imported."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

from acpgen.config import SchemaChoice
from acpgen.emit.flavours.models import render_models
from acpgen.flavours import Flavour
from acpgen.ir.model import Options
from acpgen.text import digest
from tests.needs import need
from tests.support import Packages, model_of, schema_of

TEXT = {"type": "string"}


@cache
def models_of(sources: SchemaChoice, flavour: Flavour, options: Options | None = None) -> ModuleType:
    """The imported module for `sources`."""
    need("pydantic")
    return imported(render_models(model_of(sources, options)[0], flavour))


def of(packages: Packages, flavour: Flavour, options: Options | None = None, **definitions: Any) -> ModuleType:
    """The module for a schema with these definitions."""
    schema = SchemaChoice(schema=packages.write(schema_of(**definitions)))
    return imported(render_models(model_of(schema, options)[0], flavour))


@cache
def _home() -> Path:
    return Path(mkdtemp(prefix="models-"))


def imported(text: str) -> ModuleType:
    """The module with this text."""
    path = _home() / f"models_{digest(text.encode())[:16]}.py"
    path.write_text(text, encoding="utf-8")
    return imported_file(path)


def imported_file(path: Path) -> ModuleType:
    """The module in a file. It stays in `sys.modules`, where pydantic looks for names."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Adapter:
    """Reads and writes the values of a type with pydantic."""

    def __init__(self, module: ModuleType, name: str) -> None:
        from pydantic import TypeAdapter

        self._adapter: TypeAdapter[Any] = TypeAdapter(getattr(module, name))

    def read(self, value: Any) -> Any:
        """The value as the type; raises `pydantic.ValidationError`."""
        return self._adapter.validate_python(value, strict=True)

    def accepts(self, value: Any) -> bool:
        """Whether the value fits the type, as Python and as text."""
        text = json.dumps(value)
        fits = self._fits(self.read, value)
        assert fits == self._fits(lambda text: self._adapter.validate_json(text, strict=True), text), text
        return fits

    def _fits(self, read: Callable[[Any], Any], value: Any) -> bool:
        from pydantic import ValidationError

        try:
            read(value)
        except ValidationError:
            return False
        return True

    def written(self, value: Any) -> Any:
        """JSON of an instance."""
        return self._adapter.dump_python(value, mode="json", warnings="error")
