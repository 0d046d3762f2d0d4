"""Explanations for mistakes in the code that uses this package: imported only after something has failed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from opcode import opname
from traceback import walk_tb
from types import FrameType, FunctionType, MemberDescriptorType, UnionType
from typing import (
    Any,
    Final,
    ForwardRef,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ._base import UNSET, Struct
from ._decode import excerpt
from .places import caller, is_of_python, is_ours, is_ours_or_python, place
from .records import Method

T = TypeVar("T")

_MAX_NAMED: Final = 4
_MAX_SHOWN: Final = 100
_MISTAKES: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python raises for wrong values. Other errors may be no fault of the code."""


def safely(explain: Callable[..., T], *values: Any, otherwise: T) -> T:
    """What `explain` returns; `otherwise` if it fails, as for a value that raises when somebody looks at it.

    So an explanation never hides the error that it is about.
    """
    try:
        return explain(*values)
    except Exception:
        return otherwise


# --- Handlers --------------------------------------------------------------------------------------------------------


def in_handler(handler: object, name: str, found: Any, error: Exception) -> Exception | None:
    """The explanation if the method `name` cannot be called, or if `found`, its result, cannot be awaited.

    `found` is `UNSET` if it has not returned. It is also explained where a class of this package, which the handler
    extends, has called a method of the user in vain, or where the user has called a function of this package with
    something else than it takes. None if the method itself has raised `error`.
    """
    return safely(_in_handler, handler, name, found, error, otherwise=None)


def _in_handler(handler: object, name: str, found: Any, error: Exception) -> Exception | None:
    kind = type(handler)
    if isinstance(error, AttributeError) and error.obj is handler:
        return _without_base(kind, str(error.name))
    if error.__traceback__ is None:
        return None
    if error.__traceback__.tb_next is not None:
        return _in_override(kind, error) or in_argument(error)
    if inspect.isawaitable(found) or not isinstance(error, (AttributeError, TypeError)):
        return None
    method, hint = f"{kind.__name__}.{name}", f"write `async def {name}{_signature(kind, name)}`"
    if found is UNSET:
        return TypeError(f"{method} cannot be called with what a message has ({error}): {hint}")
    if inspect.isasyncgen(found):
        return TypeError(f"{method} is an async generator: send messages by the stub, without `yield`, and {hint}")
    return TypeError(f"{method} returned {shown(found)}, which cannot be awaited: {hint}")


def _in_override(kind: type[Any], error: Exception) -> TypeError | None:
    """The explanation for a method that a base of this package calls, and that has other parameters or no `async`."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    if not is_ours(frame.f_globals.get("__name__", "")):
        return None
    for name, theirs, ours in _overridden(kind):
        is_async = inspect.iscoroutinefunction(ours)
        hint = f"write `{'async ' * is_async}def {name}{_signature(kind, name)}`"
        if str(error).startswith(f"{theirs.__qualname__}()"):
            return TypeError(f"{kind.__name__}.{name} cannot be called as its base does ({error}): {hint}")
        is_plain = is_async and not inspect.iscoroutinefunction(theirs)
        if is_plain and ("await" in str(error) or "coroutine" in str(error)):
            return TypeError(f"{kind.__name__}.{name} is no coroutine function ({error}): {hint}")
    return None


def _overridden(kind: type[Any]) -> Iterator[tuple[str, FunctionType, FunctionType]]:
    """The methods of the user that override one of this package, each with that."""
    for name in dict.fromkeys(name for base in kind.__mro__ if not is_ours(base.__module__) for name in vars(base)):
        found = [(base, inspect.unwrap(vars(base)[name])) for base in kind.__mro__ if name in vars(base)]
        ours = [method for base, method in found if is_ours(base.__module__) and isinstance(method, FunctionType)]
        owner, theirs = found[0]
        if ours and not is_ours(owner.__module__) and isinstance(theirs, FunctionType):
            yield name, theirs, ours[0]


def in_argument(error: BaseException) -> Exception | None:
    """The explanation for a call of a function of this package that has failed there; None for any other error."""
    return _in_call([*walk_tb(error.__traceback__)], error)


def in_own_call(error: Exception) -> Exception | None:
    """The same for a function that asks for it, which the error has not left yet."""
    stack, frame = list[tuple[FrameType, int]](), sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not (stack and not is_ours_or_python(stack[-1][0])):
        stack.append((frame, frame.f_lineno))
        frame = frame.f_back
    return safely(_in_call, [*reversed(stack), *walk_tb(error.__traceback__)], error, otherwise=None)


def _in_call(passed: list[tuple[FrameType, int]], error: BaseException) -> Exception | None:
    """The explanation for an error that has passed these frames."""
    frames = [each for each in passed if not is_of_python(each[0])]
    ours = [is_ours(frame.f_globals.get("__name__", "")) for frame, _ in frames]
    start = max((i for i in range(1, len(frames)) if ours[i] and not ours[i - 1]), default=0)
    if not start or not all(ours[start:]) or is_ours(type(error).__module__):
        return None
    where = place(*frames[start - 1])
    called = next((frame for frame, _ in frames[start:] if not _is_private(frame)), None)
    if called is None or where in str(error):  # Python says what is wrong, or it was explained already
        return None
    calls = [] if error.__cause__ is not None or _is_meant(error) else [frame for frame, _ in frames[start:]]
    misfit = next(filter(None, (safely(_misfit_in_call, each, otherwise=None) for each in calls)), None)
    if misfit is None and not isinstance(error, _MISTAKES):
        return None
    kind = ValueError if misfit is None and isinstance(error, ValueError) else TypeError
    return kind(f"{_name_in(called)}, called by {where}, {misfit or f'failed: {reason_of(error)}'}")


def _is_meant(error: BaseException) -> bool:
    """True if the code of this package has raised the error, with a text of its own."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_ours(last.tb_frame.f_globals.get("__name__", "")):
        return False
    return opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def _name_in(called: FrameType) -> str:
    """The name of the function that runs, for a method with the class of its object, which the user may know."""
    name, owner = called.f_code.co_name, called.f_locals.get("self")
    if owner is None:
        return name
    return type(owner).__name__ if name == "__init__" else f"{type(owner).__name__}.{name}"


