"""Runs proxies: between a client and an agent that they start, under a conductor, and as a conductor of others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...errors import InternalError, InvalidRequestError, RequestError
from ...methods import PROTOCOLS, remote_agent, remote_client
from .._base import UNSET
from ..connection import by_version, version_of
from ..decision import explains
from ..dispatch import ConnectionClosed
from ..log import log_mistake, logger
from ..message import Message, Unreadable
from ..options import ConnectionOptions, options_or_default
from ..peer_kind import PeerKind, peer_kind_of
from ..process import ProcessTransport
from ..transport import ByteTransport, Transport, carrying_messages
from .chain import Begun, Form, Junction, form_of, passing_pair
from .forms import FORMS
from .hop import Hop
from .overriding import Passing
from .relay import Relay, passing_options
from .sources import (
    TERMINATE_SECONDS,
    AnyAgent,
    AnyProxy,
    CommandLine,
    Component,
    check_components,
    is_command,
    is_source,
    opened,
    started,
)

__all__ = ["run_conductor", "run_proxy", "serve_conductor", "serve_proxy", "serve_stdio"]

_Running: TypeAlias = "Sequence[asyncio.Task[ConnectionClosed]]"

_NAMES: Final = {how.method for info in PROTOCOLS.values() if (how := info.negotiation) is not None}
_OPENING: Final = next(iter(_NAMES), "")
_CANCELLATION: Final = next((info.cancellation for info in PROTOCOLS.values() if info.cancellation is not None), None)


@explains
def run_proxy(factory: AnyProxy, agent: AnyAgent | None = None, *, options: ConnectionOptions | None = None) -> None:
    """Run a proxy on stdin and stdout until the client closes them, or until SIGINT or SIGTERM.

    The first message of the client starts it: a request that opens an agent starts the command `agent`, or connects to
    an agent elsewhere; one by which a conductor opens a proxy does not, as the conductor has the agent. A mapping of
    factories serves several versions of the protocol: the version in the answer of the agent chooses.

    `print` and child processes write to stderr. Raises `SystemExit` with a message if the agent fails, and
    `RuntimeError` where an event loop runs: `serve_stdio` is for that.
    """
    return _run([factory], agent, options, "run_proxy")


@explains
def run_conductor(
    proxies: Sequence[Component], agent: AnyAgent | None = None, *, options: ConnectionOptions | None = None
) -> None:
    """Run a chain of proxies on stdin and stdout, as `run_proxy` runs one: the first one is next to the client.

    Each is a factory, which runs in this process, or the command of a program that is a proxy, which is started with
    the agent. Under another conductor, the chain is one of its proxies.
    """
    return _run(proxies, agent, options, "run_conductor")


def _run(proxies: Sequence[Component], agent: AnyAgent | None, options: ConnectionOptions | None, name: str) -> None:
    from ..standard_streams import no_coroutine, run

    chains, start, options = _starting(proxies, agent, options)
    run(start, options, name=name)
    if chains and chains[0].failure:
        raise SystemExit(chains[0].failure)
    return no_coroutine(name)


async def serve_stdio(
    proxies: AnyProxy | Sequence[Component],
    agent: AnyAgent | None = None,
    *,
    options: ConnectionOptions | None = None,
) -> None:
    """Run a proxy, or a chain of them, on stdin and stdout within a program that has an event loop of its own.

    It does what `run_proxy` and `run_conductor` do, and returns when the client has closed stdin and stdout, or after
    SIGINT or SIGTERM; a signal that the program handles itself is left to it. Cancelling the task closes the
    connection. Afterwards stdin, stdout and the handlers of signals are what they were. Raises `OSError` where those
    exit, such as a `ConnectionClosed` if the agent fails, and `RuntimeError` if stdin and stdout are served already.
    """
    from ..standard_streams import serve

    chains, start, options = _starting(_listed(proxies), agent, options)
    await serve(start, options)
    if chains and chains[0].failure:
        raise ConnectionClosed(chains[0].failure)


def _starting(
    proxies: Sequence[Component], agent: AnyAgent | None, options: ConnectionOptions | None
) -> tuple[list[Chain], Callable[[ByteTransport], Awaitable[Chain]], ConnectionOptions]:
    """The list that gets the chain, the function that starts it, and its options."""
    check_components(proxies, agent)
    passing = passing_options(options_or_default(options))
    chains: list[Chain] = []

    async def start(transport: ByteTransport) -> Chain:
        chains.append(Chain(proxies, agent, carrying_messages(transport, passing), passing))
        return chains[0]

    return chains, start, passing


def _listed(proxies: Any) -> Any:
    """The proxies of a chain; for one alone, a list of it."""
    return [proxies] if callable(proxies) or by_version(proxies) is not None else proxies


async def serve_proxy(
    factory: AnyProxy | Sequence[AnyProxy],
    client: Transport | ByteTransport,
    agent: Transport | ByteTransport,
    *,
    options: ConnectionOptions | None = None,
) -> ConnectionClosed:
    """Run a proxy, or several, between two transports until one of them ends; returns why. Then both are closed.

    `client` leads to the client, or to what is between, and `agent` to the agent.
    """
    proxies = _listed(factory)
    check_components(proxies, None)
    options = passing_options(options_or_default(options))
    relays = _linked([_factories(each) for each in proxies], client, agent, options)
    return _main_reason(await _run_all(relays))


async def serve_conductor(
    proxies: Sequence[Component],
    agent: AnyAgent | None,
    transport: Transport | ByteTransport,
    *,
    options: ConnectionOptions | None = None,
) -> None:
    """Run a chain as `run_conductor` does, for a client at the other end of `transport`. Logs how the agent fails.

    A client over the network (`Transport` says when it is) cannot take the place of the agent, as a conductor does, nor
    does it learn what a process has said last.
    """
    check_components(proxies, agent)
    options = passing_options(options_or_default(options))
    await _serve(Chain(proxies, agent, carrying_messages(transport, options), options))


async def _serve(chain: Chain) -> None:
    try:
        await chain.wait_closed()
    finally:
        await chain.close()
    if chain.failure:
        logger.error("the agent of a proxy has failed: %s", chain.failure)


def _factories(proxy: Any) -> Mapping[int, Callable[..., Passing]]:
    found: Any = by_version(proxy)
    return {version_of(proxy, PROTOCOLS): proxy} if found is None else found


# --- Linking ---------------------------------------------------------------------------------------------------------


def _linked(
    proxies: Sequence[Mapping[int, Callable[..., Passing]]],
    client: Transport | ByteTransport,
    agent: Transport | ByteTransport,
    options: ConnectionOptions,
) -> list[Relay]:
    """The relays between two transports: one for each proxy, or one that passes everything on."""
    relays = list[Relay]()
    left: Transport | ByteTransport = client
    client_kind = peer_kind_of(client)
    tells = client_kind != "network"  # what a process has written last is not for everybody
    for number, factories in enumerate(proxies or [{}], start=1):
        near, far = (agent, None) if number >= len(proxies) else passing_pair(options, client_kind)
        relays.append(Relay(factories, PROTOCOLS, client=left, agent=near, stubs=_stubs, options=options, tells=tells))
        left = far or agent
    return relays


def _stubs(version: int, client: Hop, agent: Hop) -> tuple[Any, Any]:
    on_drop = client.options.on_drop
    return remote_client(version)(client, on_drop=on_drop), remote_agent(version)(agent, on_drop=on_drop)


async def _run_all(
    relays: Sequence[Relay], at_first_end: Callable[[_Running], Awaitable[None]] | None = None
) -> list[ConnectionClosed]:
    """Run all until they have ended: the end of one closes the transports of its neighbours."""
    running = [asyncio.ensure_future(relay.run()) for relay in relays]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if at_first_end is not None:
            await at_first_end(running)
        await asyncio.wait(running)
        return [each.result() for each in running]
    finally:
        for each in running:
            each.cancel()
        await asyncio.wait(running)


def _main_reason(reasons: Sequence[ConnectionClosed]) -> ConnectionClosed:
    """The reason for the end of a chain: that of a process that has failed, if there is one."""
    return next((each for each in reasons if each.exit_code), reasons[0])


class Chain:
    """A chain that starts with the first message of the client."""

    def __init__(
        self,
        proxies: Sequence[Component],
        agent: AnyAgent | None,
        client: Transport,
        options: ConnectionOptions,
    ) -> None:
        self._proxies = proxies
        self._client_kind: PeerKind = peer_kind_of(client)
        self._agent = agent
        self._client = client
        self._options = options
        self._processes: list[ProcessTransport] = []
        self._source = contextlib.AsyncExitStack()
        self._has_source = False
        self._relays: list[Relay] = []
        self._is_stopping = False
        self.failure = ""
        """Why the chain has ended, if the client did not end it."""
        self._running = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Begin to end."""
        self._is_stopping = True
        if self._relays:
            self._relays[0].stop()
        else:
            self._running.cancel()

    async def wait_closed(self) -> None:
        """Wait for the end."""
        await asyncio.wait({self._running})
        if not self._running.cancelled():
            self._running.result()

    async def close(self) -> None:
        """Stop, and wait for the end."""
        self.stop()
        await self.wait_closed()

    async def _run(self) -> None:
        try:
            first = await self._opened()
            if first is None:
                await self._client.close()
                return
            reason = _main_reason(await _run_all(self._relays, self._end_others))
            first_end, last_end = (self._relays[at].ended_by for at in (0, -1))
            is_lost = self._has_source and last_end is not None and last_end.side == "agent"
            is_over = self._is_stopping or (first_end is not None and first_end.side == "client")
            if not is_over and (reason.exit_code or is_lost):
                self.failure = f"{reason}"
        finally:
            await self._release()

    async def _end_others(self, relays: _Running) -> None:
        """End the processes some time after the end of a relay: one that ignores that of its stdin keeps the next."""
        await asyncio.wait(relays, timeout=TERMINATE_SECONDS)
        await self._end_processes()

    async def _release(self) -> None:
        try:
            await self._source.aclose()
        finally:
            await self._end_processes()

    async def _end_processes(self) -> None:
        ended, self._processes = self._processes, []
        await asyncio.gather(*(process.end_process() for process in ended))

    async def _opened(self) -> Message | Unreadable | None:
        """Make the chain at the first message that opens it; None if there is none. Others are refused."""
        while (message := await self._next()) is not None:
            error = await self._open(message) if isinstance(message, Message) else message.error
            if error is None:
                return message
            if not isinstance(error, InternalError):
                log_mistake("the client sent a message that cannot be handled: %s", error)
            await self._refuse(message, error)
            if self.failure:
                break
        return None

    async def _next(self) -> Message | Unreadable | None:
        try:
            return await self._client.read()
        except OSError:
            return None

    async def _open(self, message: Message) -> RequestError | None:
        """Make the chain that a message asks for; returns the error if it cannot be."""
        form = form_of(message, FORMS, _OPENING)
        is_refused = form is not None and self._client_kind == "network"  # it would take the place of the agent
        if is_refused and message.method == _OPENING:
            return InvalidRequestError("a client on the network cannot be a conductor")
        if message.kind != "request" or is_refused or (form is None and message.method != _OPENING):
            return InvalidRequestError(f"{_OPENING} must come first")
        if form is None and self._agent is None:
            text = "this proxy is started by a conductor: it has no agent of its own"
            return InvalidRequestError(text)
        try:
            self._relays = await self._link(Begun(self._client, message), form)
        except OSError as error:
            await self._release()
            return self._not_started(error)
        except Exception:  # a factory has failed
            await self._refuse(message, InternalError())
            await self._client.close()
            raise
        return None

    def _not_started(self, error: OSError) -> RequestError:
        if isinstance(error, ConnectionClosed):  # of an agent elsewhere: the client starts this program again
            self.failure = str(error)
            if self._client_kind == "network":
                return InternalError("the agent cannot be reached")
            return InternalError(self.failure, data={"status": error.status} if error.status else UNSET)
        logger.error("a component of the chain cannot be started: %s", error)
        details = "" if self._client_kind == "network" else f": {error}"  # of this machine
        return InternalError(f"a component of the chain cannot be started{details}")

    async def _link(self, client: Transport, form: Form | None) -> list[Relay]:
        commands: list[Any] = [each for each in self._proxies if is_command(each)]
        started = [await self._started(each, "proxy") for each in commands]
        if form is None:
            agent = await self._open_agent()
        else:  # not before the processes run: if they cannot, the client may try again
            self._client_kind = "conductor"
            junction = self._junction(client, form, is_conductor=False)
            client, agent = junction.plain, junction.wrapped
        return self._relays_between(client, agent, started)

    async def _open_agent(self) -> Transport:
        agent: Any = self._agent
        if not is_source(agent):
            return await self._started(agent, "agent", for_network=self._client_kind == "network")
        transport = await self._source.enter_async_context(opened(agent, self._options))
        self._has_source = True
        return carrying_messages(transport, self._options)

    def _relays_between(self, left: Transport, agent: Transport, started: list[Transport]) -> list[Relay]:
        relays, group = list[Relay](), list[Mapping[int, Callable[..., Passing]]]()
        for component in self._proxies:
            if not is_command(component):
                group.append(_factories(component))
                continue
            inner = self._junction(started.pop(0), FORMS[0], is_conductor=True)
            relays += _linked(group, left, inner.plain, self._options)
            left, group = inner.wrapped, []
        return [*relays, *_linked(group, left, agent, self._options)]

    def _junction(self, transport: Transport, form: Form, *, is_conductor: bool) -> Junction:
        return Junction(
            transport,
            form,
            is_conductor=is_conductor,
            opening=_OPENING,
            cancellation=_CANCELLATION,
            client_kind=self._client_kind,
            limit=self._options.max_message_bytes,
        )

    async def _started(self, command: CommandLine, what: str, *, for_network: bool = False) -> Transport:
        process = await started(command, what, self._options, for_network=for_network)
        self._processes.append(process)
        return carrying_messages(process, self._options)

    async def _refuse(self, message: Message | Unreadable, error: RequestError) -> None:
        is_answered = message.kind == "request" if isinstance(message, Message) else message.kind != "response"
        if not is_answered:
            return
        with contextlib.suppress(OSError):
            rest = self._client.send(Message("error", error.to_json(), id=message.id))
            if rest is not None:
                await rest
