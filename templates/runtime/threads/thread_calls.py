"""Calls of a stub from other threads than that of the event loop: such as a tool that runs in a thread."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from functools import partial, wraps
from math import inf
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar, overload

from .decision import explain
from .dispatch import ConnectionClosed, Remote
from .tasks import running_loop

P = ParamSpec("P")
T = TypeVar("T")

_POLL_SECONDS: Final = 1.0
"""An event loop that ends says so to nobody: so often a call looks whether it still runs."""


@overload
def blocking(target: Remote, *, seconds: float | None = None) -> BlockingStub: ...
@overload
def blocking(
    target: Callable[P, Coroutine[Any, Any, T]], *, seconds: float | None = None
) -> Callable[P, T]: ...  # so that type checkers know params and result
def blocking(target: Any, *, seconds: float | None = None) -> Any:
    """The blocking form of a stub, or of one of its methods, to be called from any thread but that of the event loop.

    `blocking(stub).method(params)` and `blocking(stub.method)(params)` send a request and wait for its result, or send
    a notification. Type checkers know the params and the result of the latter. Both raise what the method raises:
    `ConnectionClosed` also if the event loop ends meanwhile. If there is no answer after `seconds`, the request is
    cancelled, and `TimeoutError` raised; an interrupt cancels it, too. The end of a task that waits for the thread does
    not. In the thread of the event loop, which would wait for itself, the call raises `RuntimeError`.

    Raises `TypeError` for anything else than a stub of a connection.
    """
    if isinstance(target, Remote):
        return BlockingStub(target, seconds)
    stub = getattr(target, "__self__", None)
    if not isinstance(stub, Remote):
        from .mistakes import shown

        hint = "such as one of self.client" if callable(target) else "such as self.client or self.agent"
        raise TypeError(f"blocking got {shown(target)}; expected a stub, or a method of one, {hint}")
    return _blocked(target, stub, seconds)


def _blocked(method: Any, stub: Remote, seconds: float | None) -> Any:
    return wraps(method)(partial(_call, method, stub, seconds))


class BlockingStub:
    """A stub whose methods block: it has all that the stub has, but for the `await`."""

    def __init__(self, stub: Remote, seconds: float | None) -> None:
        self._stub = stub
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        found: Any = getattr(self._stub, name)
        is_async = inspect.iscoroutinefunction(inspect.unwrap(found))  # which one that decides wraps
        return _blocked(found, self._stub, self._seconds) if is_async else found

    def __repr__(self) -> str:
        return f"blocking({self._stub!r})"


def _call(
    method: Callable[..., Coroutine[Any, Any, T]], stub: Remote, seconds: float | None, *args: Any, **named: Any
) -> T:
    loop = _loop_of(stub)
    if running_loop() is loop:
        name = getattr(method, "__qualname__", repr(method))
        raise RuntimeError(f"blocking({name}) in the thread of its event loop would wait for itself: await {name}")
    if not loop.is_running():
        raise _ended()
    coroutine = method(*args, **named)
    try:
        call = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:  # the loop is closed
        coroutine.close()
        raise _ended() from None
    try:
        return _result(call, loop, seconds)
    except BaseException as error:
        if loop.is_running():
            call.cancel()  # of no effect on one that is done
        if isinstance(error, Exception):
            explain(error, is_passing=True)
        raise


def _loop_of(stub: Remote) -> asyncio.AbstractEventLoop:
    loop = getattr(vars(stub).get("_peer"), "loop", None)  # that of the connection
    if not isinstance(loop, asyncio.AbstractEventLoop):
        raise TypeError(f"blocking got a {type(stub).__name__} of no connection that runs in an event loop")
    return loop


def _result(call: Future[T], loop: asyncio.AbstractEventLoop, seconds: float | None) -> T:
    deadline = inf if seconds is None else monotonic() + seconds
    while not call.done():
        if (left := deadline - monotonic()) <= 0:
            raise TimeoutError(f"no answer within {seconds} seconds")
        wait([call], min(left, _POLL_SECONDS))
        if not (call.done() or loop.is_running()):
            raise _ended()
    try:
        return call.result()
    except CancelledError:  # as the loop does with all tasks at its end
        raise _ended() from None


def _ended() -> ConnectionClosed:
    return ConnectionClosed("the event loop of the connection has ended")
