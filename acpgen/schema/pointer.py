"""JSON pointers (RFC 6901) as strings: joining, splitting, resolving."""

from __future__ import annotations

from typing import Any


def join(pointer: str, *tokens: str | int) -> str:
    """`pointer` extended by reference tokens, each escaped."""
    return pointer + "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def split(pointer: str) -> list[str]:
    """The unescaped reference tokens of `pointer`; raises `ValueError` where it does not start with `/`."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def resolve(root: Any, pointer: str) -> Any:
    """The value in `root` that `pointer` names; raises `LookupError` where there is none."""
    node = root
    for token in split(pointer):
        if isinstance(node, dict):
            node = node[token]
        elif isinstance(node, list) and token.isdecimal():
            node = node[int(token)]
        else:
            raise LookupError(pointer)
    return node
