"""Names of methods and capabilities, as users write them: what one means, or probably means.

Imported when a name is not that of a method on the wire.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from .places import caller
from .records import Method

if TYPE_CHECKING:
    from .reflection import Reflection

_MAX_DEPTH: Final = 8
_MOST: Final = 3
_PACKAGE: Final = __name__.rpartition("._runtime.")[0]
_RAW_CALLS: Final = {
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
        raise TypeError(f"{_got(name)}; expected the name of a method of {owner}")
    if (found := _method(methods, name)) is not None:
        return found or None
    if name.startswith("_"):
        return name
    expected = _listed(_nearest(name, methods) or sorted(methods))
    raise ValueError(f"{_got(name)}, and {owner} has no such method: expected {expected}")


def _got(name: Any) -> str:
    """The beginning of an error about the argument of `supports`."""
    from .mistakes import shown

    return f"supports(){caller()} got {shown(name)}"


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
    raise ValueError(f"{_got(name)}, and {stub.__name__} has no such method or capability: expected {expected}")


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


# --- Capabilities -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def capability_path(
    types: Reflection, kind: Any, outer: str, name: str, *, allow_groups: bool = False
) -> tuple[str, ...] | None:
    """The path on the wire of a capability in the class `kind`, below the property `outer`; None if there is none.

    `name` may begin with that property, as in an error message. A group is an object that is there in any case: it says
    nothing itself.
    """
    parts = name.split(".")
    found = _followed(types, kind, parts, allow_groups)
    if found is None and len(parts) > 1 and _plain(parts[0]) == _plain(outer):
        found = _followed(types, kind, parts[1:], allow_groups)
    return None if found is None else (outer, *found)


def _followed(types: Reflection, kind: Any, parts: list[str], allow_groups: bool) -> list[str] | None:
    kinds, path, is_group = [kind], list[str](), False
    for part in parts:
        properties = (each for owner in kinds for each in types.properties(owner))
        found = next((each for each in properties if part in each[:2]), None)
        if found is None:
            return None
        _, wire, inner, is_group = found
        path.append(wire)
        kinds = _classes(inner)
    return None if is_group and not allow_groups else path


def class_of(types: Reflection, kind: Any, wire: str) -> Any:
    """The class of the property `wire` of the class `kind`."""
    return next(kinds[0] for _, name, kinds, _ in types.properties(kind) if name == wire)


def capability_names(types: Reflection, kind: Any, depth: int = 0) -> Iterator[str]:
    """The names on the wire of all capabilities in the class `kind`."""
    for _, wire, kinds, is_group in types.properties(kind):
        if not is_group:
            yield wire
        for inner in _classes(kinds) if depth < _MAX_DEPTH else ():
            yield from (f"{wire}.{name}" for name in capability_names(types, inner, depth + 1))


def _classes(kinds: list[type]) -> list[type]:
    return [each for each in kinds if each not in (bool, list)]


def nearest_names(name: str, known: Collection[str]) -> list[str]:
    """The names that are probably meant: nearly the same, or with a part that is nearly the last one of `name`."""
    by_plain = {_plain(each): each for each in known}
    by_part = {_plain(part): each for each in reversed([*known]) for part in each.split(".")}
    last = _plain(name.rpartition(".")[2])
    close = get_close_matches(_plain(name), [*by_plain], n=_MOST, cutoff=0.7)
    parts = get_close_matches(last, [*by_part], n=_MOST, cutoff=0.75)
    return [*dict.fromkeys([by_plain[each] for each in close] + [by_part[each] for each in parts])][:_MOST]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
