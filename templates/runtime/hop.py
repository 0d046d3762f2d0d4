"""One side of a proxy: its messages are handled by a method that overrides them, or passed on to the other side.

What is passed on is the text that came, with the id of the next request in place of its own, in the order of arrival.
It is written by the read loop, which waits for a slow receiver before it reads on. A request that is overridden has a
task of its own. Once the response to a call of its handler has come, later messages of that side wait until the handler
has returned, or calls again: they must not overtake what it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from ._base import MISFITS, ProtocolInfo, UnsetType
from ._decode import DecodeError, reporting_drops
from .calls import Output, State
from .chain import form_of
from .connection import Connection
from .dispatch import ConnectionClosed, Handler, UnfitParams, call_handler
from .errors import InternalError, InvalidRequestError, RequestError
from .forms import FORMS
from .message import MAX_ID_BYTES, Message, Unreadable, Unsendable
from .options import ConnectionOptions, log_failure, log_mistake, logger
from .overriding import Call, Neighbour, Override, Passing, Route, override_of
from .passing import Passed, with_text
from .transport import ByteTransport, Transport

_ENVELOPES: Final = frozenset(
    name for each in FORMS for name in (each.initialize, each.request, each.notification) if name
)
"""The methods between a conductor and its proxies. A `Junction` opens those of its peer; no other neighbour has any."""
_MAX_OF_LINE: Final = 1000
_CLOSED: Final = "the peer has closed the connection"
_STUCK_SECONDS: Final = 30.0
"""After the end of the client, a message of it may take so long until the next one is read."""


class Versions(Protocol):
    """The proxy of two hops, which depends on the version of the protocol."""

    options: ConnectionOptions
    tells: bool
    proxy: Passing | None
    hops: list[Hop]

    def negotiates(self, hop: Hop, method: str) -> bool:
        """True for the request of the client to the agent that negotiates the version; `hop` is the agent's."""
        ...

    def asks(self, hop: Hop, message: Message) -> None:
        """Choose the proxy for the version that the client asks for."""
        ...

    def answered(self, hop: Hop, method: str, response: Message) -> None:
        """Choose the proxy for the version that the agent has answered with."""
        ...

    def must_switch(self, hop: Hop, method: str, result: Any) -> bool:
        """True if the agent has answered with the version of another proxy."""
        ...

    def agree(self, result: Any) -> None:
        """Use the proxy for the version in a result, if there is one."""
        ...


