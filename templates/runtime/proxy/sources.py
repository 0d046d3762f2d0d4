"""What a chain is made of: proxies, and the source of the agent, a command or such as a `network.NetworkAgent`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeAlias

from ...methods import ProxyFactory
from ..connection import check_factory
from ..options import ConnectionOptions
from ..peer_kind import PEER_KIND
from ..process import ProcessTransport, start_process
from ..transport import ByteTransport, Transport

__all__ = ["AgentSource"]

CommandLine: TypeAlias = "Sequence[str | os.PathLike[str]]"
"""A program and its arguments."""

TERMINATE_SECONDS: Final = 3.0
"""The time that a process has to end."""


class AgentSource(Protocol):
    """A source of an agent that is not a command, such as one on the network."""

    def open(self, options: ConnectionOptions) -> AbstractAsyncContextManager[Transport | ByteTransport]:
        """Open a transport to the agent; `options` are for it. The end of the block closes it. Raises `OSError`."""
        ...


AnyAgent: TypeAlias = "CommandLine | AgentSource"
AnyProxy: TypeAlias = "ProxyFactory | Mapping[int, ProxyFactory]"
"""A factory, or one for each version of the protocol: the answer of the agent chooses."""
Component: TypeAlias = "AnyProxy | CommandLine"
"""A proxy in this process, or the command of one."""


def check_components(proxies: Any, agent: Any) -> None:
    """Raise `TypeError` for a component that is neither a proxy nor a command."""
    for each in (*proxies, agent):
        check_command(each)
    for each in proxies:
        if not is_command(each):
            check_factory(each, "Proxy", agent)


def is_command(component: object) -> bool:
    """True for the command of a proxy, false for a proxy in this process."""
    return isinstance(component, (list, tuple))


def is_source(agent: object) -> bool:
    """True for an `AgentSource`, false for a command."""
    return hasattr(agent, "open")


def check_command(command: object) -> None:
    """Raise `TypeError` for a command that is one string."""
    if isinstance(command, (str, bytes)):
        raise TypeError("a command is a list: the program and its arguments")


@asynccontextmanager
async def opened(agent: AnyAgent, options: ConnectionOptions) -> AsyncGenerator[Transport | ByteTransport, None]:
    """A transport to an agent. The end of the block closes it, and ends the process. Raises `OSError`."""
    check_command(agent)
    source: Any = agent
    if is_source(agent):
        async with source.open(options) as transport:
            yield transport
        return
    process = await started(source, "agent", options)
    try:
        yield process
    finally:
        await process.end_process()


async def started(
    command: CommandLine, what: str, options: ConnectionOptions, *, for_network: bool = False
) -> ProcessTransport:
    """Start a program; `what` names it in errors and logs. Raises `OSError`.

    `for_network` says that it serves a client on the network: `run_agent` takes that from the environment.
    """
    env = {**os.environ, PEER_KIND: "network"} if for_network else None
    return await start_process(
        command, env=env, cwd=None, stderr="inherit", terminate_seconds=TERMINATE_SECONDS, options=options, what=what
    )
