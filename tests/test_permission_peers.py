"""Permissions with peers as they are: messages in their orders, questions that are a choice, answers of no use."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import os
import threading
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import hand_agent, helpers_of
from tests.permission_support import ask, chosen, client_of, in_session, options, question, rule, talk, watching
from tests.runtime_support import V1, V2, acp_log, raw_peer, run, texts
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


# --- opencode --------------------------------------------------------------------------------------------------------

ORDERS = ["before", "together", "while it is open"]
"""When the last update comes: before the question, right behind it, or when the user has it in front of them."""


def opencode(folder: str, command: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What opencode 1.18 reports of a command, asks, and reports then."""
    shell = {"kind": "execute", "title": "bash"}
    return (
        {**shell, "status": "pending", "locations": [], "rawInput": {"cwd": folder}},
        {**shell, "title": command, "status": "pending", "locations": [], "rawInput": {"command": command}},
        {
            **shell,
            "status": "in_progress",
            "locations": [{"path": folder}],
            "rawInput": {"command": command, "cwd": folder, "description": "Runs it", "timeout": 5000},
        },
    )


def edit(folder: str, _: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The same of an edit: the question has the file in its input alone, under another name than the update."""
    file = f"{folder}/notes.txt"
    return (
        {"kind": "edit", "title": "edit", "status": "pending", "locations": [], "rawInput": {}},
        {
            "kind": "edit",
            "title": file,
            "status": "pending",
            "locations": [],
            "rawInput": {"filepath": file, "diff": "x"},
        },
        {
            "kind": "edit",
            "title": "edit",
            "status": "in_progress",
            "locations": [{"path": file}],
            "rawInput": {"filePath": file, "oldString": "a", "newString": "b"},
        },
    )


CASES = [
    *itertools.product([opencode, edit], [watching, in_session], ORDERS, ["allow", "allow_always", "deny", "rule"])
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(getattr(each, "__name__", each) for each in case))
def test_what_the_user_has_allowed_runs(acp: Any, tmp_path: Path, case: tuple[Any, ...]) -> None:
    """Each command is allowed or refused as the user or a rule says, asked about once, and called by all its names."""
    call, place, order, said = case
    agents = list[Any]()
    folder = str(tmp_path)

    async def report(call_id: str, **call: Any) -> None:
        params = {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **call}}
        await agents[0].peer.notify("session/update", params)

    last = list[Any]()

    async def answer(question: Any) -> str:
        if order == "while it is open":
            await report(*last[-1][:1], **last[-1][1])
            while agents[0].client.state.tool_calls[-1].status != "in_progress":
                await asyncio.sleep(0)
        return said

    async def main() -> tuple[list[Any], Any]:
        rules = [rule(acp, "allow", kind=each) for each in ("execute", "edit")] if said == "rule" else []
        kind = place(acp, client_of(acp, *rules, answers=[answer] * 5))
        async with hand_agent(acp, kind) as agent:
            agents.append(agent)
            found = []
            for number in range(3):
                call_id = f"call {number}"
                first, asked, then = call(folder, f"echo {number}")
                await report(call_id, **first)
                last.append((call_id, then))
                if order == "before":
                    await report(call_id, **then)
                one = await agent.ask("session/request_permission", **question(acp, toolCallId=call_id, **asked))
                if order == "together":
                    await report(call_id, **then)
                found.append(chosen(await agent.answer(one)))
            return found, agent.client

    found, client = run(main())
    assert found == 3 * ["reject_once" if said == "deny" else "allow_once"]
    asked_once = 0 if said == "rule" else 1 if (said, call) == ("allow_always", edit) else 3
    assert len(client.asked) in {asked_once, 3 if said == "allow_always" else asked_once}
    assert client.changes == []
    for number, each in enumerate(client.asked):
        line = f"command: echo {number}" if call is opencode else f"path: {folder}/notes.txt"
        assert line in each.lines
        assert f"in: {folder}" in each.lines or call is edit


def test_a_rule_that_denies_wins_over_a_user_who_could_not_see_what_it_is_for(acp: Any, tmp_path: Path) -> None:
    """The kind is a detail of a command, and a rule may be for it; the program hears that the user is overruled."""
    agents = list[Any]()

    async def answer(_: Any) -> str:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "delete"}
        await agents[0].peer.notify("session/update", {"sessionId": "s", "update": update})
        while agents[0].client.state.tool_calls[-1].kind != "delete":
            await asyncio.sleep(0)
        return "allow"

    async def main() -> Any:
        async with hand_agent(
            acp, in_session(acp, client_of(acp, rule(acp, "deny", kind="delete"), answers=[answer]))
        ) as agent:
            agents.append(agent)
            answer_ = await ask(agent, question(acp, rawInput={"command": "rm x"}))
            return answer_, agent.client.changes, len(agent.client.asked)

    with acp_log(logging.WARNING) as log:
        assert run(main()) == ("reject_once", ["deny"], 1)
    assert "a rule refuses it" in texts(log)


def test_the_title_is_that_of_the_call_if_the_question_has_none(acp: Any) -> None:
    async def main() -> list[str]:
        async with hand_agent(acp, in_session(acp, client_of(acp, answers=["cancel"] * 3))) as agent:
            for title in ("Delete notes", None):
                if title is not None:
                    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": title}
                    await agent.peer.notify("session/update", {"sessionId": "s", "update": update})
                said = question(acp, toolCallId="t" if title else "u")
                await ask(agent, said if acp.PROTOCOL_VERSION == 1 else {**said, "title": ""})
            own = question(acp, title="Own") if acp.PROTOCOL_VERSION == 1 else {**question(acp), "title": "Own"}
            await ask(agent, own)
            return [each.title for each in agent.client.asked]

    assert run(main()) == ["Delete notes", "Permission", "Own"]


def test_questions_are_put_in_their_order(acp: Any, tmp_path: Path) -> None:
    """Though one takes longer to look at, and whatever is asked first is answered first."""
    many = [{"path": str(tmp_path / str(number))} for number in range(200)]

    async def main() -> list[str]:
        async with hand_agent(acp, client_of(acp, answers=["deny"] * 8)) as agent:
            numbers = []
            for number in range(8):
                locations = many if number % 2 == 0 else many[:1]
                said = question(acp, toolCallId=str(number), kind="execute", locations=locations, name=str(number))
                numbers.append(await agent.ask("session/request_permission", **said))
            assert [chosen(await agent.answer(each)) for each in numbers] == ["reject_once"] * 8
            return [each.subject.tool for each in agent.client.asked]

    assert run(main()) == [str(number) for number in range(8)]


def test_what_is_emptied_while_the_question_is_open_is_not_taken_back(acp: Any) -> None:
    """Also where a program keeps its tool calls itself."""
    call = helpers_of(acp).ToolCall
    calls = {"t": call(id="t", kind="edit", locations=[acp.ToolCallLocation(path="/etc/passwd")], raw_input={"a": 1})}

    class Own(client_of(acp, rule(acp, "deny", path="/etc"))):  # type: ignore[misc]
        def known_tool_call(self, session_id: str, tool_call_id: str) -> Any:
            return calls[tool_call_id]

        async def ask_permission(self, question: Any) -> Any:
            self.asked.append(question)
            calls["t"] = call(id="t", kind="edit")
            self.permissions = helpers_of(acp).PermissionRules(rule(acp, "deny", path="/etc"))
            return "allow"

    async def main() -> Any:
        async with hand_agent(acp, Own) as agent:
            agent.client.permissions = helpers_of(acp).PermissionRules()
            return await ask(agent, question(acp, locations=[], rawInput={})), agent.client.changes

    assert run(main()) == ("reject_once", ["deny"])


# --- What tells an operation from others -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [{}, [], "", None, {"timeout": 30}, {"cwd": "/"}, {"cwd": "/", "timeout": 1, "description": "List files"}],
    ids=str,
)
def test_what_tells_nothing_is_not_remembered(acp: Any, raw: Any) -> None:
    """By the client's rules: "always" counts once, and the log has the reason, without a text of the agent."""
    said = [question(acp, kind="execute", name="Bash", rawInput=raw, title="Secret title")] * 2
    kind = client_of(acp, answers=["allow_always", "cancel"])
    with acp_log(logging.WARNING) as log:
        assert talk(acp, kind, *said) == ["allow_once", "cancelled"]
    reason = "no command, path or input tells the operation from others"
    assert texts(log).startswith(f"WARNING acp an answer holds once, not always: {reason}")
    assert "\n" not in texts(log)
    assert "Secret" not in texts(log)


# --- Choices ---------------------------------------------------------------------------------------------------------

CHOICES = [
    ("allow_once", "allow_once", "allow_once"),
    ("allow_once", "reject_once", "allow_once"),
    ("allow_once", "allow_always", "allow_always", "reject_once"),
    ("allow_once", "reject_once", "reject_once"),
]


@pytest.mark.parametrize("offered", CHOICES, ids=" ".join)
@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_no_rule_answers_a_choice(acp: Any, offered: tuple[str, ...], decision: str) -> None:
    params = {
        **question(acp, kind="execute", rawInput={"command": "ls"}),
        "options": [{**each, "optionId": str(place)} for place, each in enumerate(options(*offered))],
    }
    seen = list[Any]()

    async def second(question: Any) -> Any:
        seen.append((question.is_choice, question.can("allow")))
        return question.request.options[1]

    kind = client_of(acp, rule(acp, decision), answers=[second, "allow", "allow_always"])
    with acp_log(logging.WARNING) as log:
        assert talk(acp, kind, params)[0] == "1"
        refused = talk(acp, client_of(acp, answers=["allow", "allow_always"]), params, params)
    assert seen == [(True, False)]
    no = next((str(place) for place, each in enumerate(offered) if each.startswith("reject")), "cancelled")
    assert refused == [no, no]
    assert texts(log).count("the agent does not offer to allow it once") == 2


def test_an_allow_that_is_not_offered_is_told(acp: Any) -> None:
    async def main() -> Any:
        async with hand_agent(acp, client_of(acp, answers=["allow"])) as agent:
            return await ask(agent, question(acp, "allow_always", "reject_once")), agent.client.changes

    with acp_log(logging.WARNING) as log:
        assert run(main()) == ("reject_once", ["deny"])
    assert "does not offer to allow it once" in texts(log)


# --- Mistakes of the program -----------------------------------------------------------------------------------------


def test_a_kind_that_is_unknown_is_logged(acp: Any) -> None:
    with acp_log(logging.WARNING) as log:
        for kind in ("edit", "_own", None):
            rule(acp, "deny", kind=kind)
        assert texts(log) == ""
        rule(acp, "deny", kind="write")
    assert "permission_support.py, is for tools of the kind" in texts(log)
    assert "'write', which is none of delete, edit, execute," in texts(log)


def test_the_order_of_the_bases(acp: Any) -> None:
    helpers = helpers_of(acp)
    type("Right", (helpers.SessionClient, helpers.PermissionClient), {})
    for bases in ((helpers.PermissionClient, helpers.SessionClient), (client_of(acp), helpers.SessionClient)):
        with pytest.raises(TypeError, match=rf"class Wrong\(SessionClient, {bases[0].__name__}\)"):
            type("Wrong", bases, {})

    class Mine(helpers.SessionClient):  # type: ignore[name-defined, misc]
        async def answer_permission(self, session: Any, request: Any) -> Any:
            return await super().answer_permission(session, request)

    type("Right", (Mine, helpers.PermissionClient), {})
    with pytest.raises(TypeError, match=r"Mine must come before PermissionClient .*: class Wrong\(Mine, PermissionC"):
        type("Wrong", (helpers.PermissionClient, Mine), {})


# --- Files of earlier versions ---------------------------------------------------------------------------------------


def test_records_of_an_earlier_version(acp: Any, tmp_path: Path) -> None:
    """Those that allow are dropped, which the log says; those that deny hold, and so do rules that name conditions."""
    at = {"name": "/", "target": "/", "sort": "folder"}
    record = {"kind": "execute", "files": [], "folder": at, "command": "make"}
    file = {"kind": "read", "files": [{"name": "/etc/passwd", "target": "/etc/passwd", "sort": "file"}]}
    path = tmp_path / "permissions.json"
    rules = [
        {"version": 2, "decision": "allow", "record": record},
        {"version": 2, "decision": "allow", "record": file},
        {"version": 2, "decision": "deny", "record": {**record, "command": "rm"}},
        {"version": 2, "decision": "allow", "tool": "Safe"},
        {"decision": "allow", "kind": "read"},
    ]
    path.write_text(json.dumps(rules))
    calls = [
        question(acp, kind="execute", rawInput={"command": "make"}),
        question(acp, kind="read", locations=[{"path": "/etc/passwd"}]),
        question(acp, kind="execute", rawInput={"command": "rm"}),
        question(acp, kind="other", name="Safe"),
    ]
    with acp_log(logging.WARNING) as log:
        kind = client_of(acp, answers=["cancel"] * 2, path=path)
        assert talk(acp, kind, *calls) == ["cancelled", "cancelled", "reject_once", "allow_once"]
    assert "of an earlier version, which are too wide: they are dropped, and the user is asked again" in texts(log)


# --- The work that a question makes ----------------------------------------------------------------------------------


def test_long_and_many_paths_are_not_looked_at(acp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count as unknown: for the user, and never remembered."""
    looked = list[int]()
    real = os.path.realpath

    def realpath(path: Any, **options: Any) -> Any:
        looked.append(len(os.fspath(path)))
        return real(path, **options)

    monkeypatch.setattr(os.path, "realpath", realpath)
    many = [{"path": f"/{number}"} for number in range(20_000)]
    long = [{"path": "/x" * 40_000}]
    wide = [{"path": "/" + "y" * 4000 + str(number)} for number in range(200)]
    for paths in (many, long, wide):
        looked.clear()
        kind = client_of(
            acp, rule(acp, "allow", path="/"), rule(acp, "deny", path="/none"), answers=["allow_always"] * 2
        )
        params = question(acp, kind="edit", locations=paths, rawInput={"a": 1})
        with acp_log(logging.ERROR):
            assert talk(acp, kind, params, params) == ["allow_once", "allow_once"]
        assert len(looked) < 4_000
        assert max(looked) <= 4096


def test_paths_are_looked_at_in_a_thread(acp: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    threads = set[str]()
    real = os.lstat

    def lstat(path: Any, **options: Any) -> Any:
        if str(path).startswith(str(tmp_path)):
            threads.add(threading.current_thread().name)
        return real(path, **options)

    monkeypatch.setattr(os, "lstat", lstat)
    params = question(acp, kind="edit", locations=[{"path": str(tmp_path / "file")}])
    assert talk(acp, client_of(acp, answers=["allow"]), params) == ["allow_once"]
    assert threads
    assert threading.main_thread().name not in threads


@pytest.mark.parametrize("mark", ["\u0301", "\u1e69\u0323"], ids=ascii)
def test_a_long_program_is_not_folded(acp: Any, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding many marks takes time that grows with the square: a text that is longer than the rule's is another."""
    folded = list[int]()
    real = unicodedata.normalize

    def normalize(form: Any, text: str) -> str:
        folded.append(len(text))
        return real(form, text)

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    params = question(acp, kind="execute", rawInput={"command": f"{mark * 100_000} x"})
    assert talk(acp, client_of(acp, rule(acp, "deny", command="rém x"), answers=["cancel"]), params) == ["cancelled"]
    assert max(folded) < 1000
    short = question(acp, kind="execute", rawInput={"command": "RE\u0301M x"})
    assert talk(acp, client_of(acp, rule(acp, "deny", command="rém x")), short) == ["reject_once"]


# --- The agent's side ------------------------------------------------------------------------------------------------

UNUSABLE: dict[str, Any] = {
    "no id": {"outcome": {"outcome": "selected"}},
    "null id": {"outcome": {"outcome": "selected", "optionId": None}},
    "another word": {"outcome": {"outcome": "canceled"}},
    "a text": {"outcome": "cancelled"},
    "no outcome": {},
    "null": None,
    "not offered": {"outcome": {"outcome": "selected", "optionId": "made up"}},
}
"""Answers that clients of today give, or could."""


async def turn(acp: Any, answers: list[Any], *calls: dict[str, Any], memory: Any = None, kinds: Any = ()) -> Any:
    """What an agent gets for its questions about calls, the options that it has offered, and the end of its turn."""
    helpers = helpers_of(acp)
    got, offered = list[Any](), list[Any]()

    class Asking(acp.Agent):  # type: ignore[misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            for each in calls:
                async with helpers.tool_call(self.client, "s", **{"title": "Run", "status": "pending", **each}) as call:
                    answer = await call.permission(helpers.permission_options(*kinds) if kinds else None, memory=memory)
                    got.append((answer.allowed, answer.cancelled))
            return {"is": "done"}

    async with raw_peer(acp, Asking) as peer:
        await peer.request("turn", "_turn", {})
        left = [*answers]
        while (message := await peer.receive())["method" if "id" not in message else "id"] != "turn":
            if message.get("method") == "session/request_permission":
                offered.append([each["kind"] for each in message["params"]["options"]])
                await peer.answer(message["id"], result=left.pop(0))
        return got, offered, message["result"]


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_answer_that_cannot_be_used_allows_nothing(acp: Any, answer: Any) -> None:
    """The turn goes on, and the log has a line, without a text of the client."""
    with acp_log(logging.WARNING) as log:
        got, _, end = run(turn(acp, [answer], {"kind": "execute", "raw_input": {"command": "make"}}))
    assert (got, end) == ([(False, False)], {"is": "done"})
    assert texts(log).startswith("WARNING acp an answer to a permission request allows nothing: it")
    assert "\n" not in texts(log)
    assert "made up" not in texts(log)


def picked(kind: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": kind}}


@pytest.mark.parametrize("raw", [{}, [], "", {"timeout": 30}, {"cwd": "/"}], ids=str)
def test_an_agent_remembers_nothing_of_what_tells_nothing(acp: Any, raw: Any) -> None:
    """It does not even offer it, so that another call with another title is asked about."""
    entries: list[Any] = []
    memory = helpers_of(acp).PermissionMemory(entries, folder="/")
    calls = [{"title": title, "kind": "execute", "raw_input": raw} for title in ("Look", "Delete all")]
    got, offered, _ = run(turn(acp, [picked("allow_once"), picked("reject_once")], *calls, memory=memory))
    assert (got, offered) == ([(True, False), (False, False)], [["allow_once", "reject_once"]] * 2)
    assert entries == []


def test_an_agent_remembers_title_and_input(acp: Any) -> None:
    memory = helpers_of(acp).PermissionMemory([], folder="/")
    read = {"title": "cat", "kind": "read", "locations": ["/etc/passwd"], "raw_input": {"cmd": "cat"}}
    others = [read, {**read, "title": "Other"}, {**read, "raw_input": {"cmd": "rm"}}]
    got, offered, _ = run(
        turn(acp, [picked("allow_always"), *[picked("reject_once")] * 2], read, *others, memory=memory)
    )
    assert ([allowed for allowed, _ in got], len(offered)) == ([True, True, False, False], 3)


def test_an_agent_asks_each_time_where_the_options_are_a_choice(acp: Any) -> None:
    memory = helpers_of(acp).PermissionMemory(entries := [], folder="/")
    call = {"kind": "execute", "raw_input": {"command": "make"}}
    kinds = ("allow_always", "allow_always", "reject_once")
    got, offered, _ = run(turn(acp, [picked("allow_always")] * 2, call, call, memory=memory, kinds=kinds))
    assert (got, offered, entries) == ([(True, False)] * 2, [[*kinds]] * 2, [])


def test_entries_of_an_earlier_version(acp: Any) -> None:
    """Those that allow are asked about again, which the log says; those that refuse hold."""
    at = {"name": "/", "target": "/", "sort": "folder"}
    passwd = {"name": "/etc/passwd", "target": "/etc/passwd", "sort": "file"}
    digests = [_digest({"command": each}) for each in ("make", "rm")]
    record = {"kind": "execute", "folder": at}
    entries = [
        {"answer": "allow_always", "record": {**record, "input": digests[0]}},
        {"answer": "reject_always", "record": {**record, "input": digests[1]}},
        {"answer": "allow_always", "record": {"kind": "edit", "files": [passwd]}},
        {"answer": "reject_always", "record": {"kind": "read", "files": [passwd]}},
    ]
    with acp_log(logging.WARNING) as log:
        memory = helpers_of(acp).PermissionMemory(entries, folder="/")
    assert texts(log).count("the user is asked again") == 1
    calls = [
        *({"kind": "execute", "raw_input": {"command": each}} for each in ("make", "rm")),
        *({"kind": each, "locations": ["/etc/passwd"]} for each in ("edit", "read")),
    ]
    got, offered, _ = run(turn(acp, [picked("allow_once")] * 2, *calls, memory=memory))
    assert ([allowed for allowed, _ in got], len(offered)) == ([True, False, True, False], 2)
    with acp_log(logging.WARNING) as log:
        helpers_of(acp).PermissionMemory([{}, 5, {"version": 3, "record": {}, "answer": "allow_always"}])
    assert texts(log) == ""


def _digest(raw: Any) -> str:
    return hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()
