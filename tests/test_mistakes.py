"""Mistakes of new users: the last line that is shown names their own code, and nothing wrong is sent."""

from __future__ import annotations

import copy
import textwrap
from typing import Any

import pytest

from tests.mistakes_support import ECHO, run_agent, run_code
from tests.runtime_support import V1
from tests.support import Packages

pytestmark = pytest.mark.every_python

INTERNAL = {"code": -32603, "message": "Internal error"}
NEW = {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
CANCEL = {"method": "session/cancel", "params": {"sessionId": "s"}}

MAIN = f"""
from pathlib import PurePosixPath
{ECHO}
class Printer(Client):
    async def session_request_permission(self, params): pass

class Plain: pass

class Alone:
    def __init__(self): pass

class WithoutStub(Agent):
    def __init__(self): super().__init__(None)

class WithoutBase(Agent):
    def __init__(self, client): super().__init__()

class Failing(Agent):
    def __init__(self, client): raise TypeError("of the user's own")

class Sdk:
    def on_connect(self, conn): pass

def make_nothing(): return Echo(None)

async def make_agent(client): return Echo(client)

async def main(transport, options):
"""

HANDLERS: dict[str, tuple[str, str]] = {
    "returns nothing": (
        "async def session_new(self, params): pass",
        "Echo.session_new returned None; expected a NewSessionResponse",
    ),
    "returns a dict": (
        'async def session_new(self, params): return {"sessionId": "s"}',
        "Echo.session_new returned a dict; expected a NewSessionResponse: construct NewSessionResponse(...)",
    ),
    "returns a str": (
        'async def session_new(self, params): return "s"',
        "Echo.session_new returned a str ('s'); expected a NewSessionResponse",
    ),
    "returns a list": (
        'async def session_new(self, params): return [NewSessionResponse(session_id="s")]',
        "Echo.session_new returned a list; expected a NewSessionResponse",
    ),
    "returns another class": (
        'async def session_new(self, params): return PromptResponse(stop_reason="end_turn")',
        "Echo.session_new returned a PromptResponse; expected a NewSessionResponse",
    ),
    "returns a class": (
        "async def session_new(self, params): return NewSessionResponse",
        "Echo.session_new returned the class NewSessionResponse; expected a NewSessionResponse: call the class",
    ),
    "returns a coroutine": (
        """
        async def new(self): return NewSessionResponse(session_id="s")
        async def session_new(self, params): return self.new()
        """,
        "Echo.session_new returned a coroutine; expected a NewSessionResponse: is an `await` missing?",
    ),
    "is not async": (
        'def session_new(self, params): return NewSessionResponse(session_id="s")',
        "Echo.session_new returned a NewSessionResponse, which cannot be awaited: "
        "write `async def session_new(self, params: NewSessionRequest) -> NewSessionResponse`",
    ),
    "is not async and returns nothing": (
        "def session_new(self, params): pass",
        "Echo.session_new returned None, which cannot be awaited: write `async def session_new(self, params: ",
    ),
    "has a yield": (
        'async def session_new(self, params): yield NewSessionResponse(session_id="s")',
        "Echo.session_new is an async generator: send messages by the stub, without `yield`, and write `async def",
    ),
    "has no params": (
        'async def session_new(self): return NewSessionResponse(session_id="s")',
        "Echo.session_new() takes 1 positional argument but 2 were given): "
        "write `async def session_new(self, params: NewSessionRequest) -> NewSessionResponse`",
    ),
    "has no self": (
        'async def session_new(params): return NewSessionResponse(session_id="s")',
        "write `async def session_new(self, params: NewSessionRequest) -> NewSessionResponse`",
    ),
    "has params as in the official SDK": (
        'async def session_new(self, cwd, mcp_servers, **kwargs): return NewSessionResponse(session_id="s")',
        "Echo.session_new cannot be called with what a message has (",
    ),
    "is no function": ("session_new = None", "Echo.session_new cannot be called with what a message has ('NoneType'"),
    "UNSET in a field": (
        "async def session_new(self, params): return NewSessionResponse(session_id=UNSET)",
        "Echo.session_new returned a result that cannot be sent: $.sessionId: expected a string, found UNSET",
    ),
    "a Path in a field": (
        """
        async def session_new(self, params):
            from pathlib import PurePosixPath
            return NewSessionResponse(session_id=PurePosixPath("/s"))
        """,
        "Echo.session_new returned a result that cannot be sent: $.sessionId: expected a string, found a PurePosixPath",
    ),
    "a set in JSON": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", meta={"tags": {1}})',
        "Echo.session_new returned a result that cannot be sent: $._meta.tags: expected a JSON value, found a set",
    ),
    "NaN in JSON": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", meta={"a": [float("nan")]})',
        "Echo.session_new returned a result that cannot be sent: $._meta.a[0]: expected a JSON value, found nan",
    ),
    "bytes in a field": (
        'async def session_new(self, params): return NewSessionResponse(session_id=b"s")',
        "Echo.session_new returned a result that cannot be sent: $.sessionId: expected a string, found a bytes (b's')",
    ),
    "a coroutine in a field": (
        """
        async def name(self): return "s"
        async def session_new(self, params): return NewSessionResponse(session_id=self.name())
        """,
        "$.sessionId: expected a string, found a coroutine: is an `await` missing?",
    ),
    "a dict in a field": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", modes={"currentModeId": "a"})',
        "Echo.session_new returned a NewSessionResponse whose modes is a dict; expected SessionModeState",
    ),
    "a class in a field": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", modes=SessionModeState)',
        "whose modes is the class SessionModeState; expected SessionModeState: call the class to make an instance",
    ),
    "a str in a list": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", config_options=["fast"])',
        "Echo.session_new returned a NewSessionResponse whose config_options[0] is a str ('fast'); expected ",
    ),
    "no list in a field": (
        'async def session_new(self, params): return NewSessionResponse(session_id="s", config_options=5)',
        "Echo.session_new returned a NewSessionResponse whose config_options is 5; expected list[SessionConfigOption]",
    ),
    "super().__init__ is forgotten": (
        """
        def __init__(self, client): self.sessions = {}
        async def session_new(self, params): await self.client.session_update(None)
        """,
        "there is no `self.client`: Echo.__init__ must call `super().__init__(client)`",
    ),
    "a stub gets a dict": (
        'async def session_new(self, params): await self.client.session_update({"sessionId": "s"})',
        "got a dict; expected a SessionNotification: construct SessionNotification(...)",
    ),
    "a stub gets another class": (
        'async def session_new(self, params): await self.client.session_update(PromptResponse(stop_reason="end_turn"))',
        "got a PromptResponse; expected a SessionNotification",
    ),
    "a stub gets nothing": (
        "async def session_new(self, params): await self.client.session_request_permission(None)",
        "got None; expected a RequestPermissionRequest",
    ),
    "a stub gets a str for content": (
        """
        async def session_new(self, params):
            chunk = SessionUpdateAgentMessageChunk(content="Hi")
            await self.client.session_update(SessionNotification(session_id="s", update=chunk))
        """,
        "session_new in line 13 of user_code.py, got a SessionNotification whose update.content is a str ('Hi'); "
        "expected ContentBlock",
    ),
    "a stub gets UNSET": (
        'async def session_new(self, params): await self.client.session_update(agent_message(UNSET, "Hi"))',
        "got params that cannot be sent: $.sessionId: expected a string, found UNSET",
    ),
    "a dict for a list of options": (
        """
        async def session_new(self, params):
            request = RequestPermissionRequest(session_id="s", tool_call=None, options={"a": 1})
            await self.client.session_request_permission(request)
        """,
        "session_new in line 13 of user_code.py, got a RequestPermissionRequest whose tool_call is None; expected ",
    ),
    "a str among options": (
        """
        async def session_new(self, params):
            call = ToolCallUpdate(tool_call_id="t", raw_input={1})
            request = RequestPermissionRequest(session_id="s", tool_call=call, options=["allow"])
            await self.client.session_request_permission(request)
        """,
        "session_new in line 14 of user_code.py, got a RequestPermissionRequest whose options[0] is a str ('allow'); ",
    ),
    "None for options": (
        """
        async def session_new(self, params):
            call = ToolCallUpdate(tool_call_id="t", raw_input={1})
            await self.client.session_request_permission(
                RequestPermissionRequest(session_id="s", tool_call=call, options=None))
        """,
        "got a RequestPermissionRequest whose options is None; expected list[PermissionOption]",
    ),
    "a text for the entries of a plan": (
        'async def session_new(self, params): await self.client.session_update(plan("s", "Read the tests"))',
        "session_new in line 10 of user_code.py, failed: entries is a text, and each of its letters would be an item: "
        "write ['Read the tests']",
    ),
    "no bytes for an image": (
        'async def session_new(self, params): image({"a": 1}, "image/png")',
        "session_new in line 10 of user_code.py, got a dict for data; expected bytes | str",
    ),
    "an object in itself": (
        """
        async def session_new(self, params):
            block = ContentBlockText(text="a")
            resource = ContentBlockResource(resource=None)
            resource.resource = block
            block.meta = block.annotations = Annotations(meta={"a": block})
            await self.client.session_update(agent_message("s", block))
        """,
        "got params that cannot be sent: $.update.content.annotations._meta.a: expected a JSON value, found a ContentB",
    ),
    "an extension method gets a set": (
        'async def session_new(self, params): await self.client.ext_method("_x", {"tags": {1}})',
        "got params that cannot be sent: $.tags: expected a JSON value, found a set",
    ),
}


