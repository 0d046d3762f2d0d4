"""What the tests of the runtime share: a strict event loop, pairs of peers, and a peer that writes its JSON by hand."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import json
import logging
import socket
import warnings
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Set
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar, get_type_hints
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import pytest

from acpgen.config import SchemaChoice
from tests.support import runtime_module

T = TypeVar("T")

V1 = SchemaChoice(protocol=1, release="2026-11-02")
V2 = SchemaChoice(protocol=2, release="2026-11-02")
OLD = SchemaChoice(protocol=1, release="0.10.8")
BASES = {"v1": V1, "v2": V2, "old v1": OLD}
EVERY_BASE = pytest.mark.parametrize("sources", BASES.values(), ids=BASES.keys())
"""For tests that hold for every bundled base: `packages(sources)` is its package."""

SECONDS = 120.0


def run(main: Coroutine[Any, Any, T], *, seconds: float = SECONDS) -> T:
    """Run `main` in asyncio's debug mode; fail where it leaves tasks, unseen exceptions or warnings behind."""
    complaints: list[str] = []
    with warnings.catch_warnings(record=True) as caught, _collected_afterwards():
        warnings.simplefilter("always")
        result = asyncio.run(_watched(main, complaints, seconds), debug=True)
    bad = (w for w in caught if issubclass(w.category, (RuntimeWarning, ResourceWarning)))
    complaints += [f"{w.category.__name__}: {w.message}" for w in bad]
    assert not complaints, "\n".join(complaints)
    return result


@contextmanager
def _collected_afterwards() -> Iterator[None]:
    """Collect garbage at the end of the block, so that what was never awaited or closed in it warns.

    Older objects are frozen for good: collecting them takes longer than most tests. So nothing warns of what is left
    behind between two such blocks.
    """
    gc.freeze()
    yield
    gc.collect()


async def _watched(main: Coroutine[Any, Any, T], complaints: list[str], seconds: float) -> T:
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = 5.0  # the machine may be busy, which is not what is tested
    loop.set_exception_handler(lambda _, context: complaints.append(f"the loop: {context}"))
    result = await asyncio.wait_for(main, seconds)
    complaints += [f"left running: {task!r}" for task in asyncio.all_tasks() - {asyncio.current_task()}]
    return result


def agent_of(acp: ModuleType, **methods: Callable[..., Any]) -> type[Any]:
    """A class of agents with these handlers, each `async def handler(self, params)`."""
    return type("TestAgent", (acp.Agent,), methods)


def client_of(acp: ModuleType, **methods: Callable[..., Any]) -> type[Any]:
    """A class of clients with these handlers."""
    return type("TestClient", (acp.Client,), methods)


