"""Errors that are sent begin with the standard text of their code: peers look for it, in this spelling."""

from __future__ import annotations

import ast
import asyncio
import copy
import importlib
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client_support import helpers_of
from tests.needs import need
from tests.proxy.between import package as proxy_package
from tests.runtime_support import EVERY_BASE, V1, V2, agent_of, client_of, raw_peer, run
from tests.stored_support import teller
from tests.support import Packages

pytestmark = pytest.mark.every_python

STANDARD = {
    -32700: "Parse error",
    -32600: "Invalid request",
    -32601: "Method not found",
    -32602: "Invalid params",
    -32603: "Internal error",
    -32800: "Request cancelled",
    -32000: "Authentication required",
    -32002: "Resource not found",
    -32022: "Unsupported protocol version",
}
"""As the official SDKs for Python and TypeScript have them."""
NOT_THERE = ("Resource not found", "ENOENT", "does not exist", "No such file")
"""What gemini-cli looks for in the message, in this case, before it writes a new file."""
REPOSITORY = Path(__file__).resolve().parent.parent


def is_standard(error: Any) -> bool:
    """True for the standard text, alone or before a colon and more."""
    text, message = STANDARD[error["code"]], error["message"]
    return message == text or (message.startswith(f"{text}: ") and message.count(text) == 1)


# --- The classes -----------------------------------------------------------------------------------------------------


def test_the_texts_are_those_of_the_official_sdk() -> None:
    need("acp")
    from acp.exceptions import RequestError as kind  # noqa: N813

    made = [
        *(kind.parse_error(), kind.invalid_request(), kind.method_not_found("m"), kind.invalid_params()),
        *(kind.internal_error(), kind.auth_required(), kind.resource_not_found()),
    ]
    assert {each.code: str(each) for each in made}.items() <= STANDARD.items()


@EVERY_BASE
def test_each_class_puts_the_text_of_its_code_first(packages: Packages, sources: Any) -> None:
    acp = packages(sources)
    assert {-32700, -32600, -32601, -32602, -32603, -32000, -32002} <= acp.errors.ERROR_CLASSES.keys()
    for code, kind in acp.errors.ERROR_CLASSES.items():
        text = STANDARD[code]
        assert kind.title == text
        subclass = type("Own", (kind,), {})
        for each in (kind, subclass):
            assert each("why").to_json() == {"code": code, "message": f"{text}: why"}
            assert str(each("why", data=1)) == f"{text}: why ({code}): 1"
            assert each().message == each("").message == each(text).message == text
            assert each(f"{text}: why").message == f"{text}: why"  # not twice


@EVERY_BASE
def test_the_plain_class_keeps_what_it_is_given(packages: Packages, sources: Any) -> None:
    acp = packages(sources)
    for code in (-32602, -32603, 402):
        assert acp.RequestError("my text", code=code).message == "my text"
    assert acp.RequestError("my text").to_json() == {"code": -32603, "message": "my text"}

    class NoCreditsError(acp.RequestError):  # type: ignore[misc, name-defined]
        code = 402
        title = "No credits"

    assert NoCreditsError("0 left").message == "0 left"


