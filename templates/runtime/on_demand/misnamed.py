"""The search for methods of a handler whose name is probably misspelled."""

from __future__ import annotations

from collections.abc import Collection, Iterator


def meant_handlers(
    suspects: Collection[str], handlers: Collection[str], own: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The names among `suspects` that are close to names in `handlers`, each with these.

    A name is close if it has the same words, is the end of the other, lacks only the sender (`_from_agent`), differs in
    one letter, or has two in another order. If the user's `own` names have the handler, too, the method is assumed to
    be a part of it.
    """
    for name in suspects:
        meant = sorted(handler for handler in handlers if _means(name, handler))
        if meant and set(own).isdisjoint(meant):
            yield name, " or ".join(meant)


def _means(name: str, handler: str) -> bool:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    if handler.endswith(f"_{snake}") or handler.startswith(f"{snake}_from_"):
        return True
    return _words(snake) == _words(handler) or _differ_in_a_letter_or_two(snake, handler)


def _words(name: str) -> list[str]:
    return sorted(word.rstrip("s") for word in name.split("_"))


def _differ_in_a_letter_or_two(one: str, other: str) -> bool:
    same = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    rest, other_rest = one[same:], other[same:]
    is_swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return is_swapped or other_rest[1:] in (rest, rest[1:]) or rest[1:] == other_rest
