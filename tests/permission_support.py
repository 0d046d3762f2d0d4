"""What the tests of permissions share: clients whose user is scripted, and questions of both protocols."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.client_support import HandAgent, hand_agent, helpers_of
from tests.runtime_support import run

KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")


def client_of(acp: Any, *rules: Any, answers: Any = (), path: Path | None = None) -> type[Any]:
    """A client with rules, whose user gives these answers; afterwards, `None` leaves the question to the next class."""
    helpers = helpers_of(acp)
    given = iter(answers)

    class Chat(helpers.PermissionClient):  # type: ignore[name-defined, misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.permissions = helpers.PermissionRules(*rules, path=path)
            self.asked: list[Any] = []
            self.changes: list[str] = []

        def session_folder(self, session_id: str) -> str | None:
            return os.sep

        def permission_changed(self, request: Any, decision: str) -> None:
            self.changes.append(decision)
            super().permission_changed(request, decision)

        async def ask_permission(self, question: Any) -> Any:
            self.asked.append(question)
            answer = next(given, None)
            return await answer(question) if callable(answer) else answer

    return Chat


def options(*kinds: str) -> list[dict[str, str]]:
    return [{"optionId": f"id of {kind}", "name": kind, "kind": kind} for kind in kinds]


def question(acp: Any, *kinds: str, **call: Any) -> dict[str, Any]:
    """The params of a question about a tool call."""
    tool_call = {"toolCallId": "t", **call}
    about: dict[str, Any] = {"toolCall": tool_call}
    if acp.PROTOCOL_VERSION != 1:
        about = {"title": "May I?", "subject": {"type": "tool_call", "toolCall": tool_call}}
    return {**about, "options": options(*(kinds or KINDS))}


async def ask(agent: HandAgent, params: dict[str, Any]) -> Any:
    """The kind of the option that is the answer, "cancelled", or the code of an error."""
    return chosen(await agent.call("session/request_permission", **params))


def chosen(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    outcome = answer["outcome"]
    return outcome.get("optionId", outcome["outcome"]).removeprefix("id of ")


def talk(acp: Any, kind: type[Any], *questions: dict[str, Any]) -> list[Any]:
    async def main() -> list[Any]:
        async with hand_agent(acp, kind) as agent:
            return [await ask(agent, each) for each in questions]

    return run(main())


def rule(acp: Any, *args: Any, **options: Any) -> Any:
    return helpers_of(acp).PermissionRule(*args, **options)


def watching(acp: Any, kind: type[Any]) -> type[Any]:
    """A client that knows what was reported of calls."""

    class Watching(kind):  # type: ignore[misc, valid-type]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.state = helpers_of(acp).SessionState("s")

        def known_tool_call(self, session_id: str, tool_call_id: str) -> Any:
            return self.state.tool_call(tool_call_id)

        async def session_update(self, params: Any) -> None:
            self.state.update(params)

        async def session_request_permission(self, params: Any) -> Any:
            self.state.ask(params)
            return await super().session_request_permission(params)

    return Watching


async def update(agent: HandAgent, **call: Any) -> None:
    """Report a call, and wait until the client has seen it."""
    seen = asyncio.Event()
    agent.client.state.on_change = lambda _: seen.set()
    params = {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update", "toolCallId": "t", **call}}
    await agent.peer.notify("session/update", params)
    await seen.wait()


def in_session(acp: Any, kind: type[Any]) -> type[Any]:
    """A client that knows what was reported of calls from its session."""

    class Chat(helpers_of(acp).SessionClient, kind):  # type: ignore[name-defined, misc, valid-type]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.sessions["s"] = self.new_session("s", os.sep)
            self.state = self.sessions["s"].state

        def session_changed(self, session: Any, change: Any) -> None:
            if isinstance(change, helpers_of(acp).PermissionChanged):
                self.changes.append(change.decision)

    return Chat