@EVERY_BASE
def test_what_the_peer_has_sent_is_kept(packages: Packages, sources: Any) -> None:
    """Also by those who copy it, and those who answer with it."""
    acp = packages(sources)
    for code in (*acp.errors.ERROR_CLASSES, 402):
        for message in ("own words", "", "invalid params"):
            error = acp.RequestError.from_json({"code": code, "message": message})
            for each in (error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
                assert each.to_json() == {"code": code, "message": message}
                assert (each.message, each.args) == (message, (message,))


# --- The places ------------------------------------------------------------------------------------------------------

KEPT = {
    ("dispatch.py", "unsupported_error", "from_json"): "it begins with the standard text of the code of protocol 2",
    ("dispatch.py", "unsupported_error", "{}"): "the same",
    ("read_loop.py", "resolve", "from_json"): "what the peer has sent",
    ("overriding.py", "_is_same", "from_json"): "what the peer has sent",
    ("scripted_peer.py", "_take", "from_json"): "what the peer has sent",
    ("session_client.py", "_reason", "RequestError"): "what the agent has reported, for the caller",
    ("mcp_provider.py", "handle", "RequestError"): "codes of MCP over ACP, with the words of the TypeScript SDK",
    ("mcp_provider.py", "check", "RequestError"): "a code of MCP over ACP, in the same way",
    ("mcp_provider.py", "_respond", "McpError"): "an error of MCP, from the library",
    ("mcp_caller.py", "_error", "MCPError"): "what the client has sent, for the library",
    ("mcp_caller.py", "result", "MCPError"): "an error of MCP, for the library",
    ("mcp_caller.py", "_call", "MCPError"): "an error of MCP, for the library",
    ("mcp_caller.py", "_call", "JSONRPCError"): "an error of MCP, for the library",
    ("mcp_bridge.py", "_as_before", "MCPError"): "an error of MCP, for the library",
    ("mcp_bridge.py", "at_url", "MCPError"): "for the agent's own code",
    ("turns.py", "_failed", "Error"): "what was raised",
}
"""The places that make an error without a class for its code, and why they may."""


def sources_of_packages() -> list[Path]:
    """The Python files that packages have, whatever their schema."""
    folders = (REPOSITORY / "templates" / "runtime", REPOSITORY / "schema" / "helpers")
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def calls_in(path: Path) -> Iterator[tuple[str, ast.Call | ast.Dict]]:
    """The calls and dicts of a file, each with the name of the function that it is in."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call | ast.Dict]]:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, (ast.Call, ast.Dict)):
                yield inside, each
            is_function = isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from walk(each, each.name if is_function else inside)  # type: ignore[attr-defined]

    return walk(ast.parse(path.read_text(encoding="utf-8")), "")


def made_by(node: ast.Call | ast.Dict) -> str:
    """The name of what a call makes, or "{}" for an error as JSON; empty for all else."""
    match node:
        case ast.Call(func=ast.Name(name)):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name("RequestError"), attr="from_json" as name)):
            return name
        case ast.Dict(keys=keys) if {"'code'", "'message'"} <= {ast.unparse(each) for each in keys if each is not None}:
            return "{}"
        case _:
            return ""


def names_of_codes(acp: ModuleType) -> set[str]:
    """The classes for codes, and those derived from them in the runtime and the helpers."""
    names = {kind.__name__ for kind in acp.errors.ERROR_CLASSES.values()}
    for path in sources_of_packages():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and {getattr(base, "id", "") for base in node.bases} & names:
                names.add(node.name)
    return names


def test_every_place_that_makes_an_error_is_known(packages: Packages) -> None:
    """It uses the class for the code, which adds the text, or it is one of `KEPT`."""
    coded = names_of_codes(packages(V1)) | names_of_codes(packages(V2))
    assert "UnfitParams" in coded
    plain = {"RequestError", "from_json", "Error", "McpError", "MCPError", "JSONRPCError", "{}"}
    by_class, others = 0, set[tuple[str, str, str]]()
    for path in sources_of_packages():
        for function, node in calls_in(path):
            if (name := made_by(node)) in coded and isinstance(node, ast.Call):
                by_class += 1
                starts = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                said = [each for each in starts if isinstance(each, str) and each.startswith((*STANDARD.values(),))]
                assert not said, f"{path.name}: the class {name} puts the standard text first: {said}"
            elif name in plain:
                others.add((path.name, function, name))
    assert others == KEPT.keys()
    assert by_class > 40


# --- Messages --------------------------------------------------------------------------------------------------------


async def ext_method(self: Any, method: str, params: Any) -> Any:
    """Handles a method that raises the error of a code, one that fails, and one that does not end."""
    acp = importlib.import_module(type(self).__mro__[1].__module__.partition(".")[0])
    match method:
        case "_raise":
            raise acp.errors.ERROR_CLASSES[params]("why")
        case "_fail":
            raise ValueError("secret")
        case "_wait":
            await asyncio.Event().wait()
        case _:
            raise acp.MethodNotFoundError(method)


LINES = {
    "no JSON": b"{nonsense",
    "no object": b"7",
    "a batch": b"[]",
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "another version": b'{"jsonrpc": "1.0", "id": 1, "method": "_x"}',
    "an id of another type": b'{"jsonrpc": "2.0", "id": 1.5, "method": "_x"}',
    "too deep": b'{"jsonrpc": "2.0", "id": 1, "method": "_x", "params": ' + b"[" * 9_999 + b"]" * 9_999 + b"}",
    "a response that was cut": b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 9_999 + b"]" * 9_999 + b"}",
    "an unknown method": b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}',
    "an unknown method of an extension": b'{"jsonrpc": "2.0", "id": 1, "method": "_other"}',
}
CALLS = {"agent": ("session/list", "session/new"), "client": ("elicitation/create", "session/request_permission")}
"""A method that is not overridden, and one that is, by role."""


@EVERY_BASE
@pytest.mark.parametrize("role", ["agent", "client"])
def test_what_agents_and_clients_answer(packages: Packages, sources: Any, role: str) -> None:
    acp = packages(sources)
    missing, handled = CALLS[role]
    if sources.release == "0.10.8" and role == "client":
        missing = "terminal/create"
    handler = (acp.Agent if role == "agent" else acp.Client).METHODS[handled].handler
    base = agent_of if role == "agent" else client_of
    kind = base(acp, **{handler: ext_method, "ext_method": ext_method})

    async def main() -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with raw_peer(acp, kind) as peer:
            for name, line in LINES.items():
                await peer.send_line(line)
                found[name] = (await peer.receive())["error"]
            found["not overridden"] = (await peer.ask(2, missing, {}))["error"]
            found["invalid params"] = (await peer.ask(3, handled, {"sessionId": 5}))["error"]
            for code in acp.errors.ERROR_CLASSES:
                found[f"raised {code}"] = (await peer.ask(4, "_raise", code))["error"]
            found["failed"] = (await peer.ask(5, "_fail"))["error"]
            await peer.request(6, "_wait")
            await peer.request(6, "_wait")
            found["the same id"] = (await peer.receive())["error"]
            await peer.notify("$/cancel_request", {"requestId": 6})
            if sources.release != "0.10.8":
                found["cancelled"] = (await peer.receive())["error"]
        return found

    found = run(main())
    assert {name: error for name, error in found.items() if not is_standard(error)} == {}
    assert found["a response that was cut"]["message"].startswith("Invalid request: the response is too large: ")
    assert found["raised -32002"]["message"] == "Resource not found: why"


def test_files_and_terminals(packages: Packages, tmp_path: Path) -> None:
    """A file that is not there is what gemini-cli takes for one."""
    acp = packages(V1)
    helpers = helpers_of(acp)
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "file").write_text("")

    class Editor(helpers.FileClient, helpers.TerminalClient):  # type: ignore[name-defined, misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.files = helpers.Files(tmp_path, max_bytes=10)

    calls: list[tuple[str, dict[str, Any]]] = [
        *(("fs/read_text_file", {"path": str(tmp_path / name)}) for name in ("new", "none/new", "file/new")),
        *(("fs/read_text_file", {"path": path}) for path in ("/nowhere", "relative", "\0", str(tmp_path / "binary"))),
        ("fs/read_text_file", {"path": str(tmp_path)}),
        ("fs/write_text_file", {"path": str(tmp_path / "new"), "content": "much too long"}),
        ("terminal/output", {"terminalId": "none"}),
        ("terminal/create", {"command": "/no/such/program"}),
        ("terminal/create", {"command": "true", "cwd": "relative"}),
        ("terminal/create", {"command": "true", "env": [{"name": "", "value": ""}]}),
    ]

    async def main() -> list[Any]:
        async with raw_peer(acp, Editor) as peer:
            return [(await peer.ask(1, method, {"sessionId": "s", **params}))["error"] for method, params in calls]

    found = run(main())
    assert [error for error in found if not is_standard(error)] == []
    assert [error["code"] for error in found[:3]] == [-32002] * 3
    assert all(any(text in error["message"] for text in NOT_THERE) for error in found[:3])
    assert found[0]["message"] == f"Resource not found: {tmp_path / 'new'}"
    assert not any(text in error["message"] for error in found[3:7] for text in NOT_THERE)


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_stored_sessions(packages: Packages, sources: Any, tmp_path: Path) -> None:
    acp = packages(sources)
    kind = teller(acp, helpers_of(acp).SqliteStore(tmp_path / "sessions.db"))

    async def main() -> list[Any]:
        async with raw_peer(acp, kind, options=acp.ConnectionOptions(check_capabilities=False)) as peer:
            me = {"name": "n", "version": "1"}
            hello = {"protocolVersion": sources.protocol, "info": me, "capabilities": {}}
            await peer.ask(0, "initialize", hello if sources is V2 else {"protocolVersion": 1})
            made = (await peer.ask(1, "session/new", {"cwd": "/a", "mcpServers": []}))["result"]["sessionId"]
            wrong = [
                ("session/new", {"cwd": "relative", "mcpServers": []}),
                ("session/resume", {"sessionId": "nobody", "cwd": "/a", "mcpServers": []}),
                ("session/resume", {"sessionId": made, "cwd": "/b", "mcpServers": []}),
                ("session/list", {"cursor": "wrong"}),
                ("session/prompt", {"sessionId": "nobody", "prompt": []}),
            ]
            return [(await peer.ask(2, *each))["error"] for each in wrong]

    found = run(main())
    assert [error for error in found if not is_standard(error)] == []
    assert found[1]["message"] == "Resource not found: session not found"


def test_an_agent_that_is_gone_behind_a_proxy(packages: Packages) -> None:
    acp = proxy_package(packages)

    async def main() -> Any:
        (client, here), (there, agent) = acp.memory_transports(), acp.memory_transports()
        serving = asyncio.create_task(acp.serve_proxy(acp.Proxy, here, there))
        await client.write(b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}')
        await agent.read()
        await agent.close()
        answer = json.loads(await client.read())
        await client.close()
        await serving
        return answer["error"]

    error = run(main())
    assert is_standard(error)
    assert error["message"].startswith("Internal error: the agent has closed the connection")
