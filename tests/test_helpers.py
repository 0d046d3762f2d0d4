"""Builders of messages and of answers, in packages of all bundled bases: their JSON, and the verdict of a validator."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.needs import need
from tests.runtime_support import BASES, EVERY_BASE, OLD, V2
from tests.support import REPOSITORY, Packages

Case = tuple[str, str, Any]
"""An expression with helpers, the definition that its result belongs to, and the expected JSON."""


def text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def option(kind: str, name: str) -> dict[str, str]:
    return {"optionId": kind, "name": name, "kind": kind}


# --- Builders --------------------------------------------------------------------------------------------------------

BLOCKS: list[Case] = [
    ("text('hi')", "ContentBlock", text("hi")),
    ("image(b'\\0\\1', 'image/png')", "ContentBlock", {"type": "image", "data": "AAE=", "mimeType": "image/png"}),
    ("image('AAE=', 'image/png')", "ContentBlock", {"type": "image", "data": "AAE=", "mimeType": "image/png"}),
    ("audio(b'\\0\\1', 'audio/wav')", "ContentBlock", {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"}),
    (
        "link('file:///a/notes.txt')",
        "ContentBlock",
        {"type": "resource_link", "uri": "file:///a/notes.txt", "name": "notes.txt"},
    ),
    (
        "link('https://a.example/', name='A', mime_type='text/html')",
        "ContentBlock",
        {"type": "resource_link", "uri": "https://a.example/", "name": "A", "mimeType": "text/html"},
    ),
    ("link('urn:a')", "ContentBlock", {"type": "resource_link", "uri": "urn:a", "name": "urn:a"}),
    (
        "resource('file:///a', 'hi', mime_type='text/plain')",
        "ContentBlock",
        {"type": "resource", "resource": {"uri": "file:///a", "text": "hi", "mimeType": "text/plain"}},
    ),
    (
        "resource('file:///a', b'\\0\\1')",
        "ContentBlock",
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAE="}},
    ),
    ("tool_content('hi')", "ToolCallContent", content("hi")),
    ("tool_content(text('hi'))", "ToolCallContent", content("hi")),
    ("tool_content(terminal('t'))", "ToolCallContent", {"type": "terminal", "terminalId": "t"}),
]
PERMISSIONS: list[Case] = [
    ("permission_options()[0]", "PermissionOption", option("allow_once", "Allow")),
    ("permission_options()[1]", "PermissionOption", option("reject_once", "Reject")),
    ("permission_options('allow_always')[0]", "PermissionOption", option("allow_always", "Always allow")),
    ("permission_options('reject_always')[0]", "PermissionOption", option("reject_always", "Always reject")),
    (
        "select_permission_option('o')",
        "RequestPermissionResponse",
        {"outcome": {"outcome": "selected", "optionId": "o"}},
    ),
    ("permission_cancelled()", "RequestPermissionResponse", {"outcome": {"outcome": "cancelled"}}),
]
ENTRY = {"content": "Test", "priority": "medium", "status": "pending"}
URGENT = {"content": "Fix", "priority": "high", "status": "in_progress"}
PLAN = "plan('s', ['Test', plan_entry('Fix', priority='high', status='in_progress')])"
COMMANDS = "commands('s', [command('test', 'Run the tests'), command('ask', 'Ask', hint='what')])"


def updates(**kinds: tuple[str, Mapping[str, Any]]) -> list[Case]:
    """Cases of updates: the kind, the expression and the expected fields."""
    definition = "UpdateSessionNotification" if "plan_update" in kinds else "SessionNotification"
    return [
        (expression, definition, {"sessionId": "s", "update": {"sessionUpdate": kind.split("__")[0], **update}})
        for kind, (expression, update) in kinds.items()
    ]


UPDATES_V1 = updates(
    agent_message_chunk=("agent_message('s', 'hi')", {"content": text("hi")}),
    agent_message_chunk__block=("agent_message('s', text('hi'))", {"content": text("hi")}),
    agent_thought_chunk=("agent_thought('s', 'hm')", {"content": text("hm")}),
    user_message_chunk=("user_message('s', 'hi')", {"content": text("hi")}),
    plan=(PLAN, {"entries": [ENTRY, URGENT]}),
    available_commands_update=(
        COMMANDS,
        {
            "availableCommands": [
                {"name": "test", "description": "Run the tests"},
                {"name": "ask", "description": "Ask", "input": {"hint": "what"}},
            ]
        },
    ),
    current_mode_update=("mode('s', 'code')", {"currentModeId": "code"}),
    config_option_update=("config_options('s', [])", {"configOptions": []}),
    current_mode_update__any=(
        "session_update('s', SessionUpdateCurrentModeUpdate(current_mode_id='ask'))",
        {"currentModeId": "ask"},
    ),
)
USAGE = updates(
    session_info_update=("title('s', 'Fix')", {"title": "Fix"}),
    session_info_update__none=("title('s', None)", {"title": None}),
    usage_update=("usage('s', used=5, size=9)", {"used": 5, "size": 9}),
    usage_update__cost=(
        "usage('s', used=5, size=9, cost=0.5)",
        {"used": 5, "size": 9, "cost": {"amount": 0.5, "currency": "USD"}},
    ),
)
IDS_V1 = updates(
    agent_message_chunk=("agent_message('s', 'hi', message_id='m')", {"content": text("hi"), "messageId": "m"}),
    agent_thought_chunk=("agent_thought('s', 'hm', message_id='m')", {"content": text("hm"), "messageId": "m"}),
    user_message_chunk=("user_message('s', 'hi', message_id='m')", {"content": text("hi"), "messageId": "m"}),
)
UPDATES_V2 = updates(
    agent_message_chunk=("agent_message('s', 'hi', message_id='m')", {"content": text("hi"), "messageId": "m"}),
    agent_thought_chunk=("agent_thought('s', 'hm', message_id='m')", {"content": text("hm"), "messageId": "m"}),
    user_message_chunk=("user_message('s', text('hi'), message_id='m')", {"content": text("hi"), "messageId": "m"}),
    agent_message=(
        "whole_agent_message('s', ['hi', text('you')], message_id='m')",
        {"content": [text("hi"), text("you")], "messageId": "m"},
    ),
    agent_thought=("whole_agent_thought('s', 'hm', message_id='m')", {"content": [text("hm")], "messageId": "m"}),
    user_message=("whole_user_message('s', [], message_id='m')", {"content": [], "messageId": "m"}),
    plan_update=(PLAN, {"plan": {"type": "items", "planId": "plan", "entries": [ENTRY, URGENT]}}),
    plan_update__id=("plan('s', [], plan_id='p')", {"plan": {"type": "items", "planId": "p", "entries": []}}),
    available_commands_update=(
        COMMANDS,
        {
            "availableCommands": [
                {"type": "command", "name": "test", "description": "Run the tests"},
                {"type": "command", "name": "ask", "description": "Ask", "input": {"type": "text", "hint": "what"}},
            ]
        },
    ),
    config_option_update=("config_options('s', [])", {"configOptions": []}),
    notice=(
        "session_update('s', SessionUpdateNotice(severity='info', title='Hi'))",
        {"severity": "info", "title": "Hi"},
    ),
    state_update__running=("running('s')", {"state": "running"}),
    state_update__action=("requires_action('s')", {"state": "requires_action"}),
    state_update__idle=("idle('s')", {"state": "idle"}),
    state_update__end=("idle('s', 'end_turn')", {"state": "idle", "stopReason": "end_turn"}),
    state_update__tokens=("idle('s', 'max_tokens')", {"state": "idle", "stopReason": "max_tokens"}),
    state_update__turns=("idle('s', 'max_turn_requests')", {"state": "idle", "stopReason": "max_turn_requests"}),
    state_update__refusal=("idle('s', 'refusal')", {"state": "idle", "stopReason": "refusal"}),
    state_update__cancelled=("idle('s', 'cancelled')", {"state": "idle", "stopReason": "cancelled"}),
    state_update__error=("idle('s', 'error')", {"state": "idle", "stopReason": "error"}),
    state_update__vendor=("idle('s', '_acme')", {"state": "idle", "stopReason": "_acme"}),
    state_update__empty=("idle('s', '')", {"state": "idle", "stopReason": ""}),
)
DIFFS_V1: list[Case] = [
    ("diff('/a', 'x', 'y')", "ToolCallContent", {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"}),
    ("diff('/a', None, 'y')", "ToolCallContent", {"type": "diff", "path": "/a", "newText": "y"}),
    ("diff('/a', 'x', None)", "ToolCallContent", {"type": "diff", "path": "/a", "oldText": "x", "newText": ""}),
]


def as_v2(cases: list[Case]) -> list[Case]:
    return [(expression, "UpdateSessionNotification", expected) for expression, _, expected in cases]


CASES = {
    "v1": BLOCKS + PERMISSIONS + UPDATES_V1 + USAGE + IDS_V1 + DIFFS_V1,
    "v2": BLOCKS + PERMISSIONS + UPDATES_V2 + as_v2(USAGE),
    "old v1": BLOCKS + PERMISSIONS + UPDATES_V1 + DIFFS_V1,
}
EVERY_CASE = pytest.mark.parametrize(
    ("sources", "case"),
    [pytest.param(BASES[name], case, id=f"{name}-{case[0]}") for name, cases in CASES.items() for case in cases],
)


def names_of(*modules: ModuleType) -> dict[str, Any]:
    """The public names of modules; some are imported when they are used."""
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def helpers_of(acp: ModuleType) -> Any:
    """The helpers of a package, which the package does not import itself."""
    return importlib.import_module(f"{acp.__name__}.helpers")


@pytest.mark.every_python
@EVERY_CASE
def test_a_builder_makes_this_message(sources: SchemaChoice, case: Case, packages: Packages) -> None:
    acp = packages(sources)
    expression, definition, expected = case
    value = eval(expression, names_of(acp, helpers_of(acp)))
    assert acp.encode(value) == expected
    assert acp.decode(getattr(acp, definition), expected) == value


@cache
def validator_of(sources: SchemaChoice) -> Any:
    schemas = importlib.import_module("tests.fidelity.schemas")  # skips where the validator is not installed
    path = REPOSITORY / "schema" / f"v{sources.protocol}" / str(sources.release) / "schema.json"
    return schemas.Schema(json.loads(path.read_text(encoding="utf-8")))


@EVERY_CASE
def test_an_independent_validator_accepts_it(sources: SchemaChoice, case: Case) -> None:
    _, definition, expected = case
    assert validator_of(sources).is_valid(definition, expected)


@pytest.mark.parametrize("name", CASES)
def test_every_builder_has_a_case(name: str, packages: Packages) -> None:
    acp = packages(BASES[name])
    modules = ("content", "permissions", "plan_entries", "session_info", "session_usage", "states", "updates")
    public = {each for module in modules for each in exported(acp, module)}
    called = {node.id for case in CASES[name] for node in ast.walk(ast.parse(case[0])) if isinstance(node, ast.Name)}
    assert public - called == {"PermissionAnswer", "permission_answer", "select_permission"}  # tested below


def exported(acp: ModuleType, module: str) -> list[str]:
    """The public names of a module of the helpers; none where it is left out."""
    try:
        names: list[str] = importlib.import_module(f"{acp.__name__}.helpers.{module}").__all__
    except ModuleNotFoundError:
        return []
    return names


@pytest.mark.every_python
def test_a_release_without_ids_of_messages_refuses_them(packages: Packages) -> None:
    with pytest.raises(TypeError, match="message_id"):
        helpers_of(packages(OLD)).agent_message("s", "hi", message_id="m")


# --- Permissions -----------------------------------------------------------------------------------------------------


@pytest.mark.every_python
@EVERY_BASE
@pytest.mark.parametrize(
    ("chosen", "is_allowed"),
    [
        ("allow_once", True),
        ("allow_always", True),
        ("reject_once", False),
        ("reject_always", False),
        ("other", False),
        (None, False),
    ],
)
def test_what_an_answer_allows(sources: SchemaChoice, chosen: str | None, is_allowed: bool, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)
    options = helpers.permission_options("allow_once", "allow_always", "reject_once", "reject_always")
    response = helpers.permission_cancelled() if chosen is None else helpers.select_permission_option(chosen)
    answer = helpers.permission_answer(options, response)
    assert (bool(answer), answer.allowed, answer.cancelled) == (is_allowed, is_allowed, chosen is None)
    assert answer.option in (None, *options)
    assert (None if answer.option is None else answer.option.kind) == (None if chosen in (None, "other") else chosen)


@pytest.mark.every_python
def test_an_unknown_outcome_allows_nothing(packages: Packages) -> None:
    acp = packages(V2)
    helpers = helpers_of(acp)
    response = acp.decode(acp.RequestPermissionResponse, {"outcome": {"outcome": "_later", "optionId": "allow_once"}})
    assert helpers.permission_answer(helpers.permission_options(), response) == helpers.PermissionAnswer()


@pytest.mark.every_python
@EVERY_BASE
def test_a_client_chooses_by_kind(sources: SchemaChoice, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)
    options = [
        acp.PermissionOption(option_id="1", name="Never", kind="reject_always"),
        acp.PermissionOption(option_id="2", name="No", kind="reject_once"),
        acp.PermissionOption(option_id="3", name="Not now", kind="reject_once"),
    ]
    question = {"title": "May I?"} if sources is V2 else {"tool_call": acp.ToolCallUpdate(tool_call_id="c")}
    params = acp.RequestPermissionRequest(session_id="s", options=options, **question)
    assert helpers.select_permission(params, "reject_once") == helpers.select_permission_option("2")
    assert helpers.select_permission(params, "allow_once", "reject_always") == helpers.select_permission_option("1")
    assert helpers.select_permission(params, "allow_once", "allow_always") == helpers.permission_cancelled()


# --- Diffs of protocol 2 ---------------------------------------------------------------------------------------------

NUMBERS = "".join(f"{number}\n" for number in range(40))
MANY = "".join(f"{number}\n" for number in range(2000))
EVERY_OTHER = "".join(f"x\n{{0}}{number}\n" for number in range(2000))
CHANGES = {
    "modify": ("a\nb\n", "a\nc\n"),
    "modify far apart": (NUMBERS, NUMBERS.replace("3\n", "x\n").replace("30\n", "")),
    "modify the first line": (NUMBERS, "x\n" + NUMBERS),
    "modify without a newline at the end": ("a\nb", "a\nb\n"),
    "modify so that no newline is at the end": ("a\nb\n", "b\nc"),
    "modify to nothing": ("a\n", ""),
    "modify unusual ends of lines": ("a\r\nb\x0cc\u2028d\n", "a\nb\x0cc\u2028e\r\n"),
    "modify at both ends": (MANY, "x\n" + MANY + "y\n"),
    "modify more than is compared": (MANY, "x\n" + MANY.replace("1\n", "one\n") + "y\n"),
    "modify lines that repeat": ("a\n" + "x\n" * 5000, "x\n" * 150 + "b\n"),
    "modify between lines that repeat": (EVERY_OTHER.format("a"), EVERY_OTHER.format("b")),
    "add": (None, "a\nb\n"),
    "delete": ("a\nb\n", None),
}


@pytest.mark.parametrize("path", ["/notes.txt", "/my notes.txt", '/"my"\tnotes.txt', "/nötes.txt"])
@pytest.mark.parametrize("name", CHANGES)
def test_git_applies_the_patch(name: str, path: str, packages: Packages, tmp_path: Path) -> None:
    need("git")
    old, new = CHANGES[name]
    acp = packages(V2)
    raw = acp.encode(helpers_of(acp).diff(path, old, new))
    assert validator_of(V2).is_valid("ToolCallContent", raw)
    assert raw["changes"] == [{"operation": name.partition(" ")[0], "path": path, "fileType": "text"}]
    file = tmp_path / path[1:]
    if old is not None:
        file.write_bytes(old.encode())
    command = ["git", "apply", "-p1", "-"]
    subprocess.run(command, cwd=tmp_path, input=raw["patch"]["text"].encode(), check=True)
    assert (file.read_bytes().decode() if file.exists() else None) == new


@pytest.mark.every_python
def test_what_stays_as_it_is_has_no_patch(packages: Packages) -> None:
    acp = packages(V2)
    raw = acp.encode(helpers_of(acp).diff("/a", "a\n", "a\n"))
    assert raw == {"type": "diff", "changes": [{"operation": "modify", "path": "/a", "fileType": "text"}]}


@pytest.mark.every_python
def test_a_patch_looks_like_one_of_git(packages: Packages) -> None:
    patch = helpers_of(packages(V2)).diff("/a b", NUMBERS, NUMBERS.replace("20\n", "twenty\n")).patch.text
    assert patch == (
        "diff --git /a b /a b\n--- /a b\t\n+++ /a b\t\n@@ -18,7 +18,7 @@\n"
        " 17\n 18\n 19\n-20\n+twenty\n 21\n 22\n 23\n"
    )


@pytest.mark.every_python
@pytest.mark.parametrize("count", [1_100, 20_000])
def test_small_changes_of_a_long_file_make_a_small_patch(count: int, packages: Packages) -> None:
    lines = "".join(f"line {number}\n" for number in range(count))
    patch = helpers_of(packages(V2)).diff("/a", lines, f"top\n{lines}end\n").patch.text
    assert patch == (
        "diff --git /a /a\n--- /a\n+++ /a\n@@ -1,3 +1,4 @@\n+top\n line 0\n line 1\n line 2\n"
        f"@@ -{count - 2},3 +{count - 1},4 @@\n line {count - 3}\n line {count - 2}\n line {count - 1}\n+end\n"
    )


@pytest.mark.every_python
@pytest.mark.parametrize("name", ["lines that repeat", "scattered changes"])
def test_what_takes_too_long_to_compare_is_replaced(name: str, packages: Packages) -> None:
    """Without a limit, the first of these takes minutes."""
    if name == "lines that repeat":
        old, new = "a\n" + "x\n" * 5_000, "".join("x\n" * (n % 3 + 1) + f"u{n}\n" for n in range(66))
    else:
        old = "".join(f"same {number}\na {number}\n" for number in range(10_000))
        new = old.replace("a ", "b ")
    patch = helpers_of(packages(V2)).diff("/a", old, new).patch.text
    assert patch.count("@@ -") == 1
    assert patch.count("\n-") >= old.count("\n") - 1


@pytest.mark.every_python
def test_an_empty_file_is_added_and_deleted(packages: Packages) -> None:
    diff = helpers_of(packages(V2)).diff
    assert diff("/a", None, "").patch.text == "diff --git /a /a\nnew file mode 100644\n"
    assert diff("/a", "", None).patch.text == "diff --git /a /a\ndeleted file mode 100644\n"
