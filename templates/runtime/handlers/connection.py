"""A connection of an agent or a client: an endpoint whose messages a handler gets, held to what both advertise."""

from __future__ import annotations

import asyncio
import os
from asyncio import _get_running_loop  # pyright: ignore[reportPrivateUsage]
from collections.abc import Callable, Coroutine, Iterator, Mapping, Set
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

from ..errors import RequestError
from ._decode import excerpt
from .capabilities import Capabilities
from .closed_gates import CapabilityError, find_closed
from .dispatch import (
    ConnectionClosed,
    Handler,
    call_handler,
    check_name,
    dispatch_notification,
    dispatch_request,
    is_of_package,
    overrides,
)
from .endpoint import Endpoint
from .in_flight import Sent
from .log import logger
from .message import Message
from .options import ConnectionOptions, options_or_default
from .peer_kind import PeerKind
from .places import part_module
from .records import ProtocolInfo
from .transport import ByteTransport, Transport, carrying_messages

__all__ = ["Connection"]


class Choice(Protocol):
    """Several handlers, one of which the peer chooses by the request `method`."""

    method: str
    null_ids: bool
    made: list[Handler]

    def handler_for(self, message: Message) -> Handler:
        """The handler that a request chooses. Raises `RequestError` if there is none."""
        ...


