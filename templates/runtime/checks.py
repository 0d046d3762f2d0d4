"""Mistakes in the class of a handler that can be found before any message arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .dispatch import Handler

_COROUTINE: Final = 0x80  # `inspect.CO_COROUTINE`


def misnamed_handlers(kind: type[Handler]) -> Iterator[tuple[str, str]]:
    """The methods of `kind` that no message reaches, with the handlers that they are probably meant to be.

    These are public coroutine methods with params. Their name has the same words as that of a handler, is its end, or
    differs in one letter. If `kind` overrides the handler, too, the method is assumed to be a part of it.
    """
    own = {name: value for base in reversed(kind.__mro__) if _is_users(base) for name, value in vars(base).items()}
    handlers = {route.handler for route in (*kind.REQUESTS.values(), *kind.NOTIFICATIONS.values())}
    for name, value in own.items():
        if name not in handlers and not hasattr(Handler, name) and _looks_like_handler(name, value):
            meant = sorted(handler for handler in handlers if _means(name, handler))
            if meant and own.keys().isdisjoint(meant):
                yield name, " or ".join(meant)


def _is_users(base: type[Any]) -> bool:
    """True for a class from outside of this package: neither a generated one, nor a helper that extends it."""
    return base is not object and not base.__module__.startswith(f"{__package__}.")


def _looks_like_handler(name: str, value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return not name.startswith("_") and code is not None and bool(code.co_flags & _COROUTINE) and code.co_argcount > 1


def _means(name: str, handler: str) -> bool:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return handler.endswith(f"_{snake}") or _words(snake) == _words(handler) or _differ_in_one_letter(snake, handler)


def _words(name: str) -> list[str]:
    return sorted(word.rstrip("s") for word in name.split("_"))


def _differ_in_one_letter(one: str, other: str) -> bool:
    same = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    rest, other_rest = one[same:], other[same:]
    return other_rest[1:] in (rest, rest[1:]) or rest[1:] == other_rest
