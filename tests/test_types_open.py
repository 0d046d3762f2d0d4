"""Type checkers on what users of open packages write: what a role only sends is closed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.roles import Role, RoleChoice
from tests.support import package_folder
from tests.test_types import run_mypy, run_pyright_on_users

EDITOR = """
from editor import (
    RequestPermissionOutcome,
    RequestPermissionOutcomeCancelled,
    RequestPermissionRequest,
    SessionUpdateToolCall,
    ToolKind,
)
from editor.helpers import select_permission
from editor.known import StopReason as Sent


def answer(params: RequestPermissionRequest) -> None:
    select_permission(params, "allow_once", "allow_always")
    select_permission(params, "alow_once")  # wrong: no such kind
    for option in params.options:
        print(option.kind == "allow_later")  # received, so it may be any


def read(outcome: RequestPermissionOutcome, kind: ToolKind) -> str:
    if isinstance(outcome, RequestPermissionOutcomeCancelled):
        return SessionUpdateToolCall(tool_call_id="1", title="t", kind="later").title + kind
    return outcome.option_id  # there is no other kind of outcome


reason: Sent = "end_turn"
reason = "done!"  # wrong: not in the schema
"""

BOTH = """
from two import PromptRequest, PromptResponse, RequestPermissionRequest
from two.helpers import TurnAgent, permission_options, plan_entry, select_permission, tool_call
from two.known import StopReason


class Talker(TurnAgent):
    async def work(self, params: PromptRequest) -> StopReason:
        async with tool_call(self.client, "s", "Read", kind="read", status="pending") as call:
            await call.update(status="completed")
            await call.update(status="complete")  # wrong: no such status
        async with tool_call(self.client, "s", "Edit", kind="edti"):  # wrong: no such kind
            pass
        if params.prompt:
            return "done!"  # wrong: no such reason
        return "refusal"


plan_entry("a", status="completed", priority="high")
plan_entry("a", status="complete")  # wrong: no such status
plan_entry("a", priority="hihg")  # wrong: no such priority
permission_options("allow_once")
permission_options("alow_once")  # wrong: no such kind


def chosen(params: RequestPermissionRequest) -> None:
    select_permission(params, "reject_once")
    select_permission(params, "alow_once")  # wrong: no such kind


PromptResponse(stop_reason="done!")  # one class for both directions: a package for agents refuses it
"""
USERS = {"editor_user.py": EDITOR, "two_user.py": BOTH}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an open package for clients, one for both roles, and what users write against them."""
    home = tmp_path_factory.mktemp("open")
    for name, roles in (("editor", (Role.CLIENT,)), ("two", RoleChoice.BOTH.roles)):
        folder = package_folder(SchemaChoice(), roles=roles, options=Options.for_roles(roles, open=True))
        shutil.copytree(folder, home / name, ignore=shutil.ignore_patterns("__pycache__"))  # others write there
    for name, code in USERS.items():
        (home / name).write_text(code, encoding="utf-8")
    return home


@pytest.mark.parametrize("check", [run_mypy, pytest.param(run_pyright_on_users, marks=pytest.mark.deep)])
def test_type_errors_in_what_is_sent_are_found(
    check: Callable[[Path], Mapping[tuple[str, int], str]], home: Path
) -> None:
    wrong = {
        (name, number)
        for name, code in USERS.items()
        for number, line in enumerate(code.splitlines(), 1)
        if "# wrong" in line
    }
    assert check(home).keys() == wrong
