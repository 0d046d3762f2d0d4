"""The theory of permissions, walked: for each fact of an operation, who may say it and what it decides."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import hand_agent, helpers_of
from tests.permission_support import ask, client_of, in_session, question, rule, update
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

ONE: dict[str, Any] = {
    "title": {"title": "One"},
    "kind": {"kind": "execute"},
    "tool": {"name": "Bash"},
    "command": {"rawInput": {"command": "make"}},
    "args": {"rawInput": {"args": ["one"]}},
    "env": {"rawInput": {"env": {"A": "1"}}},
    "folder": {"rawInput": {"cwd": "/usr"}},
    "paths": {"locations": [{"path": "/usr/one"}]},
    "input": {"rawInput": {"query": "one"}},
}
"""A value of each fact, as it is on the wire."""
TWO: dict[str, Any] = {
    "title": {"title": "Two"},
    "kind": {"kind": "fetch"},
    "tool": {"name": "Other"},
    "command": {"rawInput": {"command": "rm"}},
    "args": {"rawInput": {"args": ["two"]}},
    "env": {"rawInput": {"env": {"A": "2"}}},
    "folder": {"rawInput": {"cwd": "/etc"}},
    "paths": {"locations": [{"path": "/etc/two"}]},
    "input": {"rawInput": {"query": "two"}},
}
"""Another one."""
FACTS = tuple(ONE)
COMMAND: dict[str, Any] = {"rawInput": {"command": "make"}}
TOOL: dict[str, Any] = {"rawInput": {"topic": "x"}}
EMPTY: dict[str, Any] = {"kind": None, "name": None, "title": None, "rawInput": {}, "locations": [], "content": []}


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def table(acp: Any) -> Any:
    return importlib.import_module(f"{acp.__name__}.helpers.operation_facts").FACTS


def joined(*calls: dict[str, Any]) -> dict[str, Any]:
    """What several parts of a call say together."""
    found: dict[str, Any] = {}
    for call in calls:
        raw = {**found.get("rawInput", {}), **call.get("rawInput", {})}
        found |= call
        if raw:
            found["rawInput"] = raw
    return found


def base(fact: str, other: str = "") -> dict[str, Any]:
    """What is said besides a fact: a command where the fact needs one, or else the input of a tool."""
    if fact in {"command", "input"}:
        return {}
    return COMMAND if other == "command" or fact in {"args", "env"} else TOOL


def asked(acp: Any, report: dict[str, Any], said: dict[str, Any], **options: Any) -> Any:
    """The client after a question about a reported call, whose user answers `answers` in order, then "cancel"."""
    return played(acp, report, said, **options)[1]


def played(
    acp: Any,
    report: dict[str, Any],
    said: dict[str, Any],
    *,
    answers: Any = (),
    meanwhile: dict[str, Any] | None = None,
    then: dict[str, Any] | None = None,
) -> Any:
    """The answers to a question, and to one about another call `then`; and the client."""
    agents = list[Any]()

    async def late(_: Any) -> Any:
        if meanwhile is not None:
            await update(agents[0], **meanwhile)
        return next(iter(answers), "cancel")

    async def main() -> Any:
        kind = in_session(acp, client_of(acp, answers=[late, *["cancel"] * 3]))
        async with hand_agent(acp, kind) as agent:
            agents.append(agent)
            if report:
                await update(agent, **report)
            titled = question(acp, **said)
            if acp.PROTOCOL_VERSION != 1:
                titled["title"] = said.get("title") or ""
            found = [await ask(agent, titled)]
            if then is not None:
                other = question(acp, **{**then, "toolCallId": "u"})
                if acp.PROTOCOL_VERSION != 1:
                    other["title"] = then.get("title") or ""
                found.append(await ask(agent, other))
            return found, agent.client

    return run(main())


def value(subject: Any, fact: str) -> Any:
    """The value of a fact in a subject; paths and folders without what they led to."""
    return getattr(subject, fact)


def test_the_table_has_what_a_subject_has(acp: Any) -> None:
    """Each attribute of a record that an agent says is a row."""
    assert set(table(acp)) == set(FACTS)
    names = {"files" if each == "paths" else each for each in FACTS}
    record = helpers_of(acp).PermissionRecord()
    assert {each for each in vars(record) if each != "contrary"} == names


@pytest.mark.parametrize("fact", FACTS)
def test_either_source_may_say_it(acp: Any, fact: str) -> None:
    """And an empty value of the other one hides nothing."""
    call = joined(base(fact), ONE[fact])
    both = value(asked(acp, call, call).asked[0].subject, fact)
    assert both
    for empty in ({}, EMPTY):
        rest = {key: each for key, each in empty.items() if each is not None or acp.PROTOCOL_VERSION == 1}
        assert value(asked(acp, call, rest).asked[0].subject, fact) == both
        assert value(asked(acp, rest, call).asked[0].subject, fact) == both


@pytest.mark.parametrize("fact", FACTS)
def test_sources_that_contradict_each_other_are_both_shown(acp: Any, fact: str) -> None:
    report, said = joined(base(fact), ONE[fact]), joined(base(fact), TWO[fact])
    subject = asked(acp, report, said).asked[0].subject
    one, two = (value(asked(acp, each, each).asked[0].subject, fact) for each in (report, said))
    found = [value(each, fact) for each in subject.readings]
    if fact == "title":
        assert found == [two]
    elif table(acp)[fact].merged == "all":
        assert found == [(*two, *one)]
    else:
        assert found == [two, one]
    shown = {"kind": "fetch", "tool": "Other", "command": "rm", "args": "make two", "env": "A=2", "folder": "/etc"}
    if fact in shown:
        lines = "\n".join(subject.lines)
        other = {"kind": "execute", "tool": "Bash", "command": "make", "args": "make one", "env": "A=1"}
        assert shown[fact] in lines
        assert other.get(fact, "/usr") in lines


def rule_for(acp: Any, fact: str, decision: str, digest: str) -> Any:
    """A rule about the first value of a fact."""
    conditions: dict[str, Any] = {
        "kind": {"kind": "execute"},
        "tool": {"tool": "Bash"},
        "command": {"command": "make"},
        "args": {"command": "make one"},
        "env": {"command": "make"},
        "paths": {"path": "/usr/one"},
        "input": {"input": digest},
    }
    return rule(acp, decision, **conditions[fact])


@pytest.mark.parametrize("fact", FACTS)
def test_rules_go_by_both_sources(acp: Any, fact: str) -> None:
    """A rule that denies is for what either of them says, one that allows for what both say."""
    if not table(acp)[fact].has_rules:
        for decision in ("allow", "deny"):
            conditions = {"title": {"tool": "One"}, "folder": {"path": "/usr"}}[fact]
            subject = asked(acp, {}, joined(COMMAND, ONE[fact])).asked[0].subject
            assert helpers_of(acp).PermissionRules(rule(acp, decision, **conditions)).decide(subject) == "ask"
        return
    one, two = joined(base(fact), ONE[fact]), joined(base(fact), TWO[fact])
    digest = asked(acp, {}, one).asked[0].subject.input
    for report, said in ((one, one), (one, two), (two, one), (one, {}), ({}, one), (two, two)):
        subject = asked(acp, report, said).asked[0].subject
        found = [
            helpers_of(acp).PermissionRules(rule_for(acp, fact, each, digest)).decide(subject)
            for each in ("deny", "allow")
        ]
        if fact == "env":  # a command with variables is denied by its name, and allowed by no rule
            assert found == ["deny", "ask"]
        else:
            both = two not in (report, said)
            assert found == ["deny" if one in (report, said) else "ask", "allow" if both else "ask"]


@pytest.mark.parametrize("kind", ["command", "tool"])
@pytest.mark.parametrize("fact", FACTS)
def test_what_is_said_only_later(acp: Any, fact: str, kind: str) -> None:
    """It is a detail, or makes another operation, as the table says."""
    if fact in {"command", "input"}:
        shown = TOOL if fact == "command" or kind == "tool" else COMMAND
    else:
        shown = COMMAND if kind == "command" or fact in {"args", "env"} else TOOL
    row = table(acp)[fact].later
    found, client = played(acp, shown, shown, answers=["allow"], meanwhile=joined(shown, ONE[fact]))
    is_known = fact == "folder"  # that of the session is, and another one contradicts it
    again = is_known or row == "another" or (row == "detail of a command" and shown is TOOL)
    assert (found, len(client.asked), client.changes) == (
        (["cancelled"], 2, ["ask"]) if again else (["allow_once"], 1, [])
    )


@pytest.mark.parametrize("fact", FACTS)
def test_what_was_shown_and_is_another_value_later(acp: Any, fact: str) -> None:
    """It is another operation, but for a title."""
    one, two = joined(base(fact), ONE[fact]), joined(base(fact), TWO[fact])
    for said in ({}, one):
        found, client = played(acp, one, said, answers=["allow"], meanwhile=two)
        again = fact != "title"
        assert (found, len(client.asked)) == (["cancelled"], 2) if again else (["allow_once"], 1), said
    found, client = played(acp, two, {}, answers=["deny"], meanwhile=one)
    assert (found, client.changes) == (["reject_once"], [])


def test_where_only_a_title_was_shown_all_that_follows_is_another_operation(acp: Any) -> None:
    for later in (COMMAND, TOOL, {"locations": [{"path": "/etc"}]}, {"kind": "delete"}, {"title": "Other"}):
        found, client = played(acp, {"title": "Do it"}, {}, answers=["allow"], meanwhile=later)
        assert (found, len(client.asked)) == (["cancelled"], 2), later
    found, client = played(acp, {"title": "Do it"}, {}, answers=["allow"], meanwhile={"status": "in_progress"})
    assert (found, len(client.asked)) == (["allow_once"], 1)


@pytest.mark.parametrize("fact", FACTS)
def test_what_is_remembered(acp: Any, fact: str) -> None:
    """All of it is, but of a tool for files its input: the change, which is new each time."""
    one, two = joined(base(fact), ONE[fact]), joined(base(fact), TWO[fact])
    found, client = played(acp, {}, one, answers=["allow_always"], then=one)
    assert (found, len(client.asked)) == (["allow_once", "allow_once"], 1)
    found, client = played(acp, {}, one, answers=["allow_always"], then=two)
    assert (found, len(client.asked)) == (["allow_once", "cancelled"], 2)
    if fact in {"folder", "input"}:
        file = {"locations": [{"path": "/usr/file"}]}
        for kind in ("edit", "delete", "read", "search"):
            first, second = ({**joined(TOOL, each[fact], file), "kind": kind} for each in (ONE, TWO))
            found = played(acp, {}, first, answers=["allow_always"], then=second)[0]
            is_kept = table(acp)[fact].kept == "always" or kind in {"read", "search"}
            assert found == ["allow_once", "cancelled" if is_kept else "allow_once"], kind


def test_sources_that_contradict_each_other_are_remembered_as_both(acp: Any) -> None:
    """Whichever was the newer one, and whichever of them says what; one of them alone is another operation."""
    one, two = joined(COMMAND, ONE["args"]), joined(COMMAND, TWO["args"])

    async def main() -> Any:
        kind = in_session(acp, client_of(acp, answers=["allow_always", "cancel", "cancel"]))
        async with hand_agent(acp, kind) as agent:
            found = []
            for call, (report, said) in {"t": (one, two), "u": (two, one), "v": (one, one), "w": (two, two)}.items():
                await update(agent, **report, toolCallId=call)
                found.append(await ask(agent, question(acp, **said, toolCallId=call)))
            return found

    assert run(main()) == ["allow_once", "allow_once", "cancelled", "cancelled"]


def test_a_title_is_remembered(acp: Any, tmp_path: Path) -> None:
    """So a second question with another title is put, whatever else it says."""

    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp, answers=["allow_always", "cancel"])) as agent:
            found = []
            for title in ("Look", "Look", "Delete all"):
                said = question(acp, **COMMAND, title=title)
                said |= {} if acp.PROTOCOL_VERSION == 1 else {"title": title}
                found.append(await ask(agent, said))
            return found

    assert run(main()) == ["allow_once", "allow_once", "cancelled"]


def test_the_kinds_of_the_table_are_those_of_the_protocol(acp: Any) -> None:
    facts = importlib.import_module(f"{acp.__name__}.helpers.operation_facts")
    kinds = importlib.import_module(f"{acp.__name__}.helpers.permission_subjects").KINDS
    assert facts.ONLY_LOOKING < facts.FOR_ONE_FILE < kinds
