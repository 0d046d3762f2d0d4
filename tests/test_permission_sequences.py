"""Random sequences of reports, questions, updates and answers, beside a small model of what docs/requests.md says."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.client_support import helpers_of
from tests.permission_support import KINDS, chosen, question
from tests.runtime_support import V1, V2, acp_log
from tests.support import DEEP, Packages

pytestmark = pytest.mark.needs("posix")

SEQUENCES = 10_000 if DEEP else 150
"""For each version of the protocol."""
CALLS = st.sampled_from("ab")


def maybe(*values: Any) -> st.SearchStrategy[Any]:
    """One of the values, an empty one, or none at all."""
    return st.sampled_from((*values, *values, *values, None, ""))


SAID = st.fixed_dictionaries(
    {
        "title": maybe("One", "Two"),
        "kind": st.sampled_from(("execute", "execute", "edit", "read", None)),
        "command": maybe("ls", "rm"),
        "cwd": maybe("/usr", "/etc"),
        "env": st.sampled_from((None, None, None, {}, {"A": "1"})),
        "topic": maybe("x", "y"),
        "timeout": st.sampled_from((None, None, 5)),
        "paths": st.sampled_from((None, [], [], ["/usr"], ["/etc/hosts"], ["/usr/new", "/etc/hosts"])),
    }
)
"""What a source says of a call. None is absent, and other empty values are there, and empty."""
RULES = st.lists(
    st.sampled_from(
        (
            *(
                ("allow", "kind", "execute"),
                ("allow", "kind", "edit"),
                ("deny", "kind", "read"),
                ("ask", "kind", "edit"),
            ),
            *(("allow", "command", "ls"), ("deny", "command", "rm")),
            *(("allow", "path", "/usr"), ("deny", "path", "/etc"), ("allow", "", "")),
        )
    ),
    max_size=2,
)
INPUT = ("command", "cwd", "env", "topic", "timeout")


def wire(said: dict[str, Any]) -> dict[str, Any]:
    """What is said, as it is on the wire."""
    found = {name: said[name] for name in ("title", "kind") if said[name] is not None}
    raw = {name: said[name] for name in INPUT if said[name] is not None}
    if raw or said["paths"] == []:
        found["rawInput"] = raw
    if said["paths"] is not None:
        found["locations"] = [{"path": each} for each in said["paths"]]
    return found


# --- The model -------------------------------------------------------------------------------------------------------


def plain(said: dict[str, Any]) -> dict[str, Any]:
    """What is said, without what is empty: title, kind, input and paths."""
    raw = {name: said[name] for name in INPUT if said[name]}
    return {"title": said["title"] or None, "kind": said["kind"], "raw": raw, "paths": said["paths"] or []}


def after(report: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """What is reported after an update: what it says replaces what was there."""
    return {name: update[name] or report[name] for name in report}


NOTHING: dict[str, Any] = {"title": None, "kind": None, "raw": {}, "paths": []}


def readings(said: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    """The two ways to read what two sources say."""
    paths = sorted({*said["paths"], *report["paths"]})
    found = []
    for first, second in ((said, report), (report, said)):
        raw = {**second["raw"], **first["raw"]}
        told = {"kind": first["kind"] or second["kind"], "cwd": raw.pop("cwd", "/"), "paths": paths}
        if "command" in raw:
            told |= {"command": raw.pop("command"), "env": raw.pop("env", None)}
        found.append({"command": None, "env": None, **told, "rest": raw})
    return found


def is_told(each: dict[str, Any]) -> bool:
    """True if something tells the operation from others."""
    others = [path for path in each["paths"] if each["kind"] in {"edit", "read"} or path != each["cwd"]]
    return bool(each["command"] or "topic" in each["rest"] or others)


def matches(rule_: tuple[str, str, str], each: dict[str, Any]) -> bool | None:
    """Whether a rule is for a reading; None if it does not say enough."""
    decision, name, wanted = rule_
    if name == "kind":
        return None if each["kind"] is None else each["kind"] == wanted
    if name == "command":
        if each["command"] is None:
            return None
        return each["command"] == wanted and (decision != "allow" or not each["env"])
    if name == "path":
        inside = [path == wanted or path.startswith(wanted + "/") for path in each["paths"]]
        return None if not inside else all(inside) if decision == "allow" else any(inside)
    return True


def decided(rules: list[Any], both: list[dict[str, Any]], is_remembered: bool) -> str:
    """The strictest rule wins: one that denies or asks is for either reading, one that allows for both."""
    strict = [(each[0], [matches(each, reading) for reading in both]) for each in rules if each[0] != "allow"]
    for decision in ("deny", "ask"):
        if any(each == decision and True in found for each, found in strict):
            return decision
    might = any(True not in found and None in found for _, found in strict)
    allows = any(all(matches(each, reading) for reading in both) for each in rules if each[0] == "allow")
    return "allow" if is_remembered or (allows and not might) else "ask"


def goes_on(before: dict[str, Any], now: dict[str, Any], titles: tuple[Any, Any]) -> bool:
    """True if what is known now is what was shown, or more of it."""
    if not is_told(before) and (is_told(now) or titles[0] != titles[1]):
        return False
    is_command = before["command"] is not None
    if (before["command"], before["env"], before["cwd"]) != (now["command"], now["env"], now["cwd"]):
        return False
    if before["kind"] != now["kind"] and not (is_command and before["kind"] is None):
        return False
    new = {*now["paths"]} - {*before["paths"]} - ({now["cwd"]} if is_command else set())
    if new:
        return False
    lost = [] if is_command else [name for name in before["rest"] if name not in now["rest"]]
    return not lost and all(now["rest"].get(name, value) == value for name, value in before["rest"].items())


def key(title: Any, both: list[dict[str, Any]]) -> str | None:
    """What is remembered; None if it tells nothing."""
    if not all(map(is_told, both)):
        return None
    found = []
    for each in both:
        one_file = each["kind"] in {"edit", "read"} and len(each["paths"]) == 1 and not (each["command"] or each["env"])
        if one_file and each["kind"] == "edit" and "env" not in each["rest"]:
            found.append({"kind": "edit", "paths": each["paths"]})
        elif one_file and "env" not in each["rest"]:
            found.append({**each, "rest": each["rest"], "cwd": each["cwd"] if each["rest"] else ""})
        elif each["command"] is None and not each["rest"]:
            return None
        else:
            found.append({**each, "paths": [path for path in each["paths"] if path != each["cwd"]]})
    unique = found if found[0] != found[1] or both[0] != both[1] else found[:1]
    return json.dumps([title, sorted(json.dumps(each, sort_keys=True) for each in unique)])


# --- The machine -----------------------------------------------------------------------------------------------------


class Inline(ThreadPoolExecutor):
    """An executor without threads, so that each step comes to rest."""

    def submit(self, work: Any, /, *values: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*values, **named))
        return done


def machine_of(acp: Any) -> type[RuleBasedStateMachine]:
    """The machine for a package."""
    helpers = helpers_of(acp)

    class User(helpers.SessionClient, helpers.PermissionClient):  # type: ignore[name-defined, misc]
        """A client whose user answers when the machine says so."""

        def __init__(self) -> None:
            super().__init__(None)
            self.sessions["s"] = self.new_session("s", os.sep)
            self.open: list[tuple[Any, asyncio.Future[str]]] = []
            self.changes: list[str] = []

        async def ask_permission(self, question: Any) -> Any:
            self.open.append((question, asyncio.get_running_loop().create_future()))
            return await self.open[-1][1]

        def session_changed(self, session: Any, change: Any) -> None:
            if isinstance(change, helpers.PermissionChanged):
                self.changes.append(change.decision)

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.loop = asyncio.new_event_loop()
            self.loop.set_default_executor(Inline(1))
            self.client: Any = self.play(self.made())
            self.rules: list[Any] = []
            self.reports = {each: {**NOTHING} for each in "ab"}
            self.asked: dict[str, Any] | None = None
            self.task: Any = None
            self.kept: set[str] = set()

        async def made(self) -> Any:
            return User()

        def play(self, main: Any) -> Any:
            """Run a step until nothing moves any more."""

            async def steps() -> Any:
                found = await main
                for _ in range(30):
                    await asyncio.sleep(0)
                return found

            return self.loop.run_until_complete(steps())

        def now(self) -> tuple[Any, list[dict[str, Any]]]:
            """The title and the readings of the question that is open, as the model knows them."""
            assert self.asked is not None
            report = self.reports[self.asked["call"]]
            return self.asked["said"]["title"] or report["title"], readings(self.asked["said"], report)

        @rule(rules=RULES)
        def set_rules(self, rules: Any) -> None:
            if self.asked is None:
                self.rules = rules
                self.kept.clear()
                made = [helpers.PermissionRule(each, **({name: value} if name else {})) for each, name, value in rules]
                self.client.permissions = helpers.PermissionRules(*made)

        @rule(call=CALLS, said=SAID)
        def report(self, call: str, said: Any) -> None:
            update = {"sessionUpdate": "tool_call_update", "toolCallId": call, **wire(said)}
            kind = acp.SessionNotification if acp.PROTOCOL_VERSION == 1 else acp.UpdateSessionNotification
            self.play(self.client.session_update(acp.decode(kind, {"sessionId": "s", "update": update})))
            self.reports[call] = after(self.reports[call], plain(said))

        @rule(call=CALLS, said=SAID)
        def ask(self, call: str, said: Any) -> None:
            if self.asked is not None:
                return
            params = {"sessionId": "s", **question(acp, *KINDS, toolCallId=call, **wire(said))}
            if acp.PROTOCOL_VERSION != 1:
                params["title"] = said["title"] or ""
            self.asked = {"call": call, "said": plain(said)}

            async def begin() -> Any:
                request = acp.decode(acp.RequestPermissionRequest, params)
                return asyncio.ensure_future(self.client.session_request_permission(request))

            self.task = self.play(begin())
            self.expect(self.decision())

        def decision(self) -> str:
            title, both = self.now()
            return decided(self.rules, both, key(title, both) in self.kept)

        def expect(self, decision: str) -> None:
            """What must have happened now: an answer, or the question to the user, with all that is known."""
            assert self.asked is not None
            if decision == "ask":
                assert not self.task.done()
                assert len(self.client.open) == 1
                self.asked["shown"] = self.now()
                lines = self.client.open[0][0].lines
                for each in self.now()[1]:
                    for text in (each["command"], each["kind"], *each["paths"]):
                        assert text is None or any(text in line for line in lines)
            else:
                self.ended("allow_once" if decision == "allow" else "reject_once")

        def ended(self, expected: str) -> None:
            assert self.task.done()
            answer = acp.encode(self.task.result())
            assert chosen(answer) == expected
            assert self.client.open == []
            self.asked = None

        @rule(
            answer=st.sampled_from(
                ("allow", "allow", "allow", "allow_always", "deny", "deny_always", "cancel", "option")
            )
        )
        def answer(self, answer: str) -> None:
            if self.asked is None:
                return
            shown, answered = self.client.open.pop()
            said: Any = shown.request.options[1] if answer == "option" else answer
            changes = len(self.client.changes)

            async def give() -> None:
                answered.set_result(said)

            if answer == "deny_always":  # what it denies later is in other tests
                said = "deny"
            self.play(give())
            if answer in {"deny", "deny_always", "cancel"}:
                self.ended("cancelled" if answer == "cancel" else "reject_once")
                return
            title, both = self.asked["shown"]
            now_title, now = self.now()
            titles = (title, now_title)
            is_same = all(any(goes_on(before, each, titles) for before in both) for each in now)
            if answer == "allow_always":
                self.kept.add(key(title, both) or "")
            if is_same and self.decision() != "deny":
                if answer == "allow_always":
                    self.kept.add(key(now_title, now) or "")
                assert len(self.client.changes) == changes
                self.ended("allow_always" if answer == "option" else "allow_once")
                return
            decision = self.decision()
            assert self.client.changes[changes:] == [decision]
            self.expect(decision)

        @invariant()
        def one_question_at_most(self) -> None:
            assert len(self.client.open) == (self.asked is not None)

        def teardown(self) -> None:
            if self.asked is not None:
                self.client.cancel_questions("s")
                self.play(asyncio.sleep(0))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    return Machine


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_nothing_is_allowed_unasked_and_nothing_refused_that_was_allowed(packages: Packages, sources: Any) -> None:
    """By the rules and the user: each answer is the model's, and so is what the user is asked."""
    often = settings(
        max_examples=SEQUENCES, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )
    with acp_log(logging.CRITICAL):
        run_state_machine_as_test(machine_of(packages(sources)), settings=often)
