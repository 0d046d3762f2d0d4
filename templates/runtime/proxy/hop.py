"""One side of a proxy: its messages are handled by a method that overrides them, or passed on to the other side.

What is passed on is the text that came, with the id of the next request in place of its own, in the order of arrival.
It is written by the read loop, which waits for a slow receiver before it reads on. A request that is overridden has a
task of its own. Once the response to a call of its handler has come, later messages of that side wait until the handler
has returned, or calls again: they must not overtake what it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from ...errors import InternalError, InvalidRequestError, RequestError
from .._base import UnsetType
from ..connection import opened_for
from ..dispatch import ConnectionClosed, Handler
from ..endpoint import Endpoint
from ..in_flight import Rest
from ..log import log_failure, log_mistake, logger
from ..message import Message
from ..options import ConnectionOptions
from ..peer_kind import PeerKind
from ..read_loop import Response
from ..records import ProtocolInfo
from ..transport import ByteTransport, Transport
from .chain import form_of
from .forms import FORMS
from .introductions import Introductions
from .overriding import Neighbour, Override, Passing, Route, override_of
from .passing import Asked, Passed, with_text

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

    def introductions(self, side: Neighbour) -> Introductions:
        """How a side has introduced itself: not yet."""
        ...

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


class _Entrance(Handler):
    """Stands for the proxy in explanations, which ask a handler for its types: what passes has none."""


class _Switched(BaseException):
    """The agent has chosen another version than that of the proxy which handles the request for it."""

    def __init__(self, result: Any) -> None:
        self.result = result


class Hop:
    """The connection with one side. Messages of that side that the proxy does not override are sent by `other`."""

    other: Hop

    def __init__(self, transport: Transport | ByteTransport, relay: Versions, side: Neighbour) -> None:
        self.options = relay.options
        self.endpoint = Endpoint(
            opened_for(transport, relay.options, side),
            relay.options,
            on_request=self._run_override,
            on_notification=self._run_override,
            intercept=self._intercept,
            before_send=self._as_sent,
            explain=self._explained,
            on_arrived_end=self._watch if side == "client" else None,
            on_end=self._cancel_all,
            closing=lambda _: (asyncio.sleep(0),),  # meanwhile, the other side gets answers to what is lost here
        )
        self.check_loop = self.endpoint.check_loop
        self.hand_over_reading = self.endpoint.hand_over_reading
        self.peer_kind: PeerKind = self.endpoint.peer_kind
        self.side: Neighbour = side
        self.introductions = relay.introductions(side)
        self.route: Callable[[Message], Route | None] = lambda _: None
        self._relay = relay
        self._open: dict[object, int] = {}  # requests of this side that were passed on: the ids that they have there
        self._cancelled: set[int] = set()  # ids there
        self._opening = ""  # the request that opens an agent, and with a mark a proxy
        self._count = 0  # of the messages that were read
        self._is_watched = False

    # --- Start and end ---------------------------------------------------------------------------------------------

    def begin(self, protocol: ProtocolInfo) -> None:
        """Start to read messages."""
        self._opening = "" if protocol.negotiation is None else protocol.negotiation.method
        self.endpoint.cancellation = protocol.cancellation
        self.endpoint.start()

    def _watch(self) -> None:
        if self.endpoint.is_open and not self._is_watched:
            self._is_watched = True
            self.endpoint.start_task(self._end_if_stuck())

    async def _end_if_stuck(self) -> None:
        """End the connection if an agent that reads nothing keeps this from noticing that the client has gone."""
        seen = -1
        while seen != self._count:
            seen = self._count
            await asyncio.sleep(_STUCK_SECONDS)
        self.endpoint.end_reading(ConnectionClosed(_CLOSED))

    def _cancel_all(self, reason: ConnectionClosed) -> None:
        if self.other.other is not self:  # an agent that the proxy has opened: the client stays
            for there in self._open.values():
                self.other.endpoint.start_task(self._cancel_there(there))

    # --- From this side --------------------------------------------------------------------------------------------

    def _intercept(self, message: Message) -> Rest:
        """Pass a message on, or let the endpoint call the method that overrides it."""
        self._count += 1
        message = with_text(message)
        return self._take_request(message) if message.kind == "request" else self._take_notification(message)

    def _take_request(self, message: Passed) -> Rest:
        endpoint = self.endpoint
        if self._is_envelope(message):
            return endpoint.in_flight.refuse(_misplaced(message), message)
        try:
            self._relay.asks(self, message)
        except Exception as error:
            log_failure("making a proxy", error)
            failed = Message("error", InternalError().to_json(), id=message.id)
            return None if endpoint.in_flight.is_taken(message) else endpoint.send(failed)
        if (route := self.route(message)) is None:
            return self._pass_request(message)
        token = override_of.set(Override(self, message, route))  # its task inherits it
        try:
            return endpoint.in_flight.accept(message)
        finally:
            override_of.reset(token)

    def _is_envelope(self, message: Message) -> bool:
        """True for what only a conductor and its proxies may say to each other."""
        if message.method in _ENVELOPES:
            return True
        if message.method != self._opening or (self.peer_kind == "conductor" and self.side == "client"):
            return False
        return form_of(message, FORMS, self._opening) is not None

    def _take_notification(self, message: Passed) -> Rest:
        how = self.endpoint.cancellation
        if how is not None and message.method == how.method:
            return self._cancel(message.value, how.key)
        if message.method in _ENVELOPES:
            log_mistake("a notification of the %s is ignored: %s", self.side, _misplaced(message))
            return None
        if (route := self.route(message)) is None:
            return self._pass_notification(message)
        return self._override_notification(message, route)

    async def _override_notification(self, message: Passed, route: Route) -> None:
        override = Override(self, message, route)
        token = override_of.set(override)
        try:
            await self.endpoint.accept_notification(message)
        finally:
            override_of.reset(token)
            override.end()

    def _pass_request(self, message: Passed) -> Rest:
        endpoint, other, limit = self.endpoint, self.other, self.options.max_requests
        error = endpoint.in_flight.refusal(message)
        if error is None and len(self._open) >= limit:
            error = InternalError(f"too many at the same time; the limit is {limit} (max_requests)")
        if error is not None:
            return endpoint.in_flight.refuse(error, message)
        asked = Asked(message, self.introductions.begin(message.method, message.value))
        request_id = self._open[asked.key] = other.endpoint.pending.add(None, partial(self._answer, asked, other))
        endpoint.in_flight.defer(asked.key)
        try:
            if (reason := other.endpoint.reason) is not None:  # it may still be written to, and nothing is read
                raise reason.again()
            return other.endpoint.send(message.with_id(request_id, str(request_id)))
        except ConnectionClosed as reason:
            other.endpoint.pending.lose(request_id, reason)
            return None

    async def _pass_notification(self, message: Passed) -> None:
        try:
            if (rest := self.other.endpoint.send(message)) is not None:
                await rest
        except ConnectionClosed:
            logger.debug("%.200r is not passed on: the receiver has gone", message.method)

    async def _cancel(self, params: Any, key: str) -> None:
        """Cancel a request that was passed on, once, or one that is overridden."""
        found: Any = params
        request_id = found.get(key) if isinstance(params, dict) else None
        there = self._open.get(request_id) if type(request_id) in (int, str) else None
        if there is not None:
            await self._cancel_there(there)
        self.endpoint.in_flight.cancel(params, key)

    async def _cancel_there(self, there: int) -> None:
        how = self.endpoint.cancellation
        if there not in self._cancelled and how is not None:
            self._cancelled.add(there)
            with contextlib.suppress(ConnectionClosed):
                await self.other.notify(how.method, {how.key: there})

    def _answer(self, asked: Asked, other: Hop, response: Response) -> Rest:
        """Send the response to a request of this side that was passed on to `other`; returns what is left to await."""
        other._count += 1
        if isinstance(response, Message):
            try:
                message = with_text(response)
                self._relay.answered(other, asked.method, message)
                if message.kind == "result":
                    other.introductions.result(asked.method, message.value)
            except Exception as error:
                log_failure("making a proxy", error)
                message = _failed(InternalError())
        else:
            message = _failed(other.lost(response) if isinstance(response, ConnectionClosed) else response)
        self._cancelled.discard(self._open.pop(asked.key))
        self.introductions.end(asked.said, keep=message.kind == "result")
        rest = self.endpoint.in_flight.answer(asked.key, message.with_id(asked.id, asked.id_text))
        if rest is not None and isinstance(response, ConnectionClosed):
            self.endpoint.start_task(rest)  # the tasks of the other side end now
            return None
        return rest

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

    # --- To this side: the peer of the stubs -----------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which it runs."""
        return self.endpoint.loop

    @property
    def announced(self) -> Mapping[str, Any] | None:
        """The properties by which this side has introduced itself, as JSON; None before."""
        return self.introductions.latest

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result."""
        override, endpoint = override_of.get(), self.endpoint
        if override is None:
            result = await endpoint.request(method, params)
            self.introductions.result(method, result)
            return result
        if not isinstance(override.agreed, UnsetType) and self._relay.negotiates(self, method):
            return override.agreed
        endpoint.check_loop()
        override.release()
        override.hop.hand_over_reading()
        endpoint.hand_over_reading()
        override.waiting += 1
        try:
            listener = partial(self._answered, override, method == override.message.method)
            result = await endpoint.request(method, params, listener=listener)
        finally:
            override.waiting -= 1
        self.introductions.result(method, result)
        if self._relay.must_switch(self, method, result):
            raise _Switched(result)
        return result

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.endpoint.check_loop()
        if (rest := self.endpoint.send(Message("notification", params, method))) is not None:
            await rest

    def _answered(self, override: Override, is_same: bool, response: Response) -> Rest:
        """Note the response to a call of an override; `is_same` says that the call was one of its own method."""
        self._count += 1
        if isinstance(response, ConnectionClosed):
            return None
        if is_same and isinstance(response, Message):
            override.response = with_text(response)
        return override.hold()

    def _as_sent(self, message: Message) -> Message:
        """The message itself, or the text that came if an override hands it on unchanged."""
        override = override_of.get()
        if override is not None and not isinstance(message, Passed):
            message = self._original(message, override) or message
        if self.options.check_sent:
            from ..sent import misfit_in

            if (misfit := misfit_in(message, _Entrance(None), self.options.dumps)) is not None:
                raise misfit
        return message

    def _original(self, message: Message, override: Override) -> Passed | None:
        """The message that `message` hands on unchanged, with its id."""
        given: Any = message.value
        source = given if isinstance(given, Passed) else override.original(message, self)
        if source is None or message.kind == "notification":
            return source
        text = override.message.text_of("id") if message.is_response else None
        return source.with_id(message.id, text or str(message.id))

    def _explained(self, message: Message, error: Exception) -> Exception:
        from ..sent import unsendable, unsendable_error

        if isinstance(error, RequestError):
            return unsendable_error(message, _Entrance(None), error)
        override, subject = override_of.get(), ""
        if override is not None and message.is_response:
            subject = f"{type(self._relay.proxy).__name__}.{override.route.name} returned a result"
        return unsendable(message, _Entrance(None), error, subject=subject)

    # --- Overrides -------------------------------------------------------------------------------------------------

    async def _run_override(self, method: str, params: Any) -> Any:
        """Call the method of the proxy for the message of the context; returns its result as JSON."""
        override, task = override_of.get(), asyncio.current_task()
        assert override is not None and task is not None
        is_request = override.message.kind == "request"
        if is_request:
            task.add_done_callback(override.end)  # after the response was sent
        try:
            with self.introductions.handling(method if is_request else "", params):
                return await self._call_route(override)
        except ConnectionClosed as reason:
            gone = [hop for hop in self._relay.hops if hop is not self and hop.endpoint.reason is not None]
            if not gone:
                raise
            if is_request:
                raise gone[0].lost(reason) from reason
            logger.debug("%.200r is not passed on: the receiver has gone", override.message.method)
            return None

    async def _call_route(self, override: Override) -> Any:
        try:
            return await override.call(self._relay.proxy, self.other, self.options.on_drop)
        except _Switched as switched:
            override.agreed = switched.result
            self._relay.agree(switched.result)
            found = self.route(override.message)
            if found is None:
                return switched.result
            override.route = found
            return await override.call(self._relay.proxy, self.other, self.options.on_drop)


def _misplaced(message: Message) -> RequestError:
    name = message.method if message.method in _ENVELOPES else f"{message.method} with the mark of a conductor"
    return InvalidRequestError(f"{name} is for a conductor and its proxies alone")


def _failed(error: RequestError) -> Passed:
    return with_text(Message("error", error.to_json(), id=0))
