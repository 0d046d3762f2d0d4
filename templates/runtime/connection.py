"""A JSON-RPC 2.0 connection over any transport: both sides send requests, and messages are handled in order.

The read loop takes one message after the other:

* A notification is handled to its end before the next message is dispatched.
* A request starts a task. The loop yields once: its handler has begun when the next message, which may cancel it, is
  dispatched.
* A response resolves a pending request. The loop yields once: the task that waited for it continues first.

One task at a time runs the loop, and calls the handlers of notifications. While such a handler waits for the response
to a request of its own, its task cannot read it. So `request` first starts another task for the loop. The task of the
handler counts as in flight from then on, and ends with the handler.

The states of a connection:

* open, until the peer closes it or reading fails. Then pending requests are rejected.
* draining: handlers of requests may still respond, for `finish_seconds`. `stop` and a failure to write skip this state.
* closing: all tasks are cancelled, `connection_closed` is called, the transport is closed.
* closed: `wait_closed` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeAlias

from ._decode import excerpt
from .dispatch import ConnectionClosed, Handler, Peer, UnfitParams, call_handler, dispatch_notification
from .errors import InternalError, InvalidRequestError, RequestError
from .inflight import InFlight
from .limits import MAX_ID_BYTES, head, is_id
from .link import Link
from .log import PROGRAM_ENDS, log_handler_failure, log_mistake, logger
from .negotiation import Answered, Candidates, LocalSide, Proposal
from .options import ConnectionOptions
from .outgoing import Outgoing
from .tasks import is_running
from .transport import MessageTooLarge, Transport

_MAX_START: Final = 80
"""The bytes that are logged of a line that cannot be parsed."""

_Refusing: TypeAlias = "Coroutine[Any, Any, None] | None"
"""What refuses a message, if it has to be refused. It does not keep the message while the peer reads slowly."""


class _Notification:
    """A notification that is being handled: by the task `reader`, which is None afterwards."""

    __slots__ = ("reader", "weight")

    def __init__(self, weight: int) -> None:
        self.reader = asyncio.current_task()
        self.weight = weight


_notification: ContextVar[_Notification | None] = ContextVar("_notification", default=None)
"""The one in whose handler the code runs; tasks that the handler starts inherit it."""


class Connection:
    """Both directions of a connection; it is the `Peer` of the stubs.

    Messages wait for the handlers of earlier notifications: keep these short, and let them start a task for anything
    that waits for the peer, such as a lock. When such a handler sends a request, later messages no longer wait for it.
    These handlers share one context: a `ContextVar` that one of them sets stays set.
    """

    def __init__(self, transport: Transport, options: ConnectionOptions | None = None) -> None:
        self.options = options or ConnectionOptions()
        self._link = Link(transport, self.options)
        self._next_id = 0
        self._reader: asyncio.Task[None] | None = None  # runs the read loop
        self._received: list[bytes | MessageTooLarge | None] = []  # at most one: was read, and is not dispatched yet
        self._must_yield = False  # other tasks have to run before the next message is dispatched
        self._closed: asyncio.Task[None] | None = None
        self._side = LocalSide(is_checked=self.options.check_capabilities)
        self._outgoing = Outgoing(self._link, self._side)
        self._in_flight = InFlight(self._link, self._side, self._outgoing)

    # --- Start and end -------------------------------------------------------------------------------------------

    def start(self, handler: Handler | Candidates) -> None:
        """Start to read messages; `handler` gets those of the peer, or the one of several that the peer chooses."""
        if isinstance(handler, Candidates):
            self._side.let_peer_choose(handler)
        else:
            self._side.use(handler)
        self._in_flight.require(self._side.handshake)
        self._start()

    def _start(self) -> None:
        self._start_reading()
        self._closed = asyncio.create_task(self._close_at_end())

    async def start_with(self, proposal: Proposal, make: Callable[[int], Handler]) -> tuple[int, Handler, Peer]:
        """Start with the request that lets the peer choose one of several versions, instead of `start`.

        `make` makes the handler for a version. Returns the version and its handler, and a peer that answers the request
        once more from what was received, so that a stub can decode it. Raises what `request` raises, and
        `ConnectionClosed` if the peer has chosen a version that was not offered.
        """
        method = proposal.negotiation.method
        self._in_flight.require(method)
        self._start()
        result = await self.request(method, proposal.params)
        try:
            version = proposal.version_in(result)
        except ConnectionClosed as reason:
            self._link.stop_writing(reason)
            raise
        handler = make(version)
        self._side.use(handler)
        self._in_flight.require(None)
        return version, handler, Answered(self._side.capabilities, result)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and all handlers have finished."""
        if self._closed is not None:
            await asyncio.shield(self._closed)

    def stop(self) -> None:
        """Close the connection from this side; `wait_closed` waits until that is done."""
        self._link.stop_writing(ConnectionClosed("this side has closed the connection"))

    async def close(self) -> None:
        """Close the connection from this side, and wait until that is done."""
        self.stop()
        if self._closed is None:
            await self._link.transport.close()
        await self.wait_closed()

    async def _close_at_end(self) -> None:
        link = self._link
        try:
            await link.read_ended.wait()
            if self._in_flight:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(link.write_ended.wait(), self.options.finish_seconds)
        finally:  # also if the event loop is shut down, which cancels all tasks
            await self._clean_up(link.reason or ConnectionClosed("this side has closed the connection"))

    async def _clean_up(self, reason: ConnectionClosed) -> None:
        link = self._link
        link.stop_writing(reason)
        try:
            await asyncio.sleep(0)  # pending requests raise the reason before their tasks are cancelled
            await link.tasks.end()
            for handler in self._side.handlers:
                await link.tasks.run_step("connection_closed", call_handler(handler, "connection_closed", reason))
        finally:
            await link.tasks.run_step("closing the transport", link.transport.close())

    # --- Requests and notifications of this side -----------------------------------------------------------------

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result. If the protocol allows it, cancelling the task cancels the request.

        Raises the `RequestError` that the peer responds with, `CapabilityError` and `ConnectionClosed`, and `TypeError`
        for params that cannot be sent.
        """
        link, capabilities = self._link, self._side.capabilities
        capabilities.check_request(method)
        if link.reason is not None:
            raise link.reason.again()
        self._hand_over_reading()
        capabilities.sent(method, "params", params)
        number = self._next_id
        self._next_id += 1
        future = link.pending[number] = asyncio.get_running_loop().create_future()
        start = perf_counter()
        try:
            await link.write(self._outgoing.call(method, params, id=number))
            result = await future
        except asyncio.CancelledError:
            if link.reason is None and (future.cancelled() or not future.done()):
                link.tasks.start(self._cancel_at_peer(number))
            raise
        finally:
            del link.pending[number]
            if future.done() and not future.cancelled():
                future.exception()  # marks it as retrieved: a failure to write may have come first
            logger.debug("%s, request %d, took %.1f ms", method, number, (perf_counter() - start) * 1000)
        capabilities.received_result(method, result)
        return result

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Raises `CapabilityError`, `ConnectionClosed`, and `TypeError` as `request` does."""
        self._side.capabilities.check_notification(method)
        await self._link.write(self._outgoing.call(method, params))

    @property
    def version(self) -> int:
        """The version of the handler in effect."""
        return self._side.handler.PROTOCOL.version

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        return self._side.capabilities.supports(method)

    async def _cancel_at_peer(self, number: int) -> None:
        if (how := self._side.cancellation) is not None:
            await self._link.write(self._outgoing.call(how.method, {how.key: number}))

    # --- The read loop -------------------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        self._reader = self._link.tasks.start(self._read_loop())

    def _hand_over_reading(self) -> None:
        """Let another task run the read loop, if this one runs it and handles a notification."""
        handled = _notification.get()
        if handled is not None and handled.reader is not None and handled.reader is self._reader:
            if limit := self._in_flight.exceeded(handled.weight):
                raise RuntimeError(f"the handler of a notification cannot send a request: {limit}")
            self._in_flight.add(handled.reader, handled.weight)
            self._start_reading()

    async def _read_loop(self) -> None:
        me, link = asyncio.current_task(), self._link
        try:
            while self._reader is me and not link.read_ended.is_set():
                if not self._received:
                    self._received.append(await self._read())
                if self._must_yield:
                    await asyncio.sleep(0)
                else:
                    await self._dispatch(self._received.pop())
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # if all tasks are cancelled, as at the end of the program, the clean-up starts now
            if link.write_ended.is_set() or self._reader is not me:
                raise
            logger.warning("the handler of a notification has cancelled the read loop")
            self._start_reading()
        except Exception as error:
            link.stop_reading(ConnectionClosed(f"cannot read: {error}"))
            raise

    async def _read(self) -> bytes | MessageTooLarge | None:
        """Read the next message; None at the end, which a failure is, too."""
        link = self._link
        try:
            return await link.transport.read()
        except MessageTooLarge as error:
            return error.with_traceback(None)
        except ConnectionClosed as reason:
            link.stop_reading(reason)
        except (asyncio.CancelledError, *PROGRAM_ENDS):
            raise
        except BaseException as error:
            if not is_running(self._reader):
                raise
            if not isinstance(error, OSError):
                logger.exception("the transport failed")
            link.stop_reading(ConnectionClosed(f"cannot read: {error}"))
        return None

    def _yield_to_tasks(self) -> None:
        """Let tasks that are ready run before the next message is dispatched; while it is read, they run anyway."""
        self._must_yield = True
        asyncio.get_running_loop().call_soon(self._has_yielded)

    def _has_yielded(self) -> None:
        self._must_yield = False

    # --- Messages of the peer ------------------------------------------------------------------------------------

    async def _dispatch(self, received: bytes | MessageTooLarge | None) -> None:
        """Handle what was read. A failure affects this message only."""
        if received is None:
            self._link.stop_reading(ConnectionClosed("the peer has closed the connection"))
            return
        handling = self._handling(received) if isinstance(received, bytes) else self._refuse_unread(received)
        del received  # the handler may take long, and the line as much memory as the message
        refusing = None
        try:
            refusing = await handling
        except Exception:
            logger.exception("a message could not be handled")
        if refusing is not None:
            with contextlib.suppress(ConnectionClosed):
                await refusing

    def _handling(self, line: bytes) -> Coroutine[Any, Any, _Refusing]:
        """Parse a line; returns what handles it, which does not keep the line."""
        try:
            return self._route(*self._link.parse(line))
        except MessageTooLarge as error:
            return self._refuse_unread(error.with_traceback(None))
        except RequestError as error:
            return self._refuse_unparsed(error.with_traceback(None), line[:_MAX_START])

    async def _refuse_unparsed(self, error: RequestError, start: bytes) -> _Refusing:
        return self._link.refuse(error, start=start)

    async def _refuse_unread(self, error: MessageTooLarge) -> _Refusing:
        """Reject the pending request whose response was not parsed, or refuse a request that was not."""
        kind, number = head(error.start)
        future = self._link.pending.get(number) if kind == "response" and type(number) is int else None
        if future is None or future.done():
            refusal = InvalidRequestError(f"Invalid request: {error}")
            return self._link.refuse(refusal, number if kind == "request" else None, start=error.start[:_MAX_START])
        log_mistake("a response is too large: %s", error)
        _reject(future, InternalError(f"the response is too large: {error}"))
        self._yield_to_tasks()
        return None

    async def _route(self, raw: Any, weight: int) -> _Refusing:
        """Handle a message, or return what refuses it."""
        refuse = self._link.refuse
        message: Any = raw  # type checkers would narrow `raw` to a dict of unknown types
        if not isinstance(raw, dict):
            return refuse(InvalidRequestError("Invalid request: a message must be an object"))
        number, method = message.get("id"), message.get("method")
        if "method" not in message and (
            "result" in message or "error" in message or (type(number) is int and number in self._link.pending)
        ):
            self._resolve(message)
            self._yield_to_tasks()
        elif "id" in message and not (is_id(number) or (number is None and self._side.null_ids)):
            kinds = f"a string of up to {MAX_ID_BYTES} bytes or an integer of up to 64 bits"
            kinds += ", or null" if self._side.null_ids else ""
            return refuse(InvalidRequestError(f"Invalid request: `id` must be {kinds}"))
        elif not isinstance(method, str) or message.get("jsonrpc") != "2.0":
            what = '`jsonrpc` must be "2.0"' if isinstance(method, str) else "`method` must be a string"
            error = InvalidRequestError(f"Invalid request: {what}")
            return refuse(error, number if "method" in message else None)
        elif "id" in message:
            self._link.unaddressed = 0
            params = message.get("params")
            if refusal := self._in_flight.refusal(number, method, weight):
                is_taken = number in self._in_flight  # the peer would take the refusal for the other response
                return refuse(refusal, None if is_taken else number)
            self._in_flight.start(number, method, params, weight)
            self._yield_to_tasks()
        else:
            self._link.unaddressed = 0
            await self._handle_notification(method, message.get("params"), weight)
        return None

    def _resolve(self, response: Any) -> None:
        """Resolve the pending request that `response` answers."""
        number = response.get("id")
        future = self._link.pending.get(number) if type(number) is int else None
        if future is None or future.done():
            if type(number) is int and 0 <= number < self._next_id:
                logger.debug("a response came too late: its id is %d", number)
            else:
                keys = ", ".join(islice(response, 5))
                text = "no request is pending for a response: its id is %s, it has: %s"
                log_mistake(text, excerpt(number), keys)
            return
        self._link.unaddressed = 0
        if response.get("jsonrpc") != "2.0" or ("result" in response) is (response.get("error") is not None):
            log_mistake("the peer sent a malformed response: its id is %s", number)
            _reject(future, InternalError("the peer sent a malformed response", data=response))
        elif "result" in response:
            future.set_result(response["result"])
        else:
            _reject(future, RequestError.from_json(response["error"]))

    async def _handle_notification(self, method: str, params: Any, weight: int) -> None:
        link, cancellation = self._link, self._side.cancellation
        if cancellation is not None and method == cancellation.method:
            self._in_flight.cancel(params, cancellation.key)
        if self._in_flight.awaits_handshake:
            logger.debug("the notification %.200r is ignored: it came before %s", method, self._in_flight.handshake)
            return
        handled = _Notification(weight)
        _notification.set(handled)  # never reset: without a reader, it is over
        try:
            await dispatch_notification(self._side.handler, method, params, on_drop=self.options.on_drop)
        except UnfitParams as error:
            log_mistake("the params of the notification %s do not fit: %s", method, error.reason)
            self._in_flight.report_invalid(method, params, error)
        except asyncio.CancelledError:
            if link.write_ended.is_set():
                raise
            logger.warning("the handler of the notification %s was cancelled", excerpt(method))
        except PROGRAM_ENDS:
            raise
        except BaseException as error:
            if not is_running(handled.reader):
                raise
            log_handler_failure(f"the notification {excerpt(method)}", error, is_closed=link.reason is not None)
        finally:
            handled.reader = None


def _reject(future: asyncio.Future[Any], error: RequestError) -> None:
    """Reject a pending request with an error of the peer."""
    error.is_from_peer = True
    future.set_exception(error)
