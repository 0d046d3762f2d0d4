"""Permissions that an agent keeps with the session: what is remembered is the record of what was shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import agent_of, client_of, pair, run
from tests.support import Packages
from tests.turns_support import PROTOCOLS, helpers_of

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


class Asked:
    """An agent that asks for calls, and a user who answers with the first option of a kind."""

    def __init__(self, acp: Any, entries: list[Any], *, folder: str | None, answer: str = "allow_always") -> None:
        self.acp = acp
        self.entries = entries
        self.folder = folder
        self.answer = answer
        self.questions: list[list[str]] = []
        self.meanwhile: Any = None
        self.ends: list[str] = []

    def ask(self, *calls: dict[str, Any]) -> list[bool]:
        """The answers for calls, one after the other."""
        return run(self._ask(calls))

    async def _ask(self, calls: tuple[dict[str, Any], ...]) -> list[bool]:
        helpers = helpers_of(self.acp)
        memory = helpers.PermissionMemory(self.entries, folder=self.folder)
        case, found = self, list[bool]()

        async def session_request_permission(self: Any, params: Any) -> Any:
            case.questions.append([each.kind for each in params.options])
            if case.meanwhile is not None:
                await case.meanwhile(case)
            return helpers.select_permission(params, case.answer)

        async def session_update(self: Any, params: Any) -> None:
            if getattr(params.update, "status", None) in {"completed", "failed"}:
                case.ends.append(params.update.status)

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            return None

        client = client_of(
            self.acp,
            session_request_permission=session_request_permission,
            session_update=session_update,
            ext_method=ext_method,
        )
        async with pair(self.acp, agent_of(self.acp), client) as both:
            for each in calls:
                given = {"title": "Run", "status": "pending", **each}
                async with helpers.tool_call(both.client, "s", given.pop("title"), **given) as self.call:
                    found.append(bool(await self.call.permission(memory=memory)))
            await both.client.ext_method("_seen", None)
        return found


def command(text: str, **given: Any) -> dict[str, Any]:
    return {"kind": "execute", "raw_input": {"command": text, **given}}


def test_always_is_asked_once_and_survives_json(acp: Any, tmp_path: Path) -> None:
    entries: list[Any] = []
    case = Asked(acp, entries, folder=str(tmp_path))
    assert case.ask(command("make"), command("make")) == [True, True]
    assert case.questions == [["allow_once", "allow_always", "reject_once"]]
    assert case.ends == ["completed", "completed"]
    again = Asked(acp, json.loads(json.dumps(entries)), folder=str(tmp_path), answer="reject_once")
    assert again.ask(command("make")) == [True]
    assert again.questions == []


@pytest.mark.parametrize(
    "other",
    [
        command("make all"),
        command("make", env={"PATH": "/tmp"}),
        command("make", cwd="/"),
        {**command("make"), "name": "other"},
        {**command("make"), "kind": "fetch"},
        {**command("make"), "locations": ["/etc"]},
    ],
    ids=["command", "environment", "folder", "tool", "kind", "files"],
)
def test_what_differs_is_asked_again(acp: Any, tmp_path: Path, other: dict[str, Any]) -> None:
    entries: list[Any] = []
    assert Asked(acp, entries, folder=str(tmp_path)).ask(command("make")) == [True]
    again = Asked(acp, entries, folder=str(tmp_path), answer="reject_once")
    assert again.ask(other) == [False]
    assert len(again.questions) == 1
    assert again.ends == ["failed"]


def test_a_command_is_asked_again_whatever_kind_of_tool_it_is(acp: Any, tmp_path: Path) -> None:
    entries: list[Any] = []
    file = {"kind": "read", "locations": [str(tmp_path)]}
    assert Asked(acp, entries, folder=str(tmp_path)).ask({**command("cat"), **file}) == [True]
    again = Asked(acp, entries, folder=str(tmp_path), answer="reject_once")
    assert again.ask({**command("cat; rm"), **file}) == [False]


def test_the_folder_of_another_session_is_asked_again(acp: Any, tmp_path: Path) -> None:
    entries: list[Any] = []
    assert Asked(acp, entries, folder=str(tmp_path)).ask(command("make")) == [True]
    again = Asked(acp, entries, folder="/", answer="reject_once")
    assert again.ask(command("make")) == [False]


def test_a_file_is_remembered_as_what_it_was(acp: Any, tmp_path: Path) -> None:
    file, entries = tmp_path / "notes", list[Any]()
    file.write_text("x")
    edit = {"kind": "edit", "locations": [str(file)]}
    assert Asked(acp, entries, folder=str(tmp_path)).ask(edit, {**edit, "raw_input": {"new": "z"}}) == [True, True]
    assert len(entries) == 1
    file.unlink()
    file.symlink_to("/etc/passwd")
    again = Asked(acp, entries, folder=str(tmp_path), answer="reject_once")
    assert again.ask(edit) == [False]


def test_once_is_not_remembered(acp: Any, tmp_path: Path) -> None:
    case = Asked(acp, [], folder=str(tmp_path), answer="allow_once")
    assert case.ask(command("make"), command("make")) == [True, True]
    assert len(case.questions) == 2
    assert case.entries == []


def test_a_refusal_for_good_wins(acp: Any, tmp_path: Path) -> None:
    case = Asked(acp, [], folder=str(tmp_path))
    case.ask(command("make"))
    refusal = {**case.entries[0], "answer": "reject_always"}
    again = Asked(acp, [*case.entries, refusal], folder=str(tmp_path))
    assert again.ask(command("make")) == [False]
    assert again.questions == []
    assert again.ends == ["failed"]


def test_always_is_not_offered_where_nothing_is_known(acp: Any) -> None:
    case = Asked(acp, [], folder=None, answer="allow_once")
    assert case.ask({"title": "Something"}) == [True]
    assert case.questions == [["allow_once", "reject_once"]]


def test_a_call_that_changes_meanwhile_is_asked_about_again(acp: Any, tmp_path: Path) -> None:
    case = Asked(acp, [], folder=str(tmp_path))

    async def meanwhile(case: Asked) -> None:
        if len(case.questions) == 1:
            await case.call.update(raw_input={"command": "rm -rf /"})
        else:
            case.answer = "reject_once"

    case.meanwhile = meanwhile
    assert case.ask(command("make")) == [False]
    assert (case.entries, len(case.questions)) == ([], 2)


def test_a_path_that_leads_elsewhere_meanwhile_is_asked_about_again(acp: Any, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("x")
    case = Asked(acp, [], folder=str(tmp_path))

    async def meanwhile(case: Asked) -> None:
        if len(case.questions) == 1:
            file.unlink()
            file.symlink_to("/etc/passwd")
        else:
            case.answer = "reject_once"

    case.meanwhile = meanwhile
    assert case.ask({"kind": "edit", "locations": [str(file)]}) == [False]
    assert (case.entries, len(case.questions)) == ([], 2)


def test_other_entries_answer_for_nothing(acp: Any, tmp_path: Path) -> None:
    entries = [None, 1, "allow_always", {"answer": "allow_always"}, {"answer": "allow_always", "record": {}}]
    case = Asked(acp, list(entries), folder=str(tmp_path), answer="reject_once")
    assert case.ask(command("make")) == [False]
    assert len(case.questions) == 1


def test_entries_are_bounded(acp: Any, tmp_path: Path) -> None:
    case = Asked(acp, [{} for _ in range(1000)], folder=str(tmp_path))
    assert case.ask(command("make")) == [True]
    assert len(case.entries) == 1000
    long = Asked(acp, [], folder=str(tmp_path))
    assert long.ask({"kind": "search", "name": "n" * 20_000, "raw_input": {"command": "x"}}) == [True]
    assert long.entries == []
