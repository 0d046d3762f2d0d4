"""`fork_session`: a session that begins with the conversation of another, with the extension that has the method."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import replace
from typing import Any

import pytest

from acpgen.roles import RoleChoice
from tests.client_sessions import HELLO, stage
from tests.runtime_support import V1, V2, run
from tests.support import Packages

ABLE: dict[int, dict[str, Any]] = {
    1: {"agentCapabilities": {"sessionCapabilities": {"fork": {}, "additionalDirectories": {}}}},
    2: {**HELLO[2], "capabilities": {"session": {"fork": {}, "additionalDirectories": {}}}},
}


@pytest.mark.parametrize(("version", "base"), [(1, V1), (2, V2)])
def test_a_session_is_forked(version: int, base: Any, packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates before its answer are kept; the other session goes on, and each has its own state."""
    acp = packages(replace(base, extensions=("session-fork",)), roles=RoleChoice.BOTH.roles)
    monkeypatch.setitem(HELLO, version, ABLE[version])

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            forking = asyncio.ensure_future(play.helpers.fork_session(play.client, session, directories=["/more"]))
            request = await play.agent.receive("session/fork")
            expected = {"sessionId": "s", "cwd": "/work", "mcpServers": [], "additionalDirectories": ["/more"]}
            assert request["params"] == expected
            await play.agent.say("early", "fork")
            await play.agent.answer(request, {"sessionId": "fork"})
            forked = await forking
            await play.agent.say(" and late", "fork")
            await play.agent.say("mine")
            await play.barrier()
            assert [[entry.text for entry in each.state.entries] for each in (forked, session)] == [
                ["early and late"],
                ["mine"],
            ]
            assert (forked.cwd, {*play.client.sessions}) == ("/work", {"s", "fork"})

    run(main())


@pytest.mark.parametrize("base", [V1, V2])
def test_a_package_without_the_method_has_no_such_helper(base: Any, packages: Packages) -> None:
    helpers = importlib.import_module(f"{packages(base).__name__}.helpers")
    assert not hasattr(helpers, "fork_session")


def test_an_agent_that_cannot_fork(packages: Packages) -> None:
    acp = packages(replace(V1, extensions=("session-fork",)), roles=RoleChoice.BOTH.roles)

    async def main() -> None:
        async with stage(acp, 1) as play:
            session = await play.opened()
            with pytest.raises(acp.CapabilityError):
                await play.helpers.fork_session(play.client, session)

    run(main())
