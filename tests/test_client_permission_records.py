"""What a permission is for: the record of what was shown, matched by rules, and remembered as it is."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import HandAgent, hand_agent, helpers_of
from tests.permission_support import (
    KINDS,
    ask,
    chosen,
    client_of,
    in_session,
    options,
    question,
    rule,
    talk,
    update,
    watching,
)
from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

LS: dict[str, Any] = {"kind": "execute", "name": "Bash", "rawInput": {"command": "ls"}}
RM: dict[str, Any] = {**LS, "rawInput": {"command": "rm -rf /"}}


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def subject(acp: Any, **said: Any) -> Any:
    return helpers_of(acp).PermissionSubject(**said)


def decide(acp: Any, rules: list[Any], **said: Any) -> str:
    return str(helpers_of(acp).PermissionRules(*rules).decide(subject(acp, **said)))


def located(*paths: object, kind: str = "edit") -> dict[str, Any]:
    return {"kind": kind, "name": "Tool", "locations": [{"path": str(path)} for path in paths]}


# --- What is shown ---------------------------------------------------------------------------------------------------


def test_lines_for_the_user(acp: Any, tmp_path: Path) -> None:
    """All that is allowed: no text of the agent acts on the terminal, or looks like a line of the client's own."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    raw = {"command": "rm", "args": ["-r", "a b\r\x1b[2K\u202e"], "env": {"PATH": "/evil"}, "cwd": str(tmp_path)}
    call = {"title": "Tidy\ncommand: ls", "kind": "execute", "name": "Bash", "rawInput": raw}
    asked = question(acp, **call, locations=[{"path": str(tmp_path / "link")}])
    if acp.PROTOCOL_VERSION != 1:
        asked["title"] = call["title"]

    async def main() -> Any:
        async with hand_agent(acp, client_of(acp, answers=["cancel"])) as agent:
            await ask(agent, asked)
            return agent.client.asked[0].lines

    assert run(main()) == [
        r"Tidy\ncommand: ls",
        "kind: execute",
        "tool: Bash",
        r"command: rm -r 'a b\r\x1b[2K\u202e'",
        f"in: {tmp_path}",
        "variable: PATH=/evil",
        f"path: {tmp_path}/link -> {tmp_path}/target",
    ]


def test_lines_are_bounded(acp: Any) -> None:
    """They say how much is left out."""
    paths = tuple(f"/{number}" for number in range(25))
    variables = tuple((f"V{number}", "x" * 10**6) for number in range(25))
    lines = subject(acp, command="c" * 600, paths=paths, env=variables).lines
    assert lines[0] == f"command: {'c' * 500} … (100 more characters)"
    assert lines[21:23] == ["… and 5 more", "path: /0"]
    assert lines[-1] == "… and 5 more"
    assert sum(map(len, lines)) < 13_000
    assert subject(acp).lines == []


# --- A call that changes while its question is open ------------------------------------------------------------------


def changed(
    acp: Any, answer: Any, said: dict[str, Any], meanwhile: Callable[[HandAgent], Any], *, place: Any = None
) -> tuple[Any, Any]:
    """The answer to a question about `ls` during which something happens, and the client."""
    agents = list[HandAgent]()

    async def answer_late(question: Any) -> Any:
        await meanwhile(agents[0])
        return answer(question) if callable(answer) else answer

    async def main() -> tuple[Any, Any]:
        kind = (place or watching)(acp, client_of(acp, answers=[answer_late, "cancel", "cancel"]))
        async with hand_agent(acp, kind) as agent:
            agents.append(agent)
            await update(agent, **LS)
            return await ask(agent, question(acp, **said)), agent.client

    return run(main())


def allow_once(question: Any) -> Any:
    return question.request.options[0]


