"""Dispatch: messages reach their handlers, between both sides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Method, MethodKind, Ref
from acpgen.roles import Side
from tests.published import published
from tests.support import Packages, schema_of
from tests.test_dataclasses import SOURCES, Samples, model_for
from tests.test_probes import contains

pytestmark = pytest.mark.every_python

T = TypeVar("T")

UNSTABLE = "unstable"
TEXT = {"type": "text", "text": "t"}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def sources_of(version: str) -> SchemaChoice:
    """ "v1" and "v2" are bundled; "v1 unstable" and "v2 unstable" are upstream's."""
    protocol = int(version[1])
    if UNSTABLE not in version:
        return SOURCES[protocol]
    return SchemaChoice(protocol=protocol, schema=published(f"v{protocol}/2026-11-02/schema.unstable.json"))


class Loopback:
    """A peer that hands what is sent to a handler, through JSON text, as a connection would."""

    def __init__(self, acp: ModuleType, handler: Any = None) -> None:
        self.acp, self.handler = acp, handler
        self.log: list[tuple[str, Any]] = []

    async def request(self, method: str, params: Any) -> Any:
        self.log.append((method, params))
        try:
            result = await self.acp.dispatch_request(self.handler, method, json.loads(json.dumps(params)))
        except self.acp.RequestError as error:
            raise self.acp.RequestError.from_json(json.loads(json.dumps(error.to_json()))) from None
        return json.loads(json.dumps(result))

    async def notify(self, method: str, params: Any) -> None:
        self.log.append((method, params))
        await self.acp.dispatch_notification(self.handler, method, json.loads(json.dumps(params)))


class Silence:
    """A peer that nobody talks to."""

    async def request(self, method: str, params: Any) -> Any:
        raise AssertionError(method)

    async def notify(self, method: str, params: Any) -> None:
        raise AssertionError(method)


def base_of(acp: ModuleType, side: Side) -> Any:
    return {Side.AGENT: acp.Agent, Side.CLIENT: acp.Client}[side]


def stub_for(acp: ModuleType, side: Side) -> Any:
    """The stub with which to call `side`."""
    return {Side.AGENT: acp.RemoteAgent, Side.CLIENT: acp.RemoteClient}[side]


def table_of(acp: ModuleType, side: Side) -> Any:
    return {Side.AGENT: acp.AGENT_METHODS, Side.CLIENT: acp.CLIENT_METHODS}[side]


def methods(version: str, side: Side) -> list[Method]:
    return [method for method in model_for(sources_of(version)).methods if side in method.handlers]


def recording(acp: ModuleType, side: Side, *, results: dict[str, Any]) -> Any:
    """A handler with every method overridden: it keeps what it gets, and answers what `results` has for the handler."""
    seen: list[tuple[str, Any]] = []

    def override(name: str) -> Any:
        async def handle(self: Any, params: Any) -> Any:
            seen.append((name, params))
            return results.get(name)

        return handle

    base = base_of(acp, side)
    names = [route.handler for route in (*base.REQUESTS.values(), *base.NOTIFICATIONS.values())]
    handler = type("Recording", (base,), {name: override(name) for name in names})(stub_for(acp, side.peer)(Silence()))
    handler.seen = seen
    return handler


# --- Every method ---------------------------------------------------------------------------------------------------

EVERY = pytest.mark.parametrize("version", ["v1", "v2", "v1 unstable", "v2 unstable"])
BOTH = pytest.mark.parametrize("side", list(Side), ids=lambda side: side.value)
FULL = pytest.mark.parametrize("full", [False, True], ids=["minimal", "full"])


@EVERY
@BOTH
@FULL
def test_every_request_reaches_its_handler(packages: Packages, version: str, side: Side, *, full: bool) -> None:
    acp, samples = packages(sources_of(version)), Samples(model_for(sources_of(version)), full=full)
    requests = [method for method in methods(version, side) if method.kind is MethodKind.REQUEST]
    assert len(requests) > (1 if side is Side.CLIENT else 5)
    for method in requests:
        assert method.result is not None
        params, result = samples.of(method.params), samples.of(method.result)
        decoded = decoded_as(acp, method.result, result)
        handler = recording(acp, side, results={method.name: decoded})
        answer = run(acp.dispatch_request(handler, method.wire, params))
        assert contains(answer, result)
        assert handler.seen == [(method.name, decoded_as(acp, method.params, params))]


def decoded_as(acp: ModuleType, expression: Any, raw: Any) -> Any:
    return acp.decode(getattr(acp, expression.name), raw) if isinstance(expression, Ref) else raw