def example_of(documented: Any, acp: ModuleType, base: type[Any]) -> Any:
    """A subclass of `base` with the methods in the docstring of `documented`: the text that is indented."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    body = "\n".join(line for line in lines if line.startswith("    ") or not line)
    names = {**vars(acp), documented.__name__: documented, "Base": base}
    exec(f"from __future__ import annotations\nclass Example(Base):\n{body}", names)
    example: Any = names["Example"]
    for method in filter(inspect.isfunction, vars(example).values()):
        get_type_hints(method)  # fails for unknown names
    return example


def stub_of(acp: ModuleType, kind: type[Any], connection: Any) -> Any:
    """What a handler of the class `kind` calls its peer by."""
    return (acp.RemoteClient if issubclass(kind, acp.Agent) else acp.RemoteAgent)(connection)


def started(acp: ModuleType, kind: type[Any], transport: Any, options: Any = None) -> tuple[Any, Any]:
    """A connection for a handler of the class `kind`, and that handler.

    Other requests may come first, unless the class overrides `initialize`.
    """
    connection = acp.Connection(transport, options)
    handler = kind(stub_of(acp, kind, connection))
    connection.start(handler)
    return connection, handler


@dataclass
class RawPeer:
    """The other end of a connection, by hand: what it sends need be neither sensible nor JSON."""

    transport: Any
    connection: Any
    handler: Any
    stub: Any
    """Calls this peer from the side that is tested."""
    _ids: Iterator[str] = field(default_factory=lambda: (f"ping-{number}" for number in itertools.count()))

    async def send_line(self, line: bytes) -> None:
        """Send bytes as they are."""
        await self.transport.write(line)

    async def send(self, message: Any) -> None:
        """Send any JSON."""
        await self.send_line(json.dumps(message).encode())

    async def request(self, number: Any, method: str, params: Any = None) -> None:
        """Send a request, and do not wait for its answer."""
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, number: Any, **outcome: Any) -> None:
        """Answer a request with a `result` or an `error`."""
        await self.send({"jsonrpc": "2.0", "id": number, **outcome})

    async def receive(self) -> Any:
        """The next message; None once the other side has ended."""
        line = await self.transport.read()
        return None if line is None else json.loads(line)

    async def ask(self, number: Any, method: str, params: Any = None) -> Any:
        """Send a request, and return the next message, which should be its answer."""
        await self.request(number, method, params)
        return await self.receive()

    async def ping(self) -> list[Any]:
        """Show that requests are still answered; returns what came before the answer, and nothing else will."""
        number = next(self._ids)
        await self.request(number, "_ping")
        before: list[Any] = []
        while (message := await self.receive()) is None or message.get("id") != number:
            assert message is not None, "the connection has ended"
            before.append(message)
        return before


@asynccontextmanager
async def raw_peer(
    acp: ModuleType,
    kind: type[Any],
    *,
    options: Any = None,
    max_messages: int = 64,
    through: Callable[[Any], Any] = lambda near: near,
) -> AsyncGenerator[RawPeer, None]:
    """A peer by hand, of a handler of the class `kind`; afterwards both ends are closed.

    `through` makes the transport of the handler from its end of the pair.
    """
    near, far = acp.memory_transports(max_messages)
    connection, handler = started(acp, kind, through(near), options)
    try:
        yield RawPeer(far, connection, handler, stub_of(acp, kind, connection))
    finally:
        await far.close()
        await connection.close()


@dataclass(frozen=True)
class Pair:
    """An agent and a client that talk to each other; `agent` and `client` are the stubs that call them."""

    agent: Any
    client: Any
    agent_side: Any
    client_side: Any
    agent_handler: Any
    client_handler: Any


@asynccontextmanager
async def pair(
    acp: ModuleType,
    agent: type[Any],
    client: type[Any],
    *,
    agent_options: Any = None,
    client_options: Any = None,
    transports: tuple[Any, Any] | None = None,
) -> AsyncGenerator[Pair, None]:
    """An agent and a client on an in-memory pair, or on other `transports`; afterwards both sides are closed."""
    one, other = transports or acp.memory_transports()
    agent_side, agent_handler = started(acp, agent, one, agent_options)
    client_side, client_handler = started(acp, client, other, client_options)
    stubs = stub_of(acp, client, client_side), stub_of(acp, agent, agent_side)
    try:
        yield Pair(*stubs, agent_side, client_side, agent_handler, client_handler)
    finally:
        await client_side.close()
        await agent_side.close()


def items_in(part: Any) -> Counter[str]:
    """The number of items in the containers that an object of a package holds, by class and attribute.

    It looks through attributes and containers into other objects of the package, but into no handler of the test. So it
    shows what is left behind, whatever the parts of the package are called. What only a task holds is not seen.
    """
    found, seen, rest = Counter[str](), set[int](), [("", part)]
    package = type(part).__module__.partition(".")[0]
    while rest:
        place, each = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, (WeakKeyDictionary, WeakValueDictionary, WeakSet, Context)):
            continue  # holds nothing, or what a task has, which Python adds to
        if isinstance(each, (Mapping, Set, list, tuple, deque)):
            found[place] += len(each)
            inner = (*each, *each.values()) if isinstance(each, Mapping) else each
            rest += [(f"{place}[]", item) for item in inner]
        elif inspect.ismethod(each):
            rest.append((place, each.__self__))
        elif not isinstance(each, type) and type(each).__module__.partition(".")[0] == package:
            rest += [(f"{type(each).__name__}.{name}", value) for name, value in _attributes(each)]
    return found


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    slots = (name for base in type(value).__mro__ for name in vars(base).get("__slots__", ()))
    for name in (*getattr(value, "__dict__", ()), *slots):
        if hasattr(value, name):
            yield name, getattr(value, name)


def pass_time(seconds: float) -> None:
    """Let the clock of the event loop jump: what waits for less time than that is due."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]


async def at_rest(measure: Callable[[], T]) -> T:
    """Wait until `measure` has returned the same in many turns of the event loop."""
    value, turns = measure(), 0
    while turns < 100:
        await asyncio.sleep(0)
        value, before = measure(), value
        turns = turns + 1 if value == before else 0
    return value


async def over_pipes(acp: ModuleType, kind: type[Any], stdin: int, stdout: int, **options: Any) -> tuple[Any, Any]:
    """A connection over two pipes, as `run_agent` opens it, and its handler; it has to be started."""
    chosen = acp.ConnectionOptions(**options)
    pipes = runtime_module(acp, "pipes")
    limits = {"max_message_bytes": chosen.max_message_bytes, "max_write_buffer_bytes": chosen.max_write_buffer_bytes}
    connection = acp.Connection(pipes.PipeTransport(stdin, stdout, **limits), chosen)
    return connection, kind(stub_of(acp, kind, connection))


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def streams() -> tuple[Streams, Streams]:
    """The asyncio streams of the two ends of a socket; the test has to close them."""
    one, other = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=other)


def unchecked(acp: ModuleType, **more: Any) -> Any:
    """Options with which stubs call what was never advertised."""
    return acp.ConnectionOptions(check_capabilities=False, **more)


_hours = itertools.count(1)


@contextmanager
def acp_log(level: int = logging.DEBUG) -> Iterator[list[logging.LogRecord]]:
    """The records of the `acp` logger during the block, in an hour of its own: limits go by the time of a record."""
    records: list[logging.LogRecord] = []
    factory, ahead = logging.getLogRecordFactory(), 3600.0 * next(_hours)

    def later(*args: Any, **more: Any) -> logging.LogRecord:
        record = factory(*args, **more)
        record.created += ahead
        return record

    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("acp")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    logging.setLogRecordFactory(later)
    try:
        yield records
    finally:
        logging.setLogRecordFactory(factory)
        logger.removeHandler(handler)
        logger.setLevel(before)


def texts(records: list[logging.LogRecord], level: int = logging.WARNING) -> str:
    """The log as text, tracebacks included, from `level` on."""
    formatter = logging.Formatter("%(levelname)s %(name)s %(message)s")
    return "\n".join(formatter.format(record) for record in records if record.levelno >= level)
