"""Runs an agent on stdin and stdout, or on any other transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ..methods import PROTOCOLS, AgentFactory, remote_client
from .connection import Connection, Factory, by_version, check_factory, make_handler, version_of
from .decision import explains
from .dispatch import Peer
from .options import ConnectionOptions, options_or_default
from .places import part_module
from .transport import ByteTransport, Transport

__all__ = ["run_agent", "serve_agent", "serve_stdio"]

AnyFactory: TypeAlias = "AgentFactory | Mapping[int, AgentFactory]"
"""A factory, or one for each version of the protocol: the client chooses."""


@explains
def run_agent(factory: AnyFactory, *, options: ConnectionOptions | None = None) -> None:
    """Run an agent on stdin and stdout until the client closes them, or until SIGINT or SIGTERM.

    A mapping of factories by version of the protocol serves several versions: the first request that negotiates the
    version decides which of them is called.

    While it runs, `print` and the processes that the agent starts write to stderr, and stdin is empty: only messages
    are written to the client; what was printed before and is still buffered goes to stderr, too. Raises `SystemExit`
    with a message if stdin cannot be read or stdout cannot be written, as on a full disk, but not if the client has
    gone. Raises `RuntimeError` where an event loop runs: `serve_stdio` is for that.
    """
    from .standard_streams import no_coroutine, run

    check_factory(factory, "Agent", None)
    options = options_or_default(options)
    run(lambda transport: _started(factory, transport, options), options, name="run_agent")
    return no_coroutine("run_agent")


async def serve_stdio(factory: AnyFactory, *, options: ConnectionOptions | None = None) -> None:
    """Run an agent on stdin and stdout, as `run_agent` does, within a program that has an event loop of its own.

    It returns when the client has closed them, or after SIGINT or SIGTERM; a signal that the program handles itself is
    left to it. Cancelling the task closes the connection. Afterwards stdin, stdout and the handlers of signals are what
    they were. Raises `OSError` where `run_agent` exits, and `RuntimeError` if stdin and stdout are served already.
    """
    from .standard_streams import serve

    check_factory(factory, "Agent", None)
    options = options_or_default(options)
    await serve(lambda transport: _started(factory, transport, options), options)


async def serve_agent(
    factory: AnyFactory, transport: Transport | ByteTransport, *, options: ConnectionOptions | None = None
) -> None:
    """Run an agent on `transport` until the connection is closed. Cancelling the task closes it.

    A mapping of factories serves several versions, as for `run_agent`.
    """
    check_factory(factory, "Agent", transport)
    connection = await _started(factory, transport, options_or_default(options))
    try:
        await connection.wait_closed()
    finally:
        await connection.close()


async def _started(factory: AnyFactory, transport: Transport | ByteTransport, options: ConnectionOptions) -> Connection:
    connection = Connection(transport, options, peer="client")

    def make_stub(version: int, peer: Peer) -> Any:
        return remote_client(version)(peer, on_drop=options.on_drop)

    try:
        factories = by_version(factory)
        if factories is not None and len(PROTOCOLS) > 1:
            selection = part_module("versions", "selection", "an agent of several versions")
            selection.serve_candidates(connection, PROTOCOLS, factories, make_stub)
        else:
            one: Any = factory if factories is None else _only(factories)
            connection.start(make_handler(one, make_stub(version_of(one, PROTOCOLS), connection)))
    except BaseException:
        await connection.close()
        raise
    return connection


def _only(factories: Mapping[int, Factory]) -> Factory:
    """The factory in a mapping for a package of one version. Raises `ValueError` for other versions than that."""
    only = max(PROTOCOLS)
    if [*factories] != [only]:
        named = " and ".join(map(repr, factories)) or "none"
        raise ValueError(f"this package has version {only} of the protocol alone: the mapping has {named}")
    return factories[only]