@pytest.mark.parametrize(("body", "last"), HANDLERS.values(), ids=HANDLERS.keys())
def test_handlers(packages: Packages, body: str, last: str) -> None:
    outcome = run_agent(packages(V1), ECHO + _indented(body), NEW)
    assert last in outcome.last
    assert "Echo" in outcome.last or "user_code.py" in outcome.last
    assert [message for message in outcome.sent if message["id"] == 1] == [
        {"jsonrpc": "2.0", "id": 1, "error": INTERNAL}
    ]
    assert {message.get("method") for message in outcome.sent} == {None}


TURNS = {
    "work without params": (
        "async def work(self): pass",
        "Echo.work cannot be called as its base does (Echo.work() takes 1 positional argument but 2 were given): "
        "write `async def work(self, params: PromptRequest) -> StopReason | PromptResponse | None`",
    ),
    "work with other params": (
        "async def work(self, session_id, prompt): pass",
        "Echo.work cannot be called as its base does (Echo.work() missing 1 required positional argument: 'prompt'): ",
    ),
    "work is not async": (
        "def work(self, params): return 'end_turn'",
        "Echo.work is no coroutine function (the work on a prompt must be a coroutine, found str",
    ),
    "work has a yield": (
        "async def work(self, params): yield 'hi'",
        "Echo.work is no coroutine function (the work on a prompt must be a coroutine, found async_generator",
    ),
}
PROMPT = {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}