@EVERY
@BOTH
@FULL
def test_every_notification_reaches_its_handler(packages: Packages, version: str, side: Side, *, full: bool) -> None:
    acp, samples = packages(sources_of(version)), Samples(model_for(sources_of(version)), full=full)
    notifications = [method for method in methods(version, side) if method.kind is MethodKind.NOTIFICATION]
    assert notifications
    for method in notifications:
        params = samples.of(method.params)
        handler = recording(acp, side, results={})
        assert run(acp.dispatch_notification(handler, method.wire, params)) is None
        assert handler.seen == [(method.name, decoded_as(acp, method.params, params))]


@EVERY
@BOTH
def test_every_stub_calls_its_handler(packages: Packages, version: str, side: Side) -> None:
    acp, samples = packages(sources_of(version)), Samples(model_for(sources_of(version)))
    for method in methods(version, side):
        result = decoded_as(acp, method.result, samples.of(method.result)) if method.result else None
        handler = recording(acp, side, results={method.name: result})
        peer = Loopback(acp, handler)
        params = decoded_as(acp, method.params, samples.of(method.params))
        assert run(getattr(stub_for(acp, side)(peer), method.name)(params)) == result
        assert handler.seen == [(method.name, params)]
        assert peer.log == [(method.wire, acp.encode(params))]


@EVERY
@BOTH
def test_the_table_says_what_the_side_does(packages: Packages, version: str, side: Side) -> None:
    acp = packages(sources_of(version))
    table, base = table_of(acp, side), base_of(acp, side)
    assert table.keys() == base.REQUESTS.keys() | base.NOTIFICATIONS.keys()
    for wire, method in table.items():
        assert method.name == wire
        twins = [method] if method.notification is None else [method, method.notification]
        for twin in twins:
            routes = base.REQUESTS if twin.kind == "request" else base.NOTIFICATIONS
            assert routes[wire].handler == twin.handler
            assert callable(getattr(base, twin.handler))
            assert callable(getattr(stub_for(acp, side), twin.handler))
            assert (twin.result is None) is (twin.kind == "notification")


@BOTH
def test_a_handler_that_is_not_overridden(packages: Packages, side: Side) -> None:
    acp, samples = packages(SOURCES[1]), Samples(model_for(SOURCES[1]))
    handler = base_of(acp, side)(None)
    for method in methods("v1", side):
        params = samples.of(method.params)
        if method.kind is MethodKind.NOTIFICATION:
            assert run(acp.dispatch_notification(handler, method.wire, params)) is None
            continue
        with pytest.raises(acp.MethodNotFoundError, match=method.wire.replace("$", r"\$")) as caught:
            run(acp.dispatch_request(handler, method.wire, params))
        assert caught.value.code == -32601


def test_the_same_method_as_request_and_as_notification(packages: Packages) -> None:
    """`mcp/message` was both, on both sides; `$/cancel_request` is on both sides, too."""
    acp = packages(SchemaChoice(schema=published("v1/1.21.0/schema.unstable.json")))
    raw = {"connectionId": "c", "method": "m"}
    for side in Side:
        handler = recording(acp, side, results={"mcp_message": [1]})
        assert run(acp.dispatch_request(handler, "mcp/message", raw)) == [1]
        run(acp.dispatch_notification(handler, "mcp/message", raw))
        run(acp.dispatch_notification(handler, "$/cancel_request", {"requestId": 3}))
        assert [name for name, _ in handler.seen] == ["mcp_message", "mcp_message_notification", "cancel_request"]
        assert table_of(acp, side)["mcp/message"].notification.handler == "mcp_message_notification"
        assert table_of(acp, side)["mcp/message"].result is Any


def test_a_method_that_is_a_request_to_one_side_and_a_notification_to_the_other(packages: Packages) -> None:
    acp = packages(sources_of("v1 unstable"))
    model = model_for(sources_of("v1 unstable"))
    raw = {wire: "x" for name in ("Request", "Notification") for wire in Samples(model).named(f"MessageMcp{name}")}
    result = Samples(model).named("MessageMcpResponse")
    results = {"mcp_message": acp.decode(acp.MessageMcpResponse, result)}
    client, agent = (recording(acp, side, results=results) for side in (Side.CLIENT, Side.AGENT))
    assert contains(run(acp.dispatch_request(client, "mcp/message", raw)), result)
    run(acp.dispatch_notification(agent, "mcp/message", raw))
    assert len(client.seen) == len(agent.seen) == 1
    with pytest.raises(acp.MethodNotFoundError):
        run(acp.dispatch_request(agent, "mcp/message", raw))
    assert acp.CLIENT_METHODS["mcp/message"].kind == "request"
    assert acp.AGENT_METHODS["mcp/message"].kind == "notification"


