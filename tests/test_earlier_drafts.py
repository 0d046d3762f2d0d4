"""The extensions in the form of the unstable schemas of 2026-08-22, which peers of that time speak."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.config.keys import role_defaults
from acpgen.diagnostics import Severity
from acpgen.ir.model import Options
from acpgen.pipeline import compile_protocol
from acpgen.roles import Role, RoleChoice
from acpgen.schema.bundled import bundled_fragments, list_releases, load_facts, load_release
from acpgen.schema.fitting import choose_fragment
from acpgen.schema.fragment import Fragment
from acpgen.schema.walk import methods_of, schema_list
from acpgen.sources.inputs import load
from tests.command_line import run_acpgen
from tests.published import FILES
from tests.runtime_support import acp_log, agent_of, client_of, pair, run, texts
from tests.support import Packages, bundled_fragment
from tests.test_unstable import EITHER, comparable, described_alike, fine, upstream_file

DATE = "2026-08-22"
UNSTABLE = {1: "v1/1.21.0/schema.unstable.json", 2: "v2/2.0.0-alpha.3/schema.unstable.json"}
"""The unstable schemas that were published on that date."""
IDS = ("mcp-over-acp", "nes")
EACH = pytest.mark.parametrize("name", IDS)
CAPABILITIES = {1: "agentCapabilities", 2: "capabilities"}
"""The property of the `initialize` response with the capabilities."""


def draft(name: str, protocol: int) -> Fragment:
    return bundled_fragment(f"{name}@{DATE}", protocol)


def sources(protocol: int, *names: str) -> SchemaChoice:
    return SchemaChoice(
        protocol=protocol, release="2026-11-02", extensions=tuple(draft(name, protocol).spec for name in names)
    )


def example(fragment: Fragment, method: str, half: str) -> Any:
    """The first example with params, or with a result, of a method."""
    return next(each[half] for each in fragment.document.root["examples"] if each["method"] == method and half in each)


# --- As the unstable schemas ----------------------------------------------------------------------------------------


@EITHER
@EACH
def test_the_definitions_are_those_of_the_unstable_schema(protocol: int, name: str) -> None:
    extension, theirs = draft(name, protocol), upstream_file(UNSTABLE[protocol])
    found = comparable({"$defs": extension.definitions})
    assert found == {each: text for each, text in comparable(theirs).items() if each in found}
    for changed, change in extension.changes.items():
        whole = theirs["$defs"][changed]
        ours = comparable({"$defs": {"changed": {"properties": change.properties, "anyOf": list(change.members)}}})
        members = [*schema_list(whole, "oneOf"), *schema_list(whole, "anyOf")]
        same = {
            "properties": {each: whole["properties"][each] for each in change.properties},
            "anyOf": [each for each in members if same_tag(each, change.members)],
        }
        assert ours == comparable({"$defs": {"changed": same}})


def same_tag(member: Any, others: tuple[Any, ...]) -> bool:
    return any(member.get("properties") == other["properties"] for other in others)


@EITHER
@EACH
def test_everything_is_described_that_upstream_describes(protocol: int, name: str) -> None:
    described_alike(draft(name, protocol), upstream_file(UNSTABLE[protocol])["$defs"])


@EITHER
def test_no_method_that_was_ever_published_is_without_an_extension(protocol: int) -> None:
    releases = [load_release(each).root for each in list_releases() if each.protocol == protocol]
    bundled = [root["$defs"] for root in releases] + [each.definitions for each in bundled_fragments(protocol)]
    known = {method for definitions in bundled for _, method in methods_of(definitions)}
    older = "v2/0.14.0/"  # the first draft of protocol 2 still had `session/load`
    for name in FILES:
        if name.startswith(f"v{protocol}/") and not name.startswith(older):
            assert {method for _, method in methods_of(upstream_file(name)["$defs"])} <= known, name


@EITHER
def test_a_bare_name_is_the_newest_form(protocol: int) -> None:
    for release in (each for each in list_releases() if each.protocol == protocol):
        base, facts = load_release(release), load_facts(release)
        found = [choose_fragment(name, base, protocol=protocol, facts=facts).spec for name in IDS]
        assert found == ["mcp-over-acp@2026-11-02", f"nes@{DATE}"]


@EITHER
def test_they_fit_together_and_beside_the_others(protocol: int) -> None:
    newer = [each for each in bundled_fragments(protocol) if each.revision == "2026-11-02" and each.status == "landed"]
    others = [each for each in newer if each.id not in IDS]
    composed = fine(protocol, *(draft(name, protocol) for name in IDS), *others)
    assert composed.root["$defs"].keys() >= {"NesSuggestion", "ConnectMcpRequest"}


@EITHER
@pytest.mark.parametrize(
    "roles", [(Role.AGENT,), (Role.CLIENT,), RoleChoice.BOTH.roles], ids=["agent", "client", "both"]
)
def test_no_build_warns(protocol: int, roles: tuple[Role, ...]) -> None:
    options = Options.for_roles(roles, open=role_defaults(roles)["open"])
    found = compile_protocol(load(sources(protocol, *IDS)), options).diagnostics
    assert [each for each in found if each.severity is not Severity.NOTE] == []


def test_a_strict_build_says_nothing(tmp_path: Path) -> None:
    extensions = [argument for name in IDS for argument in ("--extension", f"{name}@{DATE}")]
    build = ("build", "--no-config", "--strict", "--protocol", "1", "--protocol", "2", "--role", "both")
    ran = run_acpgen(*build, *extensions, "--out", tmp_path / "drafts", cwd=tmp_path)
    assert (ran.code, ran.stdout) == (0, "")
    (last,) = ran.stderr.splitlines()
    assert "files written" in last


# --- Next edit suggestions ------------------------------------------------------------------------------------------

CONVERSATION = ("nes/start", "document/didOpen", "document/didChange", "document/didFocus", "nes/suggest")
AFTERWARDS = ("nes/accept", "nes/reject", "nes/close")


@EITHER
def test_an_editor_gets_suggestions_from_an_agent(packages: Packages, protocol: int) -> None:
    """Both run the examples of the extension: what the one sends is what the other gets."""
    nes = draft("nes", protocol)
    acp = packages(sources(protocol, "nes"))
    seen: list[tuple[str, Any]] = []
    results = {name: example(nes, name, "result") for name in ("initialize", "nes/start", "nes/suggest", "nes/close")}

    def handler(method: Any) -> Any:
        async def handle(self: Any, params: Any) -> Any:
            seen.append((method.name, acp.encode(params)))
            return acp.decode(method.result, results[method.name]) if method.name in results else None

        return handle

    named = [acp.AGENT_METHODS[name] for name in ("initialize", *CONVERSATION, *AFTERWARDS)]
    agent = agent_of(acp, **{method.handler: handler(method) for method in named})

    async def send(stub: Any, name: str) -> Any:
        method = acp.AGENT_METHODS[name]
        answer = await getattr(stub, method.handler)(acp.decode(method.params, example(nes, name, "params")))
        return None if answer is None else acp.encode(answer)

    async def main() -> None:
        async with pair(acp, agent, client_of(acp)) as both:
            with pytest.raises(acp.CapabilityError, match="nes/start"):
                await send(both.agent, "nes/start")
            await both.agent.initialize(acp.decode(acp.InitializeRequest, HELLO[protocol]))
            for name in (*CONVERSATION, *AFTERWARDS):
                assert await send(both.agent, name) == results.get(name)
            with pytest.raises(acp.CapabilityError, match=r"document/didSave needs .*nes\.events\.document\.didSave"):
                await send(both.agent, "document/didSave")

    run(main())
    assert seen[1:] == [(name, example(nes, name, "params")) for name in (*CONVERSATION, *AFTERWARDS)]


HELLO: dict[int, Any] = {
    1: {"protocolVersion": 1},
    2: {"protocolVersion": 2, "info": {"name": "test", "version": "1"}, "capabilities": {}},
}


@EITHER
def test_advertise_leaves_a_capability_with_settings_to_the_author(packages: Packages, protocol: int) -> None:
    """The form of changes has to be chosen: `{}` would be dropped by the decoder, and so would not advertise."""
    acp = packages(sources(protocol, "nes"))

    async def handle(self: Any, params: Any) -> None: ...

    async def initialize(self: Any, params: Any) -> Any:
        return acp.advertise(self, acp.decode(acp.InitializeResponse, HELLO[protocol]))

    agent = agent_of(acp, initialize=initialize, document_did_open=handle, document_did_change=handle)

    async def main() -> Any:
        async with pair(acp, agent, client_of(acp)) as both:
            return acp.encode(await both.agent.initialize(acp.decode(acp.InitializeRequest, HELLO[protocol])))

    with acp_log() as records:
        answer = run(main())
    assert answer[CAPABILITIES[protocol]]["nes"] == {"events": {"document": {"didOpen": {}}}}
    assert "didChange" not in texts(records)


# --- MCP with connections -------------------------------------------------------------------------------------------


@EITHER
def test_mcp_messages_go_both_ways_on_a_connection(packages: Packages, protocol: int) -> None:
    mcp = draft("mcp-over-acp", protocol)
    acp = packages(sources(protocol, "mcp-over-acp"))
    seen: list[str] = []

    async def initialize(self: Any, params: Any) -> Any:
        return acp.advertise(
            self, acp.decode(acp.InitializeResponse, HELLO[protocol] | {"capabilities": {"session": {}}})
        )

    async def session_new(self: Any, params: Any) -> Any:
        (server,) = params.mcp_servers
        opened = await self.client.mcp_connect(acp.ConnectMcpRequest(server_id=server.server_id))
        call = acp.decode(acp.MessageMcpRequest, example(mcp, "mcp/message", "params"))
        assert call.connection_id == opened.connection_id
        assert await self.client.mcp_message(call) == example(mcp, "mcp/message", "result")
        await self.client.mcp_disconnect(acp.DisconnectMcpRequest(connection_id=opened.connection_id))
        return acp.NewSessionResponse(session_id="s-1")

    async def on_agent_request(self: Any, params: Any) -> Any:
        seen.append(params.method)
        return None  # any JSON value is a result

    async def on_agent_notification(self: Any, params: Any) -> None:
        seen.append(params.method)

    async def mcp_connect(self: Any, params: Any) -> Any:
        seen.append(f"connect {params.server_id}")
        return acp.ConnectMcpResponse(connection_id="c-1")

    async def on_client_request(self: Any, params: Any) -> Any:
        seen.append(params.method)
        asked = acp.MessageMcpRequest(connection_id=params.connection_id, method="roots/list")
        assert await self.agent.mcp_message(asked) is None
        news = acp.MessageMcpNotification(connection_id=params.connection_id, method="notifications/progress")
        await self.agent.mcp_message_notification(news)
        return example(mcp, "mcp/message", "result")

    async def mcp_disconnect(self: Any, params: Any) -> Any:
        seen.append(f"disconnect {params.connection_id}")
        return acp.DisconnectMcpResponse()

    agent = agent_of(
        acp,
        initialize=initialize,
        session_new=session_new,
        mcp_message=on_agent_request,
        mcp_message_notification=on_agent_notification,
    )
    client = client_of(acp, mcp_connect=mcp_connect, mcp_message=on_client_request, mcp_disconnect=mcp_disconnect)

    async def main() -> None:
        async with pair(acp, agent, client) as both:
            await both.agent.initialize(acp.decode(acp.InitializeRequest, HELLO[protocol]))
            assert both.agent.supports("mcp/message")
            await both.agent.session_new(acp.decode(acp.NewSessionRequest, example(mcp, "session/new", "params")))

    run(main())
    assert seen == ["connect notes", "tools/call", "roots/list", "notifications/progress", "disconnect c-1"]