@pytest.mark.parametrize(("body", "last"), TURNS.values(), ids=TURNS.keys())
def test_work_of_a_turn(packages: Packages, body: str, last: str) -> None:
    code = ECHO.replace("(Agent)", "(TurnAgent)") + _indented(body)
    outcome = run_agent(packages(V1), code, PROMPT)
    assert last in outcome.last
    deeper = f"{code}\nclass Base(Echo): pass\n\nclass Echo(Base): pass\n"
    assert last in run_agent(packages(V1), deeper, PROMPT).last


def _indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body), "    ")


OTHER_METHODS = {
    "a notification is not async": (
        "def session_cancel(self, params): pass",
        CANCEL,
        "Echo.session_cancel returned None, which cannot be awaited: write `async def session_cancel(self, params: ",
    ),
    "a notification has no params": (
        "async def session_cancel(self): pass",
        CANCEL,
        "Echo.session_cancel cannot be called with what a message has (",
    ),
    "an extension method has no name": (
        "async def ext_method(self, params): return params",
        {"method": "_note", "id": 1},
        "write `async def ext_method(self, method: str, params: Any) -> Any`",
    ),
    "an extension method is not async": (
        "def ext_notification(self, method, params): pass",
        {"method": "_note"},
        "Echo.ext_notification returned None, which cannot be awaited: write `async def ext_notification(self, method",
    ),
    "connection_closed is not async": (
        "def connection_closed(self, reason): pass",
        CANCEL,
        "Echo.connection_closed returned None, which cannot be awaited: write `async def connection_closed(self",
    ),
    "connection_closed has no reason": (
        "async def connection_closed(self): pass",
        CANCEL,
        "Echo.connection_closed cannot be called with what a message has (",
    ),
    "a handler is misspelled": (
        "async def session_promt(self, params): pass",
        CANCEL,
        "Echo.session_promt handles nothing: is it meant to be session_prompt? If not, begin its name with _",
    ),
    "a stub is not awaited": (
        'async def session_cancel(self, params): self.client.session_update(agent_message("s", "Hi"))',
        CANCEL,
        "coroutine 'RemoteClient.session_update' was never awaited",
    ),
    "the result of a stub is not awaited": (
        "async def session_cancel(self, params): return self.client.fs_read_text_file(None).content",
        CANCEL,
        "'coroutine' object has no attribute 'content'",
    ),
    "an error has its code first": (
        "async def session_new(self, params): raise RequestError(-32602)",
        NEW,
        "Echo.session_new raised a RequestError whose message is -32602, and not a str: write RequestError(message, ",
    ),
    "an error has a text for its code": (
        'async def session_new(self, params): raise RequestError("no", code="abc")',
        NEW,
        "Echo.session_new raised a RequestError whose code is 'abc', and not an int: write RequestError(message, ",
    ),
    "an error has a flag for its code": (
        'async def session_new(self, params): raise RequestError("no", code=True)',
        NEW,
        "Echo.session_new raised a RequestError whose code is True, and not an int: write RequestError(message, ",
    ),
    "a stub has no such method": (
        "async def session_new(self, params): self.client.nonsense()",
        NEW,
        "session_new in line 10 of user_code.py",
    ),
    "a blocking call is no params": (
        "async def session_new(self, params):\n"
        "        import asyncio\n"
        "        await asyncio.to_thread(blocking(self.client).session_update, {})",
        NEW,
        "RemoteClient.session_update got a dict; expected a SessionNotification: construct SessionNotification(...)",
    ),
    "an error has data that is no JSON": (
        'async def session_new(self, params): raise RequestError("no", code=1, data={"a": {1}})',
        NEW,
        "Echo.session_new raised an error that cannot be sent: $.data.a: expected a JSON value, found a set",
    ),
}