# --- Methods that the protocol does not know ------------------------------------------------------------------------


class Extending:
    """What to mix into a handler to see methods outside of the protocol."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: list[tuple[str, str, Any]] = []

    async def ext_method(self, method: str, params: Any) -> Any:
        self.seen.append(("request", method, params))
        return {"echo": params}

    async def ext_notification(self, method: str, params: Any) -> None:
        self.seen.append(("notification", method, params))


@pytest.mark.parametrize("name", ["_vendor/doThing", "_vendor.do-thing", "_", "_Session/NEW", "_a/b/c é"])
@pytest.mark.parametrize("params", [None, {}, {"camelCase": 1}, [1, 2], "text"])
def test_extension_methods_arrive_untouched(packages: Packages, name: str, params: Any) -> None:
    acp = packages(SOURCES[1])
    agent = type("Extended", (Extending, acp.Agent), {})(None)
    peer = Loopback(acp, agent)
    remote = acp.RemoteAgent(peer)
    assert run(remote.ext_method(name, params)) == {"echo": params}
    run(remote.ext_notification(name, params))
    assert agent.seen == [("request", name, params), ("notification", name, params)]
    assert peer.log == [(name, params)] * 2


@pytest.mark.parametrize("name", ["session/newest", "", "$/other", "Session/new", "session_new", "initialize/"])
def test_unknown_methods(packages: Packages, name: str) -> None:
    """They are no extensions, and the handler of extensions does not see them."""
    acp = packages(SOURCES[1])
    agent = type("Extended", (Extending, acp.Agent), {})(None)
    with pytest.raises(acp.MethodNotFoundError, match="Method not found"):
        run(acp.dispatch_request(agent, name, {}))
    run(acp.dispatch_notification(agent, name, {}))
    assert agent.seen == []


def test_extension_methods_are_not_found_by_default(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    with pytest.raises(acp.MethodNotFoundError, match="_vendor/x"):
        run(acp.dispatch_request(acp.Agent(None), "_vendor/x", None))
    assert run(acp.dispatch_notification(acp.Agent(None), "_vendor/x", None)) is None


def test_a_method_of_the_other_side_is_unknown(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    with pytest.raises(acp.MethodNotFoundError):
        run(acp.dispatch_request(acp.Agent(None), "fs/read_text_file", {"sessionId": "s", "path": "/"}))
    with pytest.raises(acp.MethodNotFoundError):
        run(acp.dispatch_request(acp.Client(None), "session/prompt", {"sessionId": "s", "prompt": []}))


def test_a_request_is_no_notification(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    agent = recording(acp, Side.AGENT, results={})
    run(acp.dispatch_notification(agent, "session/new", {"cwd": "/", "mcpServers": []}))
    with pytest.raises(acp.MethodNotFoundError):
        run(acp.dispatch_request(agent, "session/cancel", {"sessionId": "s"}))
    assert agent.seen == []


# --- Params and results ---------------------------------------------------------------------------------------------


def test_absent_params_are_an_empty_object(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    agent = recording(acp, Side.AGENT, results={"logout": acp.LogoutResponse()})
    assert run(acp.dispatch_request(agent, "logout", None)) == {}
    assert agent.seen == [("logout", acp.LogoutRequest())]
    with pytest.raises(acp.InvalidParamsError):
        run(acp.dispatch_request(agent, "initialize", None))


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("initialize", {}, "$.protocolVersion"),
        ("session/prompt", {"sessionId": "s", "prompt": [TEXT, {"type": "text"}]}, "$.prompt[1].text"),
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": "tape"}]}, "$.prompt[0].type"),
        ("session/new", [], "$"),
        ("session/new", "cwd", "$"),
        ("session/set_config_option", {"sessionId": "s"}, "$"),
    ],
)
def test_invalid_params(packages: Packages, method: str, params: Any, path: str) -> None:
    acp = packages(SOURCES[1])
    agent = recording(acp, Side.AGENT, results={})
    with pytest.raises(acp.InvalidParamsError) as caught:
        run(acp.dispatch_request(agent, method, params))
    assert caught.value.code == -32602
    assert caught.value.data["path"] == path
    assert {"expected", "found"} <= caught.value.data.keys()
    assert path in caught.value.message
    assert isinstance(caught.value.__cause__, acp.DecodeError)
    json.dumps(caught.value.to_json())
    assert agent.seen == []


def test_invalid_params_of_a_notification_are_for_the_log(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    agent = recording(acp, Side.AGENT, results={})
    with pytest.raises(acp.InvalidParamsError) as caught:
        run(acp.dispatch_notification(agent, "session/cancel", {}))
    assert caught.value.data["path"] == "$.sessionId"
    assert agent.seen == []


def test_what_a_handler_raises_passes_through(packages: Packages) -> None:
    acp = packages(SOURCES[1])

    class Failing(acp.Agent):  # type: ignore[misc, name-defined]
        async def session_new(self, params: Any) -> Any:
            raise acp.AuthenticationRequiredError(data={"why": params.cwd})

        async def logout(self, params: Any) -> Any:
            raise ZeroDivisionError

    request = {"cwd": "/", "mcpServers": []}
    remote = acp.RemoteAgent(Loopback(acp, Failing(None)))
    with pytest.raises(acp.AuthenticationRequiredError) as caught:
        run(remote.session_new(acp.decode(acp.NewSessionRequest, request)))
    assert caught.value.data == {"why": "/"}
    with pytest.raises(ZeroDivisionError):
        run(acp.dispatch_request(Failing(None), "logout", None))


def test_the_drop_hook_on_both_sides(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    drops: list[Any] = []
    agent = recording(acp, Side.AGENT, results={"initialize": acp.InitializeResponse(protocol_version=1)})
    params = {"protocolVersion": 1, "clientCapabilities": {"terminal": "yes"}}
    run(acp.dispatch_request(agent, "initialize", params, on_drop=drops.append))
    assert [drop.path for drop in drops] == [("clientCapabilities", "terminal")]

    class Sloppy(Silence):
        async def request(self, method: str, params: Any) -> Any:
            return {"protocolVersion": 1, "authMethods": [{}]}

    drops.clear()
    result = run(acp.RemoteAgent(Sloppy(), on_drop=drops.append).initialize(acp.InitializeRequest(protocol_version=1)))
    assert result.auth_methods == []
    assert [drop.path for drop in drops] == [("authMethods", 0)]


def test_a_result_that_does_not_fit(packages: Packages) -> None:
    acp = packages(SOURCES[1])

    class Wrong(Silence):
        async def request(self, method: str, params: Any) -> Any:
            return {"stopReason": "tired"}

    with pytest.raises(acp.DecodeError) as caught:
        run(acp.RemoteAgent(Wrong()).session_prompt(acp.PromptRequest(session_id="s", prompt=[])))
    assert caught.value.path == ("stopReason",)


def test_null_stands_for_an_empty_result(packages: Packages) -> None:
    """Peers of the first releases answer null where later ones answer an object."""
    acp = packages(SOURCES[1])

    class Terse(Silence):
        async def request(self, method: str, params: Any) -> Any:
            return None

    assert run(acp.RemoteAgent(Terse()).logout(acp.LogoutRequest())) == acp.LogoutResponse()


# --- A vendor's own methods -----------------------------------------------------------------------------------------


def fragment(folder: Path) -> Path:
    def definition(suffix: str, name: str, **properties: Any) -> dict[str, Any]:
        node = {"type": "object", "description": "d", "properties": properties, "required": [*properties]}
        return {f"Acme{suffix}": node | {"x-side": "agent", "x-method": name}}

    content = {
        "fragment": 1,
        "id": "acme",
        "revision": "1",
        "title": "What Acme adds",
        "status": "vendor",
        "protocols": [1],
        "$defs": definition("RunRequest", "_acme/runTask", taskId={"type": "string"})
        | definition("RunResponse", "_acme/runTask", done={"type": "boolean"})
        | definition("TickNotification", "_acme/tick", count={"type": "integer"}),
    }
    path = folder / "acme.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_vendors_methods_are_typed(packages: Packages, tmp_path: Path) -> None:
    acp = packages(SchemaChoice(release="2026-11-02", extensions=(str(fragment(tmp_path)),)))
    seen: list[Any] = []

    class Acme(acp.Agent):  # type: ignore[misc, name-defined]
        async def acme_run_task(self, params: Any) -> Any:
            seen.append(params)
            return acp.AcmeRunResponse(done=True)

        async def acme_tick(self, params: Any) -> None:
            seen.append(params)

    peer = Loopback(acp, Acme(None))
    remote = acp.RemoteAgent(peer)
    assert run(remote.acme_run_task(acp.AcmeRunRequest(task_id="t"))) == acp.AcmeRunResponse(done=True)
    run(remote.acme_tick(acp.AcmeTickNotification(count=2)))
    assert seen == [acp.AcmeRunRequest(task_id="t"), acp.AcmeTickNotification(count=2)]
    assert peer.log == [("_acme/runTask", {"taskId": "t"}), ("_acme/tick", {"count": 2})]
    assert acp.AGENT_METHODS["_acme/runTask"].handler == "acme_run_task"
    assert "acme" in acp.AGENT_METHODS["_acme/runTask"].origin
    with pytest.raises(acp.InvalidParamsError):
        run(acp.dispatch_request(Acme(None), "_acme/runTask", {}))
    with pytest.raises(acp.MethodNotFoundError):
        run(acp.dispatch_request(Acme(None), "_acme/runtask", {}))


def test_a_schema_without_notifications_or_requests_of_a_role(packages: Packages) -> None:
    """One side handles everything; the package of the other has nothing but the stub."""
    routed = {"type": "object", "properties": {}, "x-side": "agent", "x-method": "ping"}
    acp = packages.of(schema_of(PingRequest=routed, PingResponse=routed))
    assert (acp.Client.REQUESTS, acp.Client.NOTIFICATIONS, acp.Agent.NOTIFICATIONS) == ({}, {}, {})
    agent = recording(acp, Side.AGENT, results={"ping": acp.PingResponse()})
    assert run(acp.RemoteAgent(Loopback(acp, agent)).ping(acp.PingRequest())) == acp.PingResponse()


# --- Both sides -----------------------------------------------------------------------------------------------------


def test_a_prompt_turn(packages: Packages) -> None:
    acp = packages(SOURCES[1])
    events: list[Any] = []

    class Editor(acp.Client):  # type: ignore[misc, name-defined]
        async def session_update(self, params: Any) -> None:
            events.append(("update", params.update))

        async def session_request_permission(self, params: Any) -> Any:
            events.append(("permission", params.tool_call.tool_call_id))
            chosen = acp.RequestPermissionOutcomeSelected(option_id=params.options[0].option_id)
            return acp.RequestPermissionResponse(outcome=chosen)

        async def fs_read_text_file(self, params: Any) -> Any:
            if params.path != "/known":
                raise acp.ResourceNotFoundError(data={"uri": params.path})
            return acp.ReadTextFileResponse(content="content")

    class Echo(acp.Agent):  # type: ignore[misc, name-defined]
        async def initialize(self, params: Any) -> Any:
            return acp.InitializeResponse(protocol_version=params.protocol_version)

        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id=f"session in {params.cwd}")

        async def session_prompt(self, params: Any) -> Any:
            for block in params.prompt:
                update = acp.SessionUpdateAgentMessageChunk(content=block)
                await self.client.session_update(acp.SessionNotification(session_id=params.session_id, update=update))
            option = acp.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
            answer = await self.client.session_request_permission(
                acp.RequestPermissionRequest(
                    session_id=params.session_id,
                    tool_call=acp.ToolCallUpdate(tool_call_id="call"),
                    options=[option],
                )
            )
            events.append(("answer", answer.outcome))
            for path in ("/known", "/unknown"):
                try:
                    request = acp.ReadTextFileRequest(session_id=params.session_id, path=path)
                    events.append(("file", (await self.client.fs_read_text_file(request)).content))
                except acp.ResourceNotFoundError as error:
                    events.append(("no file", error.data))
            return acp.PromptResponse(stop_reason="end_turn")

    to_client, to_agent = Loopback(acp), Loopback(acp)
    to_agent.handler = Echo(acp.RemoteClient(to_client))
    to_client.handler = Editor(acp.RemoteAgent(to_agent))
    agent = to_client.handler.agent

    async def turn() -> Any:
        first = await agent.initialize(acp.InitializeRequest(protocol_version=acp.PROTOCOL_VERSION))
        session = await agent.session_new(acp.NewSessionRequest(cwd="/w", mcp_servers=[]))
        prompt = [acp.ContentBlockText(text="a"), acp.ContentBlockText(text="b")]
        last = await agent.session_prompt(acp.PromptRequest(session_id=session.session_id, prompt=prompt))
        return first, session, last

    first, session, last = run(turn())
    assert first == acp.InitializeResponse(protocol_version=1)
    assert session.session_id == "session in /w"
    assert last == acp.PromptResponse(stop_reason="end_turn")
    assert events == [
        ("update", acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text="a"))),
        ("update", acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text="b"))),
        ("permission", "call"),
        ("answer", acp.RequestPermissionOutcomeSelected(option_id="yes")),
        ("file", "content"),
        ("no file", {"uri": "/unknown"}),
    ]
    assert [method for method, _ in to_agent.log] == ["initialize", "session/new", "session/prompt"]
    assert [method for method, _ in to_client.log] == [
        "session/update",
        "session/update",
        "session/request_permission",
        "fs/read_text_file",
        "fs/read_text_file",
    ]
