"""One end of a connection for tests, in raw messages: it keeps all that it gets, and sends anything."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ..closed_gates import closed_places, find_closed
from ..errors import InternalError, MethodNotFoundError, RequestError
from ..methods import GATED_VALUES
from ..records import Gate, Method, is_open
from ..transport import ByteTransport

__all__: list[str] = []

P = TypeVar("P", bound="ScriptedPeer")

logger: Final = logging.getLogger("acp")

Answer: TypeAlias = Any | RequestError | Callable[[Any], Any]
"""The answer to a request: a result, an error, or a function of the params that returns or raises one."""


class ScriptedPeer:
    """The base of `ScriptedAgent` and `ScriptedClient`.

    `received` has all messages of the other side in order; a line that is no JSON is a str. It grows without a limit.
    Requests are answered from `answers` by their methods; those that are not there get "method not found".
    `not_advertised` says which of them need a capability that this side has not advertised, or have a value that does.
    """

    METHODS: Mapping[str, Method] = {}
    """The methods of this side."""
    wait_seconds: float | None = None
    """How long `until` and `request` wait for the next message before they raise `asyncio.TimeoutError`."""

    def __init__(self, answers: Mapping[str, Answer] | None) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.received: list[Any] = []
        self.not_advertised: list[str] = []
        self.is_closed = False
        """True once the other side has closed the connection."""
        self._transport: ByteTransport | None = None
        self._advertised: Any = None
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._asked: dict[int, str] = {}
        self._sent = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._news: asyncio.Future[None] | None = None

    # --- Sending -------------------------------------------------------------------------------------------------

    async def write(self, line: bytes) -> None:
        """Send bytes as they are, sense or nonsense; they have no line break."""
        if self._transport is None:
            raise RuntimeError(f"this {type(self).__name__} is not connected")
        await self._transport.write(line)

    async def send(self, **message: Any) -> None:
        """Send a message with these members, and `jsonrpc` if it is not among them."""
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def notify(self, method: str, **params: Any) -> None:
        """Send a notification, with its params by their names on the wire."""
        await self.send(method=method, params=params)

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request, and wait for its result. Cancelling the task cancels the request.

        Raises `RequestError` for an error, and `ConnectionError` at the end.
        """
        number, self._sent = self._sent, self._sent + 1
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        self._asked[number] = method
        if method == "initialize":
            self._advertised = params
        try:
            await self.send(id=number, method=method, params=params)
            return await asyncio.wait_for(future, self.wait_seconds)
        except asyncio.CancelledError:
            if not self.is_closed:
                self.start(self.notify("$/cancel_request", requestId=number))
            raise
        finally:
            del self._pending[number]

    async def hang_up(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            await self._transport.close()

    async def die(self, code: int = 1) -> None:
        """End this process at once, as a crash does, if it serves stdin and stdout; else close the connection."""
        if isinstance(self._transport, _Stdio):
            os._exit(code)
        await self.hang_up()

    # --- Receiving -----------------------------------------------------------------------------------------------

    def calls(self, method: str) -> list[Any]:
        """The params of all requests and notifications of this method that have come."""
        return [each.get("params") for each in self.received if each.__class__ is dict and each.get("method") == method]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until `condition` is true; it is asked after each message.

        Raises `ConnectionError` at the end, and `asyncio.TimeoutError` if no message comes for `wait_seconds`.
        """
        while not condition():
            if self.is_closed:
                raise ConnectionError("the other side has closed the connection")
            if self._news is None:
                self._news = asyncio.get_running_loop().create_future()
            # `wait_for` of Python 3.11 loses a cancellation that comes with the news
            done, _ = await asyncio.wait({self._news}, timeout=self.wait_seconds)
            if not done:
                raise asyncio.TimeoutError

    async def call(self, method: str, count: int = 1) -> Any:
        """Wait for the call number `count` of a method, from 1 on; returns its params."""
        await self.until(lambda: len(self.calls(method)) >= count)
        return self.calls(method)[count - 1]

    async def handle(self, method: str, params: Any) -> Any:
        """Answer a request: returns the result, or raises `RequestError`. Override it for more than `answers`."""
        if method not in self.answers:
            raise MethodNotFoundError(method)
        answer = self.answers[method]
        found = answer(params) if callable(answer) else answer
        if isinstance(found, Awaitable):
            found = await found  # pyright: ignore[reportUnknownVariableType]
        if isinstance(found, RequestError):
            raise found
        return found  # pyright: ignore[reportUnknownVariableType]

    def notified(self, method: str, params: Any) -> None:
        """Called for each notification."""

    # --- Running -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def connected(self: P, transport: ByteTransport) -> AsyncGenerator[P, None]:
        """Talk over a transport during the block, which gets this object; then close it."""
        self._transport = transport
        reading = asyncio.ensure_future(self._read(transport))
        try:
            yield self
        finally:
            for task in (reading, *self._tasks):
                task.cancel()
            await asyncio.gather(reading, *self._tasks, return_exceptions=True)
            await transport.close()

    async def serve(self, transport: ByteTransport) -> None:
        """Talk over a transport until the other side closes it."""
        async with self.connected(transport):
            with suppress(ConnectionError):
                await self.until(lambda: False)

    def run(self) -> None:
        """Talk over stdin and stdout until stdin ends: for a script that is started as a process."""
        asyncio.run(self.serve(_Stdio()))

    async def _read(self, transport: ByteTransport) -> None:
        try:
            while (line := await transport.read()) is not None:
                self._take(line)
                self._tell()
        finally:
            self.is_closed = True
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(ConnectionError("the other side has closed the connection"))
            self._tell()

    def _take(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except ValueError:
            self.received.append(line.decode(errors="replace"))
            return
        self.received.append(message)
        match message:
            case {"method": str(method), "id": number}:
                self._check("request", method, message.get("params"))
                self.start(self._respond(number, method, message.get("params")))
            case {"method": str(method)}:
                self._check("notification", method, message.get("params"))
                self.notified(method, message.get("params"))
            case {"id": int(number)} if number in self._pending and not self._pending[number].done():
                if "error" in message:
                    self._pending[number].set_exception(RequestError.from_json(message["error"]))
                else:
                    self._check("result", self._asked[number], message.get("result"))
                    self._pending[number].set_result(message.get("result"))
            case _:
                pass

    def _check(self, kind: Literal["request", "notification", "result"], method: str, message: Any) -> None:
        """Note what needs a capability that this side has not advertised. Before `initialize`, nothing is known."""
        if self._advertised is None:
            return
        record = None if kind == "result" else self.METHODS.get(method)
        gate = None if record is None else ((kind == "notification" and record.notification) or record).capability
        places = closed_places(kind, GATED_VALUES, self._has).get(method, ())
        values = [(str(each), each.gate) for each in find_closed(message, places)]
        for value, needed in values if gate is None or self._has(gate) else [("", gate)]:
            self.not_advertised.append(f"{'the result of ' * (kind == 'result')}{method}{value} needs {needed}")

    def _has(self, gate: Gate) -> bool:
        return gate.advertised_in is not self.advertising() or is_open(gate, self._advertised)

    def advertising(self) -> Any:
        """The type of the message in which this side advertises its capabilities."""
        raise NotImplementedError

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine beside the others, until the connection ends at most."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            logger.error("a script has failed", exc_info=error)

    async def _respond(self, number: Any, method: str, params: Any) -> None:
        try:
            outcome = {"result": await self.handle(method, params)}
            if method == "initialize":
                self._advertised = outcome["result"]
        except RequestError as error:
            outcome = {"error": error.to_json()}
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            logger.exception("a script has failed")
            outcome = {"error": InternalError(f"the script has failed: {error!r}").to_json()}
        with suppress(ConnectionError):
            await self.send(id=number, **outcome)

    def _tell(self) -> None:
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)


class _Stdio:
    """Lines on stdin and stdout. A thread reads, as asyncio does not support files and terminals."""

    def __init__(self) -> None:
        self._is_closed = False

    async def read(self) -> bytes | None:
        return await asyncio.to_thread(sys.stdin.buffer.readline) or None

    async def write(self, message: bytes) -> None:
        if self._is_closed:
            raise BrokenPipeError("stdout is closed")
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            sys.stdout.flush()
            with open(os.devnull, "wb") as nothing:  # to close it would give its number to the next open file
                os.dup2(nothing.fileno(), sys.stdout.fileno())