@pytest.mark.parametrize(("body", "message", "last"), OTHER_METHODS.values(), ids=OTHER_METHODS.keys())
def test_other_methods(packages: Packages, body: str, message: dict[str, Any], last: str) -> None:
    outcome = run_agent(packages(V1), ECHO + _indented(body), message)
    assert last in outcome.last
    answers = [each for each in outcome.sent if each["id"] == message.get("id", "none")]
    assert [answer["error"] for answer in answers] == [INTERNAL] * len(answers)
    assert {each.get("method") for each in outcome.sent} == {None}


def test_an_attribute_of_a_base_of_the_user_is_not_explained(packages: Packages) -> None:
    """What the `__init__` of another class would have set is not known: only those of the package are."""
    code = f"""
{ECHO}
class Keeping(Echo):
    def __init__(self, client):
        super().__init__(client)
        self.store = {{}}

class Echo(Keeping):
    def __init__(self, client): self.client = client
    async def session_new(self, params): return self.store
"""
    outcome = run_agent(packages(V1), code, NEW)
    assert outcome.last == "AttributeError: 'Echo' object has no attribute 'store'"
    assert "super().__init__" not in outcome.shown


def test_no_initialize(packages: Packages) -> None:
    """The agent is at fault, and not its client."""
    outcome = run_agent(packages(V1), "class Echo(Agent): pass")
    assert "Echo does not override initialize, which every peer calls first" in outcome.last
    assert outcome.sent[0]["error"]["code"] == -32601


