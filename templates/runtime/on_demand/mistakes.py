"""Explanations for mistakes in the code that uses this package: imported only after something has failed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from traceback import walk_tb
from types import FrameType, MemberDescriptorType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from .._base import UNSET, Method, Struct
from .._decode import excerpt
from ..dispatch import Handler, Remote

_MAX_NAMED: Final = 4
_PACKAGE: Final = __name__.removesuffix("on_demand.mistakes")


# --- Handlers --------------------------------------------------------------------------------------------------------


def in_handler(handler: Handler, name: str, found: Any, error: AttributeError | TypeError) -> TypeError | None:
    """The explanation if the method `name` cannot be called, or if `found`, its result, cannot be awaited.

    `found` is `UNSET` if it has not returned. None if the method itself has raised `error`.
    """
    kind = type(handler)
    if isinstance(error, AttributeError) and error.obj is handler:
        return _without_base(kind, str(error.name))
    if error.__traceback__ is None or error.__traceback__.tb_next is not None or inspect.isawaitable(found):
        return None
    method, hint = f"{kind.__name__}.{name}", f"write `async def {name}{_signature(kind, name)}`"
    if found is UNSET:
        return TypeError(f"{method} cannot be called with what a message has ({error}): {hint}")
    if inspect.isasyncgen(found):
        return TypeError(f"{method} is an async generator: send messages by the stub, without `yield`, and {hint}")
    return TypeError(f"{method} returned {shown(found)}, which cannot be awaited: {hint}")


def _without_base(kind: type[Any], attribute: str) -> TypeError | None:
    """The explanation for an attribute that is missing because `__init__` of a base was not called."""
    bases = [base for base in kind.__mro__ if inspect.isfunction(vars(base).get("__init__"))]
    inits = [vars(base)["__init__"] for base in bases]
    ours = [init for base, init in zip(bases[1:], inits[1:]) if _is_ours(base.__module__)]
    if not any(attribute in each.__code__.co_names for each in ours):
        return None
    owner = inits[0].__qualname__.rpartition("<locals>.")[2]
    parameters = ", ".join(list(inspect.signature(inits[1]).parameters)[1:])
    return TypeError(f"there is no `self.{attribute}`: {owner} must call `super().__init__({parameters})`")


def _signature(kind: type[Any], name: str) -> str:
    """The signature of a method as the class of this package has it."""
    owner = next(base for base in kind.__mro__ if "METHODS" in vars(base) and hasattr(base, name))
    return str(inspect.signature(getattr(owner, name))).replace("'", "")


# --- Values ----------------------------------------------------------------------------------------------------------


def in_result(handler: Handler, record: Method, result: Any, error: Exception, *, name: str) -> TypeError:
    """The explanation for a result of the method `name` of a handler that cannot be encoded."""
    return TypeError(f"{type(handler).__name__}.{name} returned {_fault(result, record.result, error)}")


def in_call(stub: type[Remote], record: Method, params: Any, error: Exception) -> TypeError:
    """The explanation for params of a stub that cannot be encoded."""
    return TypeError(f"{stub.__name__}.{record.handler}{caller()} got {_fault(params, record.params, error)}")


def in_message(call: str, message: Any, error: Exception) -> TypeError:
    """The explanation for a message that was passed to `call` and cannot be encoded."""
    return TypeError(f"{call} got {_fault(message, type(message), error)}")


def caller() -> str:
    """The place in the user's code that has called this package, for a message; empty if there is none."""
    frame = inspect.currentframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__", "").startswith("asyncio."):
        return ""
    return f", called by {_place(frame, frame.f_lineno)},"


def failed_at(error: BaseException) -> str:
    """The last place in the user's code that an error has passed, for a message; empty if there is none."""
    passed = [
        (frame, line)
        for frame, line in walk_tb(error.__traceback__)
        if not _is_ours(name := frame.f_globals.get("__name__", "")) and not name.startswith("asyncio.")
    ]
    return f" in {_place(*passed[-1])}" if passed else ""