@pytest.mark.parametrize("answer", ["allow", "allow_always", allow_once], ids=["once", "always", "option"])
@pytest.mark.parametrize("said", [{}, LS], ids=["left out", "said"])
@pytest.mark.parametrize("place", ["watching", "in_session"])
def test_an_answer_is_for_what_was_shown(acp: Any, answer: Any, said: dict[str, Any], place: str) -> None:
    with acp_log(logging.WARNING) as log:
        found, client = changed(acp, answer, said, lambda agent: update(agent, **RM), place=globals()[place])
    assert (found, client.changes) == ("cancelled", ["ask"])
    assert "they are asked again" in texts(log)
    shown, again = (each.subject for each in client.asked)
    assert (shown.command, again.command) == ("ls", "rm -rf /")
    assert [each.command for each in again.readings] == (["rm -rf /", "ls"] if said else ["rm -rf /"])
    assert (client.asked[0].earlier, client.asked[1].earlier) == (None, shown)
    assert client.permissions.decide(again) == "ask"
    assert client.permissions.decide(shown) == ("allow" if answer == "allow_always" else "ask")


@pytest.mark.parametrize(
    "change",
    [{"kind": "delete"}, {"name": "Other"}, {"locations": [{"path": "/etc/passwd"}]}, {"rawInput": {"other": 5}}],
    ids=lambda change: next(iter(change)),
)
def test_any_change_of_the_call_counts(acp: Any, change: dict[str, Any]) -> None:
    found, client = changed(acp, "allow", {}, lambda agent: update(agent, **change))
    assert (found, len(client.asked), client.changes) == ("cancelled", 2, ["ask"])
    found, client = changed(acp, "deny_always", {}, lambda agent: update(agent, **change))
    assert (found, len(client.asked), client.changes) == ("reject_once", 1, [])