STARTS = {
    "run_agent of an instance": (
        "run_agent(Echo())",
        "Echo() lacks the stub of its peer: pass the class Echo without calling it",
    ),
    "run_agent of an instance with a stub": (
        "run_agent(Echo(None))",
        "found an instance of Echo: pass the class Echo, which is called with the stub",
    ),
    "serve_agent of an instance": ("await serve_agent(Echo(None), transport)", "found an instance of Echo: pass"),
    "serve_agent in another order": (
        "await serve_agent(transport, Echo)",
        "expected a subclass of Agent, or a function that makes one, found <",
    ),
    "serve_agent of a client": (
        "await serve_agent(Printer, transport)",
        "Printer made a Printer: it must extend Agent, which goes with RemoteClient",
    ),
    "serve_agent of another class": (
        "await serve_agent(Plain, transport)",
        "Plain does not extend Agent (Plain() takes no arguments): write `class Plain(Agent)`",
    ),
    "serve_agent of another class with a constructor": (
        "await serve_agent(Alone, transport)",
        "Alone does not extend Agent (Alone.__init__() takes 1 positional argument but 2 were given): write `class Al",
    ),
    "serve_agent of a class whose constructor has no parameter": (
        "await serve_agent(WithoutStub, transport)",
        "WithoutStub cannot be called with the stub of its peer (WithoutStub.__init__() takes 1 positional argument "
        "but 2 were given): write `def __init__(self, client: RemoteClient)`",
    ),
    "serve_agent of a class that does not pass the stub": (
        "await serve_agent(WithoutBase, transport)",
        "WithoutBase failed (Agent.__init__() missing 1 required positional argument: 'client'): "
        "call `super().__init__(client)`",
    ),
    "serve_agent of a class that fails": ("await serve_agent(Failing, transport)", "TypeError: of the user's own"),
    "serve_agent of a class of the official SDK": (
        "await serve_agent(Sdk, transport)",
        "Sdk does not extend Agent (Sdk() takes no arguments): write `class Sdk(Agent)`",
    ),
    "serve_agent of a function without a parameter": (
        "await serve_agent(make_nothing, transport)",
        "make_nothing cannot be called with the stub of its peer (make_nothing() takes 0 positional arguments but 1 "
        "was given): write `def make_nothing(client: RemoteClient)`",
    ),
    "serve_agent of a function that returns nothing": (
        "await serve_agent(lambda client: None, transport)",
        "<lambda> made None: it must extend",
    ),
    "serve_agent of an async function": (
        "await serve_agent(make_agent, transport)",
        "make_agent made a coroutine: is an `await` missing?",
    ),
    "serve_agent of an instance for a version": ("await serve_agent({1: Echo(None)}, transport)", "instance of Echo"),
    "connect of an instance": ("connect(Printer(None), transport)", "found an instance of Printer: pass the class"),
    "connect in another order": (
        "connect(transport, Printer)",
        "found <",
    ),
    "connect of an agent": (
        """
        async with connect(Echo, transport):
            pass
        """,
        "Echo made an Echo: it must extend Client, which goes with RemoteAgent",
    ),
    "spawn_agent of an instance": (
        'spawn_agent(Printer(), ["agent"])',
        "Printer() lacks the stub of its peer: pass the class Printer without calling it",
    ),
    "spawn_agent in another order": (
        'spawn_agent(["agent"], Printer)',
        "found ['agent']: the first argument is Printer",
    ),
    "spawn_agent of a text": ('spawn_agent(Printer, "agent")', "command is a list: the program and its arguments"),
    "spawn_agent is awaited": (
        'await spawn_agent(Printer, ["agent"])',
        "AgentProcess",  # the words are Python's, and differ between versions
    ),
    "options of run_agent are a dict": (
        "run_agent(Echo, options={})",
        "is a dict: write options=ConnectionOptions(...)",
    ),
    "options of serve_stdio are a dict": ("await serve_stdio(Echo, options={})", "is a dict: write options="),
    "options of serve_agent are a dict": (
        'await serve_agent(Echo, transport, options={"max_requests": 5})',
        "is a dict: write options=ConnectionOptions(...)",
    ),
    "options of connect are a class": (
        "connect(Printer, transport, options=ConnectionOptions)",
        "is the class ConnectionOptions: write options=ConnectionOptions(...)",
    ),
    "options of spawn_agent are false": (
        'spawn_agent(Printer, ["agent"], options=False)',
        "is False: write options=",
    ),
    "options of a Connection are empty": ("Connection(transport, [])", "is a list: write options="),
    "blocking of a class": (
        "blocking(RemoteAgent)",
        "blocking got the class RemoteAgent; expected a stub, or a method",
    ),
    "advertise in another order": (
        "advertise(InitializeResponse(protocol_version=1), Echo)",
        "expected advertise(Echo, message), found an InitializeResponse first",
    ),
    "advertise of a class": (
        "advertise(Echo, InitializeResponse)",
        "advertise(Echo, ...) got the class InitializeResponse: call the class to make an instance",
    ),
    "advertise of a dict": ('advertise(Echo, {"protocolVersion": 1})', "advertise(Echo, ...) got a dict"),
    "advertise of a dict for capabilities": (
        'advertise(Echo, InitializeResponse(protocol_version=1, agent_capabilities={"loadSession": True}))',
        "advertise(Echo, ...) got an InitializeResponse whose agent_capabilities is a dict; expected AgentCapabilities",
    ),
    "advertise of a str for a list": (
        'advertise(Echo, InitializeResponse(protocol_version=1, auth_methods="x"))',
        "advertise(Echo, ...) got an InitializeResponse whose auth_methods is a str ('x'); expected list[AuthMethod]",
    ),
    "advertise of a value that a peer would leave out": (
        'advertise(Echo, InitializeResponse(protocol_version=1, agent_info=Implementation(name="a", version=2)))',
        "advertise(Echo, ...) got a message not of its type: $.agentInfo.version: expected a string, found 2",
    ),
    "advertise of a value that a peer would refuse": (
        'advertise(Echo, InitializeResponse(protocol_version="1"))',
        "advertise(Echo, ...) got a message not of its type: $.protocolVersion: expected an integer, found '1'",
    ),
}


