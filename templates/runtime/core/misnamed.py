"""Names that nothing has: which ones are probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from ._base import Method
from .mistakes import shown
from .places import caller

_PACKAGE = __name__.rpartition("._runtime.")[0]
_RAW_CALLS = {
    "ext_method": ("request", "send_request", "call", "ext_request", "ext_method"),
    "ext_notification": ("notify", "send_notification", "notification", "send", "ext_notification"),
}
"""The methods of a stub that take the name of a method on the wire, and what other libraries call them."""


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


def other_name(methods: Mapping[str, Method], name: Any, owner: str) -> str | None:
    """The name on the wire of the method with this name in Python; None if only another version has such a method.

    A name that starts with `_` is an extension, and stays as it is. Raises `ValueError` for other names, and
    `TypeError` for what is no name; `owner` has the methods.
    """
    if not isinstance(name, str):
        raise TypeError(f"supports(){caller()} got {shown(name)}; expected the name of a method of {owner}")
    if (found := _method(methods, name)) is not None:
        return found or None
    if name.startswith("_"):
        return name
    expected = _listed(_nearest(name, methods) or sorted(methods))
    raise ValueError(f"supports(){caller()} got {shown(name)}, and {owner} has no such method: expected {expected}")


def _method(methods: Mapping[str, Method], name: str) -> str | None:
    """The name on the wire of a method; empty if only another version has it, and None if none has."""
    for method in (*methods.values(), *_others(methods)):
        if name in (method.name, method.handler):
            return method.name if method.name in methods else ""
    return None


def meant_by(stub: type[Any], name: Any) -> str | tuple[str, ...] | None:
    """The method, by its name on the wire, or the path of the capability that is meant by a name for `supports`.

    None for what only another version of the protocol has. Raises what `other_name` does.
    """
    methods: Mapping[str, Method] = stub.METHODS
    if stub.CAPABILITIES is None or not isinstance(name, str) or _method(methods, name) is not None:
        return other_name(methods, name, stub.__name__)
    from .capability_names import capability_names, capability_path, nearest_names

    for each in (stub, *_other_stubs(stub)):
        if each.CAPABILITIES is not None:
            outer, kind = each.CAPABILITIES
            path = capability_path(each.CODEC.reflection(), kind, outer, name)
            if path is not None:
                return path if each is stub else None
    if name.startswith("_"):
        return name
    names = [*capability_names(stub.CODEC.reflection(), stub.CAPABILITIES[1])]
    expected = _listed((_nearest(name, methods) + nearest_names(name, names)) or [*sorted(methods), *names])
    text = f"{stub.__name__} has no such method or capability: expected {expected}"
    raise ValueError(f"supports(){caller()} got {shown(name)}, and {text}")


def _other_stubs(stub: type[Any]) -> Iterator[type[Any]]:
    """The same stub for the other versions of the protocol that this package has."""
    generated = next(each for each in stub.__mro__ if "METHODS" in vars(each))
    for module in _modules_of_versions(generated.__module__.rpartition(".")[2]):
        found = getattr(module, generated.__name__, None)
        if isinstance(found, type) and found is not generated:
            yield found


def _modules_of_versions(name: str) -> Iterator[ModuleType]:
    """The module `name` of each version of the protocol, in a package of several."""
    for version in getattr(import_module(f"{_PACKAGE}.methods"), "PROTOCOLS", ()):
        with suppress(ImportError):  # a package of one version has no folders
            yield import_module(f"{_PACKAGE}.v{version}.{name}")


def no_attribute(stub: Any, name: str) -> AttributeError:
    """The error for an attribute that a stub does not have."""
    methods: Mapping[str, Method] = stub.METHODS
    text = f"{type(stub).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_"):
        handlers = {method.handler: method for method in methods.values()}
        calls = [f"{each}({_params(handlers[each])})" for each in sorted(handlers) if _means(name, each)]
        calls += [f"{each}(method, params)" for each, names in _RAW_CALLS.items() if _snake(name) in names]
        text += f"{caller() or ','} but it has {_listed(calls)}" if calls else caller().removesuffix(",")
    return AttributeError(text, name=name, obj=stub)


def _params(method: Method) -> str:
    return f"{method.params.__name__}(...)" if isinstance(method.params, type) else "params"


def _others(methods: Mapping[str, Method]) -> Iterator[Method]:
    """The methods of the same side in all versions of the protocol that this package has."""
    sides = {method.side for method in methods.values()}
    for module in _modules_of_versions("methods"):
        for table in vars(module).values():
            records: Mapping[str, object] = cast("Mapping[str, object]", table) if isinstance(table, Mapping) else {}
            yield from (each for each in records.values() if isinstance(each, Method) and each.side in sides)


def _nearest(name: str, methods: Mapping[str, Method]) -> list[str]:
    """The names on the wire that are probably meant: nearly that of the method, or one of its words."""
    meant = [each.name for each in methods.values() if _means(name, each.handler) or _means(name, each.name)]
    words = [each.name for each in methods.values() if name.lower() in each.handler.split("_")]
    return sorted(meant) or sorted(words) or get_close_matches(name, [*methods], cutoff=0.5)


def _listed(names: Collection[str]) -> str:
    return " or ".join(names)


def _means(name: str, handler: str) -> bool:
    snake = _snake(name)
    if snake in ("request", "notification"):  # the sort of a message says nothing about its method
        return False
    if handler.endswith(f"_{snake}") or handler.startswith(f"{snake}_from_"):
        return True
    return _words(snake) == _words(handler) or _differ_in_a_letter_or_two(snake, handler)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _words(name: str) -> list[str]:
    return sorted(word.rstrip("s") for word in name.split("_"))


def _differ_in_a_letter_or_two(one: str, other: str) -> bool:
    same = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    rest, other_rest = one[same:], other[same:]
    is_swapped = rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:]
    return is_swapped or other_rest[1:] in (rest, rest[1:]) or rest[1:] == other_rest
