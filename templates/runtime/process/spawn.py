"""Connects a client to an agent: one that it starts as a process, or one on any other transport."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from ..methods import PROTOCOLS, AnyClientFactory, AnyConnection, AnyParams, AnyProcess, C, ClientFactory, remote_agent
from .connection import Connection, by_version, check_factory, make_handler, version_of
from .decision import explain, explains
from .dispatch import Peer, Remote
from .options import ConnectionOptions, options_or_default
from .process import ProcessTransport, start_process
from .transport import ByteTransport, Transport

__all__ = ["AgentConnection", "AgentProcess", "connect", "spawn_agent"]

C_co = TypeVar("C_co", covariant=True)
A = TypeVar("A", bound=Remote)
A_co = TypeVar("A_co", bound=Remote, covariant=True)


class HasAgent(Protocol[A_co]):
    """A client: its attribute `agent` is the stub that calls the agent."""

    @property
    def agent(self) -> A_co:
        """The stub."""
        ...


@overload
def connect(
    factory: Mapping[int, AnyClientFactory],
    transport: Transport | ByteTransport,
    *,
    params: Mapping[int, AnyParams],
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect(
    factory: ClientFactory[C], transport: Transport | ByteTransport, *, options: ConnectionOptions | None = None
) -> AgentConnection[C]: ...
@explains
def connect(
    factory: Any,
    transport: Transport | ByteTransport,
    *,
    params: Mapping[int, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at the other end of `transport`; the end of the block closes the connection.

    For several versions of the protocol, `factory` and `params` are mappings: entering the block sends the request that
    negotiates the version, once, with the params of all versions side by side. The agent chooses one of them: its
    factory is called, and the block gets its stub, whose `negotiated` is the result. Entering raises the `RequestError`
    of the agent, and `ConnectionClosed` if it chooses another version.
    """
    check_factory(factory, "Client", transport)
    return AgentConnection(factory, contextlib.nullcontext(transport), options_or_default(options), params)


@overload
def spawn_agent(
    factory: Mapping[int, AnyClientFactory],
    command: Sequence[str | os.PathLike[str]],
    *,
    params: Mapping[int, AnyParams],
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Literal["inherit", "log", "discard"] = "inherit",
    terminate_seconds: float = 3.0,
    options: ConnectionOptions | None = None,
) -> AnyProcess: ...
@overload
def spawn_agent(
    factory: ClientFactory[C],
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Literal["inherit", "log", "discard"] = "inherit",
    terminate_seconds: float = 3.0,
    options: ConnectionOptions | None = None,
) -> AgentProcess[C]: ...
@explains
def spawn_agent(
    factory: Any,
    command: Sequence[str | os.PathLike[str]],
    *,
    params: Mapping[int, Any] | None = None,
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Literal["inherit", "log", "discard"] = "inherit",
    terminate_seconds: float = 3.0,
    options: ConnectionOptions | None = None,
) -> AgentProcess[Any]:
    """Start an agent as a process, and connect to its stdin and stdout; the end of the block ends the process.

    `command` is the program and its arguments. `env` is its whole environment, by default that of this process;
    `extra_env` is added to it. `stderr` says what to do with the lines that the agent writes there.

    To end the agent, its stdin is closed. After `terminate_seconds`, its process group gets SIGTERM, and after as long
    again SIGKILL; on Linux all groups of its session do. A process in a session of its own is not reached, and on
    Windows only the agent itself is.

    The agent has ended when the process of `command` has, even if child processes keep its stdout open: what was
    written is still read, calls raise a `ConnectionClosed` with the exit code and the last lines, and the rest of the
    process group gets the same time to end. So a launcher has to wait for the agent that it starts.

    A line on stdout that starts neither an object nor an array of objects is text: it is logged, and not answered. So
    is a line of a structured log: an object of at most 64 KiB with neither `jsonrpc` nor `id`. Raises `OSError` if the
    process cannot be started.

    Mappings for `factory` and `params` offer several versions of the protocol, as for `connect`.
    """
    check_factory(factory, "Client", command)
    if isinstance(command, str):
        raise TypeError("command is a list: the program and its arguments")
    if extra_env is not None:
        env = {**(os.environ if env is None else env), **extra_env}
    options = options_or_default(options)
    seconds = float(terminate_seconds)  # not only when the process is to end
    start = partial(start_process, command, env=env, cwd=cwd, stderr=stderr, terminate_seconds=seconds, options=options)
    return AgentProcess(factory, start, options, params)