def _misfit_in_call(called: FrameType) -> str | None:
    """The argument of a function of this package that is not of its type; None if there is none."""
    code, values = called.f_code, called.f_locals
    is_method = "self" in values
    found = getattr(values["self"], code.co_name, None) if is_method else called.f_globals.get(code.co_name)
    function = inspect.unwrap(getattr(found, "__func__", found)) if callable(found) else None
    if not isinstance(function, FunctionType) or function.__code__ is not code:
        return None
    texts, hints = inspect.get_annotations(function), get_type_hints(function)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        misfit = _misfit(values[name], hints[name], "", str(texts[name])) if name in hints else None
        if misfit is not None:
            hint = hint_for(misfit.value, misfit.expected)
            return f"got {shown(misfit.value)} for {name}{misfit.path}; expected {misfit.expected}{hint}"
    return None


def _is_private(frame: FrameType) -> bool:
    return frame.f_code.co_name.startswith("_") and not frame.f_code.co_name.endswith("__")


def in_factory(factory: Any, error: TypeError, *stubs: object) -> TypeError:
    """The explanation for a factory that cannot be called with `stubs`; `error` itself if it has failed later."""
    return safely(_in_factory, factory, error, stubs, otherwise=error)


def _in_factory(factory: Any, error: TypeError, stubs: tuple[object, ...]) -> TypeError:
    base, name = handler_of(stubs[0]), name_of(factory)
    names = [*inspect.signature(base).parameters]
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        is_of_base = str(error).startswith(f"{base.__name__}.__init__()")
        return (
            TypeError(f"{name} failed ({error}): call `super().__init__({', '.join(names)})`") if is_of_base else error
        )
    if isinstance(factory, type) and not issubclass(factory, base):
        return TypeError(f"{name} does not extend {base.__name__} ({error}): write `class {name}({base.__name__})`")
    parameters = ", ".join(f"{each}: {type(stub).__name__}" for each, stub in zip(names, stubs))
    takes = f"def __init__(self, {parameters})" if isinstance(factory, type) else f"def {name}({parameters})"
    return TypeError(f"{name} cannot be called with the stub of its peer ({error}): write `{takes}`")


def handler_of(stub: object) -> type[Any]:
    """The class to extend for a handler that calls its peer by `stub`."""
    module = next(each.__module__ for each in type(stub).__mro__ if is_ours(each.__module__))
    found = (each for each in vars(sys.modules[module]).values() if inspect.isclass(each) and "PROTOCOL" in vars(each))
    return next(each for each in found if each.__module__ == module)


def name_of(factory: Any) -> str:
    """The name of a class or function."""
    return str(getattr(factory, "__qualname__", type(factory).__name__)).rpartition("<locals>.")[2]


