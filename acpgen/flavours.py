"""The flavours: the libraries for which an output can have types alone."""

from __future__ import annotations

from enum import Enum


class Flavour(Enum):
    """A library, by the name that users give it."""

    PYDANTIC = "pydantic"
    TYPEDDICT = "typeddict"
