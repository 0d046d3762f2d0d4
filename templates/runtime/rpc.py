"""Talk JSON-RPC 2.0 with the peer, over any transport: both sides ask, both answer, and order is kept.

A `Connection` takes one message after the other. A notification is handled to its end before the next message is
looked at. A request is started, and runs concurrently. An answer resolves its request once all that came before it
has been handled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from itertools import islice
from time import perf_counter
from typing import Any, Final, Literal, NamedTuple

from ._wire import DecodeError, excerpt
from .capabilities import Advertised, CapabilityError, gates_of, not_advertised, without_handler
from .checks import misnamed_handlers
from .dispatch import ConnectionClosed, Handler, UnfitParams, dispatch_notification, dispatch_request
from .errors import ERROR_CLASSES, InternalError, InvalidRequestError, ParseError, RequestError
from .limits import head, is_light, measure, weigh
from .options import ConnectionOptions
from .protocol import Cancellation, Gate
from .tasks import PROGRAM_ENDS, PeerLog, Tasks, is_running, logger, one_line
from .transport import MAX_START, MessageTooLarge, Transport

_MAX_NAMELESS: Final = 100
"""After so many errors in a row that have no id, no more are sent: a flood of junk draws no flood of answers."""
_MAX_START: Final = 80
"""How much of a line that cannot be read the log shows."""


class _Turn:
    """The time in which a notification is handled; `reader` is the task that waits for its end, None afterwards.

    `weight` is how much memory the notification takes.
    """

    __slots__ = ("reader", "weight")

    def __init__(self, weight: int) -> None:
        self.reader = asyncio.current_task()
        self.weight = weight


_turn: ContextVar[_Turn | None] = ContextVar("_turn", default=None)
"""In whose handler the code runs; tasks that the handler starts inherit it."""


class _Next(NamedTuple):
    """What the transport has given: a message, its end (None), or that a message was too large."""

    line: bytes | None
    error: MessageTooLarge | None = None


class Connection:
    """Both directions of a connection; it is the `Peer` of the stubs.

    Notification handlers hold up what arrives after them, which keeps the order: keep them short, and let them wait for
    nothing that waits for the peer (a lock, say): start a task for that. One that asks the peer something itself gives
    up its turn, for the answer would have to wait for it. They share one context, so that a `ContextVar` which one sets
    stays set.
    """

    def __init__(self, transport: Transport, options: ConnectionOptions | None = None) -> None:
        self.options = options or ConnectionOptions()
        self._transport = transport
        self._flush: Callable[[], None] = getattr(transport, "flush", _nothing_to_flush)
        self._handler = Handler()
        self._advertised = Advertised()
        self._takes_null = True
        self._request_gates: dict[str, Gate] = {}
        self._notification_gates: dict[str, Gate] = {}
        self._awaited: str | None = None  # the request that must come before all else, until it has succeeded
        self._opening = 0  # how many of these run
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}  # for answers of the peer, by id
        self._running: dict[object, asyncio.Task[None]] = {}  # handlers of requests, by id
        self._answering: dict[asyncio.Task[None], int] = {}  # all that may finish after the peer has closed, by weight
        self._in_flight = 0  # the sum of these weights
        self._withdrawn: set[object] = set()  # ids of those running whose cancellation was asked for
        self._peer_log = PeerLog()
        self._tasks = Tasks(self.options.cleanup_seconds, self._peer_log)
        self._nameless = 0  # errors without an id that were drawn since the last valid message
        self._reading: asyncio.Task[None] | None = None  # the one that takes the next message
        self._is_behind = False  # somebody has to go on before the next message is looked at
        self._next: _Next | None = None  # what was read, and was not looked at yet
        self._reason: ConnectionClosed | None = None  # why nothing more is read
        self._end = asyncio.Event()  # nothing more is read
        self._hung_up = asyncio.Event()  # nothing more is written either
        self._closed: asyncio.Task[None] | None = None

    # --- The life of a connection --------------------------------------------------------------------------------

    def start(self, handler: Handler) -> None:
        """Begin to read messages; `handler` gets those of the peer."""
        self._handler = handler
        self._takes_null = handler.PROTOCOL.null_ids
        self._request_gates = gates_of(handler.PEER_METHODS, "request")
        self._notification_gates = gates_of(handler.PEER_METHODS, "notification")
        self._advertised = Advertised((*handler.METHODS.values(), *handler.PEER_METHODS.values()))
        negotiation = handler.PROTOCOL.negotiation
        if negotiation is not None and negotiation.method in handler.REQUESTS and self.options.check_capabilities:
            self._awaited = negotiation.method
        for name, meant in misnamed_handlers(type(handler)):
            advice = f"is it meant to be {meant}? If not, begin its name with _"
            logger.warning("%s.%s handles nothing: %s", type(handler).__name__, name, advice)
        self._read_on()
        self._closed = asyncio.create_task(self._live())

    async def wait_closed(self) -> None:
        """Return when the connection has ended, and the handlers have, too."""
        if self._closed is not None:
            await asyncio.shield(self._closed)

    def stop(self) -> None:
        """End the connection from this side; `wait_closed` tells when that is done."""
        self._hang_up(ConnectionClosed("this side has closed the connection"))

    async def close(self) -> None:
        """End the connection from this side, and wait until that is done."""
        self.stop()
        if self._closed is None:
            await self._transport.close()
        await self.wait_closed()

    def _hang_up(self, reason: ConnectionClosed) -> None:
        self._hung_up.set()
        self._lost(reason)

    def _lost(self, reason: ConnectionClosed) -> None:
        if self._reason is None:
            self._reason = reason
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(reason.again())
        self._end.set()

    async def _live(self) -> None:
        try:
            await self._end.wait()
            if self._answering:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._hung_up.wait(), self.options.finish_seconds)
        finally:
            await self._clean_up(self._reason or ConnectionClosed("this side has closed the connection"))

    async def _clean_up(self, reason: ConnectionClosed) -> None:
        self._hang_up(reason)
        try:
            await asyncio.sleep(0)  # pending requests fail with the reason before their tasks are cancelled
            await self._tasks.end()
            await self._tasks.take_step("connection_closed", self._handler.connection_closed(reason))
        finally:  # also where the loop is being shut down, and cancels all that it finds
            self._peer_log.close()
            await self._tasks.take_step("closing the transport", self._transport.close())

    def _begin(self, coroutine: Coroutine[Any, Any, None], weight: int) -> asyncio.Task[None]:
        """Start a task that may finish after the peer has closed the connection."""
        return self._let_finish(self._tasks.start(coroutine), weight)

    def _let_finish(self, task: asyncio.Task[None], weight: int) -> asyncio.Task[None]:
        self._answering[task] = weight
        self._in_flight += weight
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._in_flight -= self._answering.pop(task)
        if self._end.is_set() and not self._answering:
            self._hung_up.set()

    # --- Sending -------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result.

        Raises the `RequestError` that the peer answers, `CapabilityError`, and `ConnectionClosed`. Where the protocol
        allows it, cancelling the task that waits cancels the request.
        """
        self._check(method, self._request_gates)
        if self._reason is not None:
            raise self._reason.again()
        self._give_up_turn()
        self._warn(self._advertised.note_params(method, params), params)
        number = self._next_id
        self._next_id += 1
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        start = perf_counter()
        try:
            await self._write(self._encode(_message(method, params, id=number)))
            result = await future
        except asyncio.CancelledError:
            cancellation = self._handler.PROTOCOL.cancellation
            if cancellation is not None and self._reason is None and (future.cancelled() or not future.done()):
                self._tasks.start(self._withdraw(cancellation, number))
            raise
        finally:
            del self._waiting[number]
            if future.done() and not future.cancelled():
                future.exception()  # nobody may have got to wait for it
            logger.debug("%s, request %d, took %.1f ms", method, number, (perf_counter() - start) * 1000)
        self._advertised.note_result(method, result)
        return result

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Raises `CapabilityError` and `ConnectionClosed`."""
        self._check(method, self._notification_gates)
        await self._write(self._encode(_message(method, params)))

    def supports(self, method: str) -> bool:
        """Whether the peer has advertised what `method` needs, if anything."""
        gates = (self._request_gates.get(method), self._notification_gates.get(method))
        return all(gate is None or self._advertised.allows(gate) for gate in gates)

    def _check(self, method: str, gates: dict[str, Gate]) -> None:
        gate = gates.get(method)
        if gate is not None and self.options.check_capabilities and not self._advertised.allows(gate):
            raise CapabilityError(method, gate)

    def _warn(self, kind: Any, raw: Any) -> None:
        """Log where `raw`, a message of this side, advertises something else than the handler has."""
        if kind is None:
            return
        name = type(self._handler).__name__
        if missing := without_handler(self._handler, kind, raw):
            logger.warning("advertised, and not overridden in %s: %s", name, ", ".join(missing))
        if hidden := not_advertised(self._handler, kind, raw):
            logger.warning("overridden in %s, and not advertised: %s; use advertise()", name, ", ".join(hidden))

    async def _withdraw(self, cancellation: Cancellation, number: int) -> None:
        try:
            await self._write(self._encode(_message(cancellation.method, {cancellation.key: number})))
        except ConnectionClosed:
            logger.debug("request %d was not withdrawn: the connection has ended", number)

    def _encode(self, message: dict[str, Any]) -> bytes:
        try:
            line = self.options.dumps(message)
        except (Exception, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            raise RuntimeError("dumps failed") from error
        if len(line) > self.options.max_message_bytes:
            raise MessageTooLarge(
                f"a message of {len(line)} bytes; at most {self.options.max_message_bytes} may be sent"
            )
        return line

    async def _write(self, line: bytes) -> None:
        if self._hung_up.is_set() and self._reason is not None:
            raise self._reason.again()
        self._show("out", line)
        try:
            await self._transport.write(line)
        except ConnectionClosed as reason:
            self._hang_up(reason)
            raise
        except (asyncio.CancelledError, GeneratorExit, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            failure = ConnectionClosed(f"cannot write: {error}")
            self._hang_up(failure)
            raise failure from error

    def _show(self, direction: Literal["in", "out"], line: bytes) -> None:
        if self.options.on_message is not None:
            _call_hook("on_message", self.options.on_message, direction, line)

    # --- Receiving -----------------------------------------------------------------------------------------------

    def _read_on(self) -> None:
        self._reading = self._tasks.start(self._read())

    def _give_up_turn(self) -> None:
        """Let another task read on where this one handles a notification: its answer comes after other messages."""
        turn = _turn.get()
        if turn is not None and turn.reader is not None and turn.reader is self._reading:
            if limit := self._limit_for(turn.weight):
                raise RuntimeError(f"the handler of a notification cannot wait for the peer: {limit}")
            self._let_finish(turn.reader, turn.weight)
            self._read_on()

    def _limit_for(self, weight: int) -> str:
        """Which limit it is that another handler, whose message has this weight, would exceed; empty if none."""
        options = self.options
        if len(self._answering) >= options.max_requests:
            return f"too many at the same time; the limit is {options.max_requests} requests (max_requests)"
        if self._in_flight + weight > options.max_in_flight_bytes:
            return (
                f"{weight} bytes of memory beside {self._in_flight} of others; "
                f"the limit is {options.max_in_flight_bytes} bytes (max_in_flight_bytes)"
            )
        return ""

    async def _read(self) -> None:
        """Take messages until the end, or until another task does."""
        me = asyncio.current_task()
        try:
            while self._reading is me and not self._end.is_set():
                if self._next is None:
                    self._next = await self._read_next()
                if self._is_behind:
                    await asyncio.sleep(0)
                else:
                    await self._look_at(self._take_next())
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # where all tasks are cancelled, as at the end of the program, `_live` hangs up now
            if self._hung_up.is_set() or self._reading is not me:
                raise
            logger.warning("the handler of a notification has cancelled the task that reads")
            self._read_on()
        except Exception as error:
            self._lost(ConnectionClosed(f"cannot read: {error}"))
            raise

    async def _read_next(self) -> _Next:
        """The next that the transport has; where it fails, that is the end."""
        try:
            return _Next(await self._transport.read())
        except MessageTooLarge as error:
            return _Next(None, error)
        except ConnectionClosed as reason:
            self._lost(reason)
        except (asyncio.CancelledError, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not is_running(self._reading):
                raise
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            self._lost(ConnectionClosed(f"cannot read: {error}"))
        return _Next(None)

    def _take_next(self) -> _Next:
        found, self._next = self._next, None
        return found or _Next(None)

    async def _look_at(self, found: _Next) -> None:
        if found.line is None and found.error is None:
            self._lost(ConnectionClosed("the peer has closed the connection"))
            return
        try:
            message, weight = self._parse(found)
        except MessageTooLarge as error:
            await self._refuse_unread(error)
            return
        except RequestError as error:
            await self._refuse(error, start=(found.line or b"")[:_MAX_START])
            return
        del found  # the handler may take long, and the line as much memory as the message
        await self._take_one(message, weight)

    def _parse(self, found: _Next) -> tuple[Any, int]:
        """The JSON of a message, and how much memory it takes. Raises `MessageTooLarge`, or its answer."""
        line = found.line
        if line is None:
            raise found.error or MessageTooLarge("the message is too large")
        self._show("in", line)
        limit = self.options.max_in_flight_bytes
        if not is_light(line, limit) and (weight := weigh(line)) > limit:
            text = f"estimated at {weight} bytes of memory; the limit is {limit} (max_in_flight_bytes)"
            raise MessageTooLarge(text, start=line[:MAX_START])
        try:
            message = self.options.loads(line)
            return message, measure(line, message)
        except PROGRAM_ENDS:
            raise
        except ValueError as error:
            raise ParseError(f"Parse error: {one_line(error)}") from None
        except BaseException:  # a reader from elsewhere raises what it likes
            raise ParseError from None

    async def _refuse_unread(self, error: MessageTooLarge) -> None:
        """Fail the request that waits for a message which was not read, or refuse the request that it is."""
        kind, number = head(error.start)
        future = self._waiting.get(number) if kind == "answer" and type(number) is int else None
        if future is None or future.done():
            refusal = InvalidRequestError(f"Invalid request: {error}")
            await self._refuse(refusal, number if kind == "request" else None, start=error.start[:_MAX_START])
            return
        self._peer_log.warn("an answer is too large: %s", error)
        _fail(future, InternalError(f"the answer is too large: {error}"))
        self._fall_behind()

    async def _take_one(self, message: Any, weight: int) -> None:
        """Take one message. A failure concerns this message alone."""
        try:
            await self._route(message, weight)
        except ConnectionClosed:
            pass  # while it was refused
        except Exception:
            logger.exception("a message could not be handled")
            number = _id_of_request(message)
            if number is not None and number not in self._running:
                await self._refuse(InternalError(), number)

    async def _route(self, message: Any, weight: int) -> None:
        found: Any = message  # which checkers know nothing of, while they would know half of `message`
        if not isinstance(message, dict):
            await self._refuse(InvalidRequestError("Invalid request: a message is an object"))
            return
        number, method = found.get("id"), found.get("method")
        if "method" not in found and (
            "result" in found or "error" in found or (type(number) is int and number in self._waiting)
        ):
            self._settle(found)
            self._fall_behind()  # the task that waited for it goes on before the next message is looked at
        elif "id" in found and type(number) not in (int, str) and not (number is None and self._takes_null):
            kinds = "a string, an integer or null" if self._takes_null else "a string or an integer"
            await self._refuse(InvalidRequestError(f"Invalid request: `id` must be {kinds}"))
        elif not isinstance(method, str) or found.get("jsonrpc") != "2.0":
            what = '`jsonrpc` must be "2.0"' if isinstance(method, str) else "`method` must be a string"
            await self._refuse(InvalidRequestError(f"Invalid request: {what}"), number if "method" in found else None)
        elif "id" in found:
            await self._take_request(number, method, found.get("params"), weight)
        else:
            await self._take_notification(method, found.get("params"), weight)

    def _fall_behind(self) -> None:
        """Let the tasks that are ready go on; where the next message is still to come, they do so by then anyway."""
        self._is_behind = True
        asyncio.get_running_loop().call_soon(self._catch_up)

    def _catch_up(self) -> None:
        self._is_behind = False

    async def _refuse(self, error: RequestError, number: object = None, *, start: bytes = b"") -> None:
        """Answer what cannot be handled; `start` is that of a line which cannot be read."""
        if start:
            self._peer_log.warn("the peer sent a line that cannot be handled: %s; it starts with: %s", error, start)
        else:
            self._peer_log.warn("the peer sent what cannot be handled: %s", error)
        if number is None:
            self._nameless += 1
            if self._nameless > _MAX_NAMELESS:
                return
        await self._write(self._encode_error(error, number))

    def _encode_error(self, error: RequestError, number: object) -> bytes:
        """An answer, without its id where that is all that is too long: what came in may be larger on its way out."""
        try:
            return self._encode({"jsonrpc": "2.0", "id": number, "error": error.to_json()})
        except MessageTooLarge:
            return self._encode({"jsonrpc": "2.0", "id": None, "error": error.to_json()})

    def _settle(self, response: Any) -> None:
        """Hand an answer to the request that waits for it."""
        number = response.get("id")
        future = self._waiting.get(number) if type(number) is int else None
        if future is None or future.done():
            if type(number) is int and 0 <= number < self._next_id:
                logger.debug("an answer came too late: its id is %d", number)
            else:
                keys = ", ".join(islice(response, 5))
                self._peer_log.warn("no request waits for this answer: its id is %s, it has: %s", excerpt(number), keys)
            return
        self._nameless = 0
        if response.get("jsonrpc") != "2.0" or ("result" in response) is (response.get("error") is not None):
            self._peer_log.warn("the peer sent a malformed answer: its id is %s", number)
            _fail(future, InternalError("the peer sent a malformed answer", data=response))
        elif "result" in response:
            future.set_result(response["result"])
        else:
            _fail(future, RequestError.from_json(response["error"]))

    async def _take_notification(self, method: str, params: Any, weight: int) -> None:
        self._nameless = 0
        cancellation = self._handler.PROTOCOL.cancellation
        if cancellation is not None and method == cancellation.method:
            self._cancel(cancellation.key, params)
        if self._awaited is not None and not self._opening:
            logger.debug("the notification %.200r is ignored: it came before %s", method, self._awaited)
            return
        turn = _Turn(weight)
        _turn.set(turn)  # and never reset: without its reader it has ended
        try:
            await dispatch_notification(self._handler, method, params, on_drop=self.options.on_drop)
        except UnfitParams as error:
            self._peer_log.warn("the params of the notification %s do not fit: %s", method, error.reason)
            self._note_invalid(method, params, error.reason)
        except asyncio.CancelledError:
            if self._hung_up.is_set():
                raise
            logger.warning("the handler of the notification %s was cancelled", excerpt(method))
        except PROGRAM_ENDS:
            raise
        except BaseException as error:
            if not is_running(turn.reader):
                raise
            self._tell_failure(f"the notification {excerpt(method)}", error)
        finally:
            turn.reader = None

    def _note_invalid(self, method: str, params: Any, error: DecodeError) -> None:
        if self.options.on_invalid is not None:
            _call_hook("on_invalid", self.options.on_invalid, method, params, error)

    def _cancel(self, key: str, params: Any) -> None:
        found: Any = params
        number = found.get(key) if isinstance(params, dict) else None
        if type(number) in (int, str) and number in self._running and number not in self._withdrawn:
            self._withdrawn.add(number)
            self._running[number].cancel()

    async def _take_request(self, number: Any, method: str, params: Any, weight: int) -> None:
        self._nameless = 0
        key = object() if number is None else number
        if key in self._running:
            await self._refuse(InvalidRequestError("Invalid request: its id is that of a running one"))
            return
        if limit := self._limit_for(weight):
            await self._refuse(InternalError(f"Request refused: {limit}"), number)
            return
        if self._awaited is not None and not self._may_begin(method):
            await self._refuse(InvalidRequestError(f"Invalid request: {self._awaited} must come first"), number)
            return
        self._running[key] = self._begin(self._answer(key, number, method, params), weight)
        self._fall_behind()  # it has begun when the next message is looked at, such as one that cancels it

    def _may_begin(self, method: str) -> bool:
        """Whether `method` is the request that is awaited, or comes after it: peers need not wait for its answer."""
        if method != self._awaited:
            return self._opening > 0
        self._opening += 1
        return True

    async def _answer(self, key: object, number: Any, method: str, params: Any) -> None:
        start = perf_counter()
        trial = self._advertised.begin(method, params)  # for the handler, until it fails
        try:
            outcome = await self._outcome(method, params)
            if trial is not None and "result" in outcome:
                self._advertised.settle(trial)
            if method == self._awaited:
                self._opening -= 1
                if "result" in outcome:
                    self._awaited = None
        finally:
            if trial is not None:
                self._advertised.end(trial)
            del self._running[key]
            self._withdrawn.discard(key)
        if logger.isEnabledFor(logging.DEBUG):
            took = (perf_counter() - start) * 1000
            logger.debug("%s, request %s of the peer, took %.1f ms", excerpt(method), excerpt(number), took)
        try:
            answer = self._encode({"jsonrpc": "2.0", "id": number, **outcome})
        except Exception:
            logger.exception("the answer to %s cannot be sent", excerpt(method))
            answer = self._encode_error(InternalError(), number)
        del params, outcome  # the peer may take its time to read
        await self._write(answer)
        if not self._running:
            self._flush()  # nothing more is about to come: the peer need not wait for the end of the turn

    async def _outcome(self, method: str, params: Any) -> dict[str, Any]:
        """The `result` or the `error` that answers a request. The peer learns nothing of what went wrong in here."""
        task = asyncio.current_task()
        try:
            result = await dispatch_request(self._handler, method, params, on_drop=self.options.on_drop)
            self._warn(self._advertised.note_result(method, result), result)
            return {"result": result}
        except RequestError as error:
            if isinstance(error, UnfitParams):
                self._note_invalid(method, params, error.reason)
            return {"error": error.to_json()}
        except asyncio.CancelledError:
            if self._hung_up.is_set():
                raise
            return {"error": ERROR_CLASSES.get(-32800, InternalError)().to_json()}
        except PROGRAM_ENDS:
            raise
        except BaseException as error:
            if not is_running(task):
                raise
            self._tell_failure(excerpt(method), error)
            return {"error": InternalError().to_json()}

    def _tell_failure(self, what: str, error: BaseException) -> None:
        """Log a failure, unless the handler only learned of the end of the connection."""
        what = f"the handler of {what}"
        if isinstance(error, ConnectionClosed) and self._reason is not None:
            logger.debug("%s failed", what, exc_info=error)
        elif isinstance(error, CapabilityError):
            logger.error("%s failed: %s", what, error, exc_info=error)
        else:
            self._peer_log.failed(what, error)


def _nothing_to_flush() -> None:
    pass


def _fail(future: asyncio.Future[Any], error: RequestError) -> None:
    """Fail a request with the answer of the peer."""
    error.is_from_peer = True
    future.set_exception(error)


def _call_hook(name: str, hook: Callable[..., object], *values: Any) -> None:
    try:
        hook(*values)
    except PROGRAM_ENDS:
        raise
    except BaseException:
        logger.exception("%s failed", name)


def _id_of_request(message: Any) -> Any:
    """The id of a message that expects an answer with it; None for any other."""
    found: Any = message
    number: Any = found.get("id") if isinstance(message, dict) and "method" in found else None
    return number if type(number) in (int, str) else None


def _message(method: str, params: Any, **more: int) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", **more, "method": method}
    if params is not None:
        message["params"] = params
    return message
