"""Permission requests that a client answers: by rules, by the user, and never more than was said."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import logging
import stat
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import hand_agent, helpers_of
from tests.permission_support import KINDS, ask, chosen, client_of, options, question, rule, talk
from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


# --- What is answered ------------------------------------------------------------------------------------------------


def subsets(acp: Any) -> list[tuple[str, ...]]:
    """All sets of kinds in several orders, in protocol 2 with a kind that nobody knows: protocol 1 has no others."""
    kinds = KINDS if acp.PROTOCOL_VERSION == 1 else (*KINDS, "_other")
    return [order for size in range(1, 4) for order in itertools.permutations(kinds, size)] + [tuple(reversed(kinds))]


def test_an_answer_is_never_more_than_was_said(acp: Any) -> None:
    """Of all sets of options, in all orders."""
    questions = [question(acp, *each) for each in subsets(acp)]
    for said, first in (("deny", ("reject_once", "reject_always")), ("allow", ("allow_once",))):
        expected = []
        for offered in subsets(acp):
            wanted = [*first, *("reject_once", "reject_always")]
            expected.append(next((each for each in wanted if each in offered), "cancelled"))
        asked = talk(acp, client_of(acp, answers=[said] * len(questions)), *questions)
        assert asked == expected
        asked = talk(acp, client_of(acp, answers=[f"{said}_always"] * len(questions)), *questions)
        assert asked == expected
    ruled = talk(acp, client_of(acp, rule(acp, "deny")), *questions)
    assert not {"allow_once", "allow_always", "_other"} & set(ruled)


def test_a_rule_that_allows_asks_where_it_cannot_allow_once(acp: Any) -> None:
    kind = client_of(acp, rule(acp, "allow"), answers=["deny"])
    offered = question(acp), question(acp, "allow_always", "reject_once")
    assert talk(acp, kind, *offered) == ["allow_once", "reject_once"]


def test_an_id_that_stands_for_two_kinds_is_not_chosen(acp: Any) -> None:
    twice = [{**each, "optionId": "same"} for each in options("reject_once", "allow_once")]
    params = {**question(acp), "options": [*twice, *options("reject_always")]}
    kind = client_of(acp, answers=["deny", "allow"])
    assert talk(acp, kind, params, params) == ["reject_always", "reject_always"]


def test_the_user_may_choose_an_option_but_only_one_that_is_offered(acp: Any) -> None:
    async def offered(question: Any) -> Any:
        return question.request.options[1]

    async def other(question: Any) -> Any:
        return acp.PermissionOption(option_id="made up", name="", kind="allow_once")

    with acp_log(logging.WARNING) as log:
        found = talk(acp, client_of(acp, answers=[offered, other]), question(acp), question(acp))
    assert found == ["allow_always", "reject_once"]
    assert texts(log) == "WARNING acp an operation is refused: the agent has not offered the option that was chosen"


def test_what_is_not_decided_is_left_to_the_next_class(acp: Any) -> None:
    class Below(acp.Client):  # type: ignore[misc]
        async def session_request_permission(self, params: Any) -> Any:
            return helpers_of(acp).select_permission(params, "reject_always")

    kind = client_of(acp, rule(acp, "deny", kind="delete"))
    together = type("Together", (kind, Below), {})
    questions = question(acp, kind="delete"), question(acp, kind="edit")
    assert talk(acp, together, *questions) == ["reject_once", "reject_always"]
    assert talk(acp, kind, questions[1]) == [-32601]


def test_two_questions_about_one_tool_call_are_asked_one_by_one(acp: Any) -> None:
    open_ones: list[int] = [0, 0]

    async def slowly(question: Any) -> str:
        open_ones[0] += 1
        open_ones[1] = max(open_ones)
        await asyncio.sleep(0.01)
        open_ones[0] -= 1
        return "allow"

    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp, answers=[slowly] * 5)) as agent:
            numbers = [await agent.ask("session/request_permission", **question(acp)) for _ in range(5)]
            return [chosen(await agent.answer(each)) for each in numbers]

    assert run(main()) == 5 * ["allow_once"]
    assert open_ones == [0, 1]


def test_nothing_is_kept_of_sessions_that_have_asked(acp: Any) -> None:
    class Trusting(client_of(acp)):  # type: ignore[misc]
        async def ask_permission(self, question: Any) -> str:
            return "allow"

    async def main() -> list[int]:
        async with hand_agent(acp, Trusting) as agent:
            sizes = []
            for part in range(2):
                for number in range(50):
                    name = f"{part} {number} " + 10_000 * "x"
                    answer = await agent.call("session/request_permission", sessionId=name, **question(acp))
                    assert chosen(answer) == "allow_once"
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
            return sizes

    tracemalloc.start()
    try:
        first, second = run(main())
    finally:
        tracemalloc.stop()
    assert second - first < 100_000


def test_sessions_do_not_wait_for_each_other(acp: Any) -> None:
    async def main() -> Any:
        both = asyncio.Event()
        asked = 0

        async def together(question: Any) -> str:
            nonlocal asked
            asked += 1
            if asked == 2:
                both.set()
            await both.wait()
            return "allow"

        async with hand_agent(acp, client_of(acp, answers=[together] * 2)) as agent:
            params = question(acp)
            numbers = [
                await agent.ask("session/request_permission", **{"sessionId": each, **params}) for each in ("a", "b")
            ]
            return [chosen(await agent.answer(each)) for each in numbers]

    assert run(main()) == 2 * ["allow_once"]


@pytest.mark.parametrize("how", ["the request", "the session"])
def test_a_question_that_is_cancelled_closes_its_dialog(acp: Any, how: str) -> None:
    async def main() -> tuple[list[Any], list[str], Any]:
        closed: list[str] = []

        async def for_ever(question: Any) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("closed")
            return "allow"

        async with hand_agent(acp, client_of(acp, answers=[for_ever, "allow"])) as agent:
            numbers = [await agent.ask("session/request_permission", **question(acp)) for _ in range(2)]
            while not agent.client.asked:
                await asyncio.sleep(0)
            if how == "the session":
                agent.client.cancel_questions("other")
                agent.client.cancel_questions("s")
            else:
                for number in reversed(numbers):
                    await agent.peer.notify("$/cancel_request", {"requestId": number})
            answers = [chosen(await agent.answer(each)) for each in numbers]
            return [*answers, await ask(agent, question(acp))], closed, len(agent.client.asked)

    assert run(main()) == (["cancelled", "cancelled", "allow_once"], ["closed"], 2)


def test_the_end_of_the_connection_closes_a_dialog(acp: Any) -> None:
    async def main() -> list[str]:
        closed: list[str] = []

        async def for_ever(question: Any) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("closed")
            return "allow"

        async with hand_agent(acp, client_of(acp, answers=[for_ever])) as agent:
            await agent.ask("session/request_permission", **question(acp))
            while not agent.client.asked:
                await asyncio.sleep(0)
        return closed

    assert run(main()) == ["closed"]


# --- Rules -----------------------------------------------------------------------------------------------------------


def decisions(acp: Any, rules: list[Any], *calls: dict[str, Any]) -> list[str]:
    """What is decided about tool calls; the user denies all that is asked."""
    names = {"allow_once": "allow", "reject_once": "deny", "cancelled": "ask"}
    kind = client_of(acp, *rules, answers=["cancel"] * len(calls))
    return [names[each] for each in talk(acp, kind, *(question(acp, **call) for call in calls))]


def test_the_strictest_rule_wins_in_any_order(acp: Any) -> None:
    rules = [rule(acp, "allow"), rule(acp, "ask", kind="edit"), rule(acp, "deny", kind="delete", tool="rm")]
    calls = [
        {"kind": "read", "name": "cat"},
        {"kind": "edit", "name": "sed"},
        {"kind": "delete", "name": "rm"},
        {"kind": "delete", "name": "other"},
        {"kind": "delete"},
        {"kind": "move", "name": "x"},
        {},
    ]
    for order in itertools.permutations(rules):
        assert decisions(acp, list(order), *calls) == ["allow", "ask", "deny", "allow", "ask", "allow", "ask"]


def test_of_rules_for_one_question_the_one_that_denies_wins(acp: Any) -> None:
    rules = [rule(acp, "allow"), rule(acp, "ask", kind="edit"), rule(acp, "deny", tool="sed")]
    for order in itertools.permutations(rules):
        assert decisions(acp, list(order), {"kind": "edit", "name": "sed"}) == ["deny"]


def test_without_a_rule_the_user_is_asked(acp: Any) -> None:
    calls = [{"kind": kind} for kind in ("read", "fetch", "switch_mode", "other")]
    assert decisions(acp, [], *calls) == ["ask"] * 4
    assert decisions(acp, [rule(acp, "allow", kind="read")], *calls) == ["allow", *["ask"] * 3]


def test_titles_decide_nothing(acp: Any) -> None:
    rules = [rule(acp, "allow", tool="cat"), rule(acp, "allow", kind="read", path="/tmp")]
    assert decisions(acp, rules, {"title": "cat"}, {"title": "read /tmp/a", "kind": "read"}) == ["ask", "ask"]


@pytest.mark.needs("posix")
def test_paths(acp: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to("/etc")
    allow = [rule(acp, "allow", path=str(root))]
    deny = [*allow, rule(acp, "deny", path="*/.env"), rule(acp, "deny", path=str(root / "private"))]
    cases: dict[tuple[str, ...], tuple[str, str]] = {
        (f"{root}",): ("allow", "allow"),
        (f"{root}/a/b",): ("allow", "allow"),
        (f"{root}x",): ("ask", "ask"),
        (f"{root}/../other",): ("ask", "ask"),
        (f"{root}/out/passwd",): ("ask", "ask"),
        (f"{root}/a", "/etc/passwd"): ("ask", "ask"),
        (f"{root}/a", f"{root}/b"): ("allow", "allow"),
        (f"{root}/a/.env",): ("allow", "deny"),
        (f"{root}/a", f"{root}/a/.env"): ("allow", "deny"),
        (f"{root}/b/../private/c",): ("allow", "deny"),
        ("/other/.env",): ("ask", "deny"),
        (): ("ask", "ask"),
    }
    if acp.PROTOCOL_VERSION == 1:  # protocol 2 has absolute paths only
        cases |= {("a",): ("ask", "ask"), (f"{root}/a", "b"): ("ask", "ask"), ("\0",): ("ask", "ask")}
    calls = [{"kind": "edit", "locations": [{"path": path} for path in paths]} for paths in cases]
    assert decisions(acp, allow, *calls) == [each for each, _ in cases.values()]
    assert decisions(acp, deny, *calls) == [each for _, each in cases.values()]


def test_a_question_says_only_what_is_new(acp: Any) -> None:
    helpers = helpers_of(acp)
    kind = client_of(acp, rule(acp, "deny", kind="delete"), rule(acp, "allow", kind="read"), answers=["cancel"])

    class Knowing(kind):  # type: ignore[misc, valid-type]
        def known_tool_call(self, session_id: str, tool_call_id: str) -> Any:
            assert session_id == "s"
            kinds = {"d": "delete", "r": "read"}
            kind = kinds.get(tool_call_id)
            return None if kind is None else helpers.ToolCall(id=tool_call_id, kind=kind)

    questions = [question(acp, toolCallId=each) for each in ("d", "r", "x")]
    assert talk(acp, Knowing, *questions) == ["reject_once", "allow_once", "cancelled"]


@pytest.mark.parametrize("bad", [{"decision": "yes"}, {"decision": "allow", "path": "relative"}])
def test_a_rule_that_makes_no_sense(acp: Any, bad: Any) -> None:
    with pytest.raises(ValueError, match=r"decision must be|path must be"):
        rule(acp, **bad)


# --- What is remembered ----------------------------------------------------------------------------------------------


def test_always_is_remembered_narrowly_and_answered_once_each_time(acp: Any, tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    shell: dict[str, Any] = {"kind": "execute", "name": "Bash"}
    edit: dict[str, Any] = {"kind": "edit", "name": "Edit", "locations": [{"path": one}], "rawInput": {"text": "a"}}
    asked: list[tuple[dict[str, Any], str]] = [
        ({**shell, "rawInput": {"command": "make"}}, "allow_always"),
        ({**shell, "rawInput": {"command": "make; rm -rf /"}}, "cancel"),
        ({**shell, "rawInput": {"command": "make", "escalate": True}}, "cancel"),
        (shell, "cancel"),
        (edit, "allow_always"),
        ({**edit, "locations": [{"path": two}]}, "cancel"),
        ({**edit, "locations": [{"path": one}, {"path": two}]}, "cancel"),
        ({**edit, "kind": "delete"}, "cancel"),
        ({"kind": "fetch"}, "allow_always"),  # says too little to be remembered
        ({"kind": "fetch"}, "cancel"),
        ({"kind": "delete", "locations": [{"path": two}]}, "deny_always"),
    ]
    kind = client_of(acp, answers=[answer for _, answer in asked])
    first = talk(acp, kind, *(question(acp, **call) for call, _ in asked))
    once = {"allow_always": "allow_once", "deny_always": "reject_once", "cancel": "cancelled"}
    assert first == [once[answer] for _, answer in asked]

    path = tmp_path / "permissions.json"
    kind = client_of(acp, answers=["allow_always", "allow_always", "deny_always", "cancel"], path=path)
    calls = [asked[0][0], edit, asked[-1][0], {**edit, "rawInput": {"text": "b"}}, asked[0][0], asked[-1][0], shell]
    expected = ["allow_once", "allow_once", "reject_once", "allow_once", "allow_once", "reject_once", "cancelled"]
    assert talk(acp, kind, *(question(acp, **call) for call in calls)) == expected
    kind = client_of(acp, answers=["cancel"], path=path)  # in another process
    assert talk(acp, kind, *(question(acp, **call) for call in calls[3:])) == expected[3:]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or sys.platform == "win32"
    assert {each.name for each in tmp_path.iterdir()} == {"permissions.json", ".permissions.json.lock"}


def test_what_is_remembered_holds_beside_a_rule_that_might_deny(acp: Any) -> None:
    rules = [rule(acp, "deny", path="*/.env"), rule(acp, "allow", tool="Bash")]
    make = question(acp, kind="execute", name="Bash", rawInput={"command": "make"})
    other = question(acp, kind="execute", name="Bash", rawInput={"command": "other"})
    kind = client_of(acp, *rules, answers=["allow_always", "cancel"])
    assert talk(acp, kind, make, other, make) == ["allow_once", "cancelled", "allow_once"]
    kind = client_of(acp, *rules, rule(acp, "ask", kind="execute"), answers=["allow_always", "cancel"])
    assert talk(acp, kind, make, make) == ["allow_once", "cancelled"]


def test_commands_of_protocol_2(packages: Packages, tmp_path: Path) -> None:
    acp = packages(V2)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()

    def command(command: str, cwd: Path) -> dict[str, Any]:
        subject = {"type": "command", "command": command, "cwd": str(cwd)}
        return {"title": "Run", "subject": subject, "options": options(*KINDS)}

    unknown = {"title": "Odd", "subject": {"type": "_odd"}, "options": options(*KINDS)}
    kind = client_of(acp, rule(acp, "allow", command="ls"), answers=["allow_always", *["cancel"] * 4])
    questions = [
        command("ls", tmp_path),
        command("ls; rm", tmp_path / "a"),
        command("ls; rm", tmp_path / "a"),
        command("ls; rm", tmp_path / "b"),
        unknown,
        {"title": "Nothing", "options": options(*KINDS)},
    ]
    assert talk(acp, kind, *questions) == ["allow_once"] * 3 + ["cancelled"] * 3


def test_what_is_remembered_meanwhile_answers_those_who_wait(acp: Any) -> None:
    async def main() -> list[Any]:
        waiting = list[Any]()

        async def late(question: Any) -> str:
            while len(waiting) < 3:
                await asyncio.sleep(0)
            return "allow_always"

        class Counting(client_of(acp, answers=[late])):  # type: ignore[misc]
            async def session_request_permission(self, params: Any) -> Any:
                waiting.append(params)
                return await super().session_request_permission(params)

        async with hand_agent(acp, Counting) as agent:
            params = question(acp, kind="execute", rawInput={"command": "make"})
            numbers = [await agent.ask("session/request_permission", **params) for _ in range(3)]
            return [chosen(await agent.answer(each)) for each in numbers] + [len(agent.client.asked)]

    assert run(main()) == [*3 * ["allow_once"], 1]


def test_failing_to_save_is_no_denial(acp: Any, tmp_path: Path) -> None:
    async def in_the_way(question: Any) -> str:
        (tmp_path / "folder").write_text("")  # a file where the folder was when the rules were read
        return "allow_always"

    kind = client_of(acp, answers=[in_the_way], path=tmp_path / "folder" / "permissions.json")
    with acp_log(logging.WARNING) as records:
        params = question(acp, kind="execute", rawInput={"command": "make"})
        assert talk(acp, kind, params, params) == ["allow_once", "allow_once"]
    assert "cannot be kept" in texts(records)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}x", "5", '["allow"]', "[" * 100_000, '{"decision": "allow"}', '[{"kind": "read"}]'),
        *('[{"decision": "yes"}]', '[{"decision": "allow", "all": true}]', '[{"decision": "allow", "kind": 5}]'),
    ],
    ids=lambda content: content[:20],
)
def test_a_file_that_holds_something_else_is_refused_and_kept(acp: Any, tmp_path: Path, content: str) -> None:
    path = tmp_path / "permissions.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="has no permission rules"):
        helpers_of(acp).PermissionRules(path=path)
    assert path.read_text() == content


def test_two_clients_with_one_file_keep_what_both_remember(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    first, second = (helpers_of(acp).PermissionRules(path=path) for _ in range(2))
    first.remember(rule(acp, "deny", kind="delete"))
    second.remember(rule(acp, "allow", kind="read"))
    assert {each["decision"] for each in json.loads(path.read_text())} == {"allow", "deny"}
    assert len(second.remembered) == 2
    second.forget()
    assert (second.remembered, path.exists()) == ((), False)


def test_what_is_remembered_is_bounded(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    rules = helpers_of(acp).PermissionRules(path=path)
    with acp_log(logging.WARNING) as records:
        rules.remember(*(rule(acp, "allow", tool=str(number)) for number in range(1100)))
        rules.remember(rule(acp, "allow", tool="x" * 5000))
    assert len(rules.remembered) == 1000
    assert "not remembered" in texts(records)
    assert path.stat().st_size < 1 << 20
