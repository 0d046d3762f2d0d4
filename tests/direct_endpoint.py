"""A second `Endpoint`: both ends are in one process, and messages go from one to the other without a transport.

It shows what agents and clients need of an endpoint, and serves their tests where no bytes are needed: it has the same
order of messages, errors, handshake and cancellation, and neither limits nor JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from tests.support import runtime_module

_turn: ContextVar[asyncio.Event | None] = ContextVar("_turn", default=None)
"""That of the notification in whose handler the code runs: set to let the next message be taken."""


class End:
    """One of two ends. A test that speaks for its side by hand writes and reads lines."""

    peer_kind = "process"

    def __init__(self, acp: ModuleType) -> None:
        self.acp = acp
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.other = self
        self.is_closed = False

    def send(self, message: Any) -> None:
        if self.is_closed or self.other.is_closed:
            raise self.acp.ConnectionClosed("cannot write: the other end is closed")
        self.other.inbox.put_nowait(message)

    async def write(self, line: bytes) -> None:
        self.send(runtime_module(self.acp, "message").message_of(json.loads(line)))

    async def read(self) -> bytes | None:
        message = await self.inbox.get()
        return None if message is None else json.dumps(message.to_json()).encode()

    async def close(self) -> None:
        self.is_closed = True
        self.inbox.put_nowait(None)
        self.other.inbox.put_nowait(None)


def ends(acp: ModuleType) -> tuple[End, End]:
    one, other = End(acp), End(acp)
    one.other, other.other = other, one
    return one, other


class DirectEndpoint:
    """What `Endpoint` is to its users, for an `End`."""

    def __init__(
        self,
        end: End,
        options: Any,
        *,
        on_request: Callable[[str, Any], Coroutine[Any, Any, Any]],
        on_notification: Callable[[str, Any], Coroutine[Any, Any, None]],
        closing: Callable[[Any], Iterable[Coroutine[Any, Any, None]]] = lambda _: (),
        on_refused: Callable[[str], None] | None = None,
        **_: Any,  # it writes nothing, so it has nothing to check or to explain
    ) -> None:
        self.acp, self.options, self.peer_kind = end.acp, options, end.peer_kind
        self.loop: Any = asyncio.get_running_loop()
        self.handshake = runtime_module(end.acp, "state").Handshake()
        self.reason: Any = None
        self._end, self._closing, self._on_refused = end, closing, on_refused
        self._pending: dict[Any, asyncio.Future[Any]] = {}
        self._requests: dict[Any, asyncio.Task[None]] = {}
        self._cancelled: set[Any] = set()
        self._log = runtime_module(end.acp, "log")
        self._handling: set[asyncio.Task[None]] = set()
        self._main: asyncio.Task[None] | None = None
        self._count = 0
        self.serve(on_request, on_notification)

    def serve(
        self,
        on_request: Any,
        on_notification: Any,
        *,
        routes: Any = None,
        cancellation: Any = None,
        null_ids: Any = True,
    ) -> None:
        self._on_request, self._on_notification, self._routes = on_request, on_notification, routes or {}
        self.cancellation, self.null_ids, self.in_flight = cancellation, null_ids, self

    # --- Start and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._main = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self.reason is None and (message := await self._end.inbox.get()) is not None:
            await self._take(message)
        self.stop(self.acp.ConnectionClosed("the peer has closed the connection"))
        left = {*self._requests.values(), *self._handling}
        if left and not self._end.is_closed:
            await asyncio.wait(left, timeout=self.options.finish_seconds)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        for step in self._closing(self.reason):
            await step
        await self._end.close()

    def stop(self, reason: Any = None) -> None:
        if self.reason is None:
            self.reason = reason or self.acp.ConnectionClosed("this side has closed the connection")
            self._end.inbox.put_nowait(None)
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(self.reason.again())

    async def wait_closed(self) -> None:
        if self._main is not None:
            await asyncio.shield(self._main)

    async def close(self) -> None:
        self.stop()
        self._end.is_closed = True
        await self.wait_closed()

    def check_loop(self) -> Any:
        return runtime_module(self.acp, "tasks").check_loop(self.loop)

    # --- What this side sends ------------------------------------------------------------------------------------

    def send(self, message: Any) -> None:
        self._end.send(message)

    async def request(self, method: str, params: Any) -> Any:
        if self.reason is not None:
            raise self.reason.again()
        if (turn := _turn.get()) is not None:
            turn.set()  # nobody would take the response
        number, self._count = self._count, self._count + 1
        future = self._pending[number] = self.loop.create_future()
        try:
            self.send(runtime_module(self.acp, "message").Message("request", params, method, number))
            return await future
        except asyncio.CancelledError:
            if self.reason is None and (how := self.cancellation) is not None:
                self.send(runtime_module(self.acp, "message").Message("notification", {how.key: number}, how.method))
            raise
        finally:
            del self._pending[number]

    # --- Messages of the peer ------------------------------------------------------------------------------------

    async def _take(self, message: Any) -> None:
        if message.kind != "request":
            await asyncio.sleep(0)  # requests before it begin first
        match message.kind:
            case "request":
                self._start_or_refuse(message)
            case "notification":
                await self._handle(message)
            case _ if (future := self._pending.get(message.id)) is not None and not future.done():
                if message.kind == "result":
                    future.set_result(message.value)
                else:
                    error = self.acp.RequestError.from_json(message.value)
                    error.is_from_peer = True
                    future.set_exception(error)
                await asyncio.sleep(0)  # what waited for it goes on first

    def _start_or_refuse(self, message: Any) -> None:
        error = self.handshake.refusal(message.method)
        if message.id in self._requests:
            self.send(self._error(self.acp.errors.InvalidRequestError("a request with this id is running"), None))
        elif error is not None:
            self.send(self._error(error, message.id))
        else:
            self.handshake.begins(message.method)
            self._requests[message.id] = asyncio.create_task(self._respond(message))

    def _error(self, error: Any, number: Any) -> Any:
        return runtime_module(self.acp, "message").Message("error", error.to_json(), id=number)

    async def _respond(self, message: Any) -> None:
        succeeded, route = False, self._routes.get(message.method)
        try:
            work = self._on_request(message.method, message.value) if route is None else route(message)
            result = await work
            if not isinstance(result, runtime_module(self.acp, "in_flight").Sent):
                self.send(runtime_module(self.acp, "message").Message("result", result, message.method, message.id))
            succeeded = True
        except self.acp.RequestError as error:
            if self._on_refused is not None:
                self._on_refused(message.method)
            self.send(self._error(error, message.id))
        except asyncio.CancelledError:
            if self.reason is not None:
                raise
            self.send(
                self._error(self.acp.errors.ERROR_CLASSES.get(-32800, self.acp.errors.InternalError)(), message.id)
            )
        except Exception as error:  # noqa: BLE001 - whatever a handler raises
            self._log.log_handler_failure(message.method, error, is_closed=self.reason is not None)
            with suppress(self.acp.ConnectionClosed):
                self.send(self._error(self.acp.errors.InternalError(), message.id))
        finally:
            self.handshake.ends(message.method, succeeded=succeeded)
            del self._requests[message.id]
            self._cancelled.discard(message.id)

    async def _handle(self, message: Any) -> None:
        """Call the handler of a notification, and wait until it has ended, or sends a request of its own."""
        if self.cancellation is not None and message.method == self.cancellation.method:
            self._cancel(message.value)
        if self.handshake.step == "awaited":
            return
        turn = asyncio.Event()
        token = _turn.set(turn)
        task = asyncio.create_task(self._notified(message))
        _turn.reset(token)
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        task.add_done_callback(lambda _: turn.set())
        await turn.wait()

    def _cancel(self, params: Any) -> None:
        number = params.get(self.cancellation.key) if isinstance(params, dict) else None
        if type(number) in (int, str) and number in self._requests and number not in self._cancelled:
            self._cancelled.add(number)
            self._requests[number].cancel()

    async def _notified(self, message: Any) -> None:
        try:
            await self._on_notification(message.method, message.value)
        except self.acp.errors.InvalidParamsError as error:
            self._log.log_mistake("the params of the notification %s do not fit: %s", message.method, error)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises
            self._log.log_handler_failure(f"the notification {message.method}", error, is_closed=False)