@pytest.mark.parametrize(("statement", "last"), STARTS.values(), ids=STARTS.keys())
def test_starts(packages: Packages, statement: str, last: str) -> None:
    outcome = run_code(packages(V1), MAIN + _indented(statement))
    assert last in outcome.last
    assert outcome.sent == []


def test_a_copy_of_an_instance_is_no_mistake(packages: Packages) -> None:
    agent = packages(V1).Agent("stub")
    assert copy.copy(agent).client == "stub"


CALLS = {
    "a str for content": (
        'await agent.session_prompt(PromptRequest(session_id="s", prompt=["hello"]))',
        "RemoteAgent.session_prompt, called by main in line ",
        " got a PromptRequest whose prompt[0] is a str ('hello'); expected ContentBlock",
    ),
    "a str for a list of content": (
        'await agent.session_prompt(PromptRequest(session_id="s", prompt="hello"))',
        "RemoteAgent.session_prompt, called by main in line ",
        " got a PromptRequest whose prompt is a str ('hello'); expected list[ContentBlock]",
    ),
    "a dict": (
        'await agent.session_new({"cwd": "/", "mcpServers": []})',
        "RemoteAgent.session_new, called by main in line ",
        " got a dict; expected a NewSessionRequest: construct NewSessionRequest(...)",
    ),
    "keywords": (
        'await agent.session_new(cwd="/", mcp_servers=[])',
        "RemoteAgent.session_new() got an unexpected keyword argument 'cwd'",
        "",
    ),
    "a Path": (
        'await agent.session_new(NewSessionRequest(cwd=PurePosixPath("/"), mcp_servers=[]))',
        "session_new, called by main in line ",
        " got params that cannot be sent: $.cwd: expected a string, found a PurePosixPath",
    ),
    "a dict for a server": (
        'await agent.session_new(NewSessionRequest(cwd="/", mcp_servers=[{"name": "files"}]))',
        "RemoteAgent.session_new, called by main in line ",
        " got a NewSessionRequest whose mcp_servers[0] is a dict; expected McpServer: construct McpServer(...)",
    ),
    "no await": (
        "agent.session_new(None).session_id",
        "'coroutine' object has no attribute 'session_id'",
        "",
    ),
    "a handler that returns nothing": (
        'await agent.session_new(NewSessionRequest(cwd="/", mcp_servers=[]))',
        "Printer.session_request_permission returned None; expected a RequestPermissionResponse",
        "",
    ),
}


@pytest.mark.parametrize(("statement", "start", "end"), CALLS.values(), ids=CALLS.keys())
def test_calls_of_a_client(packages: Packages, statement: str, start: str, end: str) -> None:
    body = f"async with connect(Printer, transport, options=options) as agent:\n    {statement}"
    outcome = run_code(packages(V1), MAIN + _indented(body))
    assert start in outcome.last
    assert outcome.last.endswith(end)
    answers = [message for message in outcome.sent if "method" not in message]
    assert [answer["error"] for answer in answers] == [INTERNAL] * len(answers)
    assert all(message["method"] == "session/new" for message in outcome.sent if message not in answers)