@pytest.mark.parametrize(
    "change",
    [
        *(LS, {"title": "List"}, {"status": "in_progress"}, {"rawInput": {"command": "ls", "timeout": 5}}),
        *({"rawInput": {"command": "ls", "cwd": "/"}, "locations": [{"path": "/"}]}, {"locations": []}),
        *({"rawInput": {}}, {"rawInput": {"command": ""}}, {"rawInput": ""}, {"rawInput": [None, {}]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("said", [{}, LS], ids=["left out", "said"])
def test_what_is_said_again_or_in_more_detail_is_no_change(
    acp: Any, said: dict[str, Any], change: dict[str, Any]
) -> None:
    found, client = changed(acp, "allow", said, lambda agent: update(agent, **change))
    assert (found, len(client.asked), client.changes) == ("allow_once", 1, [])


def test_a_path_that_leads_elsewhere_counts(acp: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("")

    async def swap(agent: HandAgent) -> None:
        notes.unlink()
        notes.symlink_to("/etc/passwd")

    found, client = changed(acp, "allow_always", located(notes), swap)
    assert (found, len(client.asked), client.changes) == ("cancelled", 2, ["ask"])
    assert client.asked[1].lines[-1] == f"path: {notes} -> /etc/passwd"


def test_a_question_that_waits_shows_what_is_known_then(acp: Any) -> None:
    async def main() -> list[Any]:
        agents, goes_on = list[HandAgent](), asyncio.Event()

        async def wait(question: Any) -> str:
            await goes_on.wait()
            return "deny"

        async with hand_agent(acp, watching(acp, client_of(acp, answers=[wait, "allow_always"]))) as agent:
            agents.append(agent)
            await update(agent, **LS)
            numbers = [
                await agent.ask("session/request_permission", **question(acp, toolCallId=each)) for each in ("u", "t")
            ]
            await update(agent, **RM)
            goes_on.set()
            answers = [chosen(await agent.answer(each)) for each in numbers]
            return [*answers, agent.client.asked[1].subject.command]

    assert run(main()) == ["reject_once", "allow_once", "rm -rf /"]


@pytest.mark.parametrize("rules", [[], ["allow"]], ids=["the user", "a rule"])
def test_a_change_before_the_question_is_put(acp: Any, rules: list[str]) -> None:
    """It is not what the question says: both are shown, and a rule for one of them does not answer."""
    helpers = helpers_of(acp)
    kind = client_of(acp, *(rule(acp, each, command="ls") for each in rules), answers=["allow"])

    class Late(helpers.SessionClient, kind):  # type: ignore[name-defined, misc, valid-type]
        async def answer_permission(self, session: Any, request: Any) -> Any:
            while not session.state.tool_calls or session.state.tool_calls[0].reported.raw_input is None:
                await asyncio.sleep(0)
            return await super().answer_permission(session, request)

    async def main() -> tuple[Any, list[str]]:
        async with hand_agent(acp, Late) as agent:
            agent.client.sessions["s"] = agent.client.new_session("s", "/")
            first = await agent.ask("session/request_permission", **question(acp, **LS))
            params = {"sessionUpdate": "tool_call_update", "toolCallId": "t", **RM}
            await agent.peer.notify("session/update", {"sessionId": "s", "update": params})
            answer = chosen(await agent.answer(first))
            return answer, agent.client.asked[0].lines[1:]

    answer, lines = run(main())
    assert answer == "allow_once"
    assert lines == ["kind: execute", "tool: Bash", "command: rm -rf /", "in: /", "also command: ls"]


@pytest.mark.parametrize("place", [watching, in_session])
def test_a_change_while_the_question_waits(acp: Any, place: Any) -> None:
    """The question that is put then shows both."""

    async def main() -> list[Any]:
        goes_on = asyncio.Event()

        async def wait(question: Any) -> str:
            await goes_on.wait()
            return "allow"

        async with hand_agent(acp, place(acp, client_of(acp, answers=[wait, "allow"]))) as agent:
            numbers = [
                await agent.ask("session/request_permission", **question(acp, **LS, toolCallId=each)) for each in "ut"
            ]
            while not agent.client.asked:
                await asyncio.sleep(0)
            seen = asyncio.Event()
            agent.client.state.on_change = lambda _: seen.set()
            params = {"sessionUpdate": "tool_call_update", "toolCallId": "t", **RM}
            await agent.peer.notify("session/update", {"sessionId": "s", "update": params})
            await seen.wait()
            goes_on.set()
            answers = [chosen(await agent.answer(each)) for each in numbers]
            return [*answers, [each.command for each in agent.client.asked[1].subject.readings]]

    assert run(main()) == ["allow_once", "allow_once", ["rm -rf /", "ls"]]


@pytest.mark.parametrize("place", [watching, in_session])
@pytest.mark.parametrize("empty", [{}, [], "", None, [None], {"a": {"b": ""}}], ids=str)
def test_an_empty_value_hides_nothing(acp: Any, place: Any, empty: Any) -> None:
    """What was reported of a call is shown and denied, though the question about it leaves it empty."""

    async def main() -> tuple[Any, ...]:
        denying = [rule(acp, "deny", path="/etc")]
        said = question(acp, rawInput=empty, locations=[], content=[], name="", title="Look")
        async with hand_agent(acp, place(acp, client_of(acp, answers=["allow_always", "cancel"]))) as agent:
            await update(agent, **LS, locations=[{"path": "/etc/passwd"}])
            answer = await ask(agent, said)
            shown = agent.client.asked[0].lines
            other = await ask(agent, question(acp, rawInput=empty, locations=[], toolCallId="u", title="Look"))
            agent.client.permissions = helpers_of(acp).PermissionRules(*denying)
            return answer, shown[1:], other, await ask(agent, said)

    lines = ["kind: execute", "tool: Bash", "command: ls", "in: /", "path: /etc/passwd"]
    assert run(main()) == ("allow_once", lines, "cancelled", "reject_once")


@pytest.mark.parametrize("empty", [{}, {"command": ""}, {"other": [None]}, ""], ids=str)
def test_an_update_that_empties_takes_nothing_back(acp: Any, empty: Any) -> None:
    """Another command that was reported while the question is open counts, though the input is emptied then."""

    async def twice(agent: HandAgent) -> None:
        await update(agent, **RM)
        await update(agent, rawInput=empty)

    found, client = changed(acp, "allow", LS, twice, place=in_session)
    assert (found, client.changes) == ("cancelled", ["ask"])
    assert "command: rm -rf /" in client.asked[1].lines


# --- What is remembered ----------------------------------------------------------------------------------------------


def remembered(acp: Any, first: dict[str, Any], then: Callable[[], Any], *calls: dict[str, Any]) -> list[Any]:
    """The answers to calls after one that was allowed with "always"; "cancelled" if the user was asked."""

    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp, answers=["allow_always", *["cancel"] * len(calls)])) as agent:
            assert await ask(agent, first) == "allow_once"
            assert await ask(agent, first) == "allow_once"
            assert len(agent.client.asked) == 1
            then()
            return [await ask(agent, each) for each in calls]

    return run(main())


def nothing() -> None:
    """Nothing changes."""


def becomes_a_link_to_the_root(path: Path) -> None:
    path.unlink()
    path.symlink_to("/")


def becomes_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def becomes_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def goes(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [becomes_a_link_to_the_root, becomes_a_folder, becomes_a_pipe, goes])
def test_a_file_is_remembered_as_what_it_was(acp: Any, tmp_path: Path, change: Callable[[Path], None]) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("")
    calls = [question(acp, **located(each)) for each in (notes, "/etc/passwd", notes / "inner")]
    assert remembered(acp, calls[0], lambda: change(notes), *calls) == ["cancelled"] * 3


@pytest.mark.parametrize("kind", ["search", "delete", "edit", "read"])
def test_a_folder_is_remembered_without_what_is_in_it(acp: Any, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "build"
    (folder / "a").mkdir(parents=True)
    calls = [question(acp, **located(each, kind=kind)) for each in (folder, folder / "a", folder / "b", tmp_path)]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", *["cancelled"] * 3]


def test_a_link_is_remembered_as_one(acp: Any, tmp_path: Path) -> None:
    """To delete a link is not to delete what it leads to, nor another link to the same."""
    real, link, other = (tmp_path / name for name in ("real", "link", "other"))
    real.write_text("")
    for each in (link, other):
        each.symlink_to(real)
    calls = [question(acp, **located(each, kind="delete")) for each in (link, real, other)]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", "cancelled", "cancelled"]


def test_a_file_is_known_by_any_of_its_names(acp: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "a").write_text("")
    paths = [f"{tmp_path}/folder/a", f"{tmp_path}/link/a", f"{tmp_path}/folder/../folder/./a"]
    calls = [question(acp, **located(each)) for each in paths]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once"] * 3


def test_what_is_moved_is_remembered_with_its_input(acp: Any, tmp_path: Path) -> None:
    call = located(tmp_path, kind="move")
    calls = [question(acp, **call, rawInput={"to": to}) for to in ("/a", "/b")]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", "cancelled"]


def test_an_input_is_remembered_with_its_files(acp: Any, tmp_path: Path) -> None:
    call = {"kind": "execute", "rawInput": {"command": "make"}}
    places = [[tmp_path / "a"], [tmp_path / "b"], [], [tmp_path / "a", tmp_path / "b"]]
    calls = [question(acp, **call, locations=[{"path": str(each)} for each in paths]) for paths in places]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", *["cancelled"] * 3]


@pytest.mark.parametrize("folder", ["cwd", "workdir"])
def test_a_command_of_a_tool_is_remembered_with_folder_and_environment(acp: Any, tmp_path: Path, folder: str) -> None:
    (tmp_path / "evil").mkdir()
    raws: list[dict[str, Any]] = [
        {"command": "make", folder: str(tmp_path)},
        {"command": "make", folder: str(tmp_path / "evil")},
        {"command": "make", folder: str(tmp_path), "env": {"PATH": "/evil"}},
        {"command": "make", folder: str(tmp_path), "args": ["install"]},
        {"command": "make"},
    ]
    calls = [question(acp, kind="execute", name="Bash", rawInput=raw) for raw in raws]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", *["cancelled"] * 4]


def commands(*places: tuple[str, object]) -> list[dict[str, Any]]:
    subjects = [{"type": "command", "command": command, "cwd": str(cwd)} for command, cwd in places]
    return [{"title": "Run", "subject": subject, "options": options(*KINDS)} for subject in subjects]


def test_a_command_of_protocol_2_is_remembered_in_its_folder(packages: Packages, tmp_path: Path) -> None:
    evil = tmp_path / "node_modules" / "evil"
    evil.mkdir(parents=True)
    (tmp_path / "again").symlink_to(tmp_path)
    calls = commands(("make", tmp_path), ("make", evil), ("make x", tmp_path), ("make", tmp_path / "again/."))
    assert remembered(packages(V2), calls[0], nothing, *calls) == ["allow_once", *["cancelled"] * 2, "allow_once"]


@pytest.mark.parametrize("folder", [".", "project", "", "missing", "file"])
def test_a_folder_that_is_none_is_not_remembered(packages: Packages, tmp_path: Path, folder: str) -> None:
    acp = packages(V2)
    (tmp_path / "file").write_text("")
    helpers = helpers_of(acp)
    cwd = str(tmp_path / folder) if folder in {"missing", "file"} else folder
    rules = helpers.PermissionRules()
    for place in (cwd, None):
        for said in ({"command": "make"}, {"input": "a digest"}, {"command": "make", "input": "a digest"}):
            shown = helpers.PermissionSubject(kind="execute", folder=place, **said)
            with acp_log(logging.WARNING) as log:
                rules.remember_answer(shown, "allow")
            assert (rules.remembered, rules.decide(shown)) == ((), "ask")
            assert "an answer holds once, not always" in texts(log)


@pytest.mark.parametrize("call", [located("notes.txt"), located("a", "/b")], ids=["one", "two"])
def test_a_relative_path_is_not_remembered(packages: Packages, call: dict[str, Any]) -> None:
    acp = packages(V1)
    params = question(acp, **call, rawInput={"a": 1})
    assert talk(acp, client_of(acp, answers=["allow_always", "cancel"]), params, params) == ["allow_once", "cancelled"]


def test_a_command_is_remembered_in_the_folder_of_its_session(acp: Any, tmp_path: Path) -> None:
    folders = {"s": str(tmp_path), "again": str(tmp_path), "other": "/", "odd": "relative", "unknown": None}

    class Placed(client_of(acp, answers=["allow_always", *["cancel"] * 9])):  # type: ignore[misc]
        def session_folder(self, session_id: str) -> str | None:
            return folders[session_id]

    questions = [{"sessionId": each, **question(acp, **LS)} for each in folders]
    assert talk(acp, Placed, *questions) == ["allow_once", "allow_once", *["cancelled"] * 3]


def test_what_was_not_said_is_not_any(acp: Any, tmp_path: Path) -> None:
    """What is remembered of a call without a name is not for one that has a name."""
    call = {"kind": "edit", "locations": [{"path": str(tmp_path)}]}
    calls = [question(acp, **call), question(acp, **call, name="Other")]
    assert remembered(acp, calls[0], nothing, *calls) == ["allow_once", "cancelled"]


def test_what_was_denied_stays_denied_whatever_the_file_becomes(acp: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    rules = helpers_of(acp).PermissionRules(rule(acp, "allow", path=str(tmp_path)))
    rules.remember_answer(subject(acp, kind="edit", paths=(str(notes),)), "deny")
    assert rules.decide(subject(acp, kind="edit", paths=(str(notes),))) == "deny"
    notes.write_text("")
    both = (str(tmp_path / "other"), str(notes))
    assert rules.decide(subject(acp, kind="edit", tool="Edit", paths=both)) == "deny"
    assert rules.decide(subject(acp, kind="read", paths=(str(notes),))) == "allow"
    assert rules.decide(subject(acp, paths=(str(notes),))) == "ask"  # the kind was not said
    assert rules.decide(subject(acp, kind="edit", paths=(str(notes / "inner"),))) == "allow"


def test_changes_that_are_shown_are_files_of_the_call(acp: Any, tmp_path: Path) -> None:
    inside, outside = str(tmp_path / "a"), "/etc/passwd"
    diff: dict[str, Any] = {"type": "diff", "path": outside, "newText": "x"}
    if acp.PROTOCOL_VERSION == 2:
        diff = {"type": "diff", "changes": [{"operation": "modify", "path": outside}]}
    kind = client_of(acp, rule(acp, "allow", path=str(tmp_path)), answers=["cancel"] * 2)
    calls = [question(acp, **located(inside)), question(acp, **located(inside), content=[diff])]
    assert talk(acp, kind, *calls) == ["allow_once", "cancelled"]


# --- Rules -----------------------------------------------------------------------------------------------------------


def test_only_a_star_is_special_in_a_pattern(acp: Any, tmp_path: Path) -> None:
    for name in ("[id]", "i", "a?", "ab"):
        (tmp_path / name).mkdir()
    for decision in ("deny", "allow"):
        rules = [rule(acp, decision, path=f"{tmp_path}/[id]/*"), rule(acp, decision, path=f"{tmp_path}/a?/*")]
        found = [decide(acp, rules, paths=(f"{tmp_path}/{name}/x",)) for name in ("[id]", "i", "a?", "ab")]
        assert found == [decision, "ask", decision, "ask"]


def test_a_denial_ignores_case(acp: Any, tmp_path: Path) -> None:
    """On macOS and Windows, and on some file systems of Linux, such names are one file; to be allowed is exact."""
    secret, other = tmp_path / "Geheim" / "Schlüssel", tmp_path / "GEHEIM" / "schlu\u0308ssel"
    secret.parent.mkdir()
    secret.write_text("x")
    for pattern in (secret, secret.parent, f"{tmp_path}/geh*/*lüss*", "*/schlüssel"):
        for path in (secret, other):
            assert decide(acp, [rule(acp, "deny", path=str(pattern))], paths=(str(path),)) == "deny"
    assert decide(acp, [rule(acp, "allow", path=str(secret))], paths=(str(other),)) == "ask"
    assert decide(acp, [rule(acp, "deny", path=str(secret))], paths=(f"{secret}2",)) == "ask"
    denied = rule(acp, "deny", record=subject(acp, kind="edit", paths=(str(secret),)).record)
    assert decide(acp, [denied], kind="edit", paths=(str(other),)) == "deny"
    for command, expected in (("RM -r /a", "deny"), ("rm -R /a", "ask")):
        assert decide(acp, [rule(acp, "deny", command="rm -r /a")], command=command) == expected


def test_patterns_are_resolved_like_paths(acp: Any, tmp_path: Path) -> None:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr" / "bin" / "sh").symlink_to("dash")
    (tmp_path / "usr" / "bin" / "dash").write_text("")
    paths = [f"{tmp_path}/{name}" for name in ("bin/sh", "usr/bin/sh", "usr/bin/dash", "bin/../bin/new")]
    for pattern in ("bin/*", "usr/bin/*", "bin/../bin/*", "bin"):
        for decision in ("deny", "ask", "allow"):
            rules = [rule(acp, decision, path=f"{tmp_path}/{pattern}")]
            assert [decide(acp, rules, paths=(path,)) for path in paths] == [decision] * 4, pattern
    assert decide(acp, [rule(acp, "deny", path=f"{tmp_path}/bin/s*")], paths=(f"{tmp_path}/bin/sh",)) == "deny"
    assert decide(acp, [rule(acp, "deny", path="*/sh")], paths=(f"{tmp_path}/bin/sh",)) == "deny"


def test_an_allowed_folder_is_the_one_that_it_was(acp: Any, tmp_path: Path) -> None:
    """A rule of the user does not grow either if its folder becomes a link; one that denies follows it."""
    folder, other = tmp_path / "docs", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    allow, deny = rule(acp, "allow", path=str(folder)), rule(acp, "deny", path=f"{folder}/*")
    folder.rmdir()
    folder.symlink_to(other)
    for path in (folder / "a", other / "a"):
        assert decide(acp, [allow], paths=(str(path),)) == "ask"
        assert decide(acp, [deny], paths=(str(path),)) == "deny"


def test_a_link_out_of_an_allowed_folder_and_one_into_it_are_for_the_user(acp: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to("/etc")
    (tmp_path / "in").symlink_to(root / "a")
    allow = [rule(acp, "allow", path=str(root))]
    assert [decide(acp, allow, paths=(str(path),)) for path in (root / "out", tmp_path / "in")] == ["ask", "ask"]


def test_a_rule_for_a_command_is_for_it_alone(acp: Any) -> None:
    allow, deny = [rule(acp, "allow", command="git status")], [rule(acp, "deny", command="rm")]
    env = (("PATH", "/evil"),)
    assert decide(acp, allow, command="git status") == "allow"
    assert decide(acp, allow, command="git", args=("status",)) == "allow"
    assert decide(acp, allow, command="git status", args=("--short",)) == "ask"
    assert decide(acp, allow, command="git status", env=env) == "ask"
    assert decide(acp, deny, command="rm", args=("-rf", "/"), env=env) == "deny"
    assert decide(acp, [*deny, rule(acp, "allow")]) == "ask"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"command": "ls", "env": {"B": "2", "A": 1}}, ("ls", (), (("A", "1"), ("B", "2")))),
        ({"command": "ls", "env": [{"name": "A", "value": "1"}]}, ("ls", (), (("A", "1"),))),
        ({"command": ["bash", "-lc", "ls"], "args": ["x"]}, ("bash", ("-lc", "ls", "x"), ())),
        ({"command": "ls", "args": "-l", "env": "A=1"}, ("ls", ("-l",), (("env", '"A=1"'),))),
        ({"command": "ls", "args": [1, None], "env": [5]}, ("ls", ("1", "null"), (("env", "[5]"),))),
        ({"command": "ls", "env": ["PATH=/evil"]}, ("ls", (), (("env", '["PATH=/evil"]'),))),
        ({"command": 5}, (None, (), ())),
        ("ls", (None, (), ())),
        (5, (None, (), ())),
    ],
    ids=str,
)
def test_the_input_of_a_tool(acp: Any, raw: Any, expected: Any) -> None:
    async def main() -> Any:
        async with hand_agent(acp, client_of(acp, answers=["cancel"])) as agent:
            await ask(agent, question(acp, rawInput=raw))
            return agent.client.asked[0].subject

    shown = run(main())
    assert (shown.command, shown.args, shown.env) == expected
    assert shown.input is not None


def test_a_kind_that_was_not_said_may_be_any(acp: Any) -> None:
    """In a `SessionState`, too: it is not "other"."""

    async def main() -> list[Any]:
        rules = [rule(acp, "deny", kind="execute"), rule(acp, "allow", tool="Bash"), rule(acp, "allow", kind="other")]
        async with hand_agent(acp, watching(acp, client_of(acp, *rules, answers=["cancel"] * 3))) as agent:
            await update(agent, name="Bash", title="x")
            assert agent.client.state.tool_call("t").kind is None
            unsaid = await ask(agent, question(acp))
            await update(agent, kind="other")
            other = await ask(agent, question(acp))
            await update(agent, kind="execute")
            return [unsaid, other, await ask(agent, question(acp))]

    assert run(main()) == ["cancelled", "allow_once", "reject_once"]


# --- Random rules and subjects, beside what the documentation says ----------------------------------------------------


def oracle(rules: list[dict[str, Any]], said: dict[str, Any]) -> str:
    """The decision by the words of docs/requests.md, slowly."""

    def in_path(wanted: str, path: str) -> bool:
        if "*" not in wanted:
            return path == wanted or path.startswith(wanted + "/")
        return in_pattern(wanted, path)

    def in_pattern(wanted: str, path: str) -> bool:
        if not wanted:
            return not path
        if wanted[0] == "*":
            return any(in_pattern(wanted[1:], path[place:]) for place in range(len(path) + 1))
        return bool(path) and path[0] == wanted[0] and in_pattern(wanted[1:], path[1:])

    def forms(path: str) -> set[str]:
        """The name without links in its folders, and where it leads."""
        parent, name = os.path.split(path)
        return {f"{os.path.realpath(parent)}/{name}".replace("//", "/"), os.path.realpath(path)}

    def resolved(wanted: str) -> str:
        head, star, rest = wanted.partition("*")
        if not star or not head:
            return wanted if star else os.path.realpath(wanted)
        parent, name = os.path.split(head)
        return f"{os.path.realpath(parent)}/{name}".replace("//", "/") + star + rest

    def applies(each: dict[str, Any]) -> bool | None:
        found: list[bool | None] = [
            None if said[name] is None else said[name] == each[name] for name in ("kind", "tool") if name in each
        ]
        if "command" in each:
            whole = None if said.get("command") is None else shlex.join([said["command"], *said["args"]])
            if whole is None:
                found.append(None)
            elif each["decision"] == "allow":
                found.append(whole == each["command"] and not said["env"])
            else:
                found.append(each["command"] in {whole, said["command"]})
        if "path" in each:
            answers = []
            for path in said["paths"]:
                if not path.startswith("/"):
                    answers.append(None)
                elif each["decision"] == "allow":
                    answers.append(all(in_path(resolved(each["path"]), form) for form in forms(path)))
                else:
                    wanted = {each["path"], resolved(each["path"])}
                    answers.append(any(in_path(one, form) for one in wanted for form in {path, *forms(path)}))
            decisive = each["decision"] != "allow"
            found.append(decisive if decisive in answers else None if None in answers or not answers else not decisive)
        return False if False in found else None if None in found else True

    answers = [(each["decision"], applies(each)) for each in rules]
    for strict in ("deny", "ask"):
        if (strict, True) in answers:
            return strict
    if any(decision != "allow" and answer is None for decision, answer in answers):
        return "ask"
    return "allow" if ("allow", True) in answers else "ask"


def test_random_rules_and_subjects_are_decided_as_the_documentation_says(packages: Packages, tmp_path: Path) -> None:
    acp = packages(V1)
    world = Path(os.path.realpath(tmp_path))
    (world / "a" / "[b]").mkdir(parents=True)
    (world / "a" / "b").mkdir()
    (world / "l").symlink_to("a")
    (world / "a" / "f").write_text("")
    (world / "a" / "m").symlink_to("f")
    (world / "a" / "o").symlink_to("/")
    rolls = random.Random(5)

    def some(*values: Any) -> Any:
        return rolls.choice((None, *values))

    names = ("a", "l", "[b]", "b", "f", "m", "o", "new", "etc")
    for _ in range(1500):
        made = []
        for _ in range(rolls.randint(1, 4)):
            tail = "/".join(rolls.choices((*names, "*", "*f", "[*", "a*"), k=rolls.randint(0, 3)))
            path = some(f"{world}/{tail}".rstrip("/"), f"*/{tail}")
            each = {
                "decision": rolls.choice(("allow", "allow", "ask", "deny")),
                "kind": some("read", "edit"),
                "tool": some("T"),
                "path": path,
                "command": some("ls", "ls -l"),
            }
            made.append({name: value for name, value in each.items() if value is not None})
        paths = [
            "/".join((str(world), *rolls.choices(names, k=rolls.randint(0, 3)))) for _ in range(rolls.randint(0, 2))
        ]
        said = {
            "kind": some("read", "edit"),
            "tool": some("T", "U"),
            "paths": (*paths, *rolls.choices(("relative", "/etc"), k=rolls.randint(0, 1))),
            "command": some("ls"),
            "args": rolls.choice(((), ("-l",))),
            "env": rolls.choice(((), (("A", "1"),))),
        }
        found = decide(acp, [rule(acp, **each) for each in made], **said)
        assert found == oracle(made, said), (made, said)
