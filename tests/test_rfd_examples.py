"""The JSON examples of the RFDs, read where they stand, against the schema and the extensions that they belong to."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.schema.compose import compose
from acpgen.schema.equality import same_shape
from acpgen.sources.inputs import load
from tests.published import PAGES, RECORDED, shared
from tests.support import Packages
from tests.test_dataclasses import Samples, model_for
from tests.test_probes import contains

COUNTS = {
    "auth-methods-2026-01-14.txt": 4,
    "auth-state-2026-03-07.txt": 5,
    "authentication-v2-page.txt": 6,
    "logout-2026-02-02.txt": 3,
    "schema-v1-page-2025.txt": 5,
    "streamable-http-websocket-transport.mdx": 0,
}
"""How many blocks of JSON each page has: one that is overlooked would be one that is not tested.

That on transports shows messages in charts alone, cut short.
"""

SOURCES = {
    "auth-methods-2026-01-14.txt": SchemaChoice(release="0.10.8", extensions=("auth-methods",)),
    "auth-state-2026-03-07.txt": SchemaChoice(release="0.10.8", extensions=("auth-state@2026-03-07",)),
    "authentication-v2-page.txt": SchemaChoice(protocol=2, schema=RECORDED / "v2" / "0.14.0" / "schema.json"),
    "logout-2026-02-02.txt": SchemaChoice(release="0.10.8", extensions=("logout",)),
    "schema-v1-page-2025.txt": SchemaChoice(release="0.10.8"),
}
"""The schema that each page describes, with the extension that it is about."""

NEWEST = {
    ("authentication-v2-page.txt", index): SchemaChoice(
        protocol=2, release="2026-11-02", extensions=("authentication",)
    )
    for index in (2, 3, 4, 5)
}
"""The bundled release for the blocks of a page whose own schema is not bundled, as far as they fit.

What `initialize` answers has other properties there: see `test_what_the_page_on_version_2_advertises`.
"""

IDS = {
    "auth-methods-2026-01-14.txt": {2: "session/new"},
    "auth-state-2026-03-07.txt": {0: "initialize", 1: "getAuthState"},
    "authentication-v2-page.txt": {0: "initialize", 1: "authenticate", 2: "logout"},
    "logout-2026-02-02.txt": {1: "logout"},
}
"""The methods that the messages of a page are about, by the id of the request."""

SHAPES = {
    "auth-methods-2026-01-14.txt": ["value", "value", "value", "error"],
    "auth-state-2026-03-07.txt": ["result", "schema", "request", "result", "result"],
    "authentication-v2-page.txt": ["result", "value", "request", "result", "request", "result"],
    "logout-2026-02-02.txt": ["schema", "request", "result"],
    "schema-v1-page-2025.txt": ["value"] * 5,
    "streamable-http-websocket-transport.mdx": [],
}


def json_blocks(text: str) -> list[Any]:
    """The JSON objects in a page, fenced or not, on one line or several; `//` comments in them are overlooked."""
    return [json.loads(re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', r"\1", block)) for block in _blocks(text.splitlines())]


def _blocks(lines: list[str]) -> Iterator[str]:
    block: list[str] = []
    for line in map(str.rstrip, lines):
        if block or line == "{":
            block.append(line)
        elif line.startswith("{") and line.endswith("}"):
            yield line
        if block and line == "}":
            yield "\n".join(block)
            block = []
    assert not block, "a block that does not end"


def blocks_of(page: str) -> list[Any]:
    return json_blocks(text_of(page))


def text_of(page: str) -> str:
    return shared(f"rfd/{page}").read_text(encoding="utf-8")


def examples(shape: str) -> list[Any]:
    """The parameters of a test: a schema, a page, and the number of a block of that shape."""
    return [
        pytest.param(sources, page, index, id=f"{page.removesuffix('.txt')}-{index}-{sources.release or 'published'}")
        for page, shapes in SHAPES.items()
        for index, each in enumerate(shapes)
        for sources in (SOURCES.get(page), NEWEST.get((page, index)))
        if each == shape and sources is not None
    ]


def package_for(packages: Packages, page: str, sources: SchemaChoice | None = None) -> ModuleType:
    shared("acp-schemas")
    return packages(sources or SOURCES[page])


class Scripted:
    """A peer that answers with what it is given, and keeps what was sent."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.sent: list[tuple[str, Any]] = []

    async def request(self, method: str, params: Any) -> Any:
        self.sent.append((method, params))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def notify(self, method: str, params: Any) -> None:
        self.sent.append((method, params))