class Connection:
    """Both directions of a connection; it is the `Peer` of the stubs.

    Messages wait for the handlers of earlier notifications: keep these short, and let them start a task for anything
    that waits for the peer, such as a lock. When such a handler sends a request, later messages no longer wait for it.
    These handlers share one context: a `ContextVar` that one of them sets stays set, until one of them sends a request.
    `peer` is what a trace calls the other side, and `peer_kind` what it is.
    """

    def __init__(
        self,
        transport: Transport | ByteTransport,
        options: ConnectionOptions | None = None,
        *,
        peer: Literal["agent", "client", ""] = "",
    ) -> None:
        self.options = options_or_default(options)
        self._choice: Choice | None = None
        self._handler = Handler()
        self._endpoint = Endpoint(
            opened_for(transport, self.options, peer),
            self.options,
            on_request=partial(dispatch_request, self._handler),
            on_notification=partial(dispatch_notification, self._handler),
            before_send=self._checked if self.options.check_sent else None,
            explain=self._explained,
            on_refused=self._log_refused,
            closing=self._closing,
        )
        self.peer_kind: PeerKind = self._endpoint.peer_kind
        self._use(self._handler)

    # --- Start and end -------------------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which it runs; None until `start` if it was made outside of one."""
        return self._endpoint.loop

    def start(self, handler: Handler | Choice) -> None:
        """Start to read messages; `handler` gets those of the peer, or the one of several that the peer chooses.

        The request that negotiates the version comes first, if this side checks that.
        """
        handshake = self._endpoint.handshake
        if not isinstance(handler, Handler):
            self._choice = handler
            handshake.require(handler.method, is_alone=True)
            self._use(self._handler)
        else:
            self._use(handler)
            how = handler.PROTOCOL.negotiation
            if how is not None and self.options.check_capabilities and not self._lacks(how.method):
                handshake.require(how.method)
        self._endpoint.start()

    async def start_with(
        self, method: str, params: Any, choose: Callable[[Any], Handler]
    ) -> tuple[Handler, Capabilities, Any]:
        """Start with the request by which the peer chooses one of several handlers, instead of `start`.

        `choose` returns the handler for the result. Returns it, its capabilities, and the result. Raises what `request`
        and `choose` raise; `ConnectionClosed` of the latter ends the connection.
        """
        if method.__class__ is not str:
            check_name(method)
        self._endpoint.handshake.require(method, is_sent=True)
        self._endpoint.start()
        result = await self.request(method, params)
        try:
            handler = choose(result)
        except ConnectionClosed as reason:
            self._endpoint.stop(reason)
            raise
        self._use(handler)
        self._endpoint.handshake.require(None)
        return handler, self._capabilities, result

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, and all handlers have finished."""
        await self._endpoint.wait_closed()

    def stop(self) -> None:
        """Close the connection from this side; `wait_closed` waits until that is done."""
        self._endpoint.stop()

    async def close(self) -> None:
        """Close the connection from this side, and wait until that is done."""
        await self._endpoint.close()

    def _closing(self, reason: ConnectionClosed) -> Iterator[Coroutine[Any, Any, None]]:
        for handler in [self._handler] if self._choice is None else self._choice.made:
            yield call_handler(handler, "connection_closed", reason)

    # --- Requests and notifications of this side -----------------------------------------------------------------

    async def request(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its result. If the protocol allows it, cancelling the task cancels the request.

        Raises the `RequestError` that the peer responds with, `CapabilityError` and `ConnectionClosed`, `TypeError` for
        params that cannot be sent, and `RuntimeError` in another event loop than that of the connection.
        """
        endpoint, capabilities = self._endpoint, self._capabilities
        if _get_running_loop() is not endpoint.loop:
            endpoint.check_loop()
        if method.__class__ is not str:
            check_name(method)
        if (check := capabilities.request_checks.get(method)) is not None:
            check(params)
        if method not in capabilities.methods:
            return await endpoint.request(method, params)
        if endpoint.reason is None:
            capabilities.sent(method, "params", params)
        result = await endpoint.request(method, params)
        capabilities.received_result(method, result)
        return result

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Raises what `request` raises, but for a `RequestError`."""
        endpoint = self._endpoint
        if _get_running_loop() is not endpoint.loop:
            endpoint.check_loop()
        if method.__class__ is not str:
            check_name(method)
        if (check := self._capabilities.notification_checks.get(method)) is not None:
            check(params)
        if (rest := endpoint.send(Message("notification", params, method))) is not None:
            await rest

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop that runs. Raises `RuntimeError` if it is not that of the connection."""
        return self._endpoint.check_loop()

    @property
    def version(self) -> int:
        """The version of the protocol that the handler in effect is for."""
        return self._handler.PROTOCOL.version

    def supports(self, method: str) -> bool:
        """True if the peer has advertised the capability that `method` needs, or if it needs none."""
        return self._capabilities.supports(method)

    @property
    def announced(self) -> Mapping[str, Any] | None:
        """The properties by which the peer has introduced itself, as JSON; None before."""
        return self._capabilities.announced

    def _checked(self, message: Message) -> Message:
        from .sent import misfit_in

        if (misfit := misfit_in(message, self._handler, self.options.dumps)) is not None:
            raise misfit
        return message

    def _explained(self, message: Message, error: Exception) -> Exception:
        """The error for a value that `dumps` refuses, or for an error that is none."""
        from .sent import unsendable, unsendable_error

        if isinstance(error, RequestError):
            return unsendable_error(message, self._handler, error)
        return unsendable(message, self._handler, error)

    # --- The handler ---------------------------------------------------------------------------------------------

    def _use(self, handler: Handler) -> None:
        """Let `handler` handle the messages of the peer from now on."""
        self._handler = handler
        self._capabilities = Capabilities(handler, is_checked=self.options.check_capabilities, dumps=self.options.dumps)
        on_drop, protocol, choice = self.options.on_drop, handler.PROTOCOL, self._choice
        handshake = self._endpoint.handshake
        negotiation = () if protocol.negotiation is None else (protocol.negotiation.method,)
        chosen = () if choice is None else (choice.method,)
        self._endpoint.serve(
            partial(dispatch_request, handler, on_drop=on_drop),
            partial(dispatch_notification, handler, on_drop=on_drop),
            routes={
                **dict.fromkeys(self._capabilities.closed_results, self._answer),
                **dict.fromkeys((*self._capabilities.methods, *negotiation, *chosen), self._agree),
            },
            cancellation=protocol.cancellation,
            null_ids=protocol.null_ids if choice is None or handshake.step == "done" else choice.null_ids,
        )
        warn_of_others(type(handler), {each.handler for each in handler.METHODS.values()}, Handler)

    async def _agree(self, message: Message) -> Sent:
        """Handle a request in which the sides agree on something: the version, or what they are capable of.

        Both are held to what they advertise in it only if its result can be sent. Raises `RequestError` for a request
        that chooses a handler which there is not.
        """
        method, choice = message.method, self._choice
        is_choosing = choice is not None and method == choice.method
        if choice is not None and is_choosing and self._endpoint.handshake.step != "done":
            chosen = choice.handler_for(message)
            if chosen is not self._handler:
                self._use(chosen)
        handler, capabilities, succeeded = self._handler, self._capabilities, False
        provisional = capabilities.begin(method, message.value)
        try:
            result = await dispatch_request(handler, method, message.value, on_drop=self.options.on_drop)
            self._check_version(method, result)
            self._check_values(method, result)
            rest = self._endpoint.send(Message("result", result, method, message.id))
            capabilities.sent(method, "result", result)
            succeeded = True
        finally:
            if provisional is not None:
                capabilities.end(provisional, keep=succeeded)
        if is_choosing:
            self._endpoint.in_flight.null_ids = self._handler.PROTOCOL.null_ids  # nothing changes the handler any more
        return Sent(rest)

    async def _answer(self, message: Message) -> Any:
        """Handle a request whose result may have a value that needs a capability."""
        method = message.method
        result = await dispatch_request(self._handler, method, message.value, on_drop=self.options.on_drop)
        self._check_values(method, result)
        return result

    def _check_values(self, method: str, result: Any) -> None:
        """Look for a value in a result that the peer has not advertised: it is logged, or raised under `check_sent`.

        The handler has no caller that could do without the value, and the peer can do more with it than with an error.
        """
        for value in find_closed(result, self._capabilities.closed_results.get(method, ())):
            from .sent import of_result

            error = CapabilityError(method, value.gate, value=value, subject=of_result(method, self._handler))
            if self.options.check_sent:
                raise error
            logger.error("%s; it is sent nevertheless", error)

    def _check_version(self, method: str, result: Any) -> None:
        """Put the version of the handler in the result that negotiates it, and log where the handler had another."""
        protocol, answer = self._handler.PROTOCOL, result
        how = protocol.negotiation
        if how is None or method != how.method or not isinstance(result, dict):
            return
        if answer.get(how.version) != protocol.version:
            text = "%s answered %s with version %s, and handles version %d, which is sent"
            name, found = type(self._handler).__name__, excerpt(answer.get(how.version))
            logger.error(text, name, method, found, protocol.version)
            answer[how.version] = protocol.version

    def _lacks(self, method: str) -> bool:
        """True if the class of the handler leaves out the request `method`."""
        record, kind = self._handler.METHODS.get(method), type(self._handler)
        return record is None or not (overrides(kind, record.handler) or overrides(kind, "fallback_request"))

    def _log_refused(self, method: str) -> None:
        """Log that this side has refused a request if that is the one which each peer sends first."""
        how, record = self._handler.PROTOCOL.negotiation, self._handler.METHODS.get(method)
        if how is not None and method == how.method and record is not None and self._lacks(method):
            text = "%s does not override %s, which every peer calls first, so that no peer can use it"
            logger.error(text, type(self._handler).__name__, record.handler)


