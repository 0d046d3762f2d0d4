"""Pairs that talk over the network: the server is ours in this process, or theirs in a process of its own."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

from tests.interop.our_proxy import proxies_of
from tests.interop.pairs import LIMIT, OF_ONE, Json, OurAgent, Pair, Setup, Stage, open_our_client
from tests.interop.puppet import Puppet
from tests.interop.remote_asgi import Journal, serving

PATH = "/acp"
USUAL = {("ts", "client"): "http1", ("ts", "agent"): "http1", ("py", "client"): "http2", ("py", "agent"): "http1"}
"""The version of HTTP that the SDK speaks unless told otherwise, by peer and our role."""
OVER_HTTP = tuple(replace(each, transport=USUAL[each.peer, each.ours]) for each in OF_ONE)
OVER_WEBSOCKET = tuple(replace(each, transport="websocket") for each in OF_ONE)
OVER_HTTP2 = tuple(replace(each, transport="http2") for each in OVER_HTTP if each.ours == "agent")
OF_TWO = (
    *(replace(each, of_two=True) for each in (*OVER_HTTP, *OVER_WEBSOCKET)),
    *(Setup("router", 1, "client", transport=each) for each in ("http1", "websocket")),
    *(Setup("router", 2, "client", of_two=True, transport=each) for each in ("http1", "websocket")),
)
REMOTE = (*OVER_HTTP, *OVER_WEBSOCKET, *OVER_HTTP2, *OF_TWO)


def remote(acp: ModuleType, module: str) -> Any:
    """A module of a package that was built with `--with remote`."""
    return importlib.import_module(f"{acp.__name__}.{module}")


@asynccontextmanager
async def open_remote_pair(setup: Setup, stage: Stage) -> AsyncGenerator[Pair, None]:
    """Start both sides of `setup`. They have not said anything yet, but for a client of two versions."""
    opened = _open_our_agent if setup.ours == "agent" else _open_our_client
    async with opened(setup, stage) as pair:
        yield pair


@asynccontextmanager
async def _process(stage: Stage, *command: str) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    with stage.stderr.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=LIMIT,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 3)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()


# --- Our server -----------------------------------------------------------------------------------------------------


class OurServer(OurAgent):
    """Their client in a process, and our agent, which this process serves."""

    def __init__(self, setup: Setup, process: asyncio.subprocess.Process, journal: Journal) -> None:
        super().__init__(setup, process)
        self.journal = journal
        self.left: int | None = None
        """How many connections the server had when the client had ended."""


async def requests(pair: Pair) -> list[Json]:
    """The requests of the client to the server: see `Journal`."""
    if isinstance(pair, OurServer):
        return pair.journal.requests
    found: list[Json] = (await pair.order("agent", "requests", {}))["requests"]
    return found


@asynccontextmanager
async def _open_our_agent(setup: Setup, stage: Stage) -> AsyncGenerator[Pair, None]:
    app = _proxy_app(setup, stage) if setup.proxy else _our_app(setup, stage)
    journal = Journal(app)
    async with (
        serving(journal) as port,
        _process(stage, *stage.peer(setup), setup.transport, url := f"http://127.0.0.1:{port}{PATH}") as process,
    ):
        pair = OurServer(setup, process, journal)
        pair.url = url
        try:
            yield pair
        finally:
            await pair.end()
            pair.left = await _connections_left(app)


def _our_app(setup: Setup, stage: Stage) -> Any:
    part = getattr(stage.acp, f"v{setup.version}") if setup.of_two else stage.acp
    puppet = Puppet(part, "agent", json.loads(stage.answers.read_text(encoding="utf-8")))
    factories = {**dict.fromkeys(stage.offered, _unwanted), setup.version: puppet.factory}
    asgi = remote(stage.acp, "asgi")
    # over HTTP/2, httpx, which the Python SDK has, looks at a response only when more arrives: here, a comment
    limits = asgi.RemoteLimits(keep_alive_seconds=0.1) if setup.transport == "http2" else None
    return asgi.asgi_app(
        factories if setup.of_two else puppet.factory,
        path=PATH,
        require_http2=setup.transport == "http2",
        limits=limits,
        options=puppet.options(stage.acp, stage.trace),
    )


def _proxy_app(setup: Setup, stage: Stage) -> Any:
    """An agent in a process, behind a proxy in this one."""
    assert stage.proxies is not None
    proxies = proxies_of(stage.proxies, setup.proxy)
    return remote(stage.proxies, "asgi_proxy").proxy_app(proxies, stage.our_agent(setup), path=PATH)


async def _connections_left(app: Any) -> int:
    """How many connections a server has, once it has seen that its client has gone."""
    for _ in range(100):
        if not app.connections:
            break
        await asyncio.sleep(0.02)
    return int(app.connections)


def _unwanted(_client: Any) -> Any:
    raise RuntimeError("the client has chosen another version")


# --- Their server ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def their_server(setup: Setup, stage: Stage) -> AsyncGenerator[str, None]:
    """Start their agent on the network: its URL."""
    async with _process(stage, *stage.peer(setup), setup.transport) as process:
        assert process.stdout is not None
        line = await process.stdout.readline()
        yield f"http://127.0.0.1:{json.loads(line)['port']}{PATH}"


@asynccontextmanager
async def _open_our_client(setup: Setup, stage: Stage) -> AsyncGenerator[Pair, None]:
    async with their_server(setup, stage) as url:
        start = partial(connect, stage.acp, setup.transport, url)
        if setup.proxy:
            start = partial(_spawn_proxy, setup, stage, url)
        async with open_our_client(setup, stage, start) as pair:
            pair.url = url
            yield pair


def _spawn_proxy(setup: Setup, stage: Stage, url: str, factory: Any, **more: Any) -> AbstractAsyncContextManager[Any]:
    """Connect a client of ours by a proxy in a process."""
    url = url.replace("http", "ws", 1) if setup.transport == "websocket" else url
    found: AbstractAsyncContextManager[Any] = stage.acp.spawn_agent(
        factory, stage.between(setup, url), stderr="log", **more
    )
    return found


def connect(acp: ModuleType, transport: str, url: str, factory: Any, **more: Any) -> AbstractAsyncContextManager[Any]:
    """Connect a client of ours. No time-out ends it, for the event loop rests between tests."""
    module = remote(acp, "remote")
    found: AbstractAsyncContextManager[Any]
    if transport == "websocket":
        url = url.replace("http", "ws", 1)
        found = module.connect_websocket(factory, url, settings={"ping_interval": None}, **more)
    else:
        versions = {"http1": transport == "http1", "http2": transport == "http2"}
        found = module.connect_http(factory, url, settings=versions, silence_seconds=None, **more)
    return found