def _without_base(kind: type[Any], attribute: str) -> TypeError | None:
    """The explanation for an attribute that is missing because `__init__` of a base was not called."""
    bases = [base for base in kind.__mro__ if inspect.isfunction(vars(base).get("__init__"))]
    inits = [vars(base)["__init__"] for base in bases]
    ours = [init for base, init in zip(bases[1:], inits[1:]) if is_ours(base.__module__)]
    if not any(attribute in each.__code__.co_names for each in ours):
        return None
    owner = inits[0].__qualname__.rpartition("<locals>.")[2]
    parameters = ", ".join(list(inspect.signature(inits[1]).parameters)[1:])
    return TypeError(f"there is no `self.{attribute}`: {owner} must call `super().__init__({parameters})`")


def _signature(kind: type[Any], name: str) -> str:
    """The signature of a method as the class of this package has it."""
    owner = next(base for base in kind.__mro__ if is_ours(base.__module__) and hasattr(base, name))
    return str(inspect.signature(getattr(owner, name))).replace("'", "")


# --- Values ----------------------------------------------------------------------------------------------------------


def in_result(handler: object, record: Method, result: Any, error: Exception, *, name: str) -> TypeError:
    """The explanation for a result of the method `name` of a handler that cannot be encoded."""
    return TypeError(f"{type(handler).__name__}.{name} returned {_fault(result, record.result, error)}")


def in_call(stub: type[Any], record: Method, params: Any, error: Exception) -> TypeError:
    """The explanation for params of a stub that cannot be encoded."""
    return TypeError(f"{stub.__name__}.{record.handler}{caller()} got {_fault(params, record.params, error)}")


def in_message(call: str, message: Any, error: Exception) -> TypeError:
    """The explanation for a message that was passed to `call` and cannot be encoded."""
    return TypeError(f"{call} got {_fault(message, type(message), error)}")


def shown(value: Any) -> str:
    """A value for a message: its class, and the start of a text."""
    return safely(_shown, value, otherwise=_with_article(type(value).__name__))


def _shown(value: Any) -> str:
    if value is None or value is UNSET or isinstance(value, (bool, int, float)):
        return repr(value)[:_MAX_SHOWN]
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
    if inspect.isawaitable(value):
        return ": is an `await` missing?"
    return f": construct {expected}(...)" if isinstance(value, dict) and expected.isidentifier() else ""


class _Misfit(NamedTuple):
    """A value that is not of its type: the attributes and indexes that lead to it, and what was expected."""

    path: str
    expected: str
    value: Any


def _fault(value: Any, kind: Any, error: Exception) -> str:
    why = reason_of(error)
    found = safely(_misfit, value, kind, "", _name(kind), otherwise=None)
    if found is None:
        return f"{shown(value)} that cannot be encoded: {why}"
    hint = hint_for(found.value, found.expected)
    if found.path:
        path = found.path.lstrip(".")
        return f"{shown(value)} whose {path} is {shown(found.value)}; expected {found.expected}{hint}"
    return f"{shown(value)}; expected {_with_article(found.expected)}{hint}"


def reason_of(error: BaseException) -> str:
    """The text of an error that a value has caused."""
    if isinstance(error, RecursionError):
        return "it contains itself, or is nested too deeply"
    return f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)


def _misfit(value: Any, hint: Any, path: str, expected: str) -> _Misfit | None:
    """The part of `value` that does not fit. For a union, it is that of the member that fits furthest."""
    parts: Iterator[tuple[Any, Any, str, str]]
    members: Any = value
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        found = [_misfit(value, each, path, expected) for each in inner]
        misfits = [each for each in found if each is not None]
        return max(misfits, key=lambda each: len(each.path)) if len(misfits) == len(found) else None
    if _is_iterable(origin) and isinstance(value, (list, tuple)):
        item_name = expected.partition("[")[2][:-1] if expected.endswith("]") else expected
        parts = ((item, inner[0], f"{path}[{index}]", item_name) for index, item in enumerate(members))
    elif origin is dict and isinstance(value, dict):
        parts = ((item, inner[1], f"{path}[{key!r}]", expected) for key, item in members.items())
    elif isinstance(hint, type) and isinstance(value, Struct) and isinstance(value, hint):
        parts = _fields(value, path)
    elif hint is Any or isinstance(hint, (str, ForwardRef)):  # the latter where a type contains itself again
        return None
    else:
        accepted = (int, float) if hint is float else origin or hint
        if _is_iterable(origin) and isinstance(value, (str, bytes)):  # its characters are hardly meant
            return _Misfit(path, expected, value)
        fits = value in inner if origin is Literal else isinstance(value, accepted)
        return None if fits else _Misfit(path, expected, value)
    return next(filter(None, (_misfit(*part) for part in parts)), None)


def _is_iterable(origin: Any) -> bool:
    """True for a type whose values hold any number of others of one type."""
    return isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, (Mapping, tuple))


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
