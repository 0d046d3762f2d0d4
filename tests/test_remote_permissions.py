"""Permissions of a client whose agent is on the network: the reports and the question come by streams of their own."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import build_package
from tests.needs import need
from tests.runtime_support import agent_of, run
from tests.support import import_folder
from tests.test_remote_connections import served

PARTS = ("turns", "sessions", "permissions", "remote")
COMMANDS = ("echo one", "echo two", "rm -r /")


@pytest.fixture(scope="module")
def acp(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    need("httpx2", "hypercorn", "websockets")
    folder = tmp_path_factory.mktemp("permissions") / "acp_permissions"
    package = import_folder(build_package(folder, "--role", "both", *(f"--with={each}" for each in PARTS)))
    importlib.import_module(f"{package.__name__}.helpers")
    return package


def shell_agent(acp: ModuleType, ran: list[str]) -> type[Any]:
    """An agent that tells of each command what opencode 1.18 does, in its order, and runs what is allowed."""

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def session_new(self: Any, params: Any) -> Any:
        return acp.NewSessionResponse(session_id="s")

    async def session_prompt(self: Any, params: Any) -> Any:
        for number, command in enumerate(COMMANDS):
            call = {"tool_call_id": f"c{number}", "kind": "execute"}

            async def report(kind: Any, call: dict[str, Any] = call, **more: Any) -> None:
                update = kind(**{**call, **more})
                await self.client.session_update(acp.SessionNotification(session_id="s", update=update))

            await report(acp.SessionUpdateToolCall, title="bash", raw_input={"cwd": "/work"})
            asked = acp.ToolCallUpdate(**call, title=command, locations=[], raw_input={"command": command})
            options = acp.helpers.permission_options("allow_once", "reject_once")
            question = acp.RequestPermissionRequest(session_id="s", tool_call=asked, options=options)
            asking = asyncio.ensure_future(self.client.session_request_permission(question))
            more = {
                "raw_input": {"command": command, "cwd": "/work"},
                "locations": [acp.ToolCallLocation(path="/work")],
            }
            await report(acp.SessionUpdateToolCallUpdate, status="in_progress", **more)
            if acp.helpers.permission_answer(options, await asking).allowed:
                ran.append(command)
            await report(acp.SessionUpdateToolCallUpdate, status="completed")
        return acp.PromptResponse(stop_reason="end_turn")

    return agent_of(acp, initialize=initialize, session_new=session_new, session_prompt=session_prompt)


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize("by", ["user", "rules"])
def test_what_is_allowed_runs_and_what_is_denied_does_not(acp: ModuleType, transport: str, by: str) -> None:
    asgi, remote = (importlib.import_module(f"{acp.__name__}.{name}") for name in ("asgi", "remote"))
    ran, asked = list[str](), list[Any]()

    class Chat(acp.helpers.SessionClient, acp.helpers.PermissionClient):  # type: ignore[name-defined, misc]
        async def ask_permission(self, question: Any) -> str:
            asked.append(question)
            return "deny" if "rm" in question.subject.command else "allow"

    async def main() -> None:
        app = asgi.asgi_app(shell_agent(acp, ran))
        connect = remote.connect_http if transport == "http" else remote.connect_websocket
        clients = list[Any]()

        def make(agent: Any) -> Any:
            clients.append(Chat(agent))
            return clients[-1]

        async with served(app) as url, connect(make, url if transport == "http" else url.replace("http", "ws")):
            (client,) = clients
            if by == "rules":
                rule = acp.helpers.PermissionRule
                rules = [rule("deny", command="rm -r /"), rule("allow", kind="execute")]
                client.permissions = acp.helpers.PermissionRules(*rules)
            await client.start("test", "1.0.0")
            session = await client.open("/work")
            assert (await session.prompt("go")).stop_reason == "end_turn"
        await app.close()

    run(main(), seconds=60)
    assert ran == ["echo one", "echo two"]
    assert len(asked) == (3 if by == "user" else 0)
    assert all("in: /work" in each.lines for each in asked)
