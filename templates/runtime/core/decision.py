"""Mistakes that are named at once: a decision that was not awaited, and a call with wrong arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from .places import caller

__all__ = ["Decision", "decides"]

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decision(Coroutine[Any, Any, T_co]):
    """A coroutine whose result decides something. It has to be awaited: `bool()` of it and `==` raise `TypeError`.

    A coroutine of Python is true, and unlike any value, so that `if call.permission():` would allow everything, and ask
    nobody.
    """

    __slots__ = ("__weakref__", "_work")

    def __init__(self, work: Coroutine[Any, Any, T_co]) -> None:
        self._work = work

    if TYPE_CHECKING:

        def __bool__(self) -> NoReturn: ...

    else:

        def __bool__(self) -> bool:
            """Raise `TypeError`; but a task of asyncio asks whether it has a coroutine, from Python 3.12 on."""
            if sys._getframe(1).f_globals.get("__name__", "").startswith("asyncio."):
                return True
            raise self._undecided()

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise self._undecided()  # for `!=`, too, which would be true of every answer

    __hash__ = object.__hash__

    def _undecided(self) -> TypeError:
        name = getattr(self._work, "__qualname__", "the call")
        short = name.rpartition(".")[2]
        return TypeError(f"{name}{caller()} was not awaited, and decides nothing: write `await` before {short}(...)")

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._work.__await__()

    def send(self, value: Any, /) -> Any:
        """As of any coroutine, for event loops."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine, for event loops."""
        return self._work.throw(*error)

    def close(self) -> None:
        """End it without a result."""
        self._work.close()

    def __repr__(self) -> str:
        return f"<Decision of {self._work!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("cr_") or name in {"__name__", "__qualname__"}:
                return getattr(self._work, name)  # asyncio shows by it where a task waits
            if name.startswith("_"):
                raise AttributeError(name)
            called = getattr(self._work, "__qualname__", "the call")
            raise AttributeError(f"{called}{caller()} was not awaited, and has no {name!r} yet", name=name, obj=self)


def decides(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Decision[T]]:
    """Let a coroutine function return a `Decision`."""

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> Decision[T]:
        return Decision(function(*args, **kwargs))

    mark: Callable[[Any], Any] | None = getattr(inspect, "markcoroutinefunction", None)  # Python 3.12 and later
    return made if mark is None else mark(made)


def asks(method: F) -> F:
    """The same for a method of a stub. To type checkers it is still `async`, so that a subclass may override it."""
    return cast("F", decides(cast("Any", method)))


# --- Wrong calls -----------------------------------------------------------------------------------------------------


called_by = caller


def explain(error: Exception, *, is_passing: bool = False) -> None:
    """Raise a clearer error in place of one that a call of this package has caused, if there is one.

    With `is_passing`, the error has not left the package yet.
    """
    if isinstance(error, OSError):  # it says what is wrong, and is no mistake of the code
        return
    from .mistakes import in_argument, in_own_call

    mistake = in_own_call(error) if is_passing else in_argument(error)
    if mistake is not None:
        raise mistake from error


def explains(function: F) -> F:
    """Let a function that is called with what it does not take name the caller, and the argument.

    It is for functions that look into their arguments, and are not called for each message.
    """

    @wraps(cast("Any", function))
    def _explained(*args: Any, **named: Any) -> Any:
        try:
            return cast("Any", function)(*args, **named)
        except Exception as error:
            explain(error, is_passing=True)
            raise

    return cast("F", _explained)
