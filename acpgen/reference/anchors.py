"""The anchors of the reference page. They are permanent: other pages link to them."""

from __future__ import annotations

from urllib.parse import quote


def type_anchor(home: str, name: str, wire: str | None = None) -> str:
    """The anchor of the type `name` of the protocol `home`, or of its property, tag or value `wire`."""
    return f"{home}/types/{quote(name)}" + ("" if wire is None else f".{quote(wire, safe='')}")


def method_anchor(home: str, wire: str) -> str:
    """The anchor of the method `wire` of the protocol `home`."""
    return f"{home}/methods/{quote(wire)}"
