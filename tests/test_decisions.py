"""Answers that decide something: without `await` they are neither yes nor no, and nothing is sent."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.mistakes_support import ECHO, run_agent
from tests.runtime_support import V1, V2, run
from tests.support import Packages
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