def opened_for(transport: Transport | ByteTransport, options: ConnectionOptions, peer: str) -> Transport:
    """The transport of messages for a connection with `peer`, recorded if a trace is asked for."""
    found = carrying_messages(transport, options)
    if path := options.trace or os.environ.get("ACP_TRACE"):
        try:
            recorder = part_module("trace", "trace", "ConnectionOptions(trace=…)" if options.trace else "ACP_TRACE")
        except ImportError as error:
            if options.trace:
                raise
            logger.error("the messages of a connection are not recorded: %s", error)
        else:
            found = recorder.traced(found, options, path, peer)
    return found


# --- Names of handlers ------------------------------------------------------------------------------------------------

_COROUTINE: Final = 0x80  # `inspect.CO_COROUTINE`


def warn_of_others(kind: type[Any], handlers: Set[str], root: type[Any]) -> None:
    """Log the public coroutine methods of `kind` that are neither `handlers` nor of `root`, but probably should be."""
    users = [base for base in reversed(kind.__mro__) if base is not object and not is_of_package(base)]
    own = {name: value for base in users for name, value in vars(base).items()}
    suspects = [
        name
        for name, value in own.items()
        if name not in handlers and not name.startswith("_") and not hasattr(root, name) and _takes_params(value)
    ]
    if suspects:
        from .names import meant_handlers

        for name, meant in meant_handlers(suspects, handlers, own):
            hint = f"is it meant to be {meant}? If not, begin its name with _"
            logger.warning("%s.%s handles nothing: %s", kind.__name__, name, hint)


def _takes_params(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and bool(code.co_flags & _COROUTINE) and code.co_argcount > 1


# --- Factories -------------------------------------------------------------------------------------------------------

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
        from .mistakes import in_factory

        if (mistake := in_factory(factory, error, stub)) is error:
            raise
        raise mistake from error
    role = type(stub).__module__.rpartition(".")[2]  # the same for each version
    generated = (base.__module__ for base in type(found).__mro__ if "METHODS" in vars(base))
    if any(module.rpartition(".")[2] == role for module in generated):
        return found
    from .mistakes import handler_of, hint_for, name_of, shown

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
