"""Handlers: the factories that make them, and methods of their classes that no message reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Final, TypeAlias

from ._base import ProtocolInfo
from ._decode import excerpt
from .dispatch import Handler
from .log import logger

Factory: TypeAlias = Callable[[Any], Handler]


def by_version(factory: Any) -> Mapping[int, Factory] | None:
    """The mapping of factories by version, if `factory` is one."""
    found: Any = factory
    return found if isinstance(factory, Mapping) else None


def check_factory(factory: Any, role: str, other: Any) -> None:
    """Raise `TypeError` if `factory` cannot make handlers; `other` is the next argument, which may be in its place."""
    factories = by_version(factory)
    for each in (factory,) if factories is None else factories.values():
        if isinstance(each, Handler):
            name = type(each).__name__
            raise TypeError(f"found an instance of {name}: pass the class {name}, which is called with the stub")
        if not callable(each):
            hint = f": the first argument is {other.__name__}" if isinstance(other, type) else ""
            raise TypeError(f"expected a subclass of {role}, or a function that makes one, found {excerpt(each)}{hint}")


def make_handler(factory: Factory, stub: Any) -> Any:
    """Call a factory, and return its `Handler`. Raises `TypeError` if it makes no handler that goes with `stub`."""
    try:
        found: Any = factory(stub)
    except TypeError as error:
        from .on_demand.mistakes import in_factory

        if (mistake := in_factory(factory, error, stub)) is error:
            raise
        raise mistake from error
    role = type(stub).__module__.rpartition(".")[2]  # the same for each version
    generated = (base.__module__ for base in type(found).__mro__ if "METHODS" in vars(base))
    if any(module.rpartition(".")[2] == role for module in generated):
        return found
    from .on_demand.mistakes import handler_of, hint_for, name_of, shown

    hint = hint_for(found) or f": it must extend {handler_of(stub).__name__}, which goes with {type(stub).__name__}"
    raise TypeError(f"{name_of(factory)} made {shown(found)}{hint}")


def version_of(factory: Factory, protocols: Mapping[int, ProtocolInfo]) -> int:
    """The version of the handlers of a factory. Raises `TypeError` for a function if there are several versions."""
    if len(protocols) == 1:
        return max(protocols)
    info: object = getattr(factory, "PROTOCOL", None)
    if isinstance(info, ProtocolInfo):
        return info.version
    raise TypeError(f"the version of {factory!r} is not known: name it, as in {{{max(protocols)}: factory}}")


# --- Names -----------------------------------------------------------------------------------------------------------

_COROUTINE: Final = 0x80  # `inspect.CO_COROUTINE`


def warn_of_misnamed(kind: type[Handler]) -> None:
    """Log the public coroutine methods of `kind` that no message reaches, but probably should."""
    warn_of_others(kind, {each.handler for each in kind.METHODS.values()}, Handler)


def warn_of_others(kind: type[Any], handlers: Set[str], root: type[Any]) -> None:
    """Log the public coroutine methods of `kind` that are neither `handlers` nor of `root`, but probably should be."""
    own = {name: value for base in reversed(kind.__mro__) if _is_users(base) for name, value in vars(base).items()}
    suspects = [
        name
        for name, value in own.items()
        if name not in handlers and not name.startswith("_") and not hasattr(root, name) and _takes_params(value)
    ]
    if suspects:
        from .on_demand.misnamed import meant_handlers

        for name, meant in meant_handlers(suspects, handlers, own):
            hint = f"is it meant to be {meant}? If not, begin its name with _"
            logger.warning("%s.%s handles nothing: %s", kind.__name__, name, hint)


def _is_users(base: type[Any]) -> bool:
    """True for a class from outside of this package, which is neither generated nor one of its helpers."""
    return base is not object and not base.__module__.startswith(f"{__package__}.")


def _takes_params(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE) and code.co_argcount > 1
