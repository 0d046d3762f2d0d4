"""`acpgen trace`: planted mistakes are found at their places, and conversations without mistakes pass."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Outcome, run_acpgen
from tests.interop import values_v1, values_v2
from tests.interop.values import Exchange
from tests.support import REPOSITORY

Json = Any

S = {"sessionId": "s"}
ALL = {
    "loadSession": True,
    "promptCapabilities": {"image": True},
    "mcpCapabilities": {"http": True},
    "auth": {"logout": {}},
    "sessionCapabilities": {key: {} for key in ("close", "delete", "list", "resume")},
}
FILES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
METHODS = [{"id": "key", "name": "Key"}]


def ask(identity: Json, method: str, params: Json, **more: Json) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params, **more}


def tell(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(identity: Json, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def failure(identity: Json, error: Json) -> Json:
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def start(agent: Json, client: Json) -> list[Json]:
    asked = {"protocolVersion": 1, "clientCapabilities": client}
    said = {"protocolVersion": 1, "agentCapabilities": agent, "authMethods": METHODS}
    return [ask(0, "initialize", asked), answer(0, said)]


OPENED = [
    *start(ALL, FILES),
    ask(1, "session/new", {"cwd": "/", "mcpServers": []}),
    answer(1, S),
]


def written(folder: Path, messages: Sequence[Json]) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in messages), encoding="utf-8")
    return path


def traced(folder: Path, messages: Sequence[Json], *options: str) -> Outcome:
    return run_acpgen("trace", written(folder, messages), *options, cwd=folder)


def findings(folder: Path, messages: Sequence[Json], *options: str) -> list[tuple[int, str, str, str]]:
    """The findings: line, severity, code and pointer."""
    found = json.loads(traced(folder, messages, "--format", "json", *options).stderr)
    return [(each["line"], each["severity"], each["code"], each["pointer"] or "") for each in found]


def prompted(*blocks: Json) -> list[Json]:
    return [ask(2, "session/prompt", {**S, "prompt": [*blocks]}), answer(2, {"stopReason": "end_turn"})]


def updated(**update: Json) -> list[Json]:
    return [tell("session/update", {**S, "update": update})]


def opened_with(params: Json) -> list[Json]:
    return [ask(2, "session/new", params), answer(2, {"sessionId": "t"})]


def permission(options: Json, outcome: Json) -> list[Json]:
    params = {**S, "toolCall": {"toolCallId": "c"}, "options": options}
    return [ask(2, "session/request_permission", params), answer(2, {"outcome": outcome})]


TEXT = {"type": "text", "text": "Hello"}
ALLOW = {"optionId": "a", "name": "Allow", "kind": "allow_once"}
CHOSEN = {"outcome": "selected", "optionId": "a"}
READ = {**S, "path": "/x"}
HERE = {"cwd": "/", "mcpServers": []}

PLANTED: dict[str, tuple[list[Json], tuple[int, str, str]]] = {
    # values in params
    "a property is missing": (prompted({"type": "text"}), (5, "missing-property", "/params/prompt/0")),
    "a number for a text": (prompted({**TEXT, "text": 1}), (5, "wrong-value", "/params/prompt/0/text")),
    "null for a text": (prompted({**TEXT, "text": None}), (5, "wrong-value", "/params/prompt/0/text")),
    "an unknown tag": (prompted({"type": "video"}), (5, "wrong-value", "/params/prompt/0/type")),
    "no tag": (prompted({"text": "a"}), (5, "wrong-value", "/params/prompt/0")),
    "a tag that is a number": (prompted({"type": 1}), (5, "wrong-value", "/params/prompt/0/type")),
    "a text for a block": (prompted("Hello"), (5, "wrong-value", "/params/prompt/0")),
    "the second of two blocks": (prompted(TEXT, {"type": "text"}), (5, "missing-property", "/params/prompt/1")),
    "an image without data": (
        prompted({"type": "image", "mimeType": "a"}),
        (5, "missing-property", "/params/prompt/0"),
    ),
    "a link without a name": (
        prompted({"type": "resource_link", "uri": "a"}),
        (5, "missing-property", "/params/prompt/0"),
    ),
    "an object for the prompt": (
        [ask(2, "session/prompt", {**S, "prompt": TEXT}), answer(2, {"stopReason": "end_turn"})],
        (5, "wrong-value", "/params/prompt"),
    ),
    "no prompt": (
        [ask(2, "session/prompt", S), answer(2, {"stopReason": "end_turn"})],
        (5, "missing-property", "/params"),
    ),
    "params that are an array": (
        [ask(2, "session/prompt", []), answer(2, {"stopReason": "end_turn"})],
        (5, "wrong-value", "/params"),
    ),
    "no params": (
        [{"jsonrpc": "2.0", "id": 2, "method": "session/close"}, answer(2, {})],
        (5, "missing-property", "/params"),
    ),
    "servers that are a text": (opened_with({**HERE, "mcpServers": 1}), (5, "wrong-value", "/params/mcpServers")),
    "a folder that is a number": (opened_with({**HERE, "cwd": 1}), (5, "wrong-value", "/params/cwd")),
    "no folder": (opened_with({"mcpServers": []}), (5, "missing-property", "/params")),
    "a negative line": (
        [ask(2, "fs/read_text_file", {**READ, "line": -1}), answer(2, {"content": ""})],
        (5, "wrong-value", "/params/line"),
    ),
    "a limit with a fraction": (
        [ask(2, "fs/read_text_file", {**READ, "limit": 1.5}), answer(2, {"content": ""})],
        (5, "wrong-value", "/params/limit"),
    ),
    "true for a number": (
        [ask(2, "fs/read_text_file", {**READ, "line": True}), answer(2, {"content": ""})],
        (5, "wrong-value", "/params/line"),
    ),
    "a file without content": (
        [ask(2, "fs/write_text_file", READ), answer(2, {})],
        (5, "missing-property", "/params"),
    ),
    "a command without its name": (
        [ask(2, "terminal/create", S), answer(2, {"terminalId": "t"})],
        (5, "missing-property", "/params"),
    ),
    "an unknown update": (updated(sessionUpdate="mood"), (5, "wrong-value", "/params/update/sessionUpdate")),
    "an update without its tag": (updated(content=TEXT), (5, "wrong-value", "/params/update")),
    "a chunk without content": (
        updated(sessionUpdate="agent_message_chunk"),
        (5, "missing-property", "/params/update"),
    ),
    "a chunk with a text": (
        updated(sessionUpdate="agent_message_chunk", content="a"),
        (5, "wrong-value", "/params/update/content"),
    ),
    "a tool call without a title": (
        updated(sessionUpdate="tool_call", toolCallId="c", status="failed"),
        (5, "missing-property", "/params/update"),
    ),
    "a tool call without an id": (
        updated(sessionUpdate="tool_call", title="c"),
        (5, "missing-property", "/params/update"),
    ),
    "an update without a session": (
        [tell("session/update", {"update": {"sessionUpdate": "agent_message_chunk", "content": TEXT}})],
        (5, "missing-property", "/params"),
    ),
    "a kind of option": (
        permission([{**ALLOW, "kind": "maybe"}], CHOSEN),
        (5, "wrong-value", "/params/options/0/kind"),
    ),
    "an option without a name": (
        permission([{"optionId": "a", "kind": "allow_once"}], CHOSEN),
        (5, "missing-property", "/params/options/0"),
    ),
    # results
    "an unknown outcome": (permission([ALLOW], {"outcome": "yes"}), (6, "wrong-value", "/result/outcome/outcome")),
    "an outcome without its option": (
        permission([ALLOW], {"outcome": "selected"}),
        (6, "missing-property", "/result/outcome"),
    ),
    "an outcome that is a text": (permission([ALLOW], "a"), (6, "wrong-value", "/result/outcome")),
    "an unknown stop reason": (
        [prompted(TEXT)[0], answer(2, {"stopReason": "done"})],
        (6, "wrong-value", "/result/stopReason"),
    ),
    "no stop reason": ([prompted(TEXT)[0], answer(2, {})], (6, "missing-property", "/result")),
    "a result that is a text": ([prompted(TEXT)[0], answer(2, "end_turn")], (6, "wrong-value", "/result")),
    "a file that is no text": (
        [ask(2, "fs/read_text_file", READ), answer(2, {"content": 1})],
        (6, "wrong-value", "/result/content"),
    ),
    "a session without an id": ([opened_with(HERE)[0], answer(2, {})], (6, "missing-property", "/result")),
    # JSON-RPC
    "no version of JSON-RPC": (
        [{"id": 2, "method": "session/close", "params": S}, answer(2, {})],
        (5, "envelope", "/jsonrpc"),
    ),
    "another version of JSON-RPC": (
        [ask(2, "session/close", S, jsonrpc="1.0"), answer(2, {})],
        (5, "envelope", "/jsonrpc"),
    ),
    "a method that is a number": ([{"jsonrpc": "2.0", "method": 1}], (5, "envelope", "/method")),
    "an id that is an object": ([ask({}, "session/close", S)], (5, "envelope", "/id")),
    "an id that is a boolean": ([ask(True, "session/close", S)], (5, "envelope", "/id")),
    "a result and an error": (
        [ask(2, "session/close", S), {**answer(2, {}), "error": {"code": 1, "message": ""}}],
        (6, "envelope", ""),
    ),
    "neither result nor error": ([ask(2, "session/close", S), {"jsonrpc": "2.0", "id": 2}], (6, "envelope", "")),
    "an error that is a text": ([ask(2, "session/close", S), failure(2, "no")], (6, "envelope", "/error")),
    "a code that is a text": (
        [ask(2, "session/close", S), failure(2, {"code": "1", "message": ""})],
        (6, "envelope", "/error/code"),
    ),
    "an error without a message": (
        [ask(2, "session/close", S), failure(2, {"code": 1})],
        (6, "envelope", "/error/message"),
    ),
    "a request as a notification": ([tell("session/close", S)], (5, "wrong-kind", "")),
    "a notification as a request": ([ask(2, "session/cancel", S), answer(2, {})], (5, "wrong-kind", "/id")),
    "an unknown method": ([tell("session/dance", {})], (5, "unknown-method", "/method")),
    "a method of the other side": (
        [{"from": "agent", "to": "client", "msg": tell("session/cancel", S)}],
        (5, "wrong-side", "/method"),
    ),
    # pairs and order
    "an answer that never comes": ([ask(2, "session/close", S)], (5, "unanswered", "")),
    "an answer to nothing": ([answer(7, {})], (5, "no-request", "/id")),
    "an answer of the asking side": (
        [
            {"from": "client", "msg": ask(2, "session/close", S)},
            {"from": "client", "msg": answer(2, {})},
            {"from": "agent", "msg": answer(2, {})},
        ],
        (6, "no-request", "/id"),
    ),
    "a second answer": ([ask(2, "session/close", S), answer(2, {}), answer(2, {})], (7, "no-request", "/id")),
    "an id in use": (
        [ask(2, "session/list", {}), ask(2, "session/list", {}), answer(2, {"sessions": []})],
        (6, "id-in-use", "/id"),
    ),
    "an id of another type": ([ask(2, "session/close", S), answer("2", {}), answer(2, {})], (6, "no-request", "/id")),
    "a session that was not opened": (
        [ask(2, "session/prompt", {"sessionId": "u", "prompt": []}), answer(2, {"stopReason": "end_turn"})],
        (5, "session", "/params/sessionId"),
    ),
    "a session that has ended": (
        [ask(2, "session/close", S), answer(2, {}), tell("session/cancel", S)],
        (7, "session", "/params/sessionId"),
    ),
    "a line that is cut": ([], (5, "no-message", "")),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_found_at_their_places(name: str, tmp_path: Path) -> None:
    messages, expected = PLANTED[name]
    path = written(tmp_path, [*OPENED, *messages])
    if not messages:
        path.write_text(path.read_text(encoding="utf-8") + '{"jsonrpc": "2.0", "id":\n', encoding="utf-8")
    outcome = run_acpgen("trace", path, "--format", "json", cwd=tmp_path)
    found = [(each["line"], each["code"], each["pointer"] or "") for each in json.loads(outcome.stderr)]
    assert found == [expected]
    assert outcome.code == 1


def test_the_table_of_codes_is_complete() -> None:
    made = re.compile(r'(?:_problem\(|(?:Misfit|Diagnostic|replace)\([^)]*?\bcode=)"([\w-]+)"')
    modules = (REPOSITORY / "acpgen" / "trace").glob("*.py")
    codes = {code for module in modules for code in made.findall(module.read_text(encoding="utf-8"))}
    page = (REPOSITORY / "docs" / "trace.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| (?:error|warning|note) \|", page, flags=re.MULTILINE)
    assert {code for row in rows for code in re.findall(r"`([\w-]+)`", row)} == codes


def test_there_are_sixty_kinds_of_planted_mistakes() -> None:
    """And no two of them are the same conversation."""
    assert len({json.dumps(messages) for messages, _ in PLANTED.values()}) == len(PLANTED) >= 60


GATED = {
    "session/load": {**S, **HERE},
    "session/list": {},
    "session/resume": {**S, **HERE},
    "session/delete": S,
    "logout": {},
    "fs/read_text_file": READ,
    "fs/write_text_file": {**READ, "content": ""},
    "terminal/create": {**S, "command": "a"},
}


@pytest.mark.parametrize("method", GATED)
def test_capabilities_that_were_not_advertised_are_found(method: str, tmp_path: Path) -> None:
    call = [ask(2, method, GATED[method]), failure(2, {"code": -32601, "message": "no"})]
    assert findings(tmp_path, [*start({}, {}), *call]) == [(3, "error", "capability", "/method")]
    assert findings(tmp_path, [*start(ALL, FILES), *call]) == []


def test_a_call_before_the_start_is_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [ask(1, "session/new", HERE), answer(1, S), *start({}, {})])
    assert found == [(1, "error", "before-start", "/method")]


def conversation(protocol: int, exchanges: Sequence[Exchange]) -> list[Json]:
    values = values_v1 if protocol == 1 else values_v2
    messages = [ask(0, "initialize", values.OPENING), answer(0, values.INITIALIZE.result)]
    for number, each in enumerate(exchanges, 1):
        if "sessionId" in each.params:  # each exchange starts from an open session, as in the tests of conversations
            new = f"open {number}"
            messages += [ask(new, "session/new", HERE), answer(new, {"sessionId": each.params["sessionId"]})]
        if each.result is None:
            messages.append(tell(each.method, each.params))
        else:
            messages += [ask(number, each.method, each.params), answer(number, each.result)]
    return messages


@pytest.mark.parametrize(("protocol", "exchanges"), [(1, values_v1.EXCHANGES), (2, values_v2.EXCHANGES)])
def test_what_the_official_sdks_send_and_accept_has_no_mistakes(
    protocol: int, exchanges: Sequence[Exchange], tmp_path: Path
) -> None:
    assert len(exchanges) > 20
    found = findings(tmp_path, conversation(protocol, exchanges))
    assert [each for each in found if each[1] == "error"] == []


def test_unknown_properties_are_notes_and_do_not_fail(tmp_path: Path) -> None:
    call = [ask(2, "session/close", {**S, "mood": 1}), answer(2, {})]
    assert findings(tmp_path, [*OPENED, *call]) == [(5, "note", "unknown-property", "/params/mood")]
    assert traced(tmp_path, [*OPENED, *call]).code == 0


def test_a_null_that_says_nothing_is_a_note(tmp_path: Path) -> None:
    """Not one in a patch, nor one where any JSON may be."""
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "status": "failed", "rawOutput": None}
    found = [*updated(**call, name=None), *updated(sessionUpdate="session_info_update", title=None)]
    assert findings(tmp_path, [*OPENED, *found]) == [(5, "note", "null", "/params/update/name")]
    assert traced(tmp_path, [*OPENED, *found]).code == 0


def test_true_is_not_the_constant_1(tmp_path: Path) -> None:
    head = {"fragment": 1, "id": "mine", "revision": "1", "title": "Mine", "status": "vendor", "protocols": [1]}
    params = {"type": "object", "properties": {"level": {"const": 1, "type": "integer"}}, "required": ["level"]}
    definition = {**params, "x-method": "_level", "x-side": "agent"}
    extension = tmp_path / "mine.json"
    extension.write_text(json.dumps({**head, "$defs": {"LevelNotification": definition}}), encoding="utf-8")
    said = [tell("_level", {"level": level}) for level in (1, 1.0, True)]
    found = findings(tmp_path, [*OPENED, *said], "--extension", "mine.json")
    assert found == [(7, "error", "wrong-value", "/params/level")]


def test_the_extension_that_defines_a_method_is_named(tmp_path: Path) -> None:
    call = [ask(2, "session/fork", {**S, **HERE}), answer(2, {"sessionId": "t"})]
    assert "--extension session-fork" in traced(tmp_path, [*OPENED, *call]).stderr


def test_leniency_is_a_warning(tmp_path: Path) -> None:
    found = findings(
        tmp_path, [*OPENED, *updated(sessionUpdate="tool_call", toolCallId="c", title="t", kind="odd", status="failed")]
    )
    assert found == [(5, "warning", "leniency", "/params/update/kind")]


def test_prefixes_envelopes_and_batches_are_read(tmp_path: Path) -> None:
    path = tmp_path / "editor.log"
    hello, said = start({}, {})
    new = {"timestamp": "2026-01-02T03:04:05Z", "dir": "out", "message": ask(1, "session/new", HERE)}
    answered = {"timestamp": "2026-01-02T03:04:07Z", "dir": "in", "message": answer(1, S)}
    lines = [
        f"[12:00:00 info] --> {json.dumps(hello)}",
        "the agent has started",
        json.dumps([5, said]),
        json.dumps(new),
        json.dumps(answered),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    outcome = run_acpgen("trace", path, cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.stderr.count("error: ") == 1  # the batch itself
    assert "editor.log:3:1: error: ACP has no batches: each message is a line of its own [envelope]" in outcome.stderr
    assert "2.000 s" in outcome.stdout


def test_annotations_for_github_have_the_line(tmp_path: Path) -> None:
    shown = traced(tmp_path, [*OPENED, tell("session/dance", {})], "--format", "github").stderr
    assert "::error file=" in shown
    assert ",line=5,col=1,title=unknown-method::" in shown


def test_a_file_without_messages_is_an_error(tmp_path: Path) -> None:
    outcome = traced(tmp_path, ["text"])
    assert (outcome.code, "has no messages" in outcome.stderr) == (2, True)


@pytest.mark.parametrize("depth", [100, 900, 980, 2_000, 100_000])
def test_deep_messages_are_reported_or_read(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    deep = "[" * depth + "]" * depth
    path.write_text(f'{{"jsonrpc":"2.0","id":{deep},"result":{deep}}}\n', encoding="utf-8")
    assert run_acpgen("trace", path, cwd=tmp_path).code == 1


def test_lone_surrogates_and_control_characters_are_printed(tmp_path: Path) -> None:
    text = traced(tmp_path, [*OPENED, *prompted({"type": "\ud800\x1b[31m"})]).stderr
    assert "wrong-value" in text
    assert "\x1b" not in text


def test_findings_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    """The rest of the trace is read, and its errors count even where notes come first."""
    odd = ask(2, "session/close", {**S, **{f"mood{number}": 1 for number in range(10_010)}})
    path = written(tmp_path, [*OPENED, odd, answer(2, {}), tell("session/dance", {})])
    ran = run_acpgen("trace", path, cwd=tmp_path)
    assert ran.code == 1
    assert "10 more findings of this severity are not listed: these are the first 10000 [more-findings]" in ran.stderr
    found = json.loads(run_acpgen("trace", path, "--format", "json", cwd=tmp_path).stderr)
    assert (found[-1]["code"], found[-1]["line"]) == ("unknown-method", 7)
    assert [each["severity"] for each in found if each["code"] == "more-findings"] == ["note"]
    assert len(found) == 10_002


def test_however_many_requests_wait_each_is_followed(tmp_path: Path) -> None:
    numbers = range(10, 10_020)
    asked = [ask(number, "session/list", {}) for number in numbers]
    messages = [*OPENED, *asked, *(answer(number, {"sessions": []}) for number in numbers)]
    assert findings(tmp_path, messages) == []
    found = findings(tmp_path, [*messages, answer(10, {}), answer(99_999, {})])
    assert found == [(20_025, "error", "no-request", "/id"), (20_026, "error", "no-request", "/id")]


# --- Turns and tasks ------------------------------------------------------------------------------------------------


def chunk(text: str = "a") -> Json:
    return updated(sessionUpdate="agent_message_chunk", content={**TEXT, "text": text})[0]


def called(status: str | None = None, identity: str = "c", **more: Json) -> Json:
    update = {"sessionUpdate": "tool_call", "toolCallId": identity, "title": "t", **more}
    return updated(**update, **({} if status is None else {"status": status}))[0]


def changed(status: str) -> Json:
    return updated(sessionUpdate="tool_call_update", toolCallId="c", status=status)[0]


PROMPT, DONE = prompted(TEXT)
MODE = updated(sessionUpdate="current_mode_update", currentModeId="m")[0]
LOAD = [ask(3, "session/load", {**S, **HERE}), chunk(), answer(3, {})]
LATE = (7, "warning", "after-turn", "/params/update")
OPEN_END = "not-ended"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([PROMPT, DONE, chunk()], [LATE]),
        ([PROMPT, failure(2, {"code": -32603, "message": "no"}), chunk()], [LATE]),
        ([PROMPT, DONE, called("completed")], [LATE]),
        ([PROMPT, chunk(), DONE], []),
        ([chunk(), PROMPT, DONE], []),  # nothing was answered yet
        ([PROMPT, DONE, MODE], []),  # a mode may change at any time
        ([PROMPT, DONE, *LOAD], []),
        ([PROMPT, DONE, *LOAD, chunk()], []),  # since then, there was no turn
        ([PROMPT, DONE, ask(3, "session/prompt", {**S, "prompt": []}), chunk(), answer(3, DONE["result"])], []),
    ],
)
def test_updates_of_a_turn_come_before_its_answer(
    messages: list[Json], expected: list[tuple[int, str, str, str]], tmp_path: Path
) -> None:
    assert findings(tmp_path, [*OPENED, *messages]) == expected


def test_updates_come_at_any_time_where_a_prompt_is_only_accepted(tmp_path: Path) -> None:
    exchanges = [each for each in values_v2.EXCHANGES if each.method == "session/prompt"][:1]
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": TEXT}
    late = tell("session/update", {**exchanges[0].params, "update": update})
    late["params"].pop("prompt")
    assert findings(tmp_path, [*conversation(2, exchanges), late]) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([PROMPT, called(), DONE], [6]),
        ([PROMPT, called("in_progress"), changed("in_progress"), DONE], [6]),
        ([PROMPT, called("completed"), changed("in_progress"), DONE], [7]),
        ([PROMPT, called(), called(identity="d"), changed("failed"), DONE], [7]),
        ([PROMPT, called("completed"), DONE], []),
        ([PROMPT, called(), changed("failed"), DONE], []),
        (
            [
                PROMPT,
                called(),
                changed("completed"),
                updated(sessionUpdate="tool_call_update", toolCallId="c")[0],
                DONE,
            ],
            [],
        ),
        ([PROMPT, called(), tell("session/cancel", S), DONE], []),  # the client knows that it has stopped
        ([PROMPT, called(), tell("session/cancel", S), called(identity="d"), DONE], []),
    ],
)
def test_tool_calls_that_never_end_are_notes(messages: list[Json], expected: list[int], tmp_path: Path) -> None:
    found = findings(tmp_path, [*OPENED, *messages])
    assert found == [(line, "note", OPEN_END, "") for line in expected]


@pytest.mark.parametrize(("status", "count"), [("cancelled", 0), ("in_progress", 1), (None, 1)])
def test_the_protocol_says_which_status_is_the_end(status: str | None, count: int, tmp_path: Path) -> None:
    opened = conversation(2, [each for each in values_v2.EXCHANGES if each.method == "session/prompt"][:1])
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}
    session = {
        "sessionId": opened[-1]["params"]["sessionId"] if "params" in opened[-1] else opened[3]["result"]["sessionId"]
    }
    found = findings(tmp_path, [*opened, tell("session/update", {**session, "update": update})])
    assert [each[2] for each in found] == [OPEN_END] * count


START = {"acp_trace": 1, "started": "2026-01-02T03:04:05Z", "command": ["agent"]}


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ([*OPENED, PROMPT, called(), DONE, '{"jsonrpc": "2.0", "id"'], {"no-message"}),
        ([*OPENED, PROMPT, called()], {"unanswered"}),  # the turn has not ended
        ([START, *OPENED, PROMPT, called(), DONE], set()),  # the recorder was killed
        ([START, *OPENED, PROMPT, called(), DONE, {"lost": 3}, {"end": 0}], set()),
        ([START, *OPENED, PROMPT, called(), DONE, {"end": 0}], {OPEN_END}),
    ],
)
def test_a_trace_that_was_cut_does_not_show_the_end(lines: list[Json], codes: set[str], tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    found = json.loads(run_acpgen("trace", path, "--format", "json", cwd=tmp_path).stderr)
    assert {each["code"] for each in found} == codes


# --- Connections ----------------------------------------------------------------------------------------------------


def on(connection: Json, *messages: Json) -> list[Json]:
    return [{"connection": connection, "msg": each} for each in messages]


def test_lines_that_name_their_connection_are_followed_apart(tmp_path: Path) -> None:
    """Ids of requests and sessions belong to a connection."""
    pairs = zip(on("a", *OPENED), on(7, *OPENED), strict=True)
    both = [each for pair in pairs for each in pair]
    assert findings(tmp_path, both) == []
    wrong = [*both, *on("b", *start({}, {})), *on("b", tell("session/cancel", S))]
    assert findings(tmp_path, wrong) == [(11, "error", "session", "/params/sessionId")]


def test_each_start_of_a_recording_is_a_connection(tmp_path: Path) -> None:
    again = [START, *OPENED, {"from": "agent", "other": "a word"}, {"end": 0}]
    assert findings(tmp_path, [*again, *again]) == []
    left = [START, *OPENED, PROMPT, {"end": -9}, *again]
    assert findings(tmp_path, left) == [(6, "error", "unanswered", "")]


def test_a_request_of_a_recording_without_an_end_is_no_error(tmp_path: Path) -> None:
    assert findings(tmp_path, [START, *OPENED, PROMPT]) == [(6, "note", "unanswered", "")]


def test_lines_of_other_logs_are_no_events(tmp_path: Path) -> None:
    assert findings(tmp_path, [*OPENED, {"level": "info", "end": 5}, PROMPT]) == [(6, "error", "unanswered", "")]


def test_an_envelope_may_have_a_batch(tmp_path: Path) -> None:
    found = findings(tmp_path, [*OPENED, {"from": "agent", "msg": [tell("session/cancel", S), 5]}])
    assert found == [
        *((5, "error", "envelope", ""), (5, "error", "no-message", "")),
        (5, "error", "wrong-side", "/method"),
    ]
