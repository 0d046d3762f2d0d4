"""The file of permission rules: shared by processes, and never read as more than it says."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import helpers_of
from tests.permission_support import client_of, question, rule, talk
from tests.runtime_support import V1, acp_log, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

PROCESSES, RULES = 3, 25
REMEMBER = """
import sys
from {package}.helpers import PermissionRule, PermissionRules
rules = PermissionRules(path=sys.argv[1])
for number in range({count}):
    rules.remember(PermissionRule("deny", tool=sys.argv[2] + str(number)))
"""
posix = pytest.mark.needs("posix")


@pytest.fixture(name="acp")
def package(packages: Packages) -> Any:
    """A package of protocol 1: the file is the same in protocol 2."""
    return packages(V1)


def rules_of(acp: Any, path: Path, *rules: Any) -> Any:
    return helpers_of(acp).PermissionRules(*rules, path=path)


def tools(rules: Any) -> list[str]:
    return [each.tool for each in rules.remembered]


def running(acp: Any, path: Path, *names: str) -> list[subprocess.Popen[str]]:
    """Processes that remember rules in the file."""
    code = REMEMBER.format(package=acp.__name__, count=RULES)
    env = {**os.environ, "PYTHONPATH": str(Path(acp.__file__).parent.parent)}
    return [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], env=env, stderr=subprocess.PIPE, text=True)
        for name in names
    ]


def test_processes_lose_no_rule_of_each_other(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    names = [f"{number}-" for number in range(PROCESSES)]
    for process in running(acp, path, *names):
        assert process.communicate(timeout=300)[1] == ""
    found = tools(rules_of(acp, path))
    assert sorted(found) == sorted(f"{name}{number}" for name in names for number in range(RULES))


def join_writers() -> None:
    """Wait until what was remembered is written, or cannot be."""
    for thread in threading.enumerate():
        if thread.name == "permissions":
            thread.join()


HOLD = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@posix
def test_remembering_waits_for_no_other_process(acp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop the loop of the client; what was remembered holds at once, and is in the file when it is free."""
    path = tmp_path / "permissions.json"
    rules = rules_of(acp, path)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)  # no time passes: the lock is waited for without end
    lock = str(tmp_path / ".permissions.json.lock")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with acp_log() as records, subprocess.Popen([sys.executable, "-c", HOLD, lock], **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for number in range(3):
            rules.remember(rule(acp, "deny", tool=str(number)))
            assert rules.decide(helpers_of(acp).PermissionSubject(tool=str(number))) == "deny"
        assert not path.exists()
        holder.communicate("")
        join_writers()
    assert texts(records) == ""
    assert tools(rules) == tools(rules_of(acp, path)) == ["0", "1", "2"]
    rules.remember(rule(acp, "deny", tool="3"))
    assert tools(rules_of(acp, path)) == ["0", "1", "2", "3"]


def test_what_is_forgotten_stays_so_in_other_processes(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    first, second = (rules_of(acp, path) for _ in range(2))
    first.remember(rule(acp, "allow", tool="forgotten"))
    assert tools(second) == ["forgotten"]
    first.forget()
    forgotten = helpers_of(acp).PermissionSubject(tool="forgotten")
    assert (second.decide(forgotten), tools(second)) == ("ask", [])
    second.remember(rule(acp, "deny", tool="new"))
    assert tools(first) == tools(second) == tools(rules_of(acp, path)) == ["new"]


def test_what_is_forgotten_in_a_race_is_not_brought_back(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    rules = rules_of(acp, path)
    rules.remember(*(rule(acp, "allow", tool=f"old{number}") for number in range(50)))
    processes = running(acp, path, "a", "b")
    while not any(each.startswith(("a", "b")) for each in tools(rules)):
        assert any(process.poll() is None for process in processes)
    rules.forget()
    for process in processes:
        assert process.communicate(timeout=300)[1] == ""
    assert not [each for each in tools(rules_of(acp, path)) if each.startswith("old")]


def test_what_another_process_denies_holds_at_once(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    first, second = (rules_of(acp, path, rule(acp, "allow")) for _ in range(2))
    edit = helpers_of(acp).PermissionSubject(kind="edit", paths=(str(tmp_path),))
    assert first.decide(edit) == "allow"
    second.remember_answer(edit, "deny")
    assert first.decide(edit) == "deny"


def test_random_steps_of_several_owners_equal_a_model(acp: Any, tmp_path: Path) -> None:
    rolls = random.Random(3)
    path = tmp_path / "permissions.json"
    owners = [rules_of(acp, path) for _ in range(3)]
    model: dict[str, None] = {}
    for _ in range(150):
        owner, step = rolls.choice(owners), rolls.randint(0, 9)
        if step == 0:
            owner.forget()
            model.clear()
        elif step < 7:
            name = str(rolls.randint(0, 30))
            owner.remember(rule(acp, "deny", tool=name))
            model[name] = None
        else:
            owners[owners.index(owner)] = rules_of(acp, path)
        assert tools(rolls.choice(owners)) == [*model]


@posix
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_no_regular_file_is_refused(acp: Any, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "permissions.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    with pytest.raises((ValueError, OSError)):
        rules_of(acp, path)


@posix
def test_a_pipe_that_takes_the_place_of_the_file_changes_nothing(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    rules = rules_of(acp, path)
    rules.remember(rule(acp, "deny", tool="first"))
    path.unlink()
    os.mkfifo(path)
    with acp_log(logging.WARNING) as records:
        rules.remember(rule(acp, "deny", tool="second"))
        assert tools(rules) == ["first", "second"]
    assert "cannot be kept" in texts(records)
    assert path.is_fifo()
    path.unlink()
    rules.remember(rule(acp, "deny", tool="third"))
    assert tools(rules_of(acp, path)) == ["second", "third"]  # the first went with the file


@posix
def test_a_lock_that_is_not_released_is_not_waited_for_without_end(
    acp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    path = tmp_path / "permissions.json"
    rules = rules_of(acp, path)
    rules.remember(rule(acp, "deny", tool="first"))
    monkeypatch.setattr(time, "monotonic", itertools.count(0, 10).__next__)  # each look at the clock takes long
    with (tmp_path / ".permissions.json.lock").open() as lock, acp_log(logging.WARNING) as records:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rules.remember(rule(acp, "deny", tool="second"))
        with pytest.raises(OSError, match="release the lock"):
            rules.forget()
        join_writers()
    assert "cannot be kept" in texts(records)
    assert tools(rules) == ["first", "second"]
    rules.remember()
    assert tools(rules_of(acp, path)) == ["first", "second"]


@posix
def test_a_link_to_the_file_stays_one(acp: Any, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    path, real = tmp_path / "permissions.json", tmp_path / "dotfiles" / "permissions.json"
    path.symlink_to(real)
    rules_of(acp, path).remember(rule(acp, "deny", tool="a"))
    rules_of(acp, real).remember(rule(acp, "deny", tool="b"))
    assert path.is_symlink()
    assert tools(rules_of(acp, path)) == ["a", "b"]


# --- Rules of earlier versions ---------------------------------------------------------------------------------------


def test_rules_of_an_earlier_version_keep_no_width(acp: Any, tmp_path: Path) -> None:
    path, folder = tmp_path / "permissions.json", str(tmp_path)
    path.write_text(
        json.dumps(
            [
                {"decision": "allow", "kind": "edit", "path": folder},
                {"decision": "allow", "kind": "execute", "path": folder, "command": "make"},
                {"decision": "allow", "tool": "Bash", "input": "0" * 64},
                {"decision": "allow", "kind": "fetch"},
                {"decision": "deny", "kind": "delete", "path": folder},
                {"decision": "ask", "kind": "think"},
            ]
        )
    )
    with acp_log(logging.WARNING) as records:
        rules = rules_of(acp, path)
    assert "earlier version" in texts(records)
    assert [each.decision for each in rules.remembered] == ["deny", "ask"]
    subject = helpers_of(acp).PermissionSubject
    assert rules.decide(subject(kind="edit", paths=(folder,))) == "ask"
    assert rules.decide(subject(kind="delete", paths=(f"{folder}/a",))) == "deny"

    rules.remember(rule(acp, "allow", kind="fetch"))  # a rule of the program, which may be as wide as it likes
    with acp_log(logging.WARNING) as records:
        again = rules_of(acp, path)
    assert [each.decision for each in again.remembered] == ["deny", "ask", "allow"]
    assert not texts(records)


def test_a_record_is_read_as_it_was_written(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    (tmp_path / "a*").write_text("")
    subject = helpers_of(acp).PermissionSubject
    shown = [
        subject(kind="edit", tool="Edit", paths=(str(tmp_path / "a*"),)),
        subject(kind="execute", command="ls", args=("-l", "ä"), folder=str(tmp_path), env=(("A", "1"), ("B", ""))),
        subject(paths=(str(tmp_path), "/"), folder="/", input="0" * 64),
    ]
    rules = rules_of(acp, path)
    for each in shown:
        rules.remember_answer(each, "allow")
    again = rules_of(acp, path)
    assert again.remembered == rules.remembered
    assert [again.decide(each) for each in shown] == ["allow"] * 3
    assert again.decide(subject(kind="edit", tool="Edit", paths=(str(tmp_path / "ab"),))) == "ask"


RECORD: dict[str, Any] = {"version": 2, "decision": "allow", "record": {"input": "0"}}


@pytest.mark.parametrize(
    "bad",
    [
        *(
            {**RECORD, "record": each}
            for each in (5, [], "x", {"all": "x"}, {"files": ["a"]}, {"files": [{"name": "a"}]})
        ),
        *({**RECORD, "record": each} for each in ({"kind": 5}, {"env": ["a"]}, {"args": [5]}, {"folder": "x"})),
        {**RECORD, "kind": "read"},
        {**RECORD, "_pieces": "x"},
        {"version": 2},
        5,
        None,
    ],
    ids=str,
)
def test_a_file_with_anything_else_is_refused(acp: Any, tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "permissions.json"
    path.write_text(json.dumps([RECORD, bad]))
    with pytest.raises(ValueError, match="has no permission rules"):
        rules_of(acp, path)


def test_a_file_is_as_large_as_can_be_read(acp: Any, tmp_path: Path) -> None:
    path = tmp_path / "permissions.json"
    rules = rules_of(acp, path)
    rules.remember(*(rule(acp, "allow", tool=f"{number:04}" + 4000 * "x") for number in range(1001)))
    assert len(rules_of(acp, path).remembered) == 1000


def test_an_answer_too_long_to_be_kept_holds_once(acp: Any, tmp_path: Path) -> None:
    call = question(acp, kind="edit", name=5000 * "x", locations=[{"path": str(tmp_path)}])
    kind = client_of(acp, answers=["allow_always", "cancel"], path=tmp_path / "permissions.json")
    with acp_log(logging.WARNING) as records:
        assert talk(acp, kind, call, call) == ["allow_once", "cancelled"]
    assert "not remembered" in texts(records)


def test_a_file_with_too_many_rules_is_refused_not_cut(acp: Any, tmp_path: Path) -> None:
    """Those that are left out could deny."""
    path = tmp_path / "permissions.json"
    rules = [{"version": 2, "decision": "deny", "path": f"/{number}"} for number in range(1001)]
    path.write_text(json.dumps(rules))
    with pytest.raises(ValueError, match=r"there are more than 1000 rules.*: repair or delete it"):
        rules_of(acp, path)
    with acp_log(logging.WARNING) as log:
        path.write_text(json.dumps(rules[:1]))
        sharing = rules_of(acp, path)
        path.write_text(json.dumps(rules))
        sharing.remember(rule(acp, "deny", path="/x"))
    assert len(json.loads(path.read_text())) == 1001
    assert "permissions cannot be kept" in texts(log)