def waits_at(task: asyncio.Task[Any]) -> str:
    """The place in the user's code where a task waits, for a message; empty if it is not known."""
    found, each = "", cast("Any", task.get_coro())
    while each is not None:
        frame = getattr(each, "cr_frame", None) or getattr(each, "gi_frame", None)
        if frame is not None and not _is_ours(name := frame.f_globals.get("__name__", "")):
            found = found if name.startswith("asyncio.") else f"; it waits at {_place(frame, frame.f_lineno)}"
        each = getattr(each, "cr_await", None) or getattr(each, "gi_yieldfrom", None)
    return found


def _place(frame: FrameType, line: int) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]  # Python 3.11 and later
    return f"{name} in line {line} of {code.co_filename}"


def shown(value: Any) -> str:
    """A value for a message: its class, and the start of a text."""
    if value is None or value is UNSET or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, MemberDescriptorType):  # `Class.attribute`, not that of an instance
        value = value.__objclass__
    if isinstance(value, type):
        return f"the class {value.__name__}"
    start = f" ({excerpt(value)})" if isinstance(value, (str, bytes)) else ""
    return f"{_with_article(type(value).__name__)}{start}"


def hint_for(value: Any, expected: str = "") -> str:
    """A hint for a value of the wrong type; empty if there is none."""
    if isinstance(value, (type, MemberDescriptorType)):
        return ": call the class to make an instance"
    if inspect.iscoroutine(value):
        return ": is an `await` missing?"
    return f": construct {expected}(...)" if isinstance(value, dict) and expected.isidentifier() else ""


class _Misfit(NamedTuple):
    """A value that is not of its type: the attributes and indexes that lead to it, and what was expected."""

    path: str
    expected: str
    value: Any


def _fault(value: Any, kind: Any, error: Exception) -> str:
    found = _misfit(value, kind, "", _name(kind))
    if found is None:
        return f"{shown(value)} that cannot be encoded: {error}"
    hint = hint_for(found.value, found.expected)
    if found.path:
        path = found.path.lstrip(".")
        return f"{shown(value)} whose {path} is {shown(found.value)}; expected {found.expected}{hint}"
    return f"{shown(value)}; expected {_with_article(found.expected)}{hint}"


def _misfit(value: Any, hint: Any, path: str, expected: str) -> _Misfit | None:
    """The part of `value` that does not fit. For a union, it is that of the member that fits furthest."""
    parts: Iterator[tuple[Any, Any, str, str]]
    members: Any = value
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        found = [_misfit(value, each, path, expected) for each in inner]
        deepest = max((each for each in found if each is not None), key=lambda each: len(each.path))
        return None if None in found else deepest
    if origin is list and isinstance(value, (list, tuple)):
        item_name = expected[len("list[") : -1] if expected.startswith("list[") else expected
        parts = ((item, inner[0], f"{path}[{index}]", item_name) for index, item in enumerate(members))
    elif origin is dict and isinstance(value, dict):
        parts = ((item, inner[1], f"{path}[{key!r}]", expected) for key, item in members.items())
    elif isinstance(hint, type) and isinstance(value, Struct) and isinstance(value, hint):
        parts = _fields(value, path)
    else:
        accepted = (int, float) if hint is float else origin or hint
        fits = value in inner if origin is Literal else hint is Any or isinstance(value, accepted)
        return None if fits else _Misfit(path, expected, value)
    return next(filter(None, (_misfit(*part) for part in parts)), None)


def _fields(value: Struct, path: str) -> Iterator[tuple[Any, Any, str, str]]:
    texts = {name: text for base in type(value).__mro__ for name, text in inspect.get_annotations(base).items()}
    for name, hint in get_type_hints(type(value)).items():
        expected = str(texts[name]).removesuffix(" | UnsetType").removesuffix(" | None")
        yield getattr(value, name, UNSET), hint, f"{path}.{name}", expected


def _name(kind: Any) -> str:
    """The name of a class, or those of the members of a union."""
    members = [getattr(each, "__name__", str(each)) for each in get_args(kind) or (kind,)]
    more = f" or {len(members) - _MAX_NAMED} others" if len(members) > _MAX_NAMED else ""
    return " or ".join(members[:_MAX_NAMED]) + more


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_ours(module: str) -> bool:
    return module.startswith(_PACKAGE)