def _check(factory: Any, params: Mapping[int, Any] | None) -> None:
    check_factory(factory, "Client", None)
    factories = by_version(factory)
    if factories is None:
        if params is not None:
            raise TypeError("`params` are for a mapping of factories")
        return
    from .versions.selection import check_factories

    check_factories(factories, PROTOCOLS)
    if params is None or factories.keys() != params.keys():
        raise ValueError("`params` must have the params of each version in `factory`")


class AgentConnection(Generic[C_co]):
    """A connection to an agent, for one `async with` block, which gets the stub that calls the agent.

    Entering it again raises `RuntimeError`, as do attributes that are not known before the block.
    """

    def __init__(
        self,
        factory: Any,
        opening: AbstractAsyncContextManager[Transport | ByteTransport],
        options: ConnectionOptions,
        params: Mapping[int, Any] | None,
    ) -> None:
        _check(factory, params)
        self._factory = factory
        self._params = params
        self._options = options
        self._block = self._talk(opening)
        self._is_entered = False
        self._handler: C_co | None = None

    @property
    def handler(self) -> C_co:
        """The client that the factory has made; known in the block."""
        if self._handler is None:
            raise RuntimeError("the handler is made when the block is entered")
        return self._handler

    @contextlib.asynccontextmanager
    async def _talk(self, opening: AbstractAsyncContextManager[Transport | ByteTransport]) -> AsyncGenerator[Any, None]:
        async with opening as transport:
            connection = Connection(transport, self._options, peer="agent")
            try:
                if self._params is None:
                    agent = self._stub(version_of(self._factory, PROTOCOLS), connection)
                    handler = self._handler = make_handler(self._factory, agent)
                    connection.start(handler)
                else:
                    agent = await self._negotiate(connection, self._params)
                yield agent
            finally:
                await connection.close()

    def _stub(self, version: int, peer: Peer) -> Any:
        return remote_agent(version)(peer, on_drop=self._options.on_drop)

    async def _negotiate(self, connection: Connection, params: Mapping[int, Any]) -> Any:
        """Let the agent choose a version; returns the stub for it."""
        from .versions.selection import negotiate

        made: Any
        made, agent = await negotiate(
            connection, PROTOCOLS, factories=self._factory, params=params, make_stub=self._stub
        )
        self._handler = made
        return agent

    async def __aenter__(self: AgentConnection[HasAgent[A]]) -> A:
        if self._is_entered:
            raise RuntimeError("this connection has been used in an `async with` block already: make another one")
        self._is_entered = True
        try:
            agent: A = await self._block.__aenter__()
        except Exception as error:
            explain(error, is_passing=True)
            raise
        return agent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        is_handled = await self._block.__aexit__(kind, error, traceback)
        if isinstance(error, Exception) and not is_handled:
            explain(error)
        return is_handled


class AgentProcess(AgentConnection[C_co]):
    """A connection to an agent that runs as a process; `pid` and `returncode` are known in the block."""

    def __init__(
        self,
        factory: Any,
        start: Callable[[], Awaitable[ProcessTransport]],
        options: ConnectionOptions,
        params: Mapping[int, Any] | None,
    ) -> None:
        super().__init__(factory, self._run(start), options, params)
        self._process: ProcessTransport | None = None

    @contextlib.asynccontextmanager
    async def _run(self, start: Callable[[], Awaitable[ProcessTransport]]) -> AsyncGenerator[ByteTransport, None]:
        self._process = process = await start()
        try:
            yield process
        finally:
            await process.end_process()

    def _started(self) -> ProcessTransport:
        if self._process is None:
            raise RuntimeError("the process is started when the block is entered")
        return self._process

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._started().pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended the process; None while it runs."""
        return self._started().returncode