def call(acp: ModuleType, sources: SchemaChoice, wire: str, answer: Any) -> Any:
    """What the stub of the agent makes of `answer` to the request `wire`."""
    method = acp.AGENT_METHODS[wire]
    params = acp.decode(method.params, Samples(model_for(sources)).named(method.params.__name__))
    peer = Scripted(answer)
    found = asyncio.run(getattr(acp.RemoteAgent(peer), method.handler)(params))
    assert [name for name, _ in peer.sent] == [wire]
    return found


# --- The blocks -----------------------------------------------------------------------------------------------------


def test_the_extractor() -> None:
    text = 'a {\n```json\n{\n  "a": "b//c", // d\n  "e": {}\n}\n```\n{"f": 1}\ninterface X {\n  g: {}\n}\n}\n'
    assert json_blocks(text) == [{"a": "b//c", "e": {}}, {"f": 1}]


def test_every_page_is_known() -> None:
    assert tuple(COUNTS) == PAGES


@pytest.mark.parametrize(("page", "count"), COUNTS.items())
def test_no_block_is_overlooked(page: str, count: int) -> None:
    blocks = blocks_of(page)
    assert len(blocks) == count
    assert list(map(shape_of, blocks)) == SHAPES[page]
    # whatever has the look of a message is in one of the blocks
    text = text_of(page)
    assert text.count('"jsonrpc"') == sum("jsonrpc" in block for block in blocks)
    assert text.count('"$defs": {') == sum("$defs" in block for block in blocks)


def shape_of(block: dict[str, Any]) -> str:
    for key, shape in (("$defs", "schema"), ("method", "request"), ("result", "result"), ("error", "error")):
        if key in block:
            return shape
    return "value"


# --- Messages -------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(("sources", "page", "index"), examples("request"))
def test_a_request_reaches_its_handler(packages: Packages, sources: SchemaChoice, page: str, index: int) -> None:
    acp, message = package_for(packages, page, sources), blocks_of(page)[index]
    assert message["method"] == IDS[page][message["id"]]
    method = acp.AGENT_METHODS[message["method"]]
    result = Samples(model_for(sources)).named(method.result.__name__)
    seen = []

    async def handle(params: Any) -> Any:
        seen.append(params)
        return acp.decode(method.result, result)

    agent = acp.Agent(acp.RemoteClient(Scripted(None)))
    setattr(agent, method.handler, handle)
    answer = asyncio.run(acp.dispatch_request(agent, message["method"], message["params"]))
    assert contains(answer, result)
    assert [type(params) for params in seen] == [method.params]
    assert acp.encode(seen[0]) == message["params"]


@pytest.mark.parametrize(("sources", "page", "index"), examples("result"))
def test_a_result_is_decoded_by_the_stub(packages: Packages, sources: SchemaChoice, page: str, index: int) -> None:
    acp, message = package_for(packages, page, sources), blocks_of(page)[index]
    wire = IDS[page][message["id"]]
    found = call(acp, sources, wire, message["result"])
    assert type(found) is acp.AGENT_METHODS[wire].result
    assert acp.decode(type(found), acp.encode(found)) == found == acp.decode(type(found), message["result"])


@pytest.mark.parametrize(("sources", "page", "index"), examples("error"))
def test_an_error_is_raised_by_the_stub(packages: Packages, sources: SchemaChoice, page: str, index: int) -> None:
    acp, message = package_for(packages, page, sources), blocks_of(page)[index]
    error = acp.RequestError.from_json(message["error"])
    with pytest.raises(acp.AuthenticationRequiredError) as caught:
        call(acp, sources, IDS[page][message["id"]], error)
    (method,) = caught.value.auth_methods
    assert type(method) is acp.AuthMethodAgent
    assert (method.id, method.type) == ("chatgpt", "agent")
    assert (caught.value.code, caught.value.data) == (-32000, acp.UNSET)
    assert contains(caught.value.to_json(), message["error"])


def test_an_agent_can_raise_the_error_with_its_methods(packages: Packages) -> None:
    page = "auth-methods-2026-01-14.txt"
    acp = package_for(packages, page)
    expected = blocks_of(page)[1]

    class Locked(acp.Agent):  # type: ignore[misc, name-defined]
        async def session_new(self, params: Any) -> Any:
            raise acp.AuthenticationRequiredError(auth_methods=[acp.decode(acp.AuthMethod, expected)])

    request = acp.dispatch_request(Locked(None), "session/new", {"cwd": "/", "mcpServers": []})
    with pytest.raises(acp.RequestError) as caught:
        asyncio.run(request)
    assert caught.value.to_json() == {
        "code": -32000,
        "message": "Authentication required",
        "authMethods": [expected],
    }


