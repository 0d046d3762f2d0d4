"""Builders: every one takes `meta`, and those of content take all properties of their blocks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from tests.runtime_support import EVERY_BASE, V1, V2
from tests.support import Packages
from tests.turns_support import helpers_of

META = {"example.org/x": [1]}
WITHOUT = {
    "after_response",
    "after_turn",
    "check_cwd",
    "check_store",
    "choose",
    "mcp_capabilities",
    "mcp_kinds",
    "mcp_parameters",
    "offer_terminal_login",
    "permission_answer",
    "permission_options",
    "terminal_environment",
    "terminal_subject",
    "read_entry",
    "session_not_found",
    "tool_content",
}
"""Functions that build no message, or several values."""
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "agent_message": lambda build: build("s", "x"),
    "agent_thought": lambda build: build("s", "x"),
    "user_message": lambda build: build("s", "x"),
    "whole_agent_message": lambda build: build("s", ["x"]),
    "whole_agent_thought": lambda build: build("s", ["x"]),
    "whole_user_message": lambda build: build("s", ["x"]),
    "plan": lambda build: build("s", ["x"]),
    "plan_entry": lambda build: build("x"),
    "commands": lambda build: build("s", []),
    "command": lambda build: build("x", "y"),
    "mode": lambda build: build("s", "x"),
    "config_options": lambda build: build("s", []),
    "title": lambda build: build("s", "x"),
    "usage": lambda build: build("s", used=1, size=2),
    "running": lambda build: build("s"),
    "requires_action": lambda build: build("s"),
    "idle": lambda build: build("s", "end_turn"),
    "diff": lambda build: build("/a", "x", "y"),
    "text": lambda build: build("x"),
    "image": lambda build: build(b"x", "image/png"),
    "audio": lambda build: build(b"x", "audio/wav"),
    "link": lambda build: build("file:///a"),
    "resource": lambda build: build("file:///a", "x"),
    "terminal": lambda build: build("t"),
    "permission_cancelled": lambda build: build(),
    "select_permission_option": lambda build: build("x"),
}
ELSEWHERE = {"ask_form", "ask_permission", "ask_url", "edit_call", "select_permission", "session_update", "tool_call"}
"""What other tests call; here, they have the argument."""


@EVERY_BASE
def test_every_builder_takes_meta(sources: Any, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)
    functions = {name for name in helpers.__all__ if inspect.isfunction(getattr(helpers, name))}
    for name in sorted(functions - WITHOUT):
        function = getattr(helpers, name)
        assert "meta" in inspect.signature(function).parameters, name
        if name in ELSEWHERE:
            continue
        needed = {"message_id": "m"} if sources is V2 and name.endswith(("message", "thought")) else {}
        raw = acp.encode(BUILDERS[name](lambda *a, f=function, n=needed, **b: f(*a, **b, **n, meta=META)))
        assert raw.get("update", raw)["_meta"] == META, name


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_blocks_have_all_their_properties(sources: Any, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)
    for name in ("text", "image", "audio", "link", "resource"):
        block = BUILDERS[name](getattr(helpers, name))
        known = {each.name for each in fields(block)} - {"type", "resource"}
        taken = set(inspect.signature(getattr(helpers, name)).parameters)
        assert known <= taken | ({"text"} if name == "text" else set()), name


def test_properties_of_a_link(packages: Packages) -> None:
    acp = packages(V2)
    helpers = helpers_of(acp)
    hints = acp.Annotations(audience=["user"], priority=0.5)
    raw = acp.encode(
        helpers.link("file:///a/b", title="B", description="what it is", size=3, icons=[], annotations=hints)
    )
    assert raw == {
        "type": "resource_link",
        "uri": "file:///a/b",
        "name": "b",
        "title": "B",
        "description": "what it is",
        "size": 3,
        "icons": [],
        "annotations": {"audience": ["user"], "priority": 0.5},
    }
    with pytest.raises(TypeError, match="icons"):
        helpers_of(packages(V1)).link("file:///a", icons=[])


def test_the_meta_of_the_params_is_another_one(packages: Packages) -> None:
    acp = packages(V1)
    helpers = helpers_of(acp)
    message = helpers.agent_message("s", "x", meta={"update": 1})
    raw = acp.encode(helpers.session_update("s", message.update, meta={"params": 1}))
    assert (raw["_meta"], raw["update"]["_meta"]) == ({"params": 1}, {"update": 1})
