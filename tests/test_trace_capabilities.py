"""`acpgen trace` of each value that needs a capability: a finding if that was not advertised, and none if it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import Severity
from acpgen.ir import model as ir
from acpgen.ir.relations import without_null
from acpgen.schema.bundled import newest_release
from acpgen.schema.gates import Gate
from acpgen.trace.reading import read_trace
from tests.support import fitting_fragments, model_of
from tests.test_trace import answer, ask, findings, start, tell

Json = Any
S = {"sessionId": "s"}
HERE = {"cwd": "/", "mcpServers": []}
INFO = {"name": "x", "version": "1"}
REMOTE = {"name": "n", "url": "https://x", "headers": []}
PLACE = {"uri": "file:///a", "position": {"line": 0, "character": 0}}
ZERO = {"start": PLACE["position"], "end": PLACE["position"]}
PROMPT = {"mode": "append", "content": [{"type": "text", "text": "a"}]}
SUGGEST = {**S, **PLACE, "version": 1, "triggerKind": "manual"}


@cache
def model_with_all(protocol: int) -> ir.Model:
    """The newest release with all bundled extensions that fit it."""
    release = newest_release(protocol)
    assert release is not None
    return model_of(SchemaChoice(protocol=protocol, release=release.name, extensions=fitting_fragments(release)))[0]


# --- Messages --------------------------------------------------------------------------------------------------------


def prompt(block: Json) -> tuple[list[Json], str]:
    text = {"type": "text", "text": "a"}
    return [ask(2, "session/prompt", {**S, "prompt": [text, block]}), answer(2, {})], "/params/prompt/1"


def setup(method: str, at: str, **params: Json) -> tuple[list[Json], str]:
    return [ask(2, method, {**S, **HERE, **params}), answer(2, S)], at


def update(tag: str, **more: Json) -> tuple[list[Json], str]:
    return [tell("session/update", {**S, "update": {"sessionUpdate": tag, **more}})], "/params/update"


def suggested(kind: str, **more: Json) -> tuple[list[Json], str]:
    result = {"suggestions": [{"kind": kind, "id": "a", "suggestionId": "a", "uri": "file:///a", **more}]}
    return [ask(2, "nes/suggest", SUGGEST), answer(2, result)], "/result/suggestions/0"


def context(key: str, **item: Json) -> tuple[list[Json], str]:
    params = {**SUGGEST, "context": {key: [{"uri": "file:///a", **item}]}}
    return [ask(2, "nes/suggest", params), answer(2, {"suggestions": []})], f"/params/context/{key}"


def elicited(mode: str, **more: Json) -> tuple[list[Json], str]:
    return [ask(2, "elicitation/create", {**S, "message": "a", "mode": mode, **more}), answer(2, {})], "/params"


def boolean_option(protocol: int) -> tuple[list[Json], str]:
    key = "id" if protocol == 1 else "configId"
    option = {key: "a", "name": "A", "type": "boolean", "currentValue": True}
    return [ask(2, "session/new", HERE), answer(2, {**S, "configOptions": [option]})], "/result/configOptions/0"


def messages(protocol: int) -> dict[str, tuple[list[Json], str]]:
    """For each gated value, messages that have it once, and its pointer there."""
    more = {"additionalDirectories": ["/b"]}
    methods = {"NewSession": "new", "LoadSession": "load", "ResumeSession": "resume", "ForkSession": "fork"}
    requests = {f"{name}Request": f"session/{method}" for name, method in methods.items()}
    kinds = {
        "http": REMOTE,
        "sse": REMOTE,
        "acp": {"name": "n", "serverId": "a"},
        "stdio": {"name": "n", "command": "c"},
    }
    return {
        "'image' in PromptRequest.prompt": prompt({"type": "image", "data": "", "mimeType": "a"}),
        "'audio' in PromptRequest.prompt": prompt({"type": "audio", "data": "", "mimeType": "a"}),
        "'resource' in PromptRequest.prompt": prompt({"type": "resource", "resource": {"uri": "a", "text": "b"}}),
        **{
            f"{kind!r} in McpServer": setup(
                "session/new", "/params/mcpServers/0", mcpServers=[{"type": kind, **server}]
            )
            for kind, server in kinds.items()
        },
        **{
            f"{name}.additionalDirectories": setup(method, "/params/additionalDirectories", **more)
            for name, method in requests.items()
        },
        **{
            f"{name}.systemPrompt": setup(method, "/params/systemPrompt", systemPrompt=PROMPT)
            for name, method in requests.items()
        },
        "'override' in SystemPromptMode": setup(
            "session/new", "/params/systemPrompt/mode", systemPrompt={**PROMPT, "mode": "override"}
        ),
        "ListSessionsRequest.archived": ([ask(2, "session/list", {"archived": "only"})], "/params/archived"),
        "'form' in CreateElicitationRequest": elicited("form", requestedSchema={"type": "object", "properties": {}}),
        "'url' in CreateElicitationRequest": elicited("url", url="https://x", elicitationId="e"),
        "'boolean' in SessionConfigOption": boolean_option(protocol),
        "'notice' in SessionUpdate": update("notice", severity="info", title="a"),
        "'compaction_update' in SessionUpdate": update("compaction_update", compactionId="a", status="completed"),
        "'compaction_summary_chunk' in SessionUpdate": update(
            "compaction_summary_chunk", compactionId="a", content={"type": "text", "text": "a"}
        ),
        "'plan_update' in SessionUpdate": update("plan_update", plan={"type": "items", "planId": "a", "entries": []}),
        "'plan_removed' in SessionUpdate": update("plan_removed", planId="a"),
        "'subagent_update' in SessionUpdate": update("subagent_update", sessionId="t"),
        "'session_message' in SessionUpdate": update("session_message", messageId="a"),
        "'session_message_chunk' in SessionUpdate": update(
            "session_message_chunk", messageId="a", content={"type": "text", "text": "a"}
        ),
        "'jump' in NesSuggestion": suggested("jump", position=PLACE["position"]),
        "'rename' in NesSuggestion": suggested("rename", position=PLACE["position"], newName="b"),
        "'searchAndReplace' in NesSuggestion": suggested("searchAndReplace", search="a", replace="b"),
        "NesSuggestContext.diagnostics": context("diagnostics", range=ZERO, severity="error", message="a"),
        "NesSuggestContext.editHistory": context("editHistory", diff="a"),
        "NesSuggestContext.openFiles": context("openFiles", languageId="a"),
        "NesSuggestContext.recentFiles": context("recentFiles", languageId="a", text="b"),
        "NesSuggestContext.relatedSnippets": context("relatedSnippets", excerpts=[]),
        "NesSuggestContext.userActions": context("userActions", action="a", position=PLACE["position"], timestampMs=1),
    }


# --- Capabilities ----------------------------------------------------------------------------------------------------


def leaf(gate: Gate, path: tuple[str, ...], model: ir.Model) -> Json:
    """The value that opens a gate."""
    expression: ir.TypeExpr = ir.Ref(gate.root)
    for wire in path:
        struct = model.definition(without_null(expression, model))
        assert isinstance(struct, ir.Struct)
        (expression,) = (field.type for field in struct.fields if field.wire == wire)
    found = without_null(expression, model)
    return (
        [{"type": "agent", "methodId": "k", "id": "k", "name": "K"}]
        if isinstance(found, ir.ListOf)
        else (True if isinstance(found, ir.Scalar) else {})
    )


def advertised(model: ir.Model, *, root: str, without: Iterable[tuple[str, ...]] = ()) -> Json:
    """The parts of `initialize` with all capabilities that open something, but some and those below them."""
    left_out = list(without)
    gates = [
        each.gate for each in (*model.methods, *model.gated_values) if each.gate is not None and each.gate.root == root
    ]
    raw: Json = {}
    for gate in gates:
        for path in gate.paths:
            if not any(path[: len(each)] == each for each in left_out):
                place = raw
                for wire in path[:-1]:
                    place = place.setdefault(wire, {})
                place.setdefault(path[-1], leaf(gate, path, model))
    return raw


def opened(model: ir.Model, *, without: Gate | None = None) -> list[Json]:
    """`initialize` with all capabilities, or without those of a gate."""
    both = []
    for root in ("InitializeRequest", "InitializeResponse"):
        missing = without.paths if without is not None and without.root == root else ()
        told = advertised(model, root=root, without=missing)
        both.append({"protocolVersion": model.protocol, "info": INFO, **told})
    return [ask(0, "initialize", both[0]), answer(0, both[1])]


def found_in(lines: Sequence[Json], model: ir.Model, folder: Path) -> list[tuple[str | None, str]]:
    """The findings about capabilities."""
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    trace = read_trace(path, {model.protocol: model}, keep=False, shows_secrets=False)
    found = [each for each in trace.diagnostics if each.code == "capability"]
    assert all(each.severity is Severity.ERROR for each in found)
    return [(each.pointer, each.message) for each in found]


@pytest.mark.parametrize("protocol", [1, 2])
def test_each_value_needs_its_capability(protocol: int, tmp_path: Path) -> None:
    model, table = model_with_all(protocol), messages(protocol)
    gated = {str(each): each.gate for each in model.gated_values if each.definition != "AuthMethod"}
    assert len(gated) > 20
    without = {
        name: found_in([*opened(model, without=gate), *table[name][0]], model, tmp_path) for name, gate in gated.items()
    }
    needs = {name: f"{name} needs {gate}, which was not advertised" for name, gate in gated.items()}
    assert without == {name: [(table[name][1], message)] for name, message in needs.items()}
    lines = [line for name in gated for line in table[name][0]]
    assert found_in([*opened(model), *lines], model, tmp_path) == []
    assert found_in(lines, model, tmp_path) == []  # what is not known is not missed


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_terminal_login_is_found_in_the_answer_to_initialize(protocol: int, tmp_path: Path) -> None:
    model = model_with_all(protocol)
    (gated,) = [each for each in model.gated_values if each.definition == "AuthMethod"]
    for without, expected in ((None, 0), (gated.gate, 1)):
        lines = opened(model, without=without)
        login = {"type": "terminal", "id": "t", "methodId": "t", "name": "T"}
        lines[1]["result"]["authMethods"] = [login]
        found = found_in(lines, model, tmp_path)
        assert found == [("/result/authMethods/0", f"{gated} needs {gated.gate}, which was not advertised")] * expected


def test_what_the_other_side_may_send_and_what_says_nothing_passes(tmp_path: Path) -> None:
    """An image from the agent, no further directories, and a list with a kind of server that every agent takes."""
    image = {"type": "image", "data": "", "mimeType": "a"}
    server = {"name": "n", "command": "c", "args": [], "env": []}
    lines = [
        *start({}, {}),
        ask(1, "session/new", {"cwd": "/", "mcpServers": [server], "additionalDirectories": []}),
        answer(1, S),
        tell("session/update", {**S, "update": {"sessionUpdate": "agent_message_chunk", "content": image}}),
        ask(2, "session/prompt", {**S, "prompt": [{"type": "resource_link", "uri": "a", "name": "a"}]}),
        answer(2, {"stopReason": "end_turn"}),
    ]
    assert findings(tmp_path, lines) == []


def test_a_method_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    lines, _ = elicited("form", requestedSchema={"type": "object", "properties": {}})
    assert found_in([*start({}, {}), *lines], model_with_all(1), tmp_path) == [
        ("/method", "'elicitation/create' needs clientCapabilities.elicitation.form or"
         " clientCapabilities.elicitation.url of InitializeRequest, which was not advertised"),
    ]  # fmt: skip


def test_each_of_several_is_found_at_its_place(tmp_path: Path) -> None:
    servers = [{"type": kind, "name": "n", "url": "https://x", "headers": []} for kind in ("http", "sse", "http")]
    lines = [*start({}, {}), ask(1, "session/new", {"cwd": "/", "mcpServers": servers}), answer(1, S)]
    expected = [(3, "error", "capability", f"/params/mcpServers/{at}") for at in range(3)]
    assert sorted(findings(tmp_path, lines)) == expected