# --- Values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "index", "name"),
    [
        ("auth-methods-2026-01-14.txt", 0, "AuthMethodAgent"),
        ("auth-methods-2026-01-14.txt", 1, "AuthMethodEnvVar"),
        ("auth-methods-2026-01-14.txt", 2, "AuthMethodTerminal"),
        ("authentication-v2-page.txt", 1, "AuthMethodAgent"),
    ],
)
def test_an_authentication_method(packages: Packages, page: str, index: int, name: str) -> None:
    acp, raw = package_for(packages, page), blocks_of(page)[index]
    value = acp.decode(acp.AuthMethod, raw)
    assert type(value) is getattr(acp, name)
    assert acp.encode(value) == raw
    assert {key: getattr(value, snake) for key, snake in snakes(raw)} == raw


def snakes(raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, re.sub("([A-Z])", r"_\1", key).lower()) for key in raw]


def test_an_authentication_method_without_type_is_the_agents(packages: Packages) -> None:
    page = "auth-methods-2026-01-14.txt"
    acp, raw = package_for(packages, page), blocks_of(page)[0]
    untyped = {key: value for key, value in raw.items() if key != "type"}
    assert acp.encode(acp.decode(acp.AuthMethod, untyped)) == raw
    assert acp.AuthMethodAgent(id="a", name="n").type == "agent"


def test_a_custom_authentication_method_survives(packages: Packages) -> None:
    """The page on version 2 asks for as much."""
    page = "authentication-v2-page.txt"
    acp, raw = package_for(packages, page), blocks_of(page)[1]
    custom = raw | {"type": "_vendor", "more": {"a": [1, None]}}
    assert acp.encode(acp.decode(acp.AuthMethod, custom)) == custom


def test_what_the_page_on_version_2_advertises(packages: Packages) -> None:
    """Its capability is that of the extension; the method itself is called `methodId` in the newest release."""
    page = "authentication-v2-page.txt"
    acp, message = packages(NEWEST[page, 2]), blocks_of(page)[0]
    raw = message["result"]["capabilities"]
    assert acp.encode(acp.decode(acp.AgentCapabilities, raw)) == raw
    gate = acp.AGENT_METHODS["logout"].capability
    assert gate.paths == (("capabilities", "auth", "logout"),)
    method = {("methodId" if key == "id" else key): value for key, value in blocks_of(page)[1].items()}
    assert acp.encode(acp.decode(acp.AuthMethod, method)) == method


@pytest.mark.parametrize(
    ("index", "name"),
    list(
        enumerate(
            ["ClientCapabilities", "AgentCapabilities", "McpCapabilities", "PromptCapabilities", "FileSystemCapability"]
        )
    ),
)
def test_the_defaults_on_the_page_of_2025_are_what_an_empty_object_decodes_to(
    packages: Packages, index: int, name: str
) -> None:
    page = "schema-v1-page-2025.txt"
    acp, raw = package_for(packages, page), blocks_of(page)[index]
    kind = getattr(acp, name)
    assert acp.decode(kind, raw) == acp.decode(kind, {}) == kind()


def test_the_extensions_go_together(packages: Packages) -> None:
    acp = packages(SchemaChoice(release="0.10.8", extensions=("logout", "auth-methods", "auth-state@2026-03-07")))
    raw = {"protocolVersion": 1, "agentCapabilities": {"authCapabilities": {"logout": True}, "getAuthState": True}}
    value = acp.decode(acp.InitializeResponse, raw)
    assert (value.agent_capabilities.auth_capabilities.logout, value.agent_capabilities.get_auth_state) == (True, True)
    assert {"logout", "getAuthState"} <= acp.AGENT_METHODS.keys()


# --- Schemas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sources", "page", "index"), examples("schema"))
def test_the_extension_defines_what_the_page_defines(sources: SchemaChoice, page: str, index: int) -> None:
    loaded = load(sources)
    root = compose(loaded.base, loaded.fragments, protocol=1).root
    for name, wanted in blocks_of(page)[index]["$defs"].items():
        found = {key: value for key, value in root["$defs"][name].items() if key in wanted or not key.startswith("x-")}
        assert same_shape(found, wanted), name
