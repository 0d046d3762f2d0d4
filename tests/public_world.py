"""A world for the public callables of a package: peers that answer everything, and arguments that fit."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

from acpgen.config import SchemaChoice
from tests.public_calls import Callee, called
from tests.runtime_support import unchecked
from tests.support import runtime_module
from tests.test_dataclasses import Samples, model_for


class World:
    """An agent and a client that answer everything, on connections of the event loop that runs.

    `one` is the package itself, or that of one version in a package of several.
    """

    def __init__(self, acp: ModuleType, sources: SchemaChoice, folder: Path) -> None:
        self.acp = acp
        self.one: Any = getattr(acp, f"v{sources.protocol}", acp)
        self.helpers: Any = importlib.import_module(f"{self.one.__name__}.helpers")
        self.folder = folder
        self.samples = Samples(model_for(sources), full=True)
        self.agent: Any = None
        self.client: Any = None
        self.connection: Any = None
        self.sessions: Any = None
        self.turns: Any = None
        self.scripted_agent: Any = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> World:
        """Open the connections."""
        answers = self._answers(self.one.AGENT_METHODS)
        for name in ("initialize", "session/new", "session/prompt"):  # which it does by itself
            del answers[name]
        self.scripted_agent = self.helpers.ScriptedAgent(script, answers=answers)
        self.scripted_agent.wait_seconds = 0.05  # some wrong messages have no answer
        self.agent = await self._stub("RemoteAgent", self.scripted_agent)
        answers = self._answers(self.one.CLIENT_METHODS)
        self.client = await self._stub("RemoteClient", self.helpers.ScriptedClient(answers=answers))
        if hasattr(self.helpers, "Turns"):
            await self._run_turn()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _run_turn(self) -> None:
        """Let a turn run in the session "text", to the end of all."""
        self.turns = self.made("Turns")
        running, over = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            running.set()
            await over.wait()

        params = self.one.PromptRequest(session_id="text", prompt=[])
        turn = asyncio.ensure_future(self.turns.run(params, wait()))
        await running.wait()
        self._stack.push_async_callback(lambda: turn)
        self._stack.callback(over.set)

    def _answers(self, methods: Mapping[str, Any]) -> dict[str, Any]:
        names = {each.name: each.result.__name__ if isinstance(each.result, type) else "" for each in methods.values()}
        return {each: None if name in ("", "NoneType") else self.samples.named(name) for each, name in names.items()}

    async def _stub(self, name: str, peer: Any) -> Any:
        here, there = self.acp.memory_transports()
        await self._stack.enter_async_context(peer.connected(there))
        self.connection = self.acp.Connection(here, unchecked(self.acp))
        self._stack.push_async_callback(self.connection.close)
        stub = getattr(self.one, name)(self.connection)
        bases = {"RemoteClient": (self.one, "Agent"), "RemoteAgent": (self.helpers, "SessionClient")}
        base = getattr(*bases[name], None) or runtime_module(self.acp, "dispatch").Handler
        handler = base(stub)
        self.connection.start(handler)
        self.sessions = handler if name == "RemoteAgent" else self.sessions
        return stub

    # --- Arguments ---------------------------------------------------------------------------------------------------

    def sample(self, name: str) -> Any:
        """A value of a type of the schema."""
        return self.one.decode(getattr(self.one, name), self.samples.named(name))

    def fitting(self, callee: Callee) -> dict[str, Any]:
        """The arguments that a callee needs; those that have a default are left out."""
        needed = (each for each in callee.parameters if each.default is each.empty)
        return {each.name: self._argument(callee, each) for each in needed if each.kind is not each.VAR_KEYWORD}

    def _argument(self, callee: Callee, parameter: inspect.Parameter) -> Any:
        kind = str(parameter.annotation).strip("'")
        makers = (BY_NAME.get(f"{callee.name}.{parameter.name}"), BY_NAME.get(parameter.name), BY_TYPE.get(kind))
        make = next(filter(None, makers), None)
        return self.sample(kind) if make is None else make(self)

    async def call(self, callee: Callee, **other: Any) -> Any:
        """Call it with arguments that fit, but for `other`."""
        return called(callee, {**self.fitting(callee), **other}, await self.instance(callee))

    async def instance(self, callee: Callee) -> Any:
        """An instance of the class of a callee, if it needs one."""
        if not callee.needs_instance:
            return None
        name = callee.owner.__name__
        make = INSTANCES.get(callee.name) or INSTANCES.get(name)
        made = self.made(name) if make is None else make(self)
        return await made if inspect.iscoroutine(made) else made

    def made(self, name: str) -> Any:
        """An instance of a class, from its constructor."""
        kind = getattr(self.helpers, name, None) or getattr(self.acp, name)
        callee = Callee(name, kind)
        return called(callee, self.fitting(callee))

    # --- Instances ---------------------------------------------------------------------------------------------------

    def ended(self) -> Any:
        """A transport whose other end is closed: nothing waits for it."""
        here, there = self.acp.memory_transports()
        self._closing = asyncio.ensure_future(there.close())
        return here

    async def stored_agent(self) -> Any:
        parts = {"store": self.helpers.SqliteStore(":memory:"), "work": work}
        return type("Stored", (self.helpers.StoredAgent,), parts)(self.client)

    async def session(self) -> Any:
        return await self.sessions.open("/")

    async def turn(self) -> Any:
        return (await self.session()).prompt("Hello")

    async def active_session(self) -> Any:
        agent = await self.stored_agent()
        return agent.session((await agent.session_new(self.one.NewSessionRequest(cwd="/", mcp_servers=[]))).session_id)

    def refusing(self) -> Any:
        """What asks nobody for a permission."""

        async def ask(_: Any) -> Any:
            return self.helpers.PermissionAnswer()

        return ask

    async def tool_calls(self) -> Any:
        calls = self.helpers.ToolCalls(self.client, "text", self.turns)
        await calls.start("text", "A call that is open")
        return calls

    def scripted_turn(self) -> Any:
        return self.helpers.ScriptedTurn(self.scripted_agent, {"sessionId": "s", "prompt": []})

    async def scripted(self, name: str) -> Any:
        """A scripted peer that is connected to nobody who answers."""
        peer = self.made(name)
        peer.wait_seconds = 0.001
        return await self._stack.enter_async_context(peer.connected(self.acp.memory_transports()[0]))

    async def terminal(self) -> Any:
        return await self.helpers.Terminals().create(self.command())

    def handler(self) -> Any:
        base = getattr(self.one, "Agent", None) or runtime_module(self.acp, "dispatch").Handler
        return base(self.client)

    def update(self) -> Any:
        kind = inspect.get_annotations(self.helpers.SessionClient.session_update)["params"]
        return self.sample(kind)

    def file(self) -> str:
        path = self.folder / "file.txt"
        path.write_text("text", encoding="utf-8")
        return str(path)

    def command(self) -> Any:
        return self.one.CreateTerminalRequest(session_id="s", command="/bin/true")

    async def streams(self) -> Any:
        ends = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ends[0])
        self._stack.callback(ends[1].close)
        self._stack.callback(writer.close)
        return self.acp.StreamTransport(reader, writer)

    def store_maker(self) -> Any:
        store = self.helpers.SqliteStore(":memory:")

        async def make() -> Any:
            return store

        return make

    def exited(self) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_result(self.sample("TerminalExitStatus"))
        return future


async def script(turn: Any) -> None:
    """The script of an agent."""


async def work(self: Any, params: Any) -> str:
    return "end_turn"


async def later() -> str:
    return "end_turn"


async def started(client: Any) -> None:
    """The start of a client that needs none."""


def always() -> bool:
    return True


Makers = Mapping[str, Callable[[World], Any]]

BY_TYPE: Makers = {
    "str": lambda _: "text",
    "str | bytes": lambda _: "text",
    "bytes | str": lambda _: b"data",
    "int": lambda _: 1,
    "float": lambda _: 1.0,
    "float | None": lambda _: 1.0,
    "str | None": lambda _: "text",
    "bool": lambda _: True,
    "bytes": lambda _: b"{}",
    "Any": lambda _: {},
    "T": lambda world: world.sample("InitializeRequest"),
    "Sequence[str | os.PathLike[str]]": lambda _: ["/bin/true"],
    "str | os.PathLike[str]": lambda world: str(world.folder / "file"),
    "AnyFactory": lambda world: world.one.Agent,
    "AnyProxy": lambda world: world.one.Proxy,
    "AnyProxy | Sequence[AnyProxy]": lambda world: world.one.Proxy,
    "AnyProxy | Sequence[Component]": lambda world: world.one.Proxy,
    "Sequence[Component]": lambda world: [world.one.Proxy],
    "AnyAgent": lambda _: ["/bin/true"],
    "AnyAgent | None": lambda _: ["/bin/true"],
    "Transport | ByteTransport": World.ended,
    "ByteTransport": World.ended,
    "Answer": lambda _: {},
    "AnyMessage": lambda world: world.helpers.AgentMessage(),
    "Ask": World.refusing,
    "Awaitable[Any]": lambda world: world.agent.session_new(world.sample("NewSessionRequest")),
    "C": lambda world: world.helpers.ToolCall(),
    "F": lambda _: always,
    "Callable[..., T]": lambda _: later,
    "Callable[P, Coroutine[Any, Any, T]]": lambda _: later,
    "Callable[[], Awaitable[SessionStore]]": lambda world: world.store_maker(),
    "Callable[[], Awaitable[T]]": lambda _: later,
    "Callable[[], object]": lambda _: always,
    "Callable[[Any], Handler]": lambda world: lambda _: world.one.Client(world.agent),
    "Callable[[ScriptedTurn], Any]": lambda _: script,
    "Ch": lambda _: None,
    "Compaction": lambda world: world.helpers.Compaction(),
    "ConnectionClosed": lambda world: world.acp.ConnectionClosed("gone"),
    "ConnectionOptions": lambda world: world.acp.ConnectionOptions(),
    "Coroutine[Any, Any, Any]": lambda _: later(),
    "Coroutine[Any, Any, object]": lambda _: later(),
    "Coroutine[Any, Any, StopReason | PromptResponse | None]": lambda _: later(),
    "Coroutine[Any, Any, T_co]": lambda _: later(),
    "Work": lambda _: later(),
    "str | int": lambda _: "name",
    "ListPlace | None": lambda _: None,
    "DecodeError": lambda world: world.acp.DecodeError("a string", "1"),
    "ForwardRef('DecodeError')": lambda world: world.acp.DecodeError("a string", "1"),
    "Exception": lambda _: ValueError("x"),
    "Gate": lambda world: next(each.capability for each in world.one.AGENT_METHODS.values() if each.capability),
    "Handler": lambda world: world.handler(),
    "CreateElicitationRequestForm": lambda world: world.sample("CreateElicitationRequestFormSession"),
    "FormField": lambda world: world.helpers.FormField(name="a", kind="text", title="A"),
    "FormKind": lambda _: "text",
    "FormQuestion": lambda world: world.made("FormQuestion"),
    "tuple[FormField, ...]": lambda _: (),
    "Handler | Choice": lambda world: world.handler(),
    "Handler | type[Handler]": lambda world: world.handler(),
    "Iterable[AvailableCommand]": lambda _: [],
    "Iterable[McpParameters]": lambda _: [],
    "Iterable[McpServer] | UnsetType": lambda _: [],
    "Iterable[PermissionOption]": lambda world: [world.sample("PermissionOption")],
    "Iterable[SessionConfigOption]": lambda _: [],
    "Iterable[str | ContentBlock]": lambda _: ["text"],
    "TurnQueue": lambda world: world.turns,
    "Turns": lambda world: world.turns,
    "Terminal": lambda world: world.helpers.Terminal(id="t"),
    "Iterable[str | PlanEntry]": lambda _: ["one"],
    "Kind": lambda _: "request",
    "Mapping[str, str]": lambda _: {},
    "McpKind": lambda _: "http",
    "Message": lambda world: world.acp.Message("request", {}, "_x", 1),
    "P | None": lambda _: None,
    "Peer": lambda world: world.connection,
    "PermissionChanged": lambda world: world.made("PermissionChanged"),
    "PermissionDecision": lambda _: "allow",
    "Literal['allow', 'ask', 'deny']": lambda _: "ask",
    "PermissionOptionKind": lambda _: "allow_once",
    "PermissionQuestion": lambda world: world.made("PermissionQuestion"),
    "PermissionRule": lambda world: world.made("PermissionRule"),
    "PermissionSubject": lambda world: world.made("PermissionSubject"),
    "RemoteAgent": lambda world: world.agent,
    "RemoteClient": lambda world: world.client,
    "RequestError": lambda world: world.acp.RequestError("x"),
    "RunningToolCall": lambda world: world.helpers.tool_call(world.client, "s", "T"),
    "ScriptedTurn": World.scripted_turn,
    "ScriptedTurns": lambda world: world.made("ScriptedAgent"),
    "Sequence[AuthMethod]": lambda world: [world.sample("AuthMethod")],
    "Sequence[PermissionOption] | None": lambda _: None,
    "Sequence[str]": lambda _: [],
    "SessionClient": lambda world: world.helpers.SessionClient(world.agent),
    "SessionStore": lambda world: world.helpers.SqliteStore(":memory:"),
    "SessionUpdate | dict[str, Any]": lambda world: world.sample("SessionUpdate"),
    "Sn": lambda world: world.made("Session"),
    "StoredSession": lambda world: world.made("StoredSession"),
    "_ModelChoice": lambda _: type("Choice", (), {"model_id": "m"}),
    "_SessionResult": lambda world: world.sample("NewSessionResponse"),
    "asyncio.Future[TerminalExitStatus]": lambda world: world.exited(),
    "dict[str, Any]": lambda _: {},
    "dict[str, str]": lambda _: {},
    "frozenset[N]": lambda _: frozenset(),
    "list[Any]": lambda _: [],
    "list[str]": lambda _: [],
    "list[tuple[str, str]]": lambda _: [],
    "str | ContentBlock": lambda _: "text",
    "str | ContentBlock | ToolCallContent": lambda _: "text",
    "tuple[ContentBlock, ...]": lambda _: (),
    "tuple[str | int, ...]": lambda _: (),
    "ForwardRef('tuple[str | int, ...]')": lambda _: (),
    "tuple[str, ...]": lambda _: (),
}
"""An argument by the annotation of its parameter."""

BY_NAME: Makers = {
    "ask_form.form": lambda _: {"properties": {"a": {"type": "string"}}},
    "factory": lambda world: world.one.Agent if hasattr(world.one, "Agent") else world.one.Proxy,
    "connect.factory": lambda world: world.one.Client,
    "connect_http.factory": lambda world: world.one.Client,
    "connect_http.url": lambda _: "http://127.0.0.1:9/",
    "advertise.handler": lambda world: getattr(world.one, "Agent", None) or world.one.Proxy,
    "connect_url.factory": lambda world: world.one.Client,
    "connect_websocket.factory": lambda world: world.one.Client,
    "spawn_agent.factory": lambda world: world.one.Client,
    "url": lambda _: "ws://127.0.0.1:9/",
    "cwd": lambda _: "/",
    "ScriptedTurn.params": lambda _: {"sessionId": "s", "prompt": []},
    "ScriptedClient.end_of.result": lambda _: {"stopReason": "end_turn", "messageId": "m"},
    "KeptClient.receive_update.params": lambda world: world.update(),
    "KeptClient.takes.name": lambda _: "image",
    "SessionKeeper.connect": lambda world: lambda: world.acp.connect(world.helpers.KeptClient, world.ended()),
    "SessionKeeper.start": lambda _: started,
    "SessionClient.receive_update.params": lambda world: world.update(),
    "SessionClient.takes.name": lambda _: "image",
    "Files.read_text.path": lambda world: world.file(),
    "Files.resolve.path": lambda world: world.file(),
    "Files.write_text.path": lambda world: world.file(),
    "FileClient.save_text.path": lambda world: world.file(),
    "StoredSession.id": lambda _: "s",
    "RemoteAgent.supports.name": lambda _: "initialize",
    "RemoteClient.supports.name": lambda _: "session_update",
    "target": lambda world: world.client,
    "type_": lambda world: world.one.Implementation,
    "decode.raw": lambda _: {"name": "n", "version": "1"},
    "encode.value": lambda world: world.sample("InitializeRequest"),
    "cursor": lambda _: '["2026", "s"]',
    "Files.roots": lambda world: str(world.folder),
    "SqliteStore.path": lambda _: ":memory:",
    "to_json.message": lambda world: world.sample("InitializeRequest"),
}
"""An argument by the name of its parameter, with or without that of the callee."""

INSTANCES: Makers = {
    "NetworkAgent": lambda world: importlib.import_module(f"{world.acp.__name__}.network").NetworkAgent(
        "ws://[::1]:9/"
    ),
    "ActiveSession": World.active_session,
    "ClientTerminal": World.terminal,
    "Connection.request": lambda world: world.connection,  # one that is started
    "MemoryTransport": lambda world: world.acp.memory_transports()[0],
    "RemoteAgent": lambda world: world.agent,
    "RemoteClient": lambda world: world.client,
    "RunningToolCall": lambda world: world.helpers.tool_call(world.client, "s", "T").__aenter__(),
    "ScriptedAgent": lambda world: world.scripted("ScriptedAgent"),
    "ScriptedClient": lambda world: world.scripted("ScriptedClient"),
    "ScriptedTurn": World.scripted_turn,
    "Session": World.session,
    "StoredAgent": World.stored_agent,
    "StreamTransport": World.streams,
    "ToolCalls": World.tool_calls,
    "ToolCalls.start": lambda world: world.made("ToolCalls"),
    "ToolCalls.start_edit": lambda world: world.made("ToolCalls"),
    "Turn": World.turn,
    "Turns.running": lambda world: world.turns,
}
"""An instance by its class, where the constructor is not what a user calls."""
