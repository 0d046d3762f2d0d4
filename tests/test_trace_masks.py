"""The result of a login is masked by what it answers: whatever the ids are, and whatever else was said meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.trace.writing import make_mask, trace_file
from tests.command_line import run_acpgen

Json = Any

SECRET = "sk-7d1"
IDS = [0, 1, -1, 1.0, 1.5, 1e20, 2**70, "", "1", "a b", None, True, False, [1], {"a": 1}, [[], {}]]
OTHER = {"method": "session/list", "params": {}}


def login(number: Json, **more: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": "authenticate", "params": {"methodId": "key"}, **more}


def result(number: Json, **more: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": {"_meta": {"token": SECRET}}, **more}


def recorded(*messages: tuple[str, Json | bytes]) -> str:
    """What a recorder writes of messages, each with its sender."""
    mask, peers = make_mask(), {"client": "agent", "agent": "client"}
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for _, each in messages]
    rows = zip(messages, lines, strict=True)
    return "\n".join(trace_file().payload(line, mask, sender=who, to=peers[who]) for (who, _), line in rows)


def shown(folder: Path, *lines: Json) -> str:
    """What the page of a trace shows."""
    (folder / "trace").write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    ran = run_acpgen("trace", folder / "trace", "--html", "page.html", cwd=folder)
    return (folder / "page.html").read_text(encoding="utf-8") + ran.stderr + ran.stdout


@pytest.mark.parametrize("number", IDS, ids=json.dumps)
def test_every_id(tmp_path: Path, number: Json) -> None:
    assert SECRET not in recorded(("client", login(number)), ("agent", result(number)))
    assert SECRET in recorded(("agent", result(number)))
    for asker, answerer in (({}, {"from": "agent"}), ({"from": "client"}, {})):
        assert SECRET not in shown(tmp_path, {**asker, "msg": login(number)}, {**answerer, "msg": result(number)})
    assert SECRET not in shown(tmp_path, login(number), result(number))


MEANWHILE = {
    "an id without an id": [
        ("client", {"method": "authenticate", "params": {}}),
        ("agent", {"result": result(1)["result"]}),
    ],
    "another form of a number": [("client", login(1)), ("agent", result(1.0))],
    "a request with the same id": [
        *(("client", login(1)), ("client", {**OTHER, "id": 1})),
        *(("agent", {"id": 1, "result": {}}), ("agent", result(1))),
    ],
    "a request with the same null": [
        *(("client", {**OTHER, "id": None}), ("client", login(None))),
        *(("agent", {"id": None, "result": {}}), ("agent", result(None))),
    ],
    "many logins": [
        *(("client", login(each)) for each in range(200)),
        *(("agent", result(each)) for each in range(200)),
    ],
    "a response with a method": [("client", login(1)), ("agent", result(1, method="x"))],
    "a request of the other side with the same id": [
        *(("client", login(1)), ("agent", {**OTHER, "id": 1})),
        *(("client", {"id": 1, "result": {}}), ("agent", result(1))),
    ],
    "a result that is no JSON": [("client", login(1)), ("agent", json.dumps(result(1)).encode()[:-1] + b',"a":NaN}')],
    "a result that is cut": [("client", login(1)), ("agent", json.dumps(result(1)).encode()[:-3])],
    "a long result": [("client", login(1)), ("agent", json.dumps(result(1, more=[1] * 600_000)).encode())],
    "a long login": [("client", login(1, more=[1] * 600_000)), ("agent", result(1))],
    "a login after text": [("client", b"loading... " + json.dumps(login(1)).encode()), ("agent", result(1))],
    "a result after text": [("client", login(1)), ("agent", b"\x1b]0;x\x07" + json.dumps(result(1)).encode())],
}


@pytest.mark.parametrize("messages", MEANWHILE.values(), ids=list(MEANWHILE))
def test_what_else_is_said(messages: list[tuple[str, Json]]) -> None:
    assert SECRET not in recorded(*messages)


def test_what_comes_later_is_shown() -> None:
    """The id may be used again, and the text of messages without secrets is what came."""
    for outcome in (result(1), {"id": 1, "error": {"code": -32000, "message": "no"}}):
        text = recorded(
            ("client", login(1)),
            ("agent", outcome),
            ("client", {**OTHER, "id": 1}),
            ("agent", b'{"id":1, "result":{}}'),
        )
        assert text.endswith('"msg":{"id":1, "result":{}}')


def test_what_is_not_read(tmp_path: Path) -> None:
    """A line that is too large may be a login."""
    large = login(1, more=[1] * 600_000)
    assert SECRET not in shown(tmp_path, OTHER, {"from": "client", "msg": large}, {"from": "agent", "msg": result(1)})
