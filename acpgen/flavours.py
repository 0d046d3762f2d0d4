"""The flavours of models: the libraries for which `acpgen models` writes types."""

from __future__ import annotations

from enum import Enum


class Flavour(Enum):
    """A library, by the name that users give it."""

    PYDANTIC = "pydantic"
    TYPEDDICT = "typeddict"
