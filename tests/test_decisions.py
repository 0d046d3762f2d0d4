"""Answers that decide something: without `await` they are neither yes nor no, and nothing is sent."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.client_support import hand_agent, helpers_of
from tests.mistakes_support import ECHO, run_agent
from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages
from tests.test_client_permissions import question, talk
from tests.test_helpers_tool_calls import watch

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
NEW = {"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}

CALL = 'async with tool_call(self.client, "s", "Edit") as call:'
QUESTION = 'ToolCallUpdate(tool_call_id="c", title="Edit")'
REQUEST = 'RequestPermissionRequest(session_id="s", tool_call=ToolCallUpdate(tool_call_id="c"), options=[])'

UNAWAITED = {
    "permission": (f"{CALL}\n    if call.permission(): edit()", "RunningToolCall.permission"),
    "not permission": (f"{CALL}\n    if not call.permission(): return None\n    edit()", "RunningToolCall.permission"),
    "permission or": (f"{CALL}\n    (call.permission() and edit())", "RunningToolCall.permission"),
    "any permission": (f"{CALL}\n    any([call.permission()]) and edit()", "RunningToolCall.permission"),
    "ask_permission": (f'if ask_permission(self.client, "s", {QUESTION}): edit()', "ask_permission"),
    "its stub": (f"if self.client.session_request_permission({REQUEST}): edit()", "session_request_permission"),
    "an attribute": (f"{CALL}\n    if call.permission().allowed: edit()", "RunningToolCall.permission"),
    "the outcome": (f"if self.client.session_request_permission({REQUEST}).outcome: edit()", "request_permission"),
    "an answer": (f'{CALL}\n    if call.permission() != "rejected": edit()', "RunningToolCall.permission"),
    "one of several": (f"{CALL}\n    if call.permission() not in (None, False): edit()", "RunningToolCall.permission"),
    "a form": ("if self.client.elicitation_create(None): edit()", "RemoteClient.elicitation_create"),
}


@pytest.mark.parametrize(("body", "name"), UNAWAITED.values(), ids=UNAWAITED.keys())
def test_without_await_nothing_is_allowed(packages: Packages, body: str, name: str) -> None:
    handler = "async def session_new(self, params):\n" + textwrap.indent(body, "    ")
    code = f"{ECHO}{textwrap.indent(handler, '    ')}\ndef edit(): raise SystemError('it was edited')\n"
    outcome = run_agent(packages(V1), code, NEW)
    (error,) = (line for line in outcome.shown.splitlines() if line.startswith(("TypeError", "AttributeError")))
    assert name in error
    assert "was not awaited" in error
    assert "user_code.py" in outcome.shown
    assert "it was edited" not in outcome.shown
    assert "session/request_permission" not in [each.get("method") for each in outcome.sent]


def test_without_await_there_is_the_warning_of_python(packages: Packages) -> None:
    handler = f"async def session_new(self, params):\n    {CALL}\n        call.permission()"
    outcome = run_agent(packages(V1), f"{ECHO}{textwrap.indent(handler, '    ')}", NEW)
    assert "coroutine 'RunningToolCall.permission' was never awaited" in outcome.shown


AWAITED: dict[str, Callable[[Any], Any]] = {
    "await": lambda asked: asked,
    "create_task": asyncio.create_task,
    "ensure_future": asyncio.ensure_future,
    "gather": asyncio.gather,
    "wait_for": lambda asked: asyncio.wait_for(asked, 60),
    "shield": asyncio.shield,
}


@BOTH
@pytest.mark.parametrize("way", AWAITED.values(), ids=AWAITED.keys())
def test_it_is_awaited_as_any_coroutine(packages: Packages, sources: SchemaChoice, way: Callable[[Any], Any]) -> None:
    answers = []

    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start(status="pending") as call:
            answers.append(await way(call.permission()))

    for kind in ("allow_once", "reject_once"):
        seen = watch(packages(sources), work, kinds=(kind,))
        assert seen.error is None
    allowed, refused = (each[0] if isinstance(each, list) else each for each in answers)
    assert allowed
    assert not refused


def test_a_decision_is_no_more_than_a_coroutine(packages: Packages) -> None:
    decides = packages(V1).decides

    @decides
    async def ask() -> bool:
        return True

    asked = ask()
    assert asyncio.iscoroutine(asked)
    assert inspect.isawaitable(asked)
    assert not hasattr(asked, "_private")
    assert "ask" in repr(asked)
    copy.copy(asked)
    with pytest.raises(AttributeError, match=r"ask, called by .* was not awaited, and has no 'allowed' yet"):
        _ = asked.allowed
    asked.close()
    if sys.version_info >= (3, 12):
        assert inspect.iscoroutinefunction(ask)


def test_a_task_shows_where_it_waits(packages: Packages) -> None:
    """As of a coroutine: its name, and its frame."""
    decides = packages(V1).decides

    @decides
    async def ask() -> bool:
        await asyncio.sleep(60)
        return True

    async def main() -> None:
        task = asyncio.create_task(ask())
        await asyncio.sleep(0)
        assert "ask" in repr(task)
        assert [frame.f_code.co_name for frame in task.get_stack()] == ["ask"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


# --- The client -------------------------------------------------------------------------------------------------------


async def yes() -> str:
    return "allow"


NO_ANSWERS: dict[str, Callable[[], Any]] = {
    "True": lambda: True,
    "False": lambda: False,
    "yes": lambda: "yes",
    "Allow": lambda: "Allow",
    "a list": lambda: ["allow"],
    "an object": object,
    "not awaited": yes,
}


@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
def test_what_is_no_answer_of_the_user_is_an_error(packages: Packages, sources: SchemaChoice, answer: Any) -> None:
    acp = packages(sources)

    class Chat(helpers_of(acp).PermissionClient):  # type: ignore[misc]
        async def ask_permission(self, question: Any) -> Any:
            return answer()

    with acp_log(logging.ERROR) as records:
        assert talk(acp, Chat, question(acp)) == [-32603]
    assert "Chat.ask_permission returned " in texts(records)
    assert "expected one of 'allow', 'allow_always', 'deny'" in texts(records)


@BOTH
def test_an_answer_that_is_not_async_is_an_error(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    class Chat(helpers_of(acp).PermissionClient):  # type: ignore[misc]
        def ask_permission(self, question: Any) -> Any:
            return "allow"

    with acp_log(logging.ERROR) as records:
        assert talk(acp, Chat, question(acp)) == [-32603]
    assert "Chat.ask_permission is no coroutine function" in texts(records)
    assert "write `async def ask_permission(self, question: PermissionQuestion)" in texts(records)


@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rules_that_have_to_be_awaited_decide_nothing(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    class Rules(helpers_of(acp).PermissionRules):  # type: ignore[misc]
        async def decide(self, subject: Any) -> str:
            return "allow"

    class Chat(helpers_of(acp).PermissionClient):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.permissions = Rules()

    with acp_log(logging.ERROR) as records:
        assert talk(acp, Chat, question(acp)) == [-32603]
    assert "Rules.decide returned coroutine; expected one of 'allow', 'ask', 'deny': is an `await` missing?" in texts(
        records
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("answer", [yes, lambda: None, lambda: "saved"], ids=["not awaited", "None", "a text"])
def test_an_editor_says_whether_it_has_saved(packages: Packages, tmp_path: Path, answer: Callable[[], Any]) -> None:
    """What is no answer is not taken as one: the text would be nowhere."""
    acp = packages(V1)
    helpers = helpers_of(acp)

    class Editor(helpers.FileClient):  # type: ignore[misc, name-defined]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.files = helpers.Files(tmp_path)

        async def save_text(self, path: str, text: str) -> Any:
            return answer()

    async def main() -> Any:
        async with hand_agent(acp, Editor) as agent:
            return await agent.call("fs/write_text_file", path=str(tmp_path / "a.txt"), content="new")

    with acp_log(logging.ERROR) as records:
        assert run(main()) == -32603
    assert "Editor.save_text returned " in texts(records)
    assert not (tmp_path / "a.txt").exists()
