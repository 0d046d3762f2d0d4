"""Messages in which each text is as large as it can be, made from the tables of methods of a package."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "/@@"
"""Stands for a text of the peer; it begins like a path, so that paths are absolute."""
_DEPTH = 6


@dataclass(frozen=True)
class Case:
    """A message with marks in place of all its texts."""

    name: str
    method: str
    is_request: bool
    params: Any

    def line(self, number: int, size: int, known: Mapping[str, Any], **ids: Any) -> bytes:
        """The text of a message whose texts have `size` bytes.

        Params that are `known` have the value that is there, so that the message is accepted; `ids` has its id.
        """
        params = {name: known.get(name, value) for name, value in self.params.items()}
        text = json.dumps({"jsonrpc": "2.0", **ids, "method": self.method, "params": params})
        return text.replace(MARK, filler(number, size)).encode()


def marked(answer: Any, number: int, size: int) -> Any:
    """An answer with texts of `size` bytes in place of marks."""
    return json.loads(json.dumps(answer).replace(MARK, filler(number, size)))


def filler(number: int, size: int) -> str:
    """A text that no other message has."""
    return f"/{number}-" + "x" * size


def cases(table: Mapping[str, Any], package: Any) -> list[Case]:
    """The messages of a table of methods: of each, one for each class that its params may have."""
    found: dict[str, Case] = {}
    for record in table.values():
        for each in filter(None, (record, record.notification)):
            for value in _values(each.params, package, 0) if each.params is not None else ():
                about = next(
                    (type(getattr(value, name)).__name__ for name in ("update", "subject") if hasattr(value, name)), ""
                )
                case = Case(
                    f"{each.name} {each.kind} {about or type(value).__name__}",
                    each.name,
                    each.kind == "request",
                    package.encode(value),
                )
                found.setdefault(case.name, case)
    return [*found.values()]


def answers(table: Mapping[str, Any], package: Any) -> dict[str, Any]:
    """An answer to each request of a table, with marks."""
    requests = {name: record for name, record in table.items() if record.kind == "request"}
    return {name: package.encode(next(_values(record.result, package, 0))) for name, record in requests.items()}


def _values(kind: Any, package: Any, depth: int) -> Iterator[Any]:
    """Values of a type, with all texts: for a union, one of each of its classes."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, str):
        yield from _values(eval(kind, vars(package.types)), package, depth)
    elif origin in (typing.Union, types.UnionType):
        kinds = [each for each in inner if each not in (type(None), package.UnsetType)]
        for each in [str] if str in kinds else kinds:
            yield from _values(each, package, depth)
    elif origin is typing.Literal:
        yield inner[0]
    elif origin is list:
        yield [] if depth > _DEPTH else [next(_values(inner[0], package, depth + 1))]
    elif origin is dict:
        yield {MARK: next(_values(inner[1], package, depth + 1))}
    elif dataclasses.is_dataclass(kind):
        yield from _objects(kind, package, depth)
    else:
        yield {str: MARK, int: 1, float: 1.0, bool: True}.get(kind, {MARK: [MARK]})


def _objects(kind: Any, package: Any, depth: int) -> Iterator[Any]:
    hints = typing.get_type_hints(kind, vars(package.types))
    known = {
        each.name: [*_values(hints[each.name], package, depth + 1)] for each in dataclasses.fields(kind) if each.init
    }
    first = {name: values[0] for name, values in known.items() if values}  # null and nothing else has no text
    yield kind(**first)
    for name, values in known.items() if depth < 2 else ():
        for value in values[1:]:
            yield kind(**{**first, name: value})
