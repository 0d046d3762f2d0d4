"""Values that are wrong almost everywhere: of other types, not awaited, endless, huge, and hostile ones."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


class UsersOwnError(Exception):
    """Raised by a value when somebody looks at it: that is no fault of the package."""


class Hostile:
    """Raises whatever is done with it."""

    def __repr__(self) -> str:
        raise UsersOwnError

    __str__ = __len__ = __iter__ = __bool__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise UsersOwnError

    def __hash__(self) -> int:
        raise UsersOwnError

    def __getattr__(self, name: str) -> Any:
        raise UsersOwnError


class Colour(enum.Enum):
    """No value of the protocol."""

    RED = "red"


class Word(str, enum.Enum):
    """A text, and yet an enumeration."""

    HELLO = "hello"


class Text(str):
    """A text of a class of the user."""

    __slots__ = ()


async def _later() -> None:
    """Was not awaited."""


def _endless() -> Iterator[str]:
    while True:
        yield "x"


def _in_itself(outer: Any) -> Any:
    outer.append(outer) if isinstance(outer, list) else outer.update(a=outer)
    return outer


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def _struct(acp: ModuleType) -> Any:
    return acp.Implementation(name="n", version="1")


def _subclass(acp: ModuleType) -> Any:
    """An instance of a class whose annotations nobody can read."""
    hints = {"__annotations__": {"note": "NoSuchName"}, "__module__": __name__}
    return type("Noted", (acp.Implementation,), hints)(name="n", version="1", note=1)


def _struct_in_itself(acp: ModuleType) -> Any:
    value = _struct(acp)
    value.name = value
    return value


WRONG: dict[str, Callable[[ModuleType], Any]] = {
    "None": lambda _: None,
    "UNSET": lambda acp: acp.UNSET,
    "a bool": lambda _: True,
    "an int": lambda _: -7,
    "a huge int": lambda _: 10**5000,
    "nan": lambda _: float("nan"),
    "an empty text": lambda _: "",
    "a text": lambda _: "nonsense",
    "a lone surrogate": lambda _: "\ud800",
    "a long text": lambda _: "x" * 100_000,
    "bytes": lambda _: b"\xff",
    "a text of a class": lambda _: Text("nonsense"),
    "a member of an enumeration": lambda _: Colour.RED,
    "a text in an enumeration": lambda _: Word.HELLO,
    "a dict": lambda _: {"a": 1},
    "a dict with other keys": lambda _: {1: 2, None: 3},
    "an empty dict": lambda _: {},
    "a list": lambda _: ["a", 1, None],
    "a tuple": lambda _: ("a", 1),
    "a set": lambda _: {"a"},
    "a list in itself": lambda _: _in_itself([]),
    "a dict in itself": lambda _: _in_itself({}),
    "a deep list": lambda _: _deep(3000),
    "a class": lambda acp: acp.Implementation,
    "an attribute of a class": lambda acp: acp.Implementation.name,
    "a struct": _struct,
    "a struct of a user": _subclass,
    "a struct in itself": _struct_in_itself,
    "a stub": lambda acp: acp.RemoteClient(None),
    "a handler": lambda acp: acp.Agent(None) if hasattr(acp, "Agent") else acp.Proxy(None, None),
    "a coroutine": lambda _: _later(),
    "a decision": lambda acp: acp.decides(_later)(),
    "a generator": lambda _: iter(("a", "b")),
    "a function": lambda _: _later,
    "an exception": lambda _: ValueError("x"),
    "an object": lambda _: object(),
    "a hostile object": lambda _: Hostile(),
}
"""By name, a function that makes the value for a package. Whoever takes one that was not awaited closes it."""


def close(value: Any) -> None:
    """Close what was not awaited, so that it does not warn."""
    if type(value).__name__ in {"coroutine", "Decision"}:
        value.close()
