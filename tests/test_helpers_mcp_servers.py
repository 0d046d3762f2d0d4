"""The MCP servers of a session as plain records: nothing is lost, mixed up or printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.runtime_support import V1, V2
from tests.support import Packages
from tests.test_helpers import helpers_of

STDIO = {"command": "/bin/s", "args": ["--token", "t0p"], "env": [{"name": "KEY", "value": "s3cret"}]}
HTTP = {
    "type": "http",
    "url": "https://me:s3cret@h/mcp?key=s3cret",
    "headers": [{"name": "X", "value": "s3cret"}, {"name": "X", "value": "2"}],
}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages(V1 if request.param == 1 else V2, roles=(Role.AGENT,))


def read(acp: ModuleType, *servers: dict[str, Any], **options: Any) -> list[Any]:
    """The records of servers as they come in a request; the kind of those for protocol 2 is always written."""
    tagged = [{"type": "stdio", **each} if acp.PROTOCOL_VERSION == 2 else each for each in servers]
    params = {"cwd": "/work", "mcpServers": [{"name": "one", **each} for each in tagged]}
    request = acp.decode(acp.NewSessionRequest, params)
    options = {"allow_local": True, **options}  # or connections of other tests would decide
    found: list[Any] = helpers_of(acp).mcp_parameters(request.mcp_servers, cwd=request.cwd, **options)
    return found


def test_a_program_runs_in_the_folder_of_the_session(acp: ModuleType) -> None:
    """It gets the arguments and the environment; those that are empty are empty, not None."""
    full, bare = read(acp, STDIO, {"command": "/bin/b", "args": [], "env": []})
    assert (full.kind, full.command, full.args) == ("stdio", "/bin/s", ["--token", "t0p"])
    assert (full.env, full.cwd) == ({"KEY": "s3cret"}, "/work")
    assert (bare.args, bare.env, bare.cwd) == ([], {}, "/work")


def test_equal_names_and_headers_stay(acp: ModuleType) -> None:
    first, second = read(acp, HTTP, {**HTTP, "_meta": {"a": 1}, "url": "http://h"})
    assert (first.name, second.name) == ("one", "one")
    assert first.headers == [("X", "s3cret"), ("X", "2")]
    assert (second.url, second.meta, first.meta) == ("http://h", {"a": 1}, None)


def test_secrets_are_not_printed(acp: ModuleType) -> None:
    for each in read(acp, STDIO, HTTP):
        assert "s3cret" not in f"{each!r} {each}"
        assert "t0p" not in repr(each)
    assert str(read(acp, HTTP)[0]) == "one at https://h/mcp"


def test_a_kind_that_is_not_accepted_is_an_error_with_its_place(acp: ModuleType) -> None:
    with pytest.raises(acp.InvalidParamsError, match=r"mcpServers\[1\] is of type 'http'.* accepts stdio") as error:
        read(acp, STDIO, HTTP, accept=["stdio"])
    assert error.value.data == {"index": 1, "type": "http"}


def test_no_servers(packages: Packages) -> None:
    acp = packages(V2, roles=(Role.AGENT,))
    assert helpers_of(acp).mcp_parameters(acp.UNSET) == []


def test_a_client_over_the_network_has_few_servers(acp: ModuleType) -> None:
    """Each is a connection that the agent makes; what a local client asks for is its own affair."""
    public = {**HTTP, "url": "https://h.example/mcp"}
    assert len(read(acp, *[public] * 65)) == 65
    assert len(read(acp, *[public] * 64, allow_local=False)) == 64
    with pytest.raises(acp.InvalidParamsError, match="65 MCP servers, and this agent takes 64"):
        read(acp, *[public] * 65, allow_local=False)


def test_an_unknown_kind_is_reported(packages: Packages) -> None:
    acp = packages(V2, roles=(Role.AGENT,))
    with pytest.raises(acp.InvalidParamsError, match="of type 'carrier-pigeon'"):
        read(acp, {"type": "carrier-pigeon", "loft": 7})


def test_events_of_protocol_1(packages: Packages) -> None:
    acp = packages(V1, roles=(Role.AGENT,))
    (found,) = read(acp, {**HTTP, "type": "sse"}, accept=["sse"])
    assert (found.kind, len(found.headers)) == ("sse", 2)
    with pytest.raises(acp.InvalidParamsError):
        read(acp, {**HTTP, "type": "sse"})


def test_a_server_of_the_client(packages: Packages) -> None:
    for schema, name in ((V1, "v1"), (V2, "v2")):
        acp = packages(with_mcp(schema, name), roles=(Role.AGENT,))
        (found,) = read(acp, {"type": "acp", "serverId": "srv-1"}, accept=["acp"])
        assert (found.kind, found.server_id) == ("acp", "srv-1")


def with_mcp(schema: Any, name: str) -> Any:
    """The schema choice with the extension that lets clients offer servers."""
    return replace(schema, extensions=("mcp-over-acp",))


def test_the_capabilities_that_follow(packages: Packages) -> None:
    one, two = packages(V1, roles=(Role.AGENT,)), packages(V2, roles=(Role.AGENT,))
    assert one.encode(helpers_of(one).mcp_capabilities("stdio", "http")) == {"http": True}
    assert two.encode(helpers_of(two).mcp_capabilities("stdio", "http", allow_local=True)) == {"stdio": {}, "http": {}}
    assert two.encode(helpers_of(two).mcp_capabilities("http")) == {"http": {}}


def test_no_library_is_imported(packages: Packages) -> None:
    acp = packages(V1, roles=(Role.AGENT,))
    text = (Path(str(acp.__file__)).parent / "helpers" / "mcp_servers.py").read_text(encoding="utf-8")
    assert "import mcp" not in text
