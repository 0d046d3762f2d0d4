"""The option `check_sent`: what does not fit its type is an error on this side, and never sent."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options, Role
from tests.mistakes_support import ECHO, Outcome, run_agent, run_code
from tests.runtime_support import EVERY_BASE, V1, V2, agent_of, client_of, pair, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

AGENT = (Role.AGENT,)
INTERNAL = {"code": -32603, "message": "Internal error"}
NEW = {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
RESULTS = {
    "a number for a text": (
        "return NewSessionResponse(session_id=5)",
        "Echo.session_new returned a result not of its type: $.sessionId: expected a string, found 5",
    ),
    "what the peer would leave out": (
        'return NewSessionResponse(session_id="s", meta=["list"])',
        "Echo.session_new returned a result not of its type: $._meta: expected an object, found an array ['list']",
    ),
    "a part of what the peer would leave out": (
        """
        modes = SessionModeState(current_mode_id="a", available_modes=[SessionMode(id="a", name=5)])
        return NewSessionResponse(session_id="s", modes=modes)
        """,
        "$.modes.availableModes[0].name: expected a string, found 5",
    ),
}
CALLS = {
    "a value that is not in an enumeration": (
        """
        update = SessionUpdatePlan(entries=[PlanEntry(content="c", priority="high", status="complete")])
        await self.client.session_update(SessionNotification(session_id="s", update=update))
        """,
        "$.update.entries[0].status: expected one of 'pending', 'in_progress', 'completed', found 'complete'",
    ),
    "a whole message in the place of a part": (
        """
        await self.client.session_update(SessionNotification(session_id="s", update=agent_message("s", "Hi")))
        """,
        "$.update.sessionUpdate: expected one of ",
    ),
    "a request": (
        'await self.client.fs_read_text_file(ReadTextFileRequest(session_id="s", path=["/a"]))',
        "$.path: expected a string, found an array ['/a']",
    ),
}


def outcome_of(acp: Any, body: str, *, check: bool = True) -> Outcome:
    lines = "\n        ".join(line.strip() for line in body.strip().splitlines())
    code = f"{ECHO}    async def session_new(self, params):\n        {lines}\n"
    options = acp.ConnectionOptions(check_sent=check, check_capabilities=False)
    return run_agent(acp, code, NEW, options=options)


@pytest.mark.parametrize(("body", "last"), RESULTS.values(), ids=RESULTS.keys())
def test_results(packages: Packages, body: str, last: str) -> None:
    acp = packages(V1, roles=AGENT)
    outcome = outcome_of(acp, body)
    assert last in outcome.last
    assert [message["error"] for message in outcome.sent if message["id"] == 1] == [INTERNAL]


@pytest.mark.parametrize(("body", "last"), CALLS.values(), ids=CALLS.keys())
def test_calls(packages: Packages, body: str, last: str) -> None:
    """The caller gets the error, and the peer nothing."""
    outcome = outcome_of(packages(V1, roles=AGENT), body)
    assert "called by" in outcome.last
    assert "session_new in line" in outcome.last
    assert "got params not of its type" in outcome.last
    assert last in outcome.last
    assert {message.get("method") for message in outcome.sent} == {None}


def test_off_by_default(packages: Packages) -> None:
    acp = packages(V1, roles=AGENT)
    assert acp.ConnectionOptions().check_sent is sys.flags.dev_mode
    outcome = outcome_of(acp, "return NewSessionResponse(session_id=5)", check=False)
    assert [message["result"] for message in outcome.sent if message["id"] == 1] == [{"sessionId": 5}]


def test_on_in_the_development_mode(packages: Packages) -> None:
    acp = packages(V1, roles=AGENT)
    home, _, _ = str(acp.__file__).rpartition(f"/{acp.__name__}/")
    code = (
        f"import sys; sys.path.insert(0, {home!r}); import {acp.__name__} as a; print(a.ConnectionOptions().check_sent)"
    )
    shown = [subprocess.check_output([sys.executable, *dev, "-c", code]) for dev in ([], ["-X", "dev"])]
    assert [text.strip() for text in shown] == [b"False", b"True"]


def test_a_client(packages: Packages) -> None:
    acp = packages(V1)
    code = """
    class Printer(Client): pass

    async def main(transport, options):
        async with connect(Printer, transport, options=options) as agent:
            await agent.session_new(NewSessionRequest(cwd=5, mcp_servers=[]))
    """
    outcome = run_code(acp, code, options=acp.ConnectionOptions(check_sent=True))
    assert "session_new, called by main in line 7 of user_code.py, got params not of its type: $.cwd: " in outcome.last
    assert outcome.sent == []


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_what_has_no_type_is_not_checked(packages: Packages, sources: SchemaChoice) -> None:
    """Extension methods, what a fallback answers, and unknown properties that a proxy keeps."""
    acp = packages(sources, options=Options(keep_unknown=True))
    known = {"later": {"a": [None]}, "sessions": []}

    class Proxy(acp.Agent):  # type: ignore[misc, name-defined]
        async def ext_method(self, method: str, params: Any) -> Any:
            return params

        async def fallback_request(self, method: str, params: Any) -> Any:
            return 5

        async def session_list(self, params: Any) -> Any:
            return acp.decode(acp.ListSessionsResponse, known)

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(check_sent=True, check_capabilities=False)
        async with pair(acp, Proxy, acp.Client, agent_options=options, client_options=options) as both:
            await both.client.ext_notification("_n", 5)
            calls: tuple[tuple[str, Any], ...] = (
                ("_a", [None]),
                ("session/delete", None),
                ("unknown", 7),
                ("session/list", {}),
            )
            return [await both.agent.ext_method(*call) for call in calls]

    assert run(main()) == [[None], 5, 5, known]


@EVERY_BASE
def test_every_method_can_be_checked(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    for base in (acp.Agent, acp.Client):
        for method in (*base.METHODS.values(), *base.PEER_METHODS.values()):
            for each in filter(None, (method, method.notification)):
                for kind in (each.params, each.result) if each.kind == "request" else (each.params,):
                    if kind is Any:
                        continue
                    with pytest.raises(acp.DecodeError):
                        acp.decode(kind, {1})


def test_the_check_does_not_read_with_the_loads_of_the_options(packages: Packages) -> None:
    """A transport may follow by it what the peer says."""
    acp = packages(V1)
    received: list[Any] = []

    def loads(line: bytes) -> Any:
        received.append(json.loads(line))
        return received[-1]

    async def main() -> None:
        options = acp.ConnectionOptions(check_sent=True, check_capabilities=False, loads=loads)
        async with pair(acp, agent_of(acp), client_of(acp), agent_options=options) as both:
            with pytest.raises(acp.MethodNotFoundError):
                await both.client.fs_read_text_file(acp.ReadTextFileRequest(session_id="s", path="/a"))

    run(main())
    assert [set(message) for message in received] == [{"jsonrpc", "id", "error"}]
