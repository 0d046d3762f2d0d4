"""What runs in the event loop of a connection: its tasks, which end together, and calls from other threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future, wait
from functools import partial, wraps
from math import inf
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar, overload

from .decision import explain
from .dispatch import ConnectionClosed, Remote
from .log import PROGRAM_ENDS, log_failure, logger
from .places import caller, waits_at

__all__ = ["BlockingStub", "blocking"]

P = ParamSpec("P")
T = TypeVar("T")


def is_running(task: asyncio.Task[Any] | None) -> bool:
    """True if `task` is the current one; False while its coroutine is closed before it has finished."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def check_loop(own: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
    """Return the event loop that runs. Raises `RuntimeError` if a connection has another one of its `own`.

    No response could wake what waits in another one.
    """
    loop = running_loop()
    if loop is None or own not in (None, loop):
        where = caller()
        raise RuntimeError(
            f"a stub{where} is used outside of the event loop of its connection, where it would wait for ever: "
            "await it in that loop, or call blocking(stub) from another thread"
        )
    return loop


def check_outcome(task: asyncio.Task[None]) -> None:
    """Log what a task has raised, except `ConnectionClosed`."""
    error = None if task.cancelled() else task.exception()
    # asyncio itself raises an interrupt (Ctrl-C on Python 3.10)
    if error is not None and not isinstance(error, (ConnectionClosed, *PROGRAM_ENDS)):
        log_failure("a task of the connection", error)


class Tasks:
    """Tasks that end together; each has `seconds` to clean up, and is abandoned after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[asyncio.Task[None], None] = {}

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task. What it raises is logged, except `ConnectionClosed`."""
        task = asyncio.Task(coroutine)  # an eager task factory would run it at once
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        check_outcome(task)

    async def end(self, others: Iterable[asyncio.Task[None]], name: Callable[[asyncio.Task[None]], str]) -> None:
        """Cancel all tasks, and `others`, and wait for them. `name` says what one is for, in the log."""
        tasks = dict.fromkeys((*self._running, *others))
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._seconds)
            for task in left:
                text = "%s ignores that it was cancelled: it did not finish during clean-up and was abandoned%s"
                logger.warning(text, name(task), waits_at(task))

    async def run_step(self, what: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a step of the clean-up; a step that fails or hangs does not prevent the next one."""
        step = asyncio.create_task(coroutine)
        try:
            for _ in range(2):
                await asyncio.wait({step}, timeout=self._seconds)
                if step.done():
                    break
                step.cancel()
        finally:
            step.cancel()
        if not step.done():
            logger.warning("%s did not finish during clean-up and was abandoned", what)
        elif step.cancelled():
            logger.error("%s failed: it was cancelled", what)
        elif (error := step.exception()) is not None:
            log_failure(what, error)


# --- Calls from other threads, such as a tool that runs in one -------------------------------------------------------

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