class _Output(Output):
    """Sends messages. One that an override hands on unchanged is sent as the text that came."""

    hop: Hop

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await, or None."""
        override = override_of.get()
        if isinstance(message, Passed) or override is None:
            return super().send(message)
        rest = super().send(self._original(message, override) or message)
        if message.kind == "request" and type(message.id) is int:
            self.hop.calls[message.id] = override, message.method == override.message.method
        return rest

    def _explained(self, message: Message, error: Unsendable) -> Exception:
        override, cause = override_of.get(), error.__cause__
        if not isinstance(cause, (TypeError, ValueError, RecursionError)):
            return super()._explained(message, error)
        if override is None or not message.is_response:
            return super()._explained(message, error)
        from .on_demand.sent import unsendable

        name = f"{type(self.hop.proxy).__name__}.{override.route.name}"
        return unsendable(message, self._side.handler, cause, subject=f"{name} returned a result")

    def _original(self, message: Message, override: Override) -> Passed | None:
        """The message that `message` hands on unchanged, with its id."""
        given: Any = message.value
        source = given if isinstance(given, Passed) else override.original(message, self.hop)
        if source is None or message.kind == "notification":
            return source
        text = override.message.text_of("id") if message.is_response else None
        return source.with_id(message.id, text or str(message.id))


class _Entrance(Handler):
    """The handler of the connection: it runs the override of each message that has one."""

    def __init__(self, hop: Hop, protocol: ProtocolInfo) -> None:
        self._hop = hop
        self.PROTOCOL = ProtocolInfo(  # type: ignore[misc]
            version=protocol.version, null_ids=True, cancellation=protocol.cancellation
        )

    async def ext_method(self, method: str, params: Any) -> Any:
        """Handle a request."""
        return await self._hop.run_override()

    async def ext_notification(self, method: str, params: Any) -> None:
        """Handle a notification."""
        await self._hop.run_override()

    fallback_request = ext_method
    fallback_notification = ext_notification


class _Switched(BaseException):
    """The agent has chosen another version than that of the proxy which handles the request for it."""

    def __init__(self, result: Any) -> None:
        self.result = result


class _Asked:
    """A request that was passed on: only the parts that its response needs, as its text may be large."""

    __slots__ = ("hop", "id", "id_text", "key", "method")

    def __init__(self, hop: Hop, request: Passed) -> None:
        self.hop = hop
        self.id = request.id
        self.id_text = request.text_of("id") or "null"
        self.key: object = self if request.id is None else request.id
        self.method = request.method if len(request.method) <= MAX_ID_BYTES else ""  # then it is none of the schema's


class Hop(Connection):
    """The connection with one side. Messages of that side that the proxy does not override are sent by `other`."""

    OUTPUT = _Output
    other: Hop

    def __init__(self, transport: Transport | ByteTransport, relay: Versions, side: Neighbour) -> None:
        super().__init__(transport, relay.options, peer=side)
        self._output.hop = self  # type: ignore[attr-defined]
        self.side: Neighbour = side
        self.route: Callable[[Message], Route | None] = _pass_all
        self.calls: dict[int, tuple[Override, bool]] = {}
        """The overrides that wait for responses of this side, by id; true if the request is one of their own method."""
        self._relay = relay
        self._passed: dict[int, _Asked] = {}  # requests that were passed on to this side, by their ids here
        self._open: dict[object, int] = {}  # requests of this side that were passed on: the ids that they have there
        self._cancelled: set[int] = set()  # ids there
        self._opening = ""  # the request that opens an agent, and with a mark a proxy
        self._count = 0  # of the messages that were read
        self._is_watched = False

    # --- From this side --------------------------------------------------------------------------------------------

    def _arrived(self, is_end: bool) -> None:
        super()._arrived(is_end)
        if is_end and self.side == "client" and self._life.is_open and not self._is_watched:
            self._is_watched = True
            self._tasks.start(self._end_if_stuck())

    async def _end_if_stuck(self) -> None:
        """End the connection if an agent that reads nothing keeps this from noticing that the client has gone."""
        seen = -1
        while seen != self._count:
            seen = self._count
            await asyncio.sleep(_STUCK_SECONDS)
        self._end_reading(ConnectionClosed(_CLOSED))

    def _dispatch(self, message: Message | Unreadable) -> Awaitable[None] | None:
        self._count += 1
        if isinstance(message, Unreadable):
            return self._dispatch_unreadable(message)
        message = with_text(message)
        if message.kind != "request":
            return self._dispatch_response(message)
        if self._is_envelope(message):
            return self._refuse(_misplaced(message), None if self._is_taken(message) else message.id)
        self._unaddressed = 0
        try:
            self._relay.asks(self, message)
        except Exception as error:
            log_failure("making a proxy", error)
            failed = Message("error", InternalError().to_json(), id=message.id)
            return None if self._is_taken(message) else self._output.send(failed)
        if (route := self.route(message)) is None:
            return self._pass_request(message)
        token = override_of.set(Override(self, message, route))
        try:
            return super()._dispatch(message)
        finally:
            override_of.reset(token)

    def _is_envelope(self, message: Message) -> bool:
        """True for what only a conductor and its proxies may say to each other."""
        if message.method in _ENVELOPES:
            return True
        if message.method != self._opening or (self.peer_kind == "conductor" and self.side == "client"):
            return False
        return form_of(message, FORMS, self._opening) is not None

    def _has_to_wait(self, message: Message | Unreadable) -> bool:
        return self._must_yield or bool(self._in_flight.starting)  # requests keep their order on the way on

    def _dispatch_now(self, message: Message | Unreadable) -> bool:
        return False  # the read loop waits for slow receivers

    async def _handle_notification(self, message: Message) -> None:
        self._count += 1
        how, message = self._side.cancellation, with_text(message)
        if how is not None and message.method == how.method:
            await self._cancel_passed(message.value, how.key)
            self._in_flight.cancel(message.value, how.key)
        elif message.method in _ENVELOPES:
            log_mistake("a notification of the %s is ignored: %s", self.side, _misplaced(message))
        elif (route := self.route(message)) is None:
            await self._pass_notification(message)
        else:
            await self._override_notification(message, route)

    async def _override_notification(self, message: Passed, route: Route) -> None:
        override = Override(self, message, route)
        token = override_of.set(override)
        try:
            await super()._handle_notification(message)
        finally:
            override_of.reset(token)
            override.end()

    def _is_taken(self, message: Message) -> bool:
        return message.id in self._open or super()._is_taken(message)

    def _refusal(self, message: Message) -> RequestError | None:
        if message.id in self._open:
            return InvalidRequestError("a request with this id is running")
        return super()._refusal(message)

    def _pass_request(self, message: Passed) -> Awaitable[None] | None:
        limit = self.options.max_requests
        error = self._refusal(message)
        if error is None and len(self._open) >= limit:
            error = InternalError(f"too many at the same time; the limit is {limit} (max_requests)")
        if error is not None:
            return self._refuse(error, None if self._is_taken(message) else message.id)
        asked = _Asked(self, message)
        self._open[asked.key] = request_id = self.other.take_id(asked)
        self._life.passed += 1
        try:
            if self.other.reason is not None:  # it may still be written to, and nothing is read
                raise self.other.reason.again()
            return self.other.send_passed(message.with_id(request_id, str(request_id)))
        except ConnectionClosed as reason:
            self.other.lose(request_id, reason)
            return None

    async def _pass_notification(self, message: Passed) -> None:
        try:
            if (rest := self.other.send_passed(message)) is not None:
                await rest
        except ConnectionClosed:
            logger.debug("%.200r is not passed on: the receiver has gone", message.method)

    async def _cancel_passed(self, params: Any, key: str) -> None:
        """Cancel a request that was passed on, once."""
        found: Any = params
        request_id = found.get(key) if isinstance(params, dict) else None
        there = self._open.get(request_id) if type(request_id) in (int, str) else None
        if there is not None:
            await self._cancel_there(there)

    async def _cancel_there(self, there: int) -> None:
        how = self._side.cancellation
        if there not in self._cancelled and how is not None:
            self._cancelled.add(there)
            with contextlib.suppress(ConnectionClosed):
                await self.other.notify(how.method, {how.key: there})

    def answer(self, asked: _Asked, response: Passed) -> Awaitable[None] | None:
        """Send the response to a request of this side that was passed on; returns what is left to await."""
        self._cancelled.discard(self._open.pop(asked.key))
        rest: Awaitable[None] | None = None
        with contextlib.suppress(ConnectionClosed):
            rest = self._output.send(response.with_id(asked.id, asked.id_text))
        if rest is not None:
            return self._answer(rest)
        self._answered()
        return None

    async def _answer(self, rest: Awaitable[None]) -> None:
        try:
            await rest
        finally:
            self._answered()  # not before: until then, the end of the connection waits for it

    def _answered(self) -> None:
        self._life.passed -= 1
        if not self._in_flight:
            self._life.on("finished")

    # --- To this side ----------------------------------------------------------------------------------------------

    def take_id(self, asked: _Asked) -> int:
        """The id of a request that is passed on to this side."""
        request_id = self._next_id
        self._next_id += 1
        self._passed[request_id] = asked
        return request_id

    def send_passed(self, message: Passed) -> Awaitable[None] | None:
        """Send a message that is passed on; returns what is left to await. Raises `ConnectionClosed`."""
        return self._output.send(message)

    def lose(self, request_id: int, reason: ConnectionClosed) -> None:
        """Answer a request that was passed on to this side: there is no response."""
        error = Message("error", self.lost(reason).to_json(), id=request_id)
        asked = self._passed.pop(request_id)
        rest = asked.hop.answer(asked, with_text(error))
        if rest is not None:
            asked.hop._tasks.start(_await(rest))  # those of this side end now

    def lost(self, reason: ConnectionClosed) -> RequestError:
        """The error for a request that this side cannot answer any more."""
        text = f"the {self.side} has closed the connection"
        if not self._relay.tells:
            return InternalError(text)
        stderr = [each[:_MAX_OF_LINE] for each in reason.stderr]  # each request that is lost gets them
        data = {"reason": str(reason), "exitCode": reason.exit_code, "stderr": stderr}
        if reason.exit_code is not None:
            text = str(reason)
        elif str(reason) != _CLOSED:
            text += f": {reason}"
        return InternalError(text, data={key: each for key, each in data.items() if each not in (None, [])})

    def _dispatch_response(self, message: Passed) -> Awaitable[None] | None:
        request_id = message.id
        asked = self._passed.pop(request_id, None) if type(request_id) is int else None
        if asked is not None:
            try:
                self._relay.answered(self, asked.method, message)
            except Exception as error:
                log_failure("making a proxy", error)
                message = with_text(Message("error", InternalError().to_json(), id=request_id))
            return asked.hop.answer(asked, message)
        override, is_same = self._called(request_id)
        if override is not None and is_same:
            override.response = message
        super()._dispatch(message)
        return None if override is None else override.hold()

    def _called(self, request_id: int | str | None) -> tuple[Override | None, bool]:
        """The override that waits for a response, which has come."""
        return self.calls.pop(request_id, (None, False)) if type(request_id) is int else (None, False)

    def _dispatch_unreadable(self, found: Unreadable) -> Awaitable[None] | None:
        request_id = found.id
        if found.kind != "request" and type(request_id) is int and request_id in self._passed:
            error = Message("error", self._unusable(found).to_json(), id=request_id)
            asked = self._passed.pop(request_id)
            return asked.hop.answer(asked, with_text(error))
        rest = super()._dispatch(found)
        override, _ = self._called(request_id) if found.kind != "request" else (None, False)
        return rest if override is None else override.hold()

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result: for the stubs."""
        override = override_of.get()
        if override is None:
            return await super().request(method, params)
        if not isinstance(override.agreed, UnsetType) and self._relay.negotiates(self, method):
            return override.agreed
        self.check_loop()
        override.release()
        override.hop._hand_over_reading()
        override.waiting += 1
        try:
            result = await super().request(method, params)
        finally:
            override.waiting -= 1
        if self._relay.must_switch(self, method, result):
            raise _Switched(result)
        return result

    def _cancel_at_peer(self, request_id: int) -> None:
        self.calls.pop(request_id, None)
        super()._cancel_at_peer(request_id)

    def _reject_pending(self, reason: ConnectionClosed) -> None:
        super()._reject_pending(reason)
        self.calls.clear()
        if self.other.other is not self:  # an agent that the proxy has opened: the client stays
            for there in self._open.values():
                self.other._tasks.start(self._cancel_there(there))
        for request_id in [*self._passed]:
            self.lose(request_id, reason)

    def _start_reading(self) -> None:
        token = override_of.set(None)  # a handler may hand over the read loop, which is no part of it
        try:
            super()._start_reading()
        finally:
            override_of.reset(token)

    def begin(self, protocol: ProtocolInfo) -> None:
        """Start to read messages."""
        self._opening = "" if protocol.negotiation is None else protocol.negotiation.method
        self.start(_Entrance(self, protocol))

    def finish(self, reason: ConnectionClosed) -> None:
        """Read no more; what is in flight may still be answered."""
        self._end_reading(reason)

    async def ended(self) -> None:
        """Wait until no more is read from this side."""
        await self._life.leaves(State.OPEN)

    @property
    def reason(self) -> ConnectionClosed | None:
        """The reason why nothing more is read; None while this side is read."""
        return self._life.reason

    @property
    def proxy(self) -> Passing | None:
        """The proxy of both sides."""
        return self._relay.proxy

    # --- Overrides -------------------------------------------------------------------------------------------------

    async def run_override(self) -> Any:
        """Call the method of the proxy for the message of the context; returns its result as JSON."""
        override, task = override_of.get(), asyncio.current_task()
        assert override is not None and task is not None
        if override.message.kind == "request":
            task.add_done_callback(override.end)  # after the response was sent
        try:
            return await self._call(override)
        except _Switched as switched:
            override.agreed = switched.result
            self._relay.agree(switched.result)
            found = self.route(override.message)
            if found is None:
                return switched.result
            override.route = found
            return await self._call(override)
        except ConnectionClosed as reason:
            gone = [hop for hop in self._relay.hops if hop is not self and hop.reason is not None]
            if not gone:
                raise
            if override.message.kind == "request":
                raise gone[0].lost(reason) from reason
            logger.debug("%.200r is not passed on: the receiver has gone", override.message.method)
            return None

    async def _call(self, override: Override) -> Any:
        proxy, message, route = self._relay.proxy, override.message, override.route
        handler: Any = proxy
        if route.record is None:
            return await call_handler(handler, route.name, Call(override, self.other))
        takes, gives = route.record.takes, route.record.gives
        raw: Any = {} if message.value is None and takes.is_object else message.value
        try:
            params = reporting_drops(takes.decode, raw, self.options.on_drop or _ignore)
        except DecodeError as error:
            raise UnfitParams(error) from error
        result = await call_handler(handler, route.name, params)
        if message.kind == "notification":
            return None
        try:
            return gives.encode(result)
        except MISFITS as error:
            from .on_demand.mistakes import in_result

            raise in_result(handler, route.record, result, error, name=route.name) from error


def _misplaced(message: Message) -> RequestError:
    name = message.method if message.method in _ENVELOPES else f"{message.method} with the mark of a conductor"
    return InvalidRequestError(f"{name} is for a conductor and its proxies alone")


def _pass_all(_: Message) -> None:
    return None


def _ignore(_: object) -> None:
    pass


async def _await(rest: Awaitable[None]) -> None:
    await rest
